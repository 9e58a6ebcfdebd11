/*
 * Live-block accounting of one process: which blocks are live, which stack and thread allocated
 * them and when, sums per slice of time, and the peak. Input: the recorder's events in (nearly) time order.
 * Output: rows.
 *
 * A site is a stack, a thread and a size class. An event costs one lookup of its block and one of
 * its site; no table is scanned for an event.
 *
 *	peak   Each site stores its live sum at the time of the process's peak: when a site changes
 *	       for the first time after a peak, its sum before the change is saved (`at_peak`). It
 *	       is valid while the site's `peak` equals the counter of peaks.
 *	order  A realloc's free is recorded after the call, when another thread may already have
 *	       the address: then the old block's free is implied by the new allocation, and the
 *	       FREE record that arrives later is ignored. Frees that arrive before their
 *	       allocation, and the reverse, are recognized by their time stamps.
 *
 * Sampled: a block of s bytes is recorded with probability 1 - exp(-s/R), or 1 if s >= R, where R
 * is interval_bytes, and is weighted by the inverse. Sums are doubles; the rounding remainder of a row is carried to the next row, so each
 * row is off by at most one and errors do not accumulate. Without sampling all sums are exact.
 *
 * Temporary: freed by the allocating thread before its next allocation; only without sampling.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPACCOUNT_H
#define ASSAY_CAPTURE_HEAP_HEAPACCOUNT_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/blocks.h"
#include "capture/heap/heapring.h"
#include "model/event.h"

/* Linear conversion of time stamps to nanoseconds of CLOCK_MONOTONIC. */
struct heapclock {
	uint64_t tsc;
	uint64_t ns;
	double ns_per_tick;
};
uint64_t heapclock_ns(const struct heapclock *c, uint64_t tsc);

struct heapaccount_row {
	uint32_t spec; /* SPEC_HEAP_* */
	uint32_t stack;
	int32_t tid; /* 0 = more threads than are distinguished */
	uint16_t size_class;
	const char *detail; /* static, or NULL */
	uint64_t time_ns;
	int64_t values[6]; /* model/heap.h */
};

/* Makes the event for a row of process @pid; borrows the row. */
struct event heapaccount_event(const struct heapaccount_row *row, int32_t pid, uint64_t stack_ref);

struct heapaccount_spec {
	uint64_t start_ns;       /* start of tick 0, in which allocation times are kept */
	uint64_t slices_ns;      /* start of the slices of rows (model/heap.h); 0 = start_ns */
	uint64_t interval_bytes; /* mean bytes between samples; 0: full trace */
	uint64_t max_bytes;      /* limit of the block table; 0 = default */
	uint32_t max_sites;      /* beyond it sites are merged; 0 = default */
	uint32_t nr_slots;       /* struct heap_slot (heap_wire.h), one per thread */
	bool has_all;            /* recorded since process start: no block was allocated earlier */
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
	uint64_t nr_preexisting; /* frees of blocks allocated before the capture */
	uint64_t nr_unmatched;   /* frees without an allocation, though has_all or sampled */
	uint64_t nr_late;        /* events out of time order */
	uint64_t
		nr_implied; /* blocks whose address was allocated again before their free arrived */
	uint64_t nr_unaccounted; /* blocks not stored: the table was full */
	uint64_t nr_live;        /* blocks in the table */
	uint64_t nr_sites;
	uint64_t max_bytes; /* peak memory of the tables */
};

struct heapaccount;

struct heapaccount *heapaccount_new(const struct heapaccount_spec *spec);
void heapaccount_free(struct heapaccount *b);
/* Sets the clock; call before the first event and before each drain. */
void heapaccount_clock(struct heapaccount *b, const struct heapclock *clock);
/* Later events of @slot are of thread @tid. */
void heapaccount_thread(struct heapaccount *b, uint16_t slot, int32_t tid);
/*
 * Sets the name ("mmap", static text) of a patched function, for rows of MAP and UNMAP records.
 * @site: index of the function in the plan, not a site as above.
 */
void heapaccount_site_name(struct heapaccount *b, uint8_t site, const char *name);
/* Adds events. */
void heapaccount_add(struct heapaccount *b, const struct heapring_event *events, size_t n);
/* Emits the rows of the slices that end before @tsc; all events up to it have been added. */
void heapaccount_advance(struct heapaccount *b, uint64_t tsc);
/* Time (CLOCK_MONOTONIC) up to which rows have been emitted: the start of the current slice. */
uint64_t heapaccount_reach_ns(const struct heapaccount *b);
/* Emits the rows of the last slice, of the live blocks and of the peak. */
void heapaccount_end(struct heapaccount *b);
/*
 * The same of a process whose end or exec freed its blocks: they are freed, with HEAP_FREED_BY_END, or
 * HEAP_FREED_BY_KILL if the signal @killed_by is SIGKILL.
 */
void heapaccount_end_freed(struct heapaccount *b, int killed_by);
struct heapaccount_info heapaccount_info(const struct heapaccount *b);

/* The probability that a block of this size is sampled. */
double heapaccount_probability(uint64_t nr_bytes, uint64_t interval_bytes);

#endif
