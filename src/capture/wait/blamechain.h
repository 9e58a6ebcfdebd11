/*
 * Blame: what other threads did while a thread waited for them, computed exactly for each wait from
 * the intervals off the CPU of all recorded threads (capture/wait/interval.h).
 *
 * A thread waited in [off, woken) and was woken by thread A. What A did in that time follows from
 * A's own intervals: where A has none, it was on a CPU, and its stack is that of the wake-up. Where
 * A was blocked for a reason of its own (fsync, page fault, sleep), that reason is the cause. Where
 * A was runnable, it is the run queue. Where A itself waited for another thread, that wait was
 * attributed before, since it ended earlier, and its parts are taken over, clipped to the overlap.
 * So chains of any length cost no recursion.
 *
 * Who held a lock. If several threads wait for one object (futex word, pipe, locked file), its
 * wake-ups divide a wait: from one wake-up to the next the object belonged to the thread that did
 * the second. Thus a thread that took the lock without waiting is not blamed for what it did before.
 * A lock whose waiters sleep on words of their own (parking_lot) has no such object; there the
 * waker's own waits show when it acquired the lock. A wait that no thread ended is attributed to
 * the owner that the lock word named, if it did; a wait that timed out and was taken up again at
 * once belongs to the wait that followed.
 *
 * The parts of a wait add up to the wait exactly. What cannot be known is WAIT_UNKNOWN: a waker that
 * was not recorded, and times before the history, which has bounded memory.
 *
 * Convoys: a lock is in a convoy if at least three threads hand it around, each waiting for it
 * again, and none of them holds it for a dominating share of the time (blamelocks.h).
 *
 * One thread uses a blamechain at a time. There are no errors.
 */
#ifndef ASSAY_CAPTURE_WAIT_BLAMECHAIN_H
#define ASSAY_CAPTURE_WAIT_BLAMECHAIN_H

#include "base/base.h"
#include "capture/wait/interval.h"

struct blamechain;

/* Time that one waiter waited because of one thread; sum over the waits of one second. */
struct blamechain_row {
	/* The wait. */
	uint64_t user_ref;
	uint64_t kernel_ref;
	uint64_t object;
	uint32_t dev;
	uint32_t second; /* since epoch_ns */
	int32_t tgid;
	int32_t tid;
	int32_t fd;
	int16_t syscall;
	uint8_t reason;   /* enum wait_reason of the waiter */
	uint8_t evidence; /* EVIDENCE_LOCK_WORD, EVIDENCE_OPEN */
	uint8_t object_kind;
	uint8_t log2_ns; /* duration bucket of a long wait, LOG2_NONE of others */
	/* The cause. */
	uint8_t doing;    /* enum wait_reason; WAIT_ON_CPU: it ran */
	uint8_t nr_steps; /* fewest threads from waiter to culprit; 1: it waited for it directly */
	bool is_convoy;
	uint64_t culprit_ref;
	int32_t culprit_tgid;
	int32_t culprit_tid; /* 0: not known */
	/* The thread that the waiter waited for directly, and where that waited; 0: the culprit. */
	uint64_t direct_ref;
	int32_t direct_tgid;
	int32_t direct_tid;

	/*
	 * A wait counts once: in the row of its longest part, in the second in which it ended. So
	 * rows of other parts may have time and no count.
	 */
	int64_t count;
	int64_t ns;
	int64_t longest_ns; /* longest time of one wait in this row */
};

struct blamechain_options {
	uint64_t epoch_ns;     /* start of second 0 */
	uint64_t nr_intervals; /* size of the history, power of two; 0 = default */
	uint64_t lag_ns;       /* a wait is attributed that long after its end; 0 = default */
};

struct blamechain_counts {
	uint64_t nr_waits;   /* attributed */
	uint64_t ns;         /* their time */
	uint64_t unknown_ns; /* part of ns whose cause is not known */
};

struct blamechain *blamechain_new(const struct blamechain_options *o);
void blamechain_free(struct blamechain *bc);

/*
 * Adds intervals in the order of on_ns, all that ended up to @horizon_ns: later calls must not add
 * intervals with an earlier on_ns. Threads with any interval are recorded threads.
 */
void blamechain_add(struct blamechain *bc, const struct wait_interval *v, size_t nr,
		    uint64_t horizon_ns);
/* Intervals of the thread that ended before @until_ns are missing: their causes are not known. */
void blamechain_lose(struct blamechain *bc, int32_t tid, uint64_t until_ns);
/* All intervals were added: attributes the remaining waits, also those that are still open. */
void blamechain_finish(struct blamechain *bc);

typedef int blamechain_row_fn(void *ctx, const struct blamechain_row *row);
/* Passes the rows to @fn and removes them. Stops and returns what @fn returns if that is not 0. */
int blamechain_take_rows(struct blamechain *bc, blamechain_row_fn *fn, void *ctx);
struct blamechain_counts blamechain_counts(const struct blamechain *bc);

#endif
