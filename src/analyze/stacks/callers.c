/*
 * Callers and callees; see callers.h. Both are computed as a state per node of the prefix tree: a
 * node starts with the state of its parent, and its own frames change it, outermost first. So one
 * loop over the nodes serves all stacks.
 */
#include "base/base.h"
#include "analyze/stacks/callers.h"

#include "analyze/memory/heapweights.h"
#include "analyze/select/match.h"
#include "base/buf.h"
#include "base/text/num.h"

struct state {
	uint32_t group; /* the caller or callee so far; 0: none */
	bool has_match;
};

struct search {
	const struct selection *sel;
	const struct groups *groups;
	const struct match *match;
	const struct match *nearest; /* NULL: every frame */
	bool is_callees;
};

static void step_callers(struct state *s, bool is_match, bool is_nearest, uint32_t group)
{
	if (s->has_match)
		return;
	if (is_match)
		s->has_match = true;
	else if (is_nearest)
		s->group = group;
}

static void step_callees(struct state *s, bool is_match, bool is_nearest, uint32_t group)
{
	if (is_match)
		*s = (struct state){0, true};
	else if (s->has_match && !s->group && is_nearest)
		s->group = group;
}

static bool is_hit(const struct match *m, const struct location *l, const struct profile *p,
		   uint32_t i)
{
	return m->by_func[l->nr_frames ? p->frames.p[l->first_frame + i].func : 0];
}

static struct state *search_stacks(struct arena *a, const struct search *q)
{
	const struct profile *p = q->sel->p;
	struct state *states = arena_calloc(a, p->stacks.n, sizeof(*states));
	for (stack_id id = 1; id < p->stacks.n; id++) {
		const struct stack_node *node = &p->stacks.p[id];
		const struct location *l = &p->locations.p[node->loc];
		struct state s = states[node->parent];
		for (uint32_t i = select_nr_frames(q->sel, id); i-- > 0;) {
			bool is_match = is_hit(q->match, l, p, i);
			bool is_nearest = !q->nearest || is_hit(q->nearest, l, p, i);
			uint32_t g = l->nr_frames ? q->groups->by_frame[l->first_frame + i]
						  : q->groups->by_loc[node->loc];
			if (q->is_callees)
				step_callees(&s, is_match, is_nearest, g);
			else
				step_callers(&s, is_match, is_nearest, g);
		}
		states[id] = s;
	}
	return states;
}

static bool has_row_of(const struct table *t, const uint8_t *has)
{
	for (size_t i = 0; i < t->n; i++)
		if (has[t->stack[i]])
			return true;
	return false;
}

/* The function is in the profile, but not in the rows shown: says where it is. */
static void note_elsewhere(struct report *r, struct arena *a, const struct search *q,
			   const char *pattern)
{
	CLEANUP(buf_release) struct buf in = {0};
	const struct profile *p = q->sel->p;
	const uint8_t *has = match_stacks(a, p, q->match);
	vec_foreach(t, &p->tables)
		if (strcmp(profile_text(p, t->event), q->sel->event) != 0 && has_row_of(t, has))
			buf_addf(&in, "%s'%s'", in.n ? ", " : "", profile_text(p, t->event));
	report_note(r, "no row shown by '%s' has a stack with '%s'%s%s%s", q->sel->event, pattern,
		    in.n ? ": it is in " : "", buf_str(&in),
		    in.n ? (heapweights_is_memory(q->sel) ? " (--weight)" : " (--event)") : "");
}

static void add_table(struct report *r, struct arena *a, const struct search *q,
		      const char *pattern, const struct view_limits *limits)
{
	struct state *states = search_stacks(a, q);
	const struct groups *g = q->groups;
	struct view_item *items = arena_calloc(a, g->n, sizeof(*items));
	for (size_t i = 0; i < g->n; i++)
		items[i] = (struct view_item){.name = g->rows[i].name, .module = g->rows[i].module};
	items[0].name = q->nearest ? "<none>" : q->is_callees ? "<self>" : "<root>";
	struct weight of = {0};
	for (size_t i = 0; i < q->sel->nr_rows; i++) {
		const struct select_row *row = &q->sel->rows[i];
		const struct state *s = &states[row->stack];
		if (!s->has_match)
			continue;
		weight_add_row(&items[s->group].self, q->sel, i);
		weight_add_row(&of, q->sel, i);
	}
	struct view_limits by_self = *limits;
	if (by_self.sort == VIEW_BY_TOTAL)
		by_self.sort = VIEW_BY_SELF;
	struct view_spec spec = {
		.key = q->is_callees ? "callees" : "callers",
		.title = arena_fmt(a, "%s of '%s' (%s %% of all)",
				   q->is_callees ? "callees" : "callers", pattern,
				   num_pct(view_pct(of.weight, q->sel->weight)).s),
		.name_key = q->is_callees ? "callee" : "caller",
		.module_key = "module",
		.of = of,
		.flags = VIEW_MODULE | VIEW_OF_ALL,
	};
	view_add_table(r, q->sel, &spec, items, g->n, &by_self);
	if (!of.weight)
		note_elsewhere(r, a, q, pattern);
}

int callers_report(struct report *r, const struct selection *sel, const struct callers_spec *spec,
		   const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct match match;
	struct match near_match;
	const char *option = spec->is_callees ? "--callees" : "--callers";
	TRY(match_functions(&a, sel->p, option, spec->pattern, &match, err));
	if (spec->nearest)
		TRY(match_functions(&a, sel->p, "--nearest", spec->nearest, &near_match, err));
	struct groups g = groups_by(&a, sel->p, spec->by);
	struct search q = {sel, &g, &match, spec->nearest ? &near_match : NULL, spec->is_callees};
	add_table(r, &a, &q, spec->pattern, limits);
	return 0;
}
