/* Self and total weight by group; see top.h. */
#include "base/base.h"
#include "analyze/stacks/top.h"

static const struct {
	const char *key;
	const char *title;
	const char *name_key;
	const char *module_key;
	unsigned flags;
} kinds[BY_NR] = {
	[BY_FUNCTION] = {"functions", "functions", "function", "module", VIEW_TOTAL | VIEW_MODULE},
	[BY_MODULE] = {"modules", "modules", "module", "", VIEW_TOTAL},
	[BY_CRATE] = {"crates", "crates, namespaces and modules", "crate", "", VIEW_TOTAL},
	[BY_FILE] = {"files", "source files", "file", "", VIEW_TOTAL},
	[BY_LINE] = {"lines", "source lines", "line", "function", VIEW_TOTAL | VIEW_MODULE},
};

static struct view_item *weigh_items(struct arena *a, const struct selection *sel,
				     const struct groups *g)
{
	struct weighed w = weigh(a, sel);
	struct group_weight *gw = weigh_groups(a, &w, g);
	struct view_item *items = arena_calloc(a, g->n, sizeof(*items));
	for (size_t i = 0; i < g->n; i++)
		items[i] = (struct view_item){g->rows[i].name, g->rows[i].module, gw[i].self,
					      gw[i].total};
	return items;
}

/* Returns the title: "hottest functions (self time)", "modules (self bytes)". */
static const char *title_of(struct arena *a, const struct selection *sel, enum group_by by,
			    enum view_sort sort)
{
	const char *amount = view_amount(sel);
	if (sort == VIEW_BY_NAME)
		return arena_fmt(a, "%s by name", kinds[by].title);
	if (by == BY_FUNCTION && sel->unit != UNIT_BYTES)
		return arena_fmt(a, "hottest functions (%s %s)",
				 sort == VIEW_BY_TOTAL ? "total" : "self", amount);
	return arena_fmt(a, "%s (%s %s)", kinds[by].title, sort == VIEW_BY_TOTAL ? "total" : "self",
			 amount);
}

static void add_top(struct report *r, const struct selection *sel, enum group_by by,
		    const struct view_limits *limits, bool is_other)
{
	ASSERT(by < BY_NR);
	CLEANUP(arena_release) struct arena scratch = {0};
	const char *title = title_of(&scratch, sel, by, limits->sort);
	struct groups g = groups_by(&scratch, sel->p, by);
	struct view_item *items = weigh_items(&scratch, sel, &g);
	struct view_spec spec = {
		.key = is_other ? arena_fmt(&scratch, "%s:%s", kinds[by].key, sel->event)
				: kinds[by].key,
		.title = is_other ? arena_fmt(&scratch, "event %s: %s", sel->event, title) : title,
		.name_key = kinds[by].name_key,
		.name_title = by == BY_CRATE ? "module or crate" : NULL,
		.module_key = kinds[by].module_key,
		.of = view_all(sel),
		.flags = kinds[by].flags,
	};
	view_add_table(r, sel, &spec, items, g.n, limits);
}

void top_report(struct report *r, const struct selection *sel, enum group_by by,
		const struct view_limits *limits)
{
	add_top(r, sel, by, limits, false);
}

void top_report_other(struct report *r, const struct selection *sel,
		      const struct view_limits *limits)
{
	add_top(r, sel, BY_FUNCTION, limits, true);
}

size_t top_of_phase(struct arena *a, const struct selection *sel, uint32_t phase,
		    const struct groups *groups, struct view_item *ret_items, size_t max)
{
	const struct weight *self = weigh_self(a, sel, phase, groups);
	size_t n = 0;
	for (size_t i = 1; i < groups->n; i++) {
		if (!self[i].weight)
			continue;
		size_t at = n;
		while (at > 0 && ret_items[at - 1].self.weight < self[i].weight)
			at--;
		if (at == max)
			continue;
		n = MIN(n + 1, max);
		memmove(&ret_items[at + 1], &ret_items[at], (n - 1 - at) * sizeof(*ret_items));
		ret_items[at] = (struct view_item){.name = groups->rows[i].name,
						   .module = groups->rows[i].module,
						   .self = self[i]};
	}
	return n;
}
