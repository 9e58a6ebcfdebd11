/*
 * What of a report a page has room for: which notes, and which rows of which tables. A table has as
 * many rows as fit, chosen by its rule (enum report_cut); a last row with the sum of the others is left
 * out where rows are, the total remains. Rows of nothing but 0, or ranked by a share of 0.00, are left
 * out, too.
 *
 *	CLEANUP(pageplan_release) struct pageplan plan = {0};
 *	pageplan_make(&plan, report, lines of the page, lines above the tables, rows of the page);
 */
#ifndef ASSAY_RENDER_PAGEPLAN_H
#define ASSAY_RENDER_PAGEPLAN_H

#include "analyze/report.h"
#include "base/arena.h"
#include "base/base.h"

struct plan_table {
	bool is_shown;
	size_t *rows; /* indexes of the rows shown */
	size_t nr_rows;
	size_t nr_items; /* of those, without the last sums */
};

struct pageplan {
	struct arena arena;
	struct plan_table *tables; /* as report->tables */
	bool is_whole;             /* nothing is left out */
};

#define PLAN_UNLIMITED SIZE_MAX

/*
 * @nr_lines: for tables, each of which takes three more than its rows; @nr_rows: of all tables
 * together. Tables for details only have rows if both are PLAN_UNLIMITED.
 */
void pageplan_make(struct pageplan *ret_plan, const struct report *r, size_t nr_lines,
		   size_t nr_rows);
void pageplan_release(struct pageplan *plan);

#endif
