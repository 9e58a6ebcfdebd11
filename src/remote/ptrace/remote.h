/*
 * Makes system calls and calls functions in a running process, by ptrace on one of its threads; the
 * other threads keep running. While a session is open that thread is stopped or executes the
 * session's calls, so sessions must be short: prepare everything before. remote_stopped_ns returns
 * the duration so far.
 *
 * Choice of the thread: with remote_options.avoid, no frame of the thread may be in these ranges
 * (the allocator's code). The thread's stack is searched for return addresses in the ranges. If one
 * is found, another thread is tried, or the same thread again after a short time.
 *
 * After remote_close the thread is as before: registers, red zone, vector and floating point state,
 * direction flag, pending signals; an interrupted system call is restarted. Signals that arrive
 * during the session are delivered afterwards. A call that does not return in time is abandoned:
 * the thread's state is restored as far as the kernel permits, and -ETIMEDOUT returned. If assay
 * dies during a session, the thread completes the call and is then as before, too, except for
 * timeouts of system calls that start again (docs/accuracy.md) and memory of the session, which
 * stays mapped.
 *
 * Works for glibc, musl and static programs, and in other PID and mount namespaces, since it uses
 * nothing of the target's file system. Whether there is a seccomp filter is read first
 * (/proc/PID/status), since some filters kill the process. In a target with a filter
 * remote_syscall fails with -EPERM and a hint unless PTRACE_O_SUSPEND_SECCOMP is permitted, and
 * remote_call as well if the target has no signal handler.
 *
 * A session must be used by the thread that opened it (a rule of ptrace). x86-64 only; elsewhere
 * all functions return -ENOTSUP.
 */
#ifndef ASSAY_REMOTE_PTRACE_REMOTE_H
#define ASSAY_REMOTE_PTRACE_REMOTE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

struct remote;

struct remote_options {
	const struct heap_ranges *avoid; /* code that the thread must not be in; may be NULL */
	uint64_t timeout_ns;             /* per call, and to find a thread; 0 = 1 s */
	/*
	 * Address of REMOTE_AREA_BYTES in the target that the session may use for its stack and
	 * arguments; 0: the session maps such an area, which takes two system calls.
	 */
	uint64_t area;
};

/*
 * Stops a thread of the process and opens a session on it. -ESRCH: the process has ended. -EPERM:
 * ptrace is refused; the hint has the remedy (yama, capabilities, not dumpable, other tracer).
 * -EAGAIN: no suitable thread within the timeout.
 */
int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err);
/*
 * Opens a session on thread @tid, which the calling thread already traces and has stopped
 * (remote/patch/launch.h). remote_close leaves it stopped.
 */
int remote_open_stopped(struct remote **ret_r, int32_t pid, int32_t tid,
			const struct remote_options *options, struct err *err);
/* Restores the thread and detaches; frees @r. Also if the target has died. NULL is allowed. */
void remote_close(struct remote *r);
void remote_close_p(struct remote **r);

#define REMOTE_ARGS_MAX      6
#define REMOTE_SCRATCH_BYTES 65536u /* total of remote_scratch in one session */
/* The same if the target has a seccomp filter and remote_options.area is 0. */
#define REMOTE_SCRATCH_FILTER_BYTES 4096u
#define REMOTE_STACK_BYTES          (256u << 10)
#define REMOTE_AREA_BYTES           (REMOTE_STACK_BYTES + REMOTE_SCRATCH_BYTES)

/* Makes a system call. *ret_result: as the kernel returns it, a negative errno on failure. */
int remote_syscall(struct remote *r, long nr, const uint64_t args[REMOTE_ARGS_MAX],
		   int64_t *ret_result, struct err *err);
/*
 * Calls a C function with integer arguments. *ret_result: the int that it returns; may be NULL.
 * -ETIMEDOUT; -EFAULT: it crashed; -EPERM: not possible with the target's seccomp filter; -ENOEXEC:
 * the result cannot be obtained.
 */
int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		int32_t *ret_result, struct err *err);
/*
 * Allocates memory in the target for arguments, valid until remote_close. It is part of an area
 * that also holds the stack for calls, as the thread's own stack may be small (coroutines).
 */
int remote_scratch(struct remote *r, size_t nr_bytes, uint64_t *ret_addr, struct err *err);
int remote_read(struct remote *r, uint64_t addr, void *to, size_t n, struct err *err);
/* Also writes to pages that are read-only in the target. */
int remote_write(struct remote *r, uint64_t addr, const void *from, size_t n, struct err *err);
/* Duplicates the target's descriptor @fd, which must be a memfd, into this process. */
int remote_get_fd(struct remote *r, int fd, int *ret_fd, struct err *err);
int32_t remote_tid(const struct remote *r);
uint64_t remote_thread_pointer(const struct remote *r);
bool remote_has_filter(const struct remote *r); /* a seccomp filter that could not be suspended */
/*
 * In a forked process that only has sessions, before it closes descriptors: closes the descriptors of
 * assay's file readers, and drops all capabilities but those that sessions need.
 */
void remote_keep_rights(void);
/*
 * In a cleanup process: calls @undo until it returns 0, or -ESRCH as the target has ended, for at most five
 * seconds beside the time of its calls. On a machine that is so busy that files of /proc were not read in
 * time, they are asked for again: nobody else undoes it.
 */
void remote_undo(int (*undo)(void *ctx), void *ctx);
/* How long the thread has been stopped, or executing the session's calls, since remote_open. */
uint64_t remote_stopped_ns(const struct remote *r);

#endif
