/*
 * When the recording of a launched program, which starts with every allocation, changes to samples:
 * when its records cost more than a small share of the time, or when as many recorded blocks are live as
 * the recorder can follow.
 */
#ifndef ASSAY_CAPTURE_HEAP_THIN_H
#define ASSAY_CAPTURE_HEAP_THIN_H

#include "base/base.h"

/* CPU time of a record in the target and here together (docs/internals.md), and what may be spent. */
#define THIN_RECORD_NS 150u
#define THIN_FREE_NS \
	50000000u         /* for each program: start-ups and short programs are recorded in full */
#define THIN_TIME_PART 50 /* and one 50th of the elapsed time */

static inline bool thin_is_due(uint64_t nr_records, uint64_t elapsed_ns, uint64_t nr_live,
			       uint64_t max_live)
{
	return nr_records * THIN_RECORD_NS > THIN_FREE_NS + elapsed_ns / THIN_TIME_PART ||
	       nr_live > max_live;
}

#endif
