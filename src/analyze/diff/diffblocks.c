/* Variation of exact amounts within a capture; see diffblocks.h. */
#include "base/base.h"
#include "analyze/diff/diffblocks.h"

#include "analyze/memory/heapweights.h"
#include "analyze/select/window.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "base/stat.h"

#define BLOCKS_MAX 16 /* more cost time and make the intervals hardly narrower */

bool blocks_are_needed(const struct diff_spec *d)
{
	const struct selection *before = d->runs[DIFF_BEFORE];
	const struct selection *after = d->runs[DIFF_AFTER];
	if (d->nr_runs[DIFF_BEFORE] != 1 || d->nr_runs[DIFF_AFTER] != 1)
		return false;
	if (!view_is_exact(before) && !view_is_exact(after))
		return false;
	if (heapweights_is_memory(after))
		return heapweights_is_flow(after) &&
		       !(diff_is_launched(before) && diff_is_launched(after));
	return true;
}

static uint64_t seconds_of(struct window w)
{
	return w.to_ns > w.from_ns ? (w.to_ns - w.from_ns + NS_PER_SEC / 10) / NS_PER_SEC : 0;
}

/* The part of a run's window in piece @i of merged recordings; of a single one, all of it. */
static struct window window_of_piece(const struct selection *run, size_t i)
{
	struct window w = {MAX(run->first_ns, window_of_profile(run->p).from_ns), run->last_ns};
	if (!run->p->pieces.n)
		return w;
	const struct recorded *piece = &run->p->pieces.p[i];
	return (struct window){MAX(w.from_ns, piece->from_ns), MIN(w.to_ns, piece->to_ns)};
}

/*
 * Whole seconds, because rows of waits, I/O and faults are sums of seconds. No block is of several
 * pieces: the time between them is not recorded.
 */
static int select_side(struct arena *a, const struct selection *run, const struct select_spec *spec,
		       const struct selection **ret_blocks, size_t *ret_nr, struct err *err)
{
	uint64_t start_ns = window_of_profile(run->p).from_ns;
	size_t nr_pieces = MAX(run->p->pieces.n, (size_t)1);
	uint64_t seconds = 0;
	for (size_t i = 0; i < nr_pieces; i++)
		seconds += seconds_of(window_of_piece(run, i));
	uint64_t length = MAX((seconds + BLOCKS_MAX - 1) / BLOCKS_MAX, 1u);
	size_t nr = 0;
	for (size_t i = 0; i < nr_pieces; i++)
		nr += seconds_of(window_of_piece(run, i)) / length;
	*ret_nr = 0;
	if (nr < BLOCKS_MIN)
		return 0;
	struct selection *blocks = arena_calloc(a, nr, sizeof(*blocks));
	for (size_t i = 0, at = 0; i < nr_pieces; i++) {
		struct window w = window_of_piece(run, i);
		uint64_t from_ns = w.from_ns - start_ns;
		for (uint64_t n = seconds_of(w) / length; n; n--, from_ns += length * NS_PER_SEC) {
			struct select_spec part = *spec;
			part.time = arena_fmt(a, "%lluns..%lluns", (unsigned long long)from_ns,
					      (unsigned long long)(from_ns + length * NS_PER_SEC));
			TRY(views_select(a, run->p, &part, &blocks[at++], err));
		}
	}
	*ret_blocks = blocks;
	*ret_nr = nr;
	return 0;
}

int blocks_select(struct arena *a, struct diff_spec *d, const struct select_spec *spec,
		  struct err *err)
{
	if (!blocks_are_needed(d))
		return 0;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		TRY(select_side(a, d->runs[side], spec, &d->blocks[side], &d->nr_blocks[side],
				err));
	return 0;
}

double blocks_variance(const struct block_sum *b, const struct weight *weights)
{
	double n = (double)b->nr_blocks;
	double all = 0;
	double part = 0;
	double nr_events = 0;
	struct stat_run rest = {0};
	for (size_t i = 0; i < b->nr_blocks; i++) {
		all += (double)b->blocks[i].weight;
		part += (double)weights[i].weight;
		nr_events += (double)weights[i].nr_samples;
	}
	if (b->is_share && !(all > 0))
		return 0;
	/* of shares: of what is more or less than the share of each block's sum */
	double share = b->is_share ? part / all : 0;
	for (size_t i = 0; i < b->nr_blocks; i++)
		stat_add(&rest, (double)weights[i].weight - share * (double)b->blocks[i].weight);
	/*
	 * A few events that happen to be as many in each block are not exact: their number varies
	 * at least like a Poisson count.
	 */
	double of_count = part * part * (1 - share) / MAX(nr_events, 1.0);
	double variance = MAX(n * rest.m2 / (n - 1), of_count);
	if (b->is_share)
		return variance * (100 / all) * (100 / all);
	double length_ns = (double)view_duration_ns(&b->blocks[0]);
	double of_run = (double)view_duration_ns(b->run) / length_ns;
	return of_run / n * variance * b->scale * b->scale;
}
