/* Which rows a page has; see pageplan.h. */
#include "base/base.h"
#include "render/pageplan.h"

#include <math.h>

#include "render/cells.h"

#define TABLE_LINES 3 /* an empty line, title, column titles */
#define SHORT_LINES 20
#define LEAST_PCT   0.005

/* Rows that each table has in a round, if there is room: the first table has more than the others. */
static const struct {
	size_t first;
	size_t other;
} rounds[] = {{3, 3}, {8, 3}, {10, 5}, {SIZE_MAX, 8}, {SIZE_MAX, SIZE_MAX}};

/* Whether a cell is shown as 0 or not at all. */
static bool is_zero(enum cell_kind kind, const union cell *v)
{
	if (kind == CELL_PERCENT || kind == CELL_FLOAT)
		return isnan(v->d) || fabs(v->d) < LEAST_PCT;
	return kind == CELL_TEXT || kind == CELL_ID || !v->u || v->u == UINT64_MAX;
}

/*
 * Whether a row says nothing: all its percentages, or that which ranks the rows, would be shown as 0.00,
 * or, in a table without percentages, all its numbers as 0. Estimates are totals, of which 0 is worth a row.
 */
static bool is_nil(const struct report_table *t, size_t row)
{
	if (t->is_ranked && !t->has_counts)
		return is_zero(CELL_PERCENT, &t->cells[row * t->nr_columns + t->rank_by]);
	bool has_pct = false;
	bool has_number = false;
	bool is_nothing = true;
	const union cell *cells = &t->cells[row * t->nr_columns];
	for (size_t c = 0; c < t->nr_columns; c++)
		has_pct |= t->columns[c].kind == CELL_PERCENT && cells_has_column(t, c) &&
			   !isnan(cells[c].d);
	for (size_t c = 0; c < t->nr_columns; c++) {
		enum cell_kind kind = t->columns[c].kind;
		if (cell_form(kind) != CELL_PLAIN)
			return false;
		has_number |= kind != CELL_TEXT;
		if (has_pct ? kind == CELL_PERCENT && cells_has_column(t, c) : kind != CELL_TEXT)
			is_nothing &= is_zero(kind, &cells[c]);
	}
	return !t->has_zeros && is_nothing && has_number && (has_pct || t->nr_columns > 1);
}

struct counts {
	size_t nr_items; /* rows that can be shown */
	size_t nr_shown;
	bool is_shown;
};

static struct counts count_rows(const struct report_table *t, bool is_whole)
{
	size_t n = t->nr_rows - MIN((size_t)t->has_other + t->has_total, t->nr_rows);
	struct counts c = {0};
	for (size_t i = 0; i < n; i++)
		c.nr_items += is_whole || !is_nil(t, i);
	return c;
}

/* Shares the room out in rounds. */
static void share_room(const struct report *r, struct counts *of, size_t nr_lines, size_t nr_rows)
{
	bool is_short = nr_lines < SHORT_LINES; /* a further table is worth more than its rows */
	for (size_t k = 0; k < ARRAY_LEN(rounds); k++) {
		for (size_t i = 0; i < r->tables.n; i++) {
			const struct report_table *t = &r->tables.p[i];
			size_t most = i ? rounds[k].other : rounds[k].first;
			size_t first = k || !is_short ? t->nr_first : 0;
			if (t->kept) /* and the largest, if no finding names it */
				first = MAX(first, (size_t)__builtin_popcountll(t->kept) + 1);
			size_t want = MIN(MAX(most, first), of[i].nr_items);
			size_t head = of[i].is_shown ? 0 : TABLE_LINES + t->has_total;
			/* a table without rows takes a line that says so */
			size_t least =
				of[i].is_shown || !want || is_short ? 1 : MIN(want, (size_t)2);
			if (t->is_detail || nr_lines < head + least || (want && !nr_rows) ||
			    (k && !of[i].is_shown) || (of[i].is_shown && want <= of[i].nr_shown))
				continue;
			size_t more = MIN(MIN(want - of[i].nr_shown, nr_lines - head), nr_rows);
			nr_lines -= head + MAX(more, (size_t)!want);
			nr_rows -= more;
			of[i].nr_shown += more;
			of[i].is_shown = true;
		}
	}
}

static double weight_of(const struct report_table *t, size_t row)
{
	const struct report_column *c = &t->columns[t->cut_by];
	const union cell *v = &t->cells[row * t->nr_columns + t->cut_by];
	if (c->kind == CELL_TEXT || cell_form(c->kind) == CELL_CHANGE || !cell_is_known(c, v))
		return 0;
	if (c->kind == CELL_PERCENT || c->kind == CELL_FLOAT)
		return v->d;
	return (double)(cell_form(c->kind) == CELL_ESTIMATE ? v->estimate.value : v->u);
}

/* Keeps the first and the last row, the peak, and others with equal distances between them. */
static size_t thin(const struct report_table *t, size_t *rows, size_t n, size_t max)
{
	size_t peak = 0;
	for (size_t i = 0; i < n; i++)
		if (weight_of(t, rows[i]) > weight_of(t, rows[peak]))
			peak = i;
	size_t nearest = 0; /* gives its place to the peak: neither the first nor the last */
	if (max > 2 && n > 1)
		nearest = MIN(MAX((peak * (max - 1) + (n - 1) / 2) / (n - 1), (size_t)1), max - 2);
	for (size_t k = 0; k < max; k++) {
		size_t at = max > 1 ? k * (n - 1) / (max - 1) : n - 1;
		bool is_end = !peak || peak == n - 1;
		rows[k] = rows[nearest && k == nearest && !is_end ? peak : at];
	}
	return max;
}

static bool is_kept(const struct report_table *t, size_t row)
{
	return row < 64 && t->kept >> row & 1;
}

/* Keeps the rows that findings name, and those with the largest values, in the order of the table. */
static size_t keep_largest(const struct report_table *t, size_t *rows, size_t n, size_t max)
{
	for (; n > max; n--) {
		size_t least = 0;
		for (size_t i = 1; i < n; i++) {
			int less_kept = is_kept(t, rows[least]) - is_kept(t, rows[i]);
			if (less_kept > 0 ||
			    (!less_kept && weight_of(t, rows[i]) < weight_of(t, rows[least])))
				least = i;
		}
		memmove(&rows[least], &rows[least + 1], (n - least - 1) * sizeof(*rows));
	}
	return n;
}

static void list_rows(struct pageplan *plan, const struct report_table *t, size_t i,
		      const struct counts *of, bool is_whole)
{
	struct plan_table *to = &plan->tables[i];
	size_t nr_sums = MIN((size_t)t->has_other + t->has_total, t->nr_rows);
	to->is_shown = of->is_shown;
	to->rows = arena_calloc(&plan->arena, t->nr_rows + 1, sizeof(*to->rows));
	for (size_t k = 0; k < t->nr_rows - nr_sums; k++)
		if (is_whole || !is_nil(t, k))
			to->rows[to->nr_rows++] = k;
	if (to->nr_rows > of->nr_shown)
		to->nr_rows = t->cut == CUT_EVERY ? thin(t, to->rows, to->nr_rows, of->nr_shown)
			      : t->cut == CUT_LEAST
				      ? keep_largest(t, to->rows, to->nr_rows, of->nr_shown)
				      : of->nr_shown;
	to->nr_items = to->nr_rows;
	bool is_cut = to->nr_rows < t->nr_rows - nr_sums;
	if (t->has_other && !is_cut)
		to->rows[to->nr_rows++] = t->nr_rows - nr_sums;
	if (t->has_total && t->nr_rows)
		to->rows[to->nr_rows++] = t->nr_rows - 1;
	if (is_cut || !to->is_shown)
		plan->is_whole = false;
}

void pageplan_make(struct pageplan *ret_plan, const struct report *r, size_t nr_lines,
		   size_t nr_rows)
{
	bool is_whole = nr_lines == PLAN_UNLIMITED && nr_rows == PLAN_UNLIMITED;
	struct pageplan plan = {.is_whole = true};
	struct counts *of = arena_calloc(&plan.arena, r->tables.n + 1, sizeof(*of));
	plan.tables = arena_calloc(&plan.arena, r->tables.n + 1, sizeof(*plan.tables));
	for (size_t i = 0; i < r->tables.n; i++) {
		of[i] = count_rows(&r->tables.p[i], is_whole);
		of[i].is_shown = is_whole;
		of[i].nr_shown = is_whole ? of[i].nr_items : 0;
	}
	if (!is_whole)
		share_room(r, of, nr_lines, nr_rows);
	for (size_t i = 0; i < r->tables.n; i++)
		list_rows(&plan, &r->tables.p[i], i, &of[i], is_whole);
	*ret_plan = plan;
}

void pageplan_release(struct pageplan *plan)
{
	arena_release(&plan->arena);
}
