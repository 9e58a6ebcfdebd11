/*
 * Polls threads through /proc: what they wait for, their stacks and their scheduler statistics.
 * Processes of the same user need no privileges. Other users' processes need the permissions of
 * ptrace, except for schedstat, which every user may read. The target is neither stopped nor
 * changed.
 */
#ifndef ASSAY_CAPTURE_WAIT_PROCPOLL_H
#define ASSAY_CAPTURE_WAIT_PROCPOLL_H

#include "base/base.h"
#include "base/err.h"
#include "capture/bpf/copyref.h"
#include "capture/wait/waitaccount.h"
#include "capture/wait/calls.h"
#include "host/proc.h"
#include "host/target.h"

#define PROCPOLL_PERIOD_NS 10000000u

/* /proc/PID/task/TID/schedstat: sums since the thread was created. */
struct procpoll_schedstat {
	uint64_t cpu_ns;
	uint64_t queue_ns; /* runnable, waiting for a CPU */
	uint64_t nr_runs;
};
/* Reads schedstat. -ESRCH, -ENOENT: the thread has exited. */
int procpoll_schedstat(int32_t pid, int32_t tid, struct procpoll_schedstat *ret_s);
/*
 * Reads the system call that the thread is blocked in. -EAGAIN: the thread is running or runnable;
 * -EACCES: not permitted to read it; -ESRCH, -ENOENT: the thread has exited.
 */
int procpoll_call(int32_t pid, int32_t tid, struct call *ret_c);
/* Copies @n bytes at @addr of the process. Returns the number copied before an unreadable page. */
size_t procpoll_read(int32_t pid, uint64_t addr, void *to, size_t n);

/* What a poll reads from and writes to; all pointers are borrowed. */
struct procpoll_env {
	struct waitaccount *account;
	struct waitcalls *calls;
	struct copyrefs *refs;
	const struct event_sink *sink;
	size_t nr_copy_bytes; /* of the stack to copy; 0: none */
};
/*
 * Polls a thread: returns the cause of its wait and delivers its stack to the sink. Errors as
 * procpoll_call.
 */
int procpoll_thread(const struct procpoll_env *to, int32_t pid, int32_t tid,
		    struct wait_cause *ret_cause, struct err *err);

/* ---- off-CPU accounting by polls alone ---------------------------------------------------- */

struct procpoll;

/*
 * Polls the target's processes and threads, and the processes that they fork from now on; children
 * that run already are polled only if they are targets themselves.
 */
struct procpoll *procpoll_new(const struct target *t);
/* Polls each thread once; every 100 ms also searches for new and exited threads. */
int procpoll_round(struct procpoll *p, const struct procpoll_env *to, struct err *err);
/* After the last round: counts the waits that are not over. */
void procpoll_finish(struct procpoll *p, const struct procpoll_env *to);
void procpoll_free(struct procpoll *p);

#endif
