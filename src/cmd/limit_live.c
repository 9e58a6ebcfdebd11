/* The largest allocators at a kill; see limit_live.h. */
#include "base/base.h"
#include "cmd/limit_live.h"

#include "analyze/heapframes.h"
#include "analyze/tallygroups.h"
#include "base/num.h"
#include "model/heap.h"

#define NAMED_MAX 3

static uint64_t weight_of(const struct tally_group *g)
{
	return g->amounts[0].bytes;
}

static void add_groups(struct buf *to, const struct tally_groups *g, uint64_t all)
{
	buf_add_str(to, "; largest allocators: ");
	for (size_t i = 0; i < g->groups.n && i < NAMED_MAX; i++) {
		const struct tally_group *one = &g->groups.p[i];
		buf_addf(to, "%s%s ", i ? ", " : "", one->texts[0]);
		num_add_bytes(to, weight_of(one));
		buf_add_str(to, " (");
		num_add_pct(to, 100.0 * (double)weight_of(one) / (double)all);
		buf_add_str(to, " %)");
	}
}

void limit_live_add(struct buf *to, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct tally_rows rows;
	struct tally_row row;
	const struct select_spec all_of_it = {0};
	if (!p || tally_rows_open(&rows, &a, p, TABLE_LIVE, &all_of_it, NULL))
		return;
	CLEANUP(tally_groups_release) struct tally_groups functions = {.arena = &a};
	struct heapframes *frames = heapframes_new(&a, p);
	uint64_t all = 0;
	while (tally_rows_next(&rows, &row)) {
		const char *name = heapframe_name(p, heapframes_of(frames, row.stack));
		amount_add(&tally_groups_at(&functions, &name, 1)->amounts[0], &row);
		all += row.bytes;
	}
	if (!all)
		return;
	tally_groups_sort(&functions, weight_of);
	add_groups(to, &functions, all);
}
