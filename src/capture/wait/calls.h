/*
 * Finds what a thread waits for without BPF: maps the system call that it is in and the call's
 * arguments to a wait reason and an object. On x86-64 no register that perf samples holds the
 * call's number, so it is decoded from the code before the syscall instruction, or, for a call site
 * of syscall(2), read once from /proc/TID/syscall.
 */
#ifndef ASSAY_CAPTURE_WAIT_CALLS_H
#define ASSAY_CAPTURE_WAIT_CALLS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/wait/waitaccount.h"

/* A system call in progress. */
struct call {
	int nr; /* number of the system call, or CALL_NONE, CALL_UNKNOWN */
	uint64_t args[6];
	uint64_t ip;
	uint64_t sp;
};
#define CALL_NONE    (-1) /* in no call: a page fault, or the thread was in user mode */
#define CALL_UNKNOWN (-2) /* in a call whose number is not known */

struct waitcalls {
	struct map nr_of_site; /* hash of process, ip and caller -> number + 2, 0 = unknown */
	struct map file_of_fd; /* pid << 32 | fd -> index + 1 */
	VEC(struct call_file) files;
};

void waitcalls_release(struct waitcalls *w);
/* Empties the cache of files by descriptor, since descriptors are reused. Call once per second. */
void waitcalls_forget_files(struct waitcalls *w);
/*
 * Returns the call that a sample's user registers (mask ARCH_PERF_REGS_MASK) show. @caller: the
 * word at the top of the stack, which is the return address of syscall(2) and so identifies its
 * caller.
 */
struct call waitcalls_from_regs(struct waitcalls *w, int32_t pid, const uint64_t *regs,
				uint64_t caller);
/* Stores the number that /proc reports for a call site whose code does not contain it. */
void waitcalls_learn(struct waitcalls *w, int32_t pid, const struct call *call, uint64_t caller);
/* Sets reason, system call and object of a wait in this call; leaves cause->ref as it is. */
void waitcalls_cause(struct waitcalls *w, struct intern *objects, int32_t pid,
		     const struct call *call, struct wait_cause *cause);

#endif
