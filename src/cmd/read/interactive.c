/*
 * Views and filters of the terminal view; see interactive.h. The views are the call trees, every
 * grouping that the profile has rows for, and the first page.
 */
#include "base/base.h"
#include "cmd/read/interactive.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/overview.h"
#include "analyze/stacks/groupings.h"
#include "analyze/views.h"
#include "base/arena.h"
#include "base/process/term.h"
#include "cmd/cmd.h"
#include "cmd/hints.h"
#include "render/tui/tui.h"

#define VIEWS_MAX 32

/* What Enter on a row of a grouping selects. */
static const struct {
	const char *grouping;
	enum tui_filter_kind filter;
	const char *column;
} row_filters[] = {
	{"function", TUI_WITHIN, NULL},   {"module", TUI_MODULE, NULL},
	{"thread", TUI_THREAD, "tid"},    {"process", TUI_PROCESS, "pid"},
	{"reason", TUI_REASON, "reason"}, {"waiter", TUI_WITHIN, "function"},
	{"object", TUI_OBJECT, "object"},
};

enum view_kind { OF_GROUPING, OF_TREE, OF_CALLERS, OF_PAGE };

struct interactive {
	const struct profile *p;
	const struct query *base;
	struct tui_view views[VIEWS_MAX];
	struct {
		enum view_kind kind;
		int grouping;
	} what[VIEWS_MAX];
	size_t nr;
};

static void add_view(struct interactive *x, struct tui_view v, enum view_kind kind, int grouping)
{
	if (x->nr == VIEWS_MAX)
		return;
	x->what[x->nr].kind = kind;
	x->what[x->nr].grouping = grouping;
	x->views[x->nr++] = v;
}

/* The groupings that the profile has rows for; "function" comes first. */
static void add_groupings(struct interactive *x)
{
	const struct grouping *g;
	for (int i = 0; (g = groupings_at((size_t)i)); i++) {
		struct tui_view v = {.name = g->key};
		if (g->view != VIEW_NR && !views_has(views_at(g->view), x->p))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(row_filters); k++) {
			if (strcmp(row_filters[k].grouping, g->key))
				continue;
			v.filter = row_filters[k].filter;
			v.column = row_filters[k].column;
		}
		add_view(x, v, OF_GROUPING, i);
		if (i == BY_FUNCTION) {
			add_view(x, (struct tui_view){.name = "tree"}, OF_TREE, QUERY_BY_NONE);
			add_view(x, (struct tui_view){.name = "callers"}, OF_CALLERS,
				 QUERY_BY_NONE);
		}
	}
	add_view(x, (struct tui_view){.name = "page", .is_page = true}, OF_PAGE, QUERY_BY_NONE);
}

/* A pattern that matches the whole name only, as in the suggested commands of a page. */
static const char *pattern(struct arena *a, const char *name)
{
	CLEANUP(buf_release) struct buf b = {0};
	ASSERT(overview_add_regex(&b, name)); /* is_pattern */
	return arena_strdup(a, buf_str(&b));
}

/* Names with a backslash or a line break cannot be written as a pattern. */
static bool is_pattern(const struct tui_filter *f)
{
	CLEANUP(buf_release) struct buf b = {0};
	return !f->value || overview_add_regex(&b, f->value);
}

static void apply(struct arena *a, const struct tui_filter *f, struct select_spec *spec,
		  struct query *q)
{
	/* These replace the rows of the view, the last of them counts. */
	if (f->kind == TUI_CALLERS || f->kind == TUI_CALLEES || f->kind == TUI_CODE)
		q->callers = q->callees = q->annotate = NULL;
	switch (f->kind) {
	case TUI_WITHIN:
		spec->within = pattern(a, f->value);
		break;
	case TUI_CALLERS:
		q->callers = pattern(a, f->value);
		break;
	case TUI_CALLEES:
		q->callees = pattern(a, f->value);
		break;
	case TUI_CODE:
		q->annotate = pattern(a, f->value);
		break;
	case TUI_EXCLUDE:
		spec->exclude = spec->exclude
					? arena_fmt(a, "%s|%s", spec->exclude, pattern(a, f->value))
					: pattern(a, f->value);
		break;
	case TUI_MODULE:
		spec->module = pattern(a, f->value);
		break;
	case TUI_THREAD:
		spec->thread = arena_strdup(a, f->value);
		break;
	case TUI_PROCESS:
		spec->pid = arena_strdup(a, f->value);
		break;
	case TUI_REASON:
		spec->reason = arena_strdup(a, f->value);
		break;
	case TUI_OBJECT:
		spec->object = pattern(a, f->value);
		break;
	case TUI_KERNEL:
		spec->mode = SELECT_KERNEL;
		break;
	case TUI_USER:
		spec->mode = SELECT_USER;
		break;
	case TUI_NO_FILTER:
	case TUI_FILTER_KINDS:
		break;
	}
}

static int make_report(void *ctx, struct report *r, const struct tui_query *tq, struct err *err)
{
	const struct interactive *x = ctx;
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec spec = *x->base->spec;
	struct query q = *x->base;
	q.spec = &spec;
	q.by = x->what[tq->view].grouping;
	q.flags &= ~(unsigned)(QUERY_TREE | QUERY_REVERSE);
	q.limits = (struct view_limits){.sort = (enum view_sort)tq->sort};
	q.tree_min_pct = 0;
	q.input = NULL;
	for (size_t i = 0; i < tq->nr_filters; i++) {
		if (!is_pattern(&tq->filters[i]))
			return err_set(err, -EINVAL, "names with a backslash cannot be selected");
		apply(&a, &tq->filters[i], &spec, &q);
	}
	if (q.callers || q.callees || q.annotate) {
		q.by = q.annotate ? QUERY_BY_NONE : BY_FUNCTION;
		return query_run(r, x->p, &q, err);
	}
	switch (x->what[tq->view].kind) {
	case OF_TREE:
		q.flags |= QUERY_TREE;
		break;
	case OF_CALLERS:
		q.flags |= QUERY_REVERSE;
		break;
	case OF_PAGE:
		q.limits.max_rows = 20;
		break;
	case OF_GROUPING:
		break;
	}
	return query_run(r, x->p, &q, err);
}

int interactive_run(const struct profile *p, const struct query *query, const char *name,
		    struct err *err)
{
	struct interactive x = {.p = p, .base = query};
	add_groupings(&x);
	const struct tui_model model = {name, x.views, x.nr, make_report, &x};
	const struct text_style style = {.has_color = term_has_color(STDOUT_FILENO, cmd_color()),
					 .add_hint = hint_add_words};
	return tui_run(&model, &style, err);
}
