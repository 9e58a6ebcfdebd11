/*
 * The books of one process's heap: which blocks live, by whom and when they were allocated, sums
 * by second, the peak. Fed with the recorder's events in (nearly) the order of time; tells rows.
 *
 * A site is a stack, a thread and a class of sizes. Every event costs a look-up of its block and
 * of its site, nothing is allocated for it and nothing is looked through:
 *
 *	peak   a site keeps what lived when the process had most: its own sum from before its first
 *	       change since then (`at_peak`, valid while `peak` is the number of the current peak)
 *	late   a realloc's free is told after the call, so its address may be another block's by
 *	       then: that block is taken over, and the free that comes later is swallowed. Frees
 *	       whose allocation comes later, and allocations that come after their free, are told by
 *	       the time stamps
 *
 * Sampled: a block of s bytes is seen with the probability 1 - exp(-s/R) and stands for its
 * inverse; sums are kept as doubles and what rounding leaves goes to the next row, so a row is
 * never off by more than one and nothing adds up. Where everything is seen all sums are exact.
 *
 * Temporary: freed by the thread that allocated it before its next allocation. Only where
 * everything is seen.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPACCOUNT_H
#define ASSAY_CAPTURE_HEAP_HEAPACCOUNT_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/blocks.h"
#include "capture/heap/heapring.h"
#include "model/event.h"

/* Time stamps to nanoseconds of CLOCK_MONOTONIC: a line through two moments. */
struct heapclock {
	uint64_t tsc;
	uint64_t ns;
	double ns_per_tick;
};
uint64_t heapclock_ns(const struct heapclock *c, uint64_t tsc);

struct heapaccount_row {
	uint32_t spec; /* SPEC_HEAP_* */
	uint32_t stack;
	int32_t tid; /* 0 = threads that were too many to tell apart */
	uint16_t size_class;
	const char *detail; /* static, or NULL */
	uint64_t time_ns;
	int64_t values[6]; /* model/heap.h */
};

/* Of a row of process @pid, for a sink; borrows the row. */
struct event heapaccount_event(const struct heapaccount_row *row, int32_t pid, uint64_t stack_ref);

struct heapaccount_spec {
	uint64_t start_ns;       /* second 0 begins */
	uint64_t interval_bytes; /* of samples; 0: every allocation */
	uint64_t max_bytes;      /* for blocks; 0 = by default */
	uint32_t max_sites;      /* from here on less is told apart; 0 = by default */
	uint32_t nr_slots;
	bool has_all; /* from the process's start on: no block is older than the books */
	void (*on_row)(void *ctx, const struct heapaccount_row *row);
	void *ctx;
};

struct heapaccount_info {
	double live_bytes;
	double live_blocks;
	double peak_bytes;
	uint64_t peak_ns;
	double nr_allocs; /* estimates, where sampled */
	double nr_alloc_bytes;
	double alloc_variance; /* of nr_alloc_bytes */
	double nr_frees;
	uint64_t nr_older;       /* frees of blocks from before */
	uint64_t nr_unmatched;   /* frees of blocks that were never told, where none are older */
	uint64_t nr_late;        /* events that came out of order */
	uint64_t nr_implied;     /* blocks whose address was given out again without a free */
	uint64_t nr_unaccounted; /* blocks without room in the table */
	uint64_t nr_live;        /* blocks in the table */
	uint64_t nr_sites;
	uint64_t max_bytes; /* most memory that tables took */
};

struct heapaccount;

struct heapaccount *heapaccount_new(const struct heapaccount_spec *spec);
void heapaccount_free(struct heapaccount *b);
/* Time runs by this from here on. To be said before the first event, and each pass. */
void heapaccount_clock(struct heapaccount *b, const struct heapclock *clock);
/* Events of this slot are this thread's from here on. */
void heapaccount_thread(struct heapaccount *b, uint16_t slot, int32_t tid);
/* How a site of MAP and UNMAP records is called in rows ("mmap"); static text. */
void heapaccount_site_name(struct heapaccount *b, uint8_t site, const char *name);
void heapaccount_add(struct heapaccount *b, const struct heapring_event *events, size_t n);
/* Everything up to then has been added: rows of seconds that are over are told. */
void heapaccount_passed(struct heapaccount *b, uint64_t tsc);
/* The rest: rows of the last second, what lives, the peak. */
void heapaccount_end(struct heapaccount *b);
struct heapaccount_info heapaccount_info(const struct heapaccount *b);

/* The probability with which a block of that size is seen. */
double heapaccount_share(uint64_t nr_bytes, uint64_t interval_bytes);

#endif
