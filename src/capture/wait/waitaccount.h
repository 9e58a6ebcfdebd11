/*
 * The ledger of threads, kept in user space: switches and looks go in, rows a second come out.
 *
 * A thread is on a CPU or off it; an interval ends when that changes and is booked with what is
 * known of it then. At the border of each second open intervals are cut, so that the rows of a
 * thread and second add up to the time for which it was watched. Intervals off the CPU for which
 * nobody saw a reason go to a pool, which is shared out at the border over what was seen of such
 * short intervals of that thread.
 *
 * All times are CLOCK_MONOTONIC ns and must come in order, but for looks (waitaccount_look).
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

/* Why a thread is off the CPU, as far as somebody saw. */
struct why {
	uint64_t ref; /* stack, 0 = none */
	uint8_t reason;
	uint8_t evidence;
	int16_t syscall; /* -1 = none */
	uint32_t object; /* id of book.objects */
};

enum waitaccount_how {
	WAITACCOUNT_WAIT = 0,
	WAITACCOUNT_PREEMPTED = 1,
	WAITACCOUNT_YIELDED = 2,
	WAITACCOUNT_WOKEN = 3
};

#define WAITACCOUNT_SEEN 6 /* reasons of short intervals that are remembered, a thread */

struct waitaccount_thread {
	int32_t pid;
	int32_t tid;
	enum {
		THREAD_UNSURE = 0,
		THREAD_ON = 1,
		THREAD_OFF = 2,
		THREAD_GONE = 3,
		THREAD_SUMS =
			4, /* nothing is open: waitaccount_add and waitaccount_add_on say all */
	} state;
	uint8_t how; /* enum waitaccount_how, when off */
	bool has_why;
	struct why why;
	uint64_t began_ns; /* of the interval */
	uint64_t since_ns; /* booked up to here */
	uint64_t pool_ns;
	uint64_t pool_longest_ns;
	uint32_t nr_pool;
	struct {
		struct why why;
		uint32_t hits;
	} seen[WAITACCOUNT_SEEN];
	uint32_t first_row;      /* of this second, index + 1 */
	uint64_t queue_seen_ns;  /* booked as run queue since the last share-out */
	uint64_t queue_total_ns; /* schedstat's sum at the last share-out, UINT64_MAX = none */
};

struct waitaccount_row;

struct account {
	uint64_t start_ns; /* seconds count from here */
	uint64_t short_ns; /* intervals shorter than this are shared out when not seen */
	struct intern objects;
	struct map thread_by_tid; /* tid -> index + 1 */
	VEC(struct waitaccount_thread) threads;
	struct map row_index; /* hash -> index + 1 */
	VEC(struct waitaccount_row) rows;
};

void waitaccount_init(struct account *b, uint64_t start_ns, uint64_t short_ns);
void waitaccount_release(struct account *b);

/* The thread, or a new one whose state is not sure since @time_ns. Borrowed until the next add. */
struct waitaccount_thread *waitaccount_thread(struct account *b, int32_t pid, int32_t tid,
					      uint64_t time_ns);
struct waitaccount_thread *waitaccount_find(struct account *b, int32_t tid); /* or NULL */
/* It began to run. */
void waitaccount_on(struct account *b, struct waitaccount_thread *t, uint64_t time_ns);
/* It left its CPU; @why may be NULL. */
void waitaccount_off(struct account *b, struct waitaccount_thread *t, uint64_t time_ns,
		     enum waitaccount_how how, const struct why *why);
void waitaccount_gone(struct account *b, struct waitaccount_thread *t, uint64_t time_ns);
/*
 * Somebody looked between two moments and saw this. An interval that holds both is for it; if the
 * thread switched meanwhile it still says what the thread's short intervals are for.
 */
void waitaccount_look(struct account *b, struct waitaccount_thread *t, uint64_t from_ns,
		      uint64_t to_ns, const struct why *why);
/* Time that is known as a sum only. @nr: intervals that ended in it. */
void waitaccount_add(struct account *b, struct waitaccount_thread *t, uint64_t end_ns, uint64_t ns,
		     uint32_t nr, enum waitaccount_how how, const struct why *why);
void waitaccount_add_on(struct account *b, struct waitaccount_thread *t, uint64_t end_ns,
			uint64_t ns, uint32_t nr);

/* Cuts what is open at @time_ns: a border of seconds, or the end (@is_end). */
void waitaccount_cut(struct account *b, uint64_t time_ns, bool is_end);
/* After a cut: of this thread's waits @ns passed in the run queue, all waits alike. */
void waitaccount_share_queue(struct account *b, struct waitaccount_thread *t, uint64_t ns);
/* Hands out the rows since the last time and forgets them and the threads that are gone. */
int waitaccount_flush(struct account *b, const struct event_sink *sink, struct err *err);

#endif
