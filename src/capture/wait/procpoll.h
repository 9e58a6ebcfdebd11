/*
 * Looking at threads through /proc: what they wait for, their stacks, the scheduler's sums. Needs
 * no rights for processes of the same user; for others what ptrace needs, but for the sums, which
 * everybody may read. Nothing of it stops or touches the target.
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

/* Since the thread's birth. */
struct procpoll_sums {
	uint64_t cpu_ns;
	uint64_t queue_ns; /* could run, had no CPU */
	uint64_t nr_runs;
};
/* -ESRCH, -ENOENT: it is gone. */
int procpoll_sums(int32_t pid, int32_t tid, struct procpoll_sums *ret_s);
/* -EAGAIN: it runs, or could run; -EACCES: not ours to look at; -ESRCH, -ENOENT: gone. */
int procpoll_call(int32_t pid, int32_t tid, struct call *ret_c);
/* Bytes of the process's memory from @addr on, up to the first that cannot be read. */
size_t procpoll_read(int32_t pid, uint64_t addr, void *to, size_t n);

/* What looking shares with the ledger that it feeds; all borrowed. */
struct procpoll_to {
	struct account *account;
	struct waitcalls *calls;
	struct copyrefs *refs;
	const struct event_sink *sink;
	size_t nr_copy; /* bytes of stack */
};
/* Looks at a thread: its call, its stack (told to the sink). Errors as procpoll_call. */
int procpoll_look(const struct procpoll_to *to, int32_t pid, int32_t tid, struct why *ret_why,
		  struct err *err);

/* ---- a ledger of looks alone -------------------------------------------------------------- */

struct procpoll;

/* Follows these processes and threads, and the processes that they fork. */
struct procpoll *procpoll_new(const struct target *t);
/* One round: births and ends now and then, each thread once. */
int procpoll_round(struct procpoll *p, const struct procpoll_to *to, struct err *err);
void procpoll_free(struct procpoll *p);

#endif
