/* Trees and texts of flame graphs; see picture.h. */
#include "base/base.h"
#include "analyze/stacks/picture.h"

#include <errno.h>

#include "analyze/diff/diffblocks.h"
#include "analyze/diff/diff.h"
#include "analyze/diff/diffparts.h"
#include "analyze/diff/difftree.h"
#include "analyze/wait/blame.h"
#include "analyze/stacks/calltree.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/view.h"
#include "analyze/views.h"
#include "base/file/file.h"
#include "base/text/num.h"
#include "base/stat.h"

void picture_release(struct picture *pic)
{
	vec_release(&pic->inputs);
}

void picture_add(struct picture *pic, const struct profile *p, const char *name)
{
	vec_push(&pic->inputs, (struct picture_input){p, name, false});
}

void picture_add_before(struct picture *pic, const struct profile *p, const char *name)
{
	vec_push(&pic->inputs, (struct picture_input){p, name, true});
}

/* Adds one selection after another to one tree. */
struct drawing {
	const struct picture *pic;
	struct report *r;
	struct calltree *ct;
	char *event; /* of the first input */
	const char *first_name;
	enum unit unit;
	bool has_input;
	const char *palette;
	const char *what;      /* is a weight of memory */
	const char *why_empty; /* of the first empty input; NULL: not known */
};

/* Returns an event that all inputs have rows of, or NULL. */
static const char *common_event(const struct picture *pic)
{
	const struct profile *first = pic->inputs.p[0].p;
	vec_foreach(t, &first->tables) {
		const char *event = profile_text(first, t->event);
		bool is_common = t->n > 0;
		vec_foreach(in, &pic->inputs) {
			uint32_t idx;
			is_common = is_common && !select_table(in->p, event, &idx, NULL) &&
				    in->p->tables.p[idx].n;
		}
		if (is_common)
			return event;
	}
	return NULL;
}

static int check_kind(struct drawing *d, const struct selection *sel, const char *name,
		      struct err *err)
{
	if (!d->event) {
		d->event = arena_strdup(&d->r->arena, sel->event);
		d->unit = sel->unit;
		d->first_name = name;
		return 0;
	}
	if (d->unit == sel->unit && !strcmp(d->event, sel->event))
		return 0;
	err_set(err, -EINVAL, "'%s' has event '%s' and '%s' has '%s', which cannot be added up",
		d->first_name, d->event, name, sel->event);
	const char *common = common_event(d->pic);
	return common ? err_hint(err, "draw an event that all of them have: --event %s", common)
		      : err_hint(err, "they have no event in common");
}

/* Appends "+-12 %": half width of the 95 % interval of everything shown. */
static void add_heap_error(struct report *r, const struct selection *sel)
{
	double variance = 0;
	for (size_t i = 0; sel->variance && i < sel->nr_rows; i++)
		variance += sel->variance[i];
	if (!(variance > 0) || !sel->weight)
		return;
	double error = stat_estimate_error((double)sel->weight, variance);
	report_fact(r, FACT_VIEW,
		    arena_fmt(&r->arena, "+-%s %%", num_pct(100 * error / (double)sel->weight).s));
}

static void begin(struct report *r, const struct selection *sel)
{
	if (heapweights_is_memory(sel)) {
		heapsum_begin(r, sel->p, sel);
		r->noun = arena_strdup(&r->arena, select_noun(sel));
		add_heap_error(r, sel);
		return;
	}
	view_begin(r, sel, "");
	report_fact_duration(r, view_duration_ns(sel));
}

/* The event that is drawn unless one is named; NULL: that of each input. */
static const char *tree_event(const struct picture *pic)
{
	const char *event = NULL;
	vec_foreach(in, &pic->inputs) {
		event = views_find(in->p, &pic->spec)->is_mixed ? views_tree_event(in->p) : NULL;
		if (!event)
			return NULL;
	}
	return event;
}

static int add_selection(struct drawing *d, const struct picture_input *in, const char *event,
			 bool is_before, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec spec = d->pic->spec;
	spec.event = event ? event : spec.event;
	if (!spec.event)
		spec.event = tree_event(d->pic);
	struct selection sel = {0};
	struct blame blame = {0};
	int rc = d->pic->is_blame ? blame_make(&a, in->p, &spec, &blame, err)
				  : views_select(&a, in->p, &spec, &sel, err);
	if (d->pic->is_blame)
		sel = blame.sel;
	if (rc)
		return d->pic->inputs.n > 1 ? err_wrap(err, "'%s'", in->name) : rc;
	if (!event && (rc = check_kind(d, &sel, in->name, err)))
		return rc;
	const struct view *view = views_of_rows(&sel);
	enum heap_weight w;
	d->palette = view->palette ? view->palette : d->palette;
	if (!d->what && heapweights_is_memory(&sel) && heap_weight_from_key(sel.event, &w))
		d->what = heap_weight_title(sel.p, w);
	if (sel.why_empty && !d->why_empty)
		d->why_empty = arena_strdup(&d->r->arena, sel.why_empty);
	if (!d->has_input && !is_before) {
		begin(d->r, &sel);
		d->has_input = true;
	} else if (!is_before) {
		losses_merge(&d->r->losses, &in->p->losses);
		view_add_frames(d->r, &sel);
	}
	if (d->pic->is_blame)
		blame_add_to_tree(d->ct, &blame);
	else if (is_before)
		calltree_add_before(d->ct, &sel);
	else
		calltree_add(d->ct, &sel);
	return 0;
}

static int add_inputs(struct drawing *d, struct err *err)
{
	const struct picture *pic = d->pic;
	const struct picture_input *one = pic->inputs.p;
	if (pic->inputs.n == 1 && !pic->spec.event && tables_are_difference(one->p)) {
		TRY(add_selection(d, one, TABLES_BEFORE, true, err));
		return add_selection(d, one, TABLES_AFTER, false, err);
	}
	vec_foreach(in, &pic->inputs) {
		TRY(add_selection(d, in, NULL, in->is_before, err));
	}
	return 0;
}

/* Appends "redis-server", or the first file name and the number of others. */
static const char *default_title(struct drawing *d)
{
	const struct picture *pic = d->pic;
	const char *target = report_get_fact(d->r, FACT_TARGET);
	const char *before = NULL;
	const char *name = NULL;
	size_t nr_more = 0;
	vec_foreach(in, &pic->inputs) {
		if (in->is_before)
			before = path_base(in->name);
		else if (!name)
			name = path_base(in->name);
		else
			nr_more++;
	}
	struct arena *a = &d->r->arena;
	if (before && name)
		return arena_fmt(a, "%s, compared with %s", name, before);
	if (nr_more)
		return arena_fmt(a, "%s and %zu more", name, nr_more);
	if (d->what)
		return arena_fmt(a, "%s: %s", target && *target ? target : name, d->what);
	return target && *target ? target : name ? name : "Flame graph";
}

/* Selects the rows of all inputs again, by side, in arena @a. */
static int select_sides(struct arena *a, const struct picture *pic, struct diff_spec *spec,
			struct err *err)
{
	const struct picture_input *in = pic->inputs.p;
	bool is_one = pic->inputs.n == 1;
	size_t n = is_one ? 2 : pic->inputs.n;
	struct selection *sels[2];
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		spec->runs[side] = sels[side] = arena_calloc(a, n, sizeof(*sels[side]));
	for (size_t i = 0; i < n; i++, in += !is_one) {
		struct select_spec select = pic->spec;
		int side = (is_one ? i == 0 : in->is_before) ? DIFF_BEFORE : DIFF_AFTER;
		if (is_one)
			select.event = i ? TABLES_AFTER : TABLES_BEFORE;
		TRY(views_select(a, in->p, &select, &sels[side][spec->nr_runs[side]++], err));
	}
	return 0;
}

/* Compares as assay diff does; *ret_nr is 0 without a side. */
static int make_diffs(struct diff *ret_parts, size_t *ret_nr, struct arena *a,
		      const struct report_tree *t, const struct picture *pic, struct err *err)
{
	struct diff_spec spec = {.how = t->is_normalised ? DIFF_SHARES : DIFF_AMOUNTS,
				 .by = BY_FUNCTION};
	*ret_nr = 0;
	TRY(select_sides(a, pic, &spec, err));
	if (!spec.nr_runs[DIFF_BEFORE] || !spec.nr_runs[DIFF_AFTER])
		return 0;
	TRY(blocks_select(a, &spec, &pic->spec, err));
	diff_make(&ret_parts[0], a, &spec);
	return diffparts_add(ret_parts, ret_nr, a, &pic->spec, err);
}

/* Marks the functions whose change is not within its interval. */
static int compare(struct report *r, struct report_tree *t, const struct picture *pic,
		   struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct diff made[DIFF_PARTS_MAX];
	const struct diff *parts = pic->diffs ? pic->diffs : made;
	size_t nr = pic->nr_diffs;
	if (!pic->diffs)
		TRY(make_diffs(made, &nr, &a, t, pic, err));
	if (!nr || !parts[0].n)
		return 0;
	report_note(r,
		    "red: more than before, blue: less, by %s, callees included; widths show the "
		    "larger of the two",
		    t->is_normalised ? "share of the total" : "absolute numbers");
	for (size_t i = 0; i < nr; i++) {
		const struct diff *d = &parts[i];
		if (d->spec.by != BY_FUNCTION && d->spec.by != DIFF_BY_WAIT)
			continue;
		report_note(r,
			    "coloured: %s of %s %s, whose change%s has an interval that "
			    "excludes 0; grey: the others",
			    num_count(difftree_mark(r, t, d)).s, num_count(d->n).s,
			    d->spec.by == DIFF_BY_WAIT ? "waiting functions" : "functions",
			    d->spec.by == DIFF_BY_WAIT ? " of wait time" : " (self or total)");
	}
	return 0;
}

int picture_make(struct report *r, const struct picture *pic, const struct report_tree **ret_t,
		 struct err *err)
{
	bool is_comparison = pic->inputs.n == 1 && tables_are_difference(pic->inputs.p->p);
	vec_foreach(in, &pic->inputs)
		is_comparison |= in->is_before;
	CLEANUP(calltree_free_p)
	struct calltree *ct = calltree_new(
		r, pic->tree_flags | (is_comparison ? (unsigned)CALLTREE_PLAIN_NAMES : 0));
	struct drawing d = {.pic = pic, .r = r, .ct = ct};
	TRY(add_inputs(&d, err));
	struct report_tree *t = calltree_finish(ct, "flame", "call tree");
	if (!t->nodes[0].total && !(t->before && t->before[0].total))
		return err_set(err, -ENODATA, "%s",
			       d.why_empty ? d.why_empty : "no samples to draw");
	if (pic->total > t->nodes[0].total) { /* the rest is of the root itself */
		t->nodes[0].self += pic->total - t->nodes[0].total;
		t->nodes[0].total = pic->total;
	}
	t->palette = d.palette;
	r->title = default_title(&d);
	if (t->is_differential)
		TRY(compare(r, t, pic, err));
	*ret_t = t;
	return 0;
}
