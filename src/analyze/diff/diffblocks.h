/*
 * How much exact amounts vary within a capture. Times of waits, bytes of I/O and counts of faults
 * are counted, not sampled, but another capture of the same behaviour has other ones. A single
 * capture shows how much they vary from second to second: it is divided into blocks of whole
 * seconds, and the variance of the capture's amount is that of the blocks' sums, at least that of a
 * Poisson count of as many events. The blocks are taken as independent. None of them is of several
 * pieces of merged recordings: the time between them is not recorded.
 *
 * What is live at an instant, and what launched commands allocated from start to end, is no sum of
 * like seconds: the comparison of such amounts is exact for the two captures, and has no blocks.
 */
#ifndef ASSAY_ANALYZE_DIFF_DIFFBLOCKS_H
#define ASSAY_ANALYZE_DIFF_DIFFBLOCKS_H

#include "analyze/diff/diff.h"
#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

#define BLOCKS_MIN 4 /* with fewer, a single capture cannot tell a change from noise */

/* Whether the comparison is one of single captures whose amounts are counted and vary with time. */
bool blocks_are_needed(const struct diff_spec *d);
/*
 * If they are needed, selects the blocks of both sides into d->blocks; none of a side that has fewer
 * than BLOCKS_MIN. @spec: as the runs were selected. Errors as views_select.
 */
int blocks_select(struct arena *a, struct diff_spec *d, const struct select_spec *spec,
		  struct err *err);

/* A sum over a capture, and its variance, from the blocks of the capture. */
struct block_sum {
	const struct selection *run;
	const struct selection *blocks;
	size_t nr_blocks;
	double scale; /* of amounts */
	bool is_share;
};
/* The variance of the amount of a row; @weights: by block. */
double blocks_variance(const struct block_sum *b, const struct weight *weights);

#endif
