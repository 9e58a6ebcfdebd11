/*
 * Calls into a running process by ptrace on one of its threads; the others never stop. While a
 * session is open that thread is stopped (or runs what it was made to run), so sessions are short:
 * what can be prepared is prepared before, and remote_stopped_ns tells how long it was.
 *
 * The thread is taken at a place where it may be borrowed: with remote_options.avoid, its stack is
 * looked through for return addresses in these ranges (an allocator's code), and where there is
 * one another thread is tried, or the same one a little later. Red zone, vector and floating
 * point state, an interrupted system call (it is restarted), pending signals, the direction flag
 * are as they were when the session is closed; signals that arrive meanwhile are delivered after.
 * A call that does not return within its time is abandoned: the thread's state is restored, as far
 * as the kernel lets us, and -ETIMEDOUT returned.
 *
 * Works for glibc, musl and static programs, in other PID and mount namespaces, since nothing in
 * the target's file system is used. A seccomp filter may refuse system calls: that is an error
 * (-EPERM with a hint) or, where the filter kills, is not tried: filters are looked at first
 * (/proc/PID/status) and a target with one gets no system call but those it makes itself, unless
 * PTRACE_O_SUSPEND_SECCOMP is allowed.
 *
 * Must be used by the thread that opened it, as ptrace demands.
 */
#ifndef ASSAY_REMOTE_PTRACE_REMOTE_H
#define ASSAY_REMOTE_PTRACE_REMOTE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

struct remote;

struct remote_options {
	const struct heap_ranges *avoid; /* code in which the thread must not be; may be NULL */
	uint64_t timeout_ns;             /* of one call, and of finding a thread; 0 = 1 s */
	/*
	 * REMOTE_AREA_BYTES of the target that are free for the session's stack and arguments;
	 * 0: they are mapped for it, which takes two system calls.
	 */
	uint64_t area;
};

/*
 * -ESRCH: it is gone. -EPERM: with a hint that names the remedy (yama, capabilities, not dumpable,
 * another tracer). -EAGAIN: no thread could be borrowed in time.
 */
int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err);
/*
 * The same with a thread that the calling thread of ours traces already and that stands at a
 * signal (remote/patch/launch.h holds it so): closing leaves it standing, as it was.
 */
int remote_seize(struct remote **ret_r, int32_t pid, int32_t tid,
		 const struct remote_options *options, struct err *err);
/* Restores and lets go. Also when the target has died meanwhile. */
void remote_close(struct remote *r);
void remote_close_p(struct remote **r);

#define REMOTE_ARGS_MAX      6
#define REMOTE_SCRATCH_BYTES 65536u /* of all remote_scratch together, in a session */
#define REMOTE_STACK_BYTES   (256u << 10)
#define REMOTE_AREA_BYTES    (REMOTE_STACK_BYTES + REMOTE_SCRATCH_BYTES)

/* *ret_result as the kernel gives it, negative errno included. */
int remote_syscall(struct remote *r, long nr, const uint64_t args[REMOTE_ARGS_MAX],
		   int64_t *ret_result, struct err *err);
/* Calls a C function. */
int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		uint64_t *ret_result, struct err *err);
/*
 * Memory of the target for arguments: valid until the session is closed. It is mapped for the
 * session, with the stack on which calls run, as a thread's own may be small (coroutines).
 */
int remote_scratch(struct remote *r, size_t nr_bytes, uint64_t *ret_addr, struct err *err);
int remote_read(struct remote *r, uint64_t addr, void *to, size_t n, struct err *err);
/* Also into memory that the target may not write itself. */
int remote_write(struct remote *r, uint64_t addr, const void *from, size_t n, struct err *err);
/* A descriptor of ours for the target's descriptor @fd. */
int remote_get_fd(struct remote *r, int fd, int *ret_fd, struct err *err);
int32_t remote_tid(const struct remote *r);
uint64_t remote_thread_pointer(const struct remote *r);
bool remote_has_filter(const struct remote *r); /* seccomp, and it could not be suspended */
/* How long the thread has been away from its own work. */
uint64_t remote_stopped_ns(const struct remote *r);

#endif
