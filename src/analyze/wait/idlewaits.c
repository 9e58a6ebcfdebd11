/* Profiles without idle waits; see idlewaits.h. */
#include "base/base.h"
#include "analyze/wait/idlewaits.h"

#include "analyze/wait/reason.h"
#include "base/arena.h"

static struct idlewaits remove_of(struct profile *p, struct table *t, struct reasons *reasons)
{
	struct idlewaits removed = {0};
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		const int64_t *v = &t->values[i * t->nr_columns];
		if (!wait_is_idle(reason_of(reasons, t->stack[i], &p->tags.p[t->tag[i]]))) {
			table_move_row(t, n++, i);
			continue;
		}
		removed.nr += (uint64_t)MAX(v[0], 0);
		removed.ns += (uint64_t)MAX(v[t->weight_column], 0);
	}
	t->n = n;
	return removed;
}

struct idlewaits idlewaits_remove(struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct reasons *reasons = reasons_new(&a, p);
	struct idlewaits all = {0};
	vec_foreach(t, &p->tables) {
		if (!t->has_tags || (t->id != TABLE_OFF_CPU && t->id != TABLE_INTERVALS))
			continue;
		struct idlewaits removed = remove_of(p, t, reasons);
		if (t->id == TABLE_OFF_CPU)
			all = removed;
	}
	return all;
}
