/*
 * The ledger of threads, kept in user space: switches and looks go in, rows a second come out.
 *
 * A thread is on a CPU or off it; an interval ends when that changes and is booked with what is
 * known of it then. At the border of each second open intervals are cut, so that the rows of a
 * thread and second add up to the time for which it was watched. Intervals off the CPU for which
 * nobody saw a reason go to a pool, which is shared out at the border over what was seen of such
 * short intervals of that thread.
 *
 * All times are CLOCK_MONOTONIC ns and must come in order, but for looks (book_look).
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

enum book_how { BOOK_WAIT = 0, BOOK_PREEMPTED = 1, BOOK_YIELDED = 2, BOOK_WOKEN = 3 };

#define BOOK_SEEN 6 /* reasons of short intervals that are remembered, a thread */

struct book_thread {
	int32_t pid;
	int32_t tid;
	enum {
		THREAD_UNSURE = 0,
		THREAD_ON = 1,
		THREAD_OFF = 2,
		THREAD_GONE = 3,
		THREAD_SUMS = 4, /* nothing is open: book_add and book_add_on say all */
	} state;
	uint8_t how; /* enum book_how, when off */
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
	} seen[BOOK_SEEN];
	uint32_t first_row;      /* of this second, index + 1 */
	uint64_t queue_seen_ns;  /* booked as run queue since the last share-out */
	uint64_t queue_total_ns; /* schedstat's sum at the last share-out, UINT64_MAX = none */
};

struct book_row;

struct book {
	uint64_t start_ns; /* seconds count from here */
	uint64_t short_ns; /* intervals shorter than this are shared out when not seen */
	struct intern objects;
	struct map thread_by_tid; /* tid -> index + 1 */
	VEC(struct book_thread) threads;
	struct map row_index; /* hash -> index + 1 */
	VEC(struct book_row) rows;
};

void book_init(struct book *b, uint64_t start_ns, uint64_t short_ns);
void book_release(struct book *b);

/* The thread, or a new one whose state is not sure since @time_ns. Borrowed until the next add. */
struct book_thread *book_thread(struct book *b, int32_t pid, int32_t tid, uint64_t time_ns);
struct book_thread *book_find(struct book *b, int32_t tid); /* or NULL */
/* It began to run. */
void book_on(struct book *b, struct book_thread *t, uint64_t time_ns);
/* It left its CPU; @why may be NULL. */
void book_off(struct book *b, struct book_thread *t, uint64_t time_ns, enum book_how how,
	      const struct why *why);
void book_gone(struct book *b, struct book_thread *t, uint64_t time_ns);
/*
 * Somebody looked between two moments and saw this. An interval that holds both is for it; if the
 * thread switched meanwhile it still says what the thread's short intervals are for.
 */
void book_look(struct book *b, struct book_thread *t, uint64_t from_ns, uint64_t to_ns,
	       const struct why *why);
/* Time that is known as a sum only. @nr: intervals that ended in it. */
void book_add(struct book *b, struct book_thread *t, uint64_t end_ns, uint64_t ns, uint32_t nr,
	      enum book_how how, const struct why *why);
void book_add_on(struct book *b, struct book_thread *t, uint64_t end_ns, uint64_t ns, uint32_t nr);

/* Cuts what is open at @time_ns: a border of seconds, or the end (@is_end). */
void book_cut(struct book *b, uint64_t time_ns, bool is_end);
/* After a cut: of this thread's waits @ns passed in the run queue, all waits alike. */
void book_share_queue(struct book *b, struct book_thread *t, uint64_t ns);
/* Hands out the rows since the last time and forgets them and the threads that are gone. */
int book_flush(struct book *b, const struct event_sink *sink, struct err *err);

#endif
