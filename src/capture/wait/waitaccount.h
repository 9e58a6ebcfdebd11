/*
 * Off-CPU accounting in user space: adds up how long each thread ran, waited and was queued, from
 * context switches and from polls of /proc, and produces one set of rows per second.
 *
 * A thread is on a CPU or off it. When that changes, the interval that ends is added to the row of
 * its cause. At the end of each slice, of a
 * second or a part of it, the open intervals are split, so that the rows of a thread
 * and second add up to the time for which the thread was recorded. A short interval may end before
 * any poll finds its cause. Its time stays unattributed until the end of the slice. It is then
 * distributed over the causes that polls found in other short intervals of the same thread.
 *
 * All times are CLOCK_MONOTONIC ns and must not go backwards, except those of polls
 * (waitaccount_add_poll). One thread uses an account at a time.
 */
#ifndef ASSAY_CAPTURE_WAIT_WAITACCOUNT_H
#define ASSAY_CAPTURE_WAIT_WAITACCOUNT_H

#include "base/base.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/event.h"
#include "model/wait.h"

/* Why a thread is off the CPU, as far as it is known. */
struct wait_cause {
	uint64_t ref;     /* reference to the user stack (EVENT_STACK), 0 = none */
	uint8_t reason;   /* enum wait_reason */
	uint8_t evidence; /* EVIDENCE_* */
	int16_t syscall;  /* -1 = none */
	uint32_t object;  /* id in waitaccount.objects, 0 = none */
};

/* How a thread left its CPU. */
enum offcpu_kind {
	OFFCPU_WAIT = 0,      /* it blocked */
	OFFCPU_PREEMPTED = 1, /* it was preempted and is on the run queue */
	OFFCPU_YIELDED = 2,   /* sched_yield: on the run queue */
	OFFCPU_WOKEN = 3      /* it was woken or is new, and is on the run queue */
};

#define POLLED_CAUSES_MAX 6 /* different causes of short waits kept per thread */

struct waitaccount_thread {
	int32_t pid;
	int32_t tid;
	enum {
		THREAD_STATE_UNKNOWN = 0, /* no switch seen yet */
		THREAD_ON_CPU = 1,
		THREAD_OFF_CPU = 2,
		THREAD_EXITED = 3,
		THREAD_SUMS_ONLY = 4, /* no intervals: only waitaccount_add_off and _add_on */
	} state;
	uint8_t kind; /* enum offcpu_kind, when off the CPU */
	bool has_cause;
	struct wait_cause cause;
	uint64_t start_ns;        /* of the open interval */
	uint64_t accounted_ns;    /* time up to which the interval is in rows */
	uint64_t unattributed_ns; /* of short waits with unknown cause, in this second */
	uint32_t nr_unattributed;
	struct {
		struct wait_cause cause;
		uint32_t nr_polls;
	} polled[POLLED_CAUSES_MAX];
	uint32_t first_row;          /* of this second, index + 1 */
	uint64_t queue_accounted_ns; /* run queue time in rows since queue_schedstat_ns was read */
	uint64_t queue_schedstat_ns; /* run queue time by schedstat, UINT64_MAX = not read yet */
};

struct waitaccount_row;

struct waitaccount {
	uint64_t start_ns; /* second 0 begins here */
	uint64_t short_ns; /* shorter waits are distributed if no poll found their cause */
	struct intern objects;
	struct map thread_by_tid; /* tid -> index + 1 */
	VEC(struct waitaccount_thread) threads;
	struct map row_index; /* hash -> index + 1 */
	VEC(struct waitaccount_row) rows;
};

void waitaccount_init(struct waitaccount *a, uint64_t start_ns, uint64_t short_ns);
void waitaccount_release(struct waitaccount *a);

/*
 * Returns the thread; adds it with THREAD_STATE_UNKNOWN from @time_ns on if it is new or its tid
 * was reused. Valid until the next call.
 */
struct waitaccount_thread *waitaccount_thread(struct waitaccount *a, int32_t pid, int32_t tid,
					      uint64_t time_ns);
/* Returns the thread or NULL. Valid until a thread is added. */
struct waitaccount_thread *waitaccount_find(struct waitaccount *a, int32_t tid);
/* The thread was switched in: it runs from @time_ns on. */
void waitaccount_switch_in(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns);
/* The thread was switched out. @cause may be NULL: unknown. */
void waitaccount_switch_out(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns,
			    enum offcpu_kind kind, const struct wait_cause *cause);
void waitaccount_exit(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns);
/*
 * The thread was polled between @from_ns and @to_ns and was waiting for @cause. If the open wait
 * spans both times it gets this cause; otherwise the cause counts for the distribution of the
 * thread's short waits.
 */
void waitaccount_add_poll(struct waitaccount *a, struct waitaccount_thread *t, uint64_t from_ns,
			  uint64_t to_ns, const struct wait_cause *cause);
/*
 * Adds @ns off the CPU of which only the sum is known. @nr: intervals that ended in this time,
 * @whole_ns: how long they were on average, with their time before; of an open interval so far.
 */
void waitaccount_add_off(struct waitaccount *a, struct waitaccount_thread *t, uint64_t end_ns,
			 uint64_t ns, uint64_t whole_ns, uint32_t nr, enum offcpu_kind kind,
			 const struct wait_cause *cause);
/* The same for time on the CPU. */
void waitaccount_add_on(struct waitaccount *a, struct waitaccount_thread *t, uint64_t end_ns,
			uint64_t ns, uint32_t nr);

/* Adds the open intervals up to @time_ns, the end of a slice, to the rows; they stay open. */
void waitaccount_end_slice(struct waitaccount *a, uint64_t time_ns);
/* The same at the end of the capture: open waits are marked with EVIDENCE_OPEN. */
void waitaccount_finish(struct waitaccount *a, uint64_t time_ns);
/*
 * After waitaccount_end_slice: moves @ns of this thread's waits to the run queue (time between
 * wake-up and switch-in), distributed over its waits by their number.
 */
void waitaccount_distribute_queue(struct waitaccount *a, struct waitaccount_thread *t, uint64_t ns);
/* Delivers the rows since the last flush, then drops them and the threads that have exited. */
int waitaccount_flush(struct waitaccount *a, const struct event_sink *sink, struct err *err);

#endif
