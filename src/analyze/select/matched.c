/* Functions that a pattern matches; see matched.h. */
#include "base/base.h"
#include "analyze/select/matched.h"

#include <stdlib.h>

#include "analyze/select/match.h"
#include "analyze/view.h"
#include "base/map.h"
#include "base/text/num.h"

#define NAMED_MAX 3u

struct matched {
	func_id func;
	uint64_t weight; /* of stacks that have it, recursive ones once */
	uint32_t seen;   /* the last row + 1 that was counted */
};

static int by_weight(const void *x, const void *y)
{
	const struct matched *a = x;
	const struct matched *b = y;
	return COMPARE(b->weight, a->weight) ?: COMPARE(a->func, b->func);
}

/* Adds a row to the functions on its stack. Returns whether there is one. */
static bool add_row(struct matched *all, const uint32_t *idx, const struct selection *sel,
		    uint32_t i)
{
	const struct profile *p = sel->p;
	const struct select_row *row = &sel->rows[i];
	bool has_any = false;
	for (stack_id s = row->stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		uint32_t nr = l->nr_frames ? l->nr_frames : 1;
		for (uint32_t k = 0; k < nr; k++) {
			func_id f = l->nr_frames ? p->frames.p[l->first_frame + k].func : 0;
			struct matched *m = idx[f] ? &all[idx[f] - 1] : NULL;
			has_any |= m != NULL;
			if (!m || m->seen == i + 1)
				continue;
			m->seen = i + 1;
			m->weight += row->weight;
		}
	}
	return has_any;
}

/* Leaves out the functions of other tables and of rows that filters removed. */
static uint32_t only_seen(struct matched *all, uint32_t n)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < n; i++)
		if (all[i].seen)
			all[nr++] = all[i];
	return nr;
}

static void add_names(struct buf *to, const struct matched *all, size_t n,
		      const struct selection *sel)
{
	size_t nr = MIN(n, (size_t)NAMED_MAX);
	for (size_t i = 0; i < nr; i++)
		buf_addf(to, "%s%s (%s %%)", i ? ", " : "",
			 profile_text(sel->p, sel->p->functions.p[all[i].func].name),
			 num_pct(view_pct(all[i].weight, sel->weight)).s);
	if (n > nr)
		buf_addf(to, " and %zu more", n - nr);
}

void matched_note(struct report *r, const struct selection *sel, const char *option,
		  const char *pattern)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf names = {0};
	CLEANUP(map_release) struct map by_name = {0};
	struct match m;
	if (!pattern || !sel->nr_rows || match_functions(&a, sel->p, option, pattern, &m, NULL))
		return;
	struct matched *all = arena_calloc(&a, m.nr_functions, sizeof(*all));
	uint32_t *idx = arena_calloc(&a, sel->p->functions.n, sizeof(*idx));
	uint32_t n = 0;
	uint64_t weight = 0;
	for (func_id f = 1; f < sel->p->functions.n; f++) {
		if (!m.by_func[f])
			continue;
		uint32_t *nr = map_put(&by_name, sel->p->functions.p[f].name, NULL);
		*nr = *nr ? *nr : ++n; /* functions of one name, of several modules, are one */
		all[*nr - 1].func = f;
		idx[f] = *nr;
	}
	for (uint32_t i = 0; i < sel->nr_rows; i++)
		weight += add_row(all, idx, sel, i) ? sel->rows[i].weight : 0;
	n = only_seen(all, n);
	bool is_its_name =
		n == 1 &&
		!strcmp(pattern, profile_text(sel->p, sel->p->functions.p[all[0].func].name));
	if (!n || is_its_name)
		return;
	qsort(all, n, sizeof(*all), by_weight);
	add_names(&names, all, n, sel);
	report_note(r, "%s '%s' matches %s: %s%s", option, pattern, num_noun(n, "functions").s,
		    buf_str(&names),
		    n > 1 && weight < sel->weight
			    ? arena_fmt(&r->arena,
					"; one of them is on the stacks of %s %% of what is shown",
					num_pct(view_pct(weight, sel->weight)).s)
			    : "");
}
