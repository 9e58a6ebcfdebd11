/*
 * What a thread waits for, told from outside the kernel: the system call that it is in and its
 * arguments -> reason and object. Which call it is stands in no register that perf samples on
 * x86-64, so it is read off the code before the system call instruction, or learned once from
 * /proc/TID/syscall for a call site of syscall(2).
 */
#ifndef ASSAY_CAPTURE_WAIT_CALLS_H
#define ASSAY_CAPTURE_WAIT_CALLS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/wait/waitaccount.h"

/* A system call in progress. */
struct call {
	int nr; /* -1 = none: a fault, or the thread was in user mode; -2 = not known which */
	uint64_t args[6];
	uint64_t ip;
	uint64_t sp;
};
#define CALL_NONE    (-1)
#define CALL_UNKNOWN (-2)

struct waitcalls {
	struct map nr_of_site; /* hash of process, ip and caller -> number + 2, 0 = unknown */
	struct map file_of_fd; /* pid << 32 | fd -> index + 1 */
	VEC(struct call_file) files;
};

void waitcalls_release(struct waitcalls *w);
/* Descriptors change their files: what is known of them is looked up again. */
void waitcalls_forget_files(struct waitcalls *w);
/* From a sample's user registers (mask ARCH_PERF_REGS_MASK); @caller: the word at the top of the
 * stack. */
struct call waitcalls_from_regs(struct waitcalls *w, int32_t pid, const uint64_t *regs,
				uint64_t caller);
/* What /proc said of a call site whose number the code does not say. */
void waitcalls_learn(struct waitcalls *w, int32_t pid, const struct call *call, uint64_t caller);
/* Reason, system call and object of a wait in this call; the stack is left as it is. */
void waitcalls_why(struct waitcalls *w, struct intern *objects, int32_t pid,
		   const struct call *call, struct why *why);

#endif
