/* render/pageplan: which rows of a table remain where a page has no room for all. */
#include "base/base.h"
#include "tap.h"

#include "base/buf.h"
#include "render/pageplan.h"

#define NR_ROWS 100
#define PEAK    71

static const struct report_column columns[] = {{"ns", "time", CELL_NS, NULL},
					       {"bytes", "bytes", CELL_BYTES, NULL}};

static struct report *make_report(enum report_cut cut)
{
	struct report *r = report_new();
	r->title = "t";
	struct report_table *t = report_add_table(r, "t", "t", columns, ARRAY_LEN(columns));
	t->cut = cut;
	t->cut_by = 1;
	for (uint64_t i = 0; i < NR_ROWS; i++) {
		uint64_t bytes = i == PEAK ? 1000 : i == 40 ? CELL_NO_BYTES : i + 1;
		report_add_row(r, t, (union cell[]){{.u = i + 1}, {.u = bytes}});
	}
	return r;
}

/* The rows of a page with room for @nr, as text. */
static const char *rows_of(struct buf *to, enum report_cut cut, size_t nr)
{
	CLEANUP(report_free_p) struct report *r = make_report(cut);
	CLEANUP(pageplan_release) struct pageplan plan;
	buf_clear(to);
	pageplan_make(&plan, r, PLAN_UNLIMITED, nr);
	for (size_t i = 0; i < plan.tables[0].nr_rows; i++)
		buf_addf(to, " %zu", plan.tables[0].rows[i]);
	return buf_str(to);
}

TEST(page_has_the_first_rows_of_a_table_in_order_of_importance)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK_STR(rows_of(&b, CUT_LAST, 4), " 0 1 2 3");
}

TEST(page_has_first_last_and_peak_of_a_table_in_order_of_time)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK_STR(rows_of(&b, CUT_EVERY, 5), " 0 24 49 71 99");
	CHECK_STR(rows_of(&b, CUT_EVERY, 3), " 0 71 99");
	CHECK_STR(rows_of(&b, CUT_EVERY, 2), " 0 99");
	CHECK_STR(rows_of(&b, CUT_EVERY, 1), " 99");
}

TEST(page_has_the_largest_rows_of_a_table_in_another_order)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK_STR(rows_of(&b, CUT_LEAST, 4), " 71 97 98 99");
}

/* Tables with @rows rows each; the second one wants 8 of them. */
static struct report *tables_of(size_t nr, size_t rows)
{
	static const char *const keys[] = {"a", "b", "c"};
	struct report *r = report_new();
	r->title = "t";
	for (size_t k = 0; k < nr; k++) {
		struct report_table *t =
			report_add_table(r, keys[k], keys[k], columns, ARRAY_LEN(columns));
		t->nr_first = k == 1 ? 8 : 0;
		for (uint64_t i = 0; i < rows; i++)
			report_add_row(r, t, (union cell[]){{.u = i + 1}, {.u = i + 1}});
	}
	return r;
}

/* Time on CPU, and waits that findings name, beside the longest ones. */
TEST(page_keeps_the_rows_that_findings_name)
{
	CLEANUP(report_free_p) struct report *r = tables_of(1, 20);
	CLEANUP(pageplan_release) struct pageplan plan;
	r->tables.p[0].cut = CUT_LEAST;
	r->tables.p[0].kept = 1 | 1 << 5;
	pageplan_make(&plan, r, 6, PLAN_UNLIMITED);
	CHECK_U64(plan.tables[0].nr_rows, 3);
	CHECK_U64(plan.tables[0].rows[0], 0);
	CHECK_U64(plan.tables[0].rows[1], 5);
	CHECK_U64(plan.tables[0].rows[2], 19);
}

TEST(a_short_page_has_all_rows_that_findings_name_and_the_largest)
{
	CLEANUP(report_free_p) struct report *r = tables_of(1, 20);
	CLEANUP(pageplan_release) struct pageplan plan;
	r->tables.p[0].cut = CUT_LEAST;
	r->tables.p[0].kept = 0x1f;
	pageplan_make(&plan, r, 16, 6);
	CHECK_U64(plan.tables[0].nr_rows, 6);
	CHECK_U64(plan.tables[0].rows[4], 4);
	CHECK_U64(plan.tables[0].rows[5], 19);
}

TEST(a_short_page_has_one_more_table_rather_than_more_rows_of_another)
{
	CLEANUP(report_free_p) struct report *r = tables_of(3, 20);
	CLEANUP(pageplan_release) struct pageplan small;
	CLEANUP(pageplan_release) struct pageplan large;
	pageplan_make(&small, r, 16, PLAN_UNLIMITED);
	CHECK(small.tables[2].is_shown && small.tables[1].nr_rows == 3);
	pageplan_make(&large, r, 22, PLAN_UNLIMITED);
	CHECK(large.tables[1].nr_rows == 8);
}
