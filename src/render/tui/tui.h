/*
 * The terminal view of a profile: tables and trees in which one moves, with the keys of perf report.
 * It shows reports. What a report contains is decided by the model, which makes one for each query:
 * a view (a table, a tree, a text page) and filters that the user has added, the last one last.
 *
 *	struct tui_model model = {"redis.assay", views, nr_views, make_report, ctx};
 *	tui_run(&model, &style, &err);
 */
#ifndef ASSAY_RENDER_TUI_TUI_H
#define ASSAY_RENDER_TUI_TUI_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/err.h"
#include "render/text.h"

#define TUI_FILTERS_MAX 16

enum tui_filter_kind {
	TUI_NO_FILTER,
	TUI_WITHIN,  /* what a function calls: it becomes 100 % */
	TUI_CALLERS, /* shows the callers of a function, in place of the view's rows */
	TUI_CALLEES, /* shows what a function calls, in place of the view's rows */
	TUI_CODE,    /* shows the instructions of a function, in place of the view's rows */
	TUI_EXCLUDE, /* without the stacks that have a function */
	TUI_MODULE,  /* the leaf is in a module */
	TUI_THREAD,
	TUI_PROCESS,
	TUI_REASON,
	TUI_OBJECT,
	TUI_KERNEL, /* leaf in the kernel; without a value */
	TUI_USER,
	TUI_FILTER_KINDS
};

struct tui_filter {
	enum tui_filter_kind kind;
	const char *value; /* a name, not a pattern */
};

struct tui_query {
	size_t view;
	struct tui_filter filters[TUI_FILTERS_MAX];
	size_t nr_filters;
	unsigned sort; /* 0 self, 1 total, 2 name: enum view_sort */
};

struct tui_view {
	const char *name; /* "functions" */
	enum tui_filter_kind
		filter;     /* what Enter on a row of its table adds; TUI_NO_FILTER: none */
	const char *column; /* key of the column with the filter's value; NULL: the first text */
	bool is_page;       /* shown as text: tables, notes, all */
};

struct tui_model {
	const char *name; /* of the file */
	const struct tui_view *views;
	size_t nr_views;
	/* Makes the report of a query: its first tree or table is shown. Errors are shown as well. */
	int (*report)(void *ctx, struct report *r, const struct tui_query *q, struct err *err);
	void *ctx;
};

/* Runs until the user quits. Error: the terminal cannot show it, nothing was shown. @style:
 * whether there are colours, and the hints of pages. */
int tui_run(const struct tui_model *model, const struct text_style *style, struct err *err);

#endif
