/* Queries of `assay report`; see query.h. */
#include "base/base.h"
#include "analyze/query.h"

#include "analyze/select/matched.h"
#include "analyze/wait/blame.h"
#include "analyze/stacks/annotate.h"
#include "analyze/stacks/callers.h"
#include "analyze/stacks/calltext.h"
#include "analyze/stacks/calltree.h"
#include "analyze/stacks/groupings.h"
#include "analyze/stacks/sourcetext.h"
#include "analyze/overview.h"
#include "analyze/select/phases.h"
#include "analyze/select/tags.h"
#include "analyze/view.h"
#include "analyze/views.h"

#define PHASE_FUNCTIONS 5

bool query_is_of_waits(const struct query *q)
{
	return q->flags & QUERY_BLAME ||
	       (q->by >= 0 && groupings_at((size_t)q->by)->view == VIEW_WAITS);
}

static bool asks_for_page(const struct query *q)
{
	return q->by == QUERY_BY_NONE && !q->callers && !q->callees && !q->named && !q->annotate &&
	       !q->spec->nr_rules && !(q->flags & (QUERY_TREE | QUERY_REVERSE | QUERY_BLAME));
}

static int add_blame(struct report *r, const struct profile *p, const struct query *q,
		     struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct blame b;
	TRY(blame_make(&a, p, q->spec, &b, err));
	blame_report(r, &b, &q->limits);
	return 0;
}

static void add_trees(struct report *r, const struct selection *sel, const struct query *q)
{
	struct calltext_options options = {.min_pct = q->tree_min_pct, .max_depth = q->tree_depth};
	if (q->flags & QUERY_TREE)
		calltext_report(r, sel, &options);
	options.flags = CALLTREE_REVERSE;
	if (q->flags & QUERY_REVERSE)
		calltext_report(r, sel, &options);
}

static void note_filters(struct report *r, const struct selection *sel,
			 const struct select_spec *spec)
{
	matched_note(r, sel, "--function", spec->function);
	matched_note(r, sel, "--within", spec->within);
}

static int add_tables(struct report *r, const struct selection *sel, const struct query *q,
		      struct err *err)
{
	bool is_of_frames = q->by >= 0 && q->by < BY_NR;
	enum group_by by = is_of_frames ? (enum group_by)q->by : BY_FUNCTION;
	overview_begin(r, sel);
	note_filters(r, sel, q->spec);
	matched_note(r, sel, "--callers", q->callers);
	matched_note(r, sel, "--callees", q->callees);
	if (q->by != QUERY_BY_NONE && !q->callers && !q->callees)
		TRY(groupings_add(r, (size_t)q->by, sel, q->spec, &q->limits, err));
	if (q->flags & QUERY_BLAME)
		TRY(add_blame(r, sel->p, q, err));
	if (sel->nr_rules)
		phases_report(r, sel, PHASE_FUNCTIONS);
	if (q->callers)
		TRY(callers_report(r, sel,
				   &(struct callers_spec){q->callers, q->nearest, by, false},
				   &q->limits, err));
	if (q->callees)
		TRY(callers_report(r, sel, &(struct callers_spec){q->callees, q->nearest, by, true},
				   &q->limits, err));
	if (by == BY_LINE && q->code && q->code->line)
		sourcetext_add(r, q->code);
	if (q->annotate)
		TRY(annotate_report(r, sel, q->annotate, q->code, &q->limits, err));
	if (q->named)
		TRY(named_report(r, sel, q->named, q->nr_named, q->named_nearest, err));
	add_trees(r, sel, q);
	return 0;
}

/* With CPU samples and waits together, the query chooses between them. */
static const char *event_of(const struct profile *p, const struct query *q)
{
	if (!views_default(p)->is_mixed)
		return NULL;
	if (query_is_of_waits(q))
		return table_key(TABLE_OFF_CPU);
	return q->flags & QUERY_TREE ? views_tree_event(p) : NULL;
}

static bool has_rows(const struct profile *p)
{
	vec_foreach(t, &p->tables)
		if (t->n)
			return true;
	return false;
}

int query_run(struct report *r, const struct profile *p, const struct query *q, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec spec = *q->spec;
	struct selection sel;
	if (p->is_incomplete && !has_rows(p)) {
		view_report_nothing(r, p);
		return 0;
	}
	if (!spec.event && selecttags_is_needed(&spec) && views_default(p)->is_mixed)
		spec.event = table_key(TABLE_OFF_CPU); /* only waits have what is asked for */
	if (asks_for_page(q)) {
		TRY(views_page(r, p, &spec, q->input, &q->limits, err));
		bool has_one_sum = (spec.function || spec.within) && !views_default(p)->is_mixed;
		if (has_one_sum && !views_select(&a, p, &spec, &sel, NULL))
			note_filters(r, &sel, &spec);
		return 0;
	}
	spec.flags |= q->flags & QUERY_ALLOCATORS ? 0 : SELECT_CUT_STACKS;
	spec.event = spec.event ? spec.event : event_of(p, q);
	TRY(views_select(&a, p, &spec, &sel, err));
	return add_tables(r, &sel, q, err);
}
