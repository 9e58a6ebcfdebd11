/*
 * Keeps single intervals off the CPU for the recording: those of the last minute, and older ones that
 * belong to a long wait or a slow span. They are delivered at the end of the capture.
 *
 * What belongs to a wait or a span is found by a walk back from its end: the intervals of its thread
 * in that time; for each wait that another thread ended, the intervals of this waker during the
 * wait; and so on. So the chain of causes of a kept wait can be followed after the capture
 * (analyze/wait/chain.h). The walk is made only when the oldest interval of a chain would be dropped:
 * a capture in which nothing is dropped never walks.
 *
 * Long waits: blocked for 50 ms or more and ended by a recorded thread, or neither idle (poll, sleep,
 * child) nor a futex wait that timed out.
 *
 * Memory is bounded: KEPTWAITS_RECENT intervals of the last minute and KEPTWAITS_CHAINS of chains, of
 * about 120 bytes each, which are touched as needed. Used by one thread. There are no errors.
 */
#ifndef ASSAY_CAPTURE_WAIT_KEPTWAITS_H
#define ASSAY_CAPTURE_WAIT_KEPTWAITS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/wait/interval.h"

#define KEPTWAITS_RECENT  ((uint32_t)1 << 18)
#define KEPTWAITS_CHAINS  ((uint32_t)1 << 16)
#define KEPTWAITS_SECONDS 60
#define KEPTWAITS_LONG_NS (50 * (uint64_t)1000000)

struct keptwaits_options {
	uint32_t nr_recent; /* a power of two; 0: the defaults above */
	uint32_t nr_chains;
	uint64_t recent_ns;
};

struct keptwaits;

struct keptwaits *keptwaits_new(const struct keptwaits_options *o);
void keptwaits_free(struct keptwaits *k);

/* Adds an interval, in the order of on_ns. @ran_ns: elapsed time of the run that ended at off_ns. */
void keptwaits_add(struct keptwaits *k, const struct wait_interval *i, uint64_t ran_ns);
/* Keeps what belongs to a span of a thread. Intervals that ended in it may be added later. */
void keptwaits_add_span(struct keptwaits *k, int32_t tid, uint64_t from_ns, uint64_t to_ns);

/* An interval that was kept, and the elapsed time of the run before it. */
typedef int keptwaits_fn(void *ctx, const struct wait_interval *i, uint64_t ran_ns,
			 struct err *err);
/* Passes all kept intervals to @fn in the order of on_ns. Stops at and returns its first error. */
int keptwaits_emit(struct keptwaits *k, keptwaits_fn *fn, void *ctx, struct err *err);

struct keptwaits_counts {
	uint64_t nr;         /* intervals that were added */
	uint64_t nr_dropped; /* of those: not kept */
	uint64_t nr_cut;     /* intervals of long waits or slow spans that had no room */
	/* All intervals that ended later are kept; 0: none was dropped. */
	uint64_t complete_from_ns;
};
struct keptwaits_counts keptwaits_counts(const struct keptwaits *k);

#endif
