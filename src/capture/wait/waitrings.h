/*
 * Reads the rings of waits (wire/kernel_wait.h, struct wait_ring), one for each CPU, in the order in
 * which the intervals ended.
 *
 * A ring is in this order by itself, because a record is written when its interval ends. A program
 * may have read the clock and not yet written its record, so only records up to a horizon a little
 * in the past are taken; they stay in the rings until then.
 *
 *	waitrings_begin(r, horizon_ns);
 *	while (waitrings_next(r, &run))
 *		...
 *	waitrings_end(r);
 *
 * The memory is shared with the kernel, which is its only other writer. Another thread may call
 * waitrings_hold, which keeps the rings from overflowing while the reader is busy elsewhere. All
 * other functions are called by one thread.
 */
#ifndef ASSAY_CAPTURE_WAIT_WAITRINGS_H
#define ASSAY_CAPTURE_WAIT_WAITRINGS_H

#include "base/base.h"
#include "capture/wait/interval.h"
#include "kernel_wait.h"

/* A run on a CPU, and the interval off the CPU after it; how HOW_ENDED: there is none. */
struct wait_run {
	struct wait_interval interval; /* owner_tid as in the lock word, not yet verified */
	uint64_t ran_ns;               /* elapsed time of the run, which ended at off_ns */
	uint64_t run_ns;               /* its CPU time, by another clock */
};

struct waitrings;

/* @memory: @nr_rings rings of @nr_records records each (a power of two); borrowed. */
struct waitrings *waitrings_new(void *memory, unsigned nr_rings, uint32_t nr_records);
void waitrings_free(struct waitrings *r);

/* Bytes of a ring. */
size_t waitrings_bytes(uint32_t nr_records);
/* How many records a ring should have on a machine with so many CPUs. */
uint32_t waitrings_choose(unsigned nr_rings);

/* Adds a RECORD_WAIT, which waitrings_next returns in its turn. */
void waitrings_add(struct waitrings *r, const struct wait_single *s);

/* Starts a pass over all intervals that ended up to @horizon_ns. Passes do not nest. */
void waitrings_begin(struct waitrings *r, uint64_t horizon_ns);
/* The next run and interval; false: no more up to the horizon. */
bool waitrings_next(struct waitrings *r, struct wait_run *ret_run);
/* Ends the pass, and gives the room of the records that were read back to the kernel. */
void waitrings_end(struct waitrings *r);

/*
 * Moves the records of rings that are a quarter full to memory; no more than 128 MiB. For another
 * thread; it waits while a pass runs.
 */
void waitrings_hold(struct waitrings *r);

#endif
