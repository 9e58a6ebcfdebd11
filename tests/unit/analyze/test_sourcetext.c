/* analyze/stacks/sourcetext: the text of lines in tables. */
#include "base/base.h"
#include "tap.h"

#include "analyze/stacks/sourcetext.h"

static const char *line_of(void *ctx, struct arena *a, const char *file, uint32_t line)
{
	(void)ctx;
	return strcmp(file, "src/a:b.c") ? NULL : arena_fmt(a, "text of %u", line);
}

static const struct code_access access_to_one = {.line = line_of};

static const struct report_column columns[] = {{"samples", "samples", CELL_COUNT},
					       {"line", "line", CELL_TEXT},
					       {"function", "function", CELL_TEXT}};

static void add_row(struct report *r, struct report_table *t, const char *line)
{
	const union cell cells[] = {{.u = 3}, {.text = line}, {.text = "f"}};
	report_add_row(r, t, cells);
}

TEST(sourcetext_is_a_last_column_beside_the_lines_that_are_read)
{
	struct report *r = report_new();
	add_row(r, report_add_table(r, "lines", "lines", columns, ARRAY_LEN(columns)),
		"src/a:b.c:12");
	add_row(r, &r->tables.p[0], "src/other.c:12");
	add_row(r, &r->tables.p[0], "[kernel] (no source line)");
	add_row(r, &r->tables.p[0], "src/a:b.c:99999999999");
	sourcetext_add(r, &access_to_one);
	const struct report_table *t = &r->tables.p[0];
	CHECK(t->nr_columns == 4 && t->nr_rows == 4);
	CHECK_STR(t->columns[3].key, "source");
	CHECK_STR(t->cells[3].text, "text of 12");
	CHECK(t->cells[0].u == 3 && t->cells[4].u == 3);
	CHECK_STR(t->cells[2 * 4 + 1].text, "[kernel] (no source line)");
	for (size_t i = 1; i < 4; i++)
		CHECK_STR(t->cells[i * 4 + 3].text, "");
	report_free(r);
}

TEST(sourcetext_adds_no_empty_column)
{
	struct report *r = report_new();
	add_row(r, report_add_table(r, "lines", "lines", columns, ARRAY_LEN(columns)), "x.c:1");
	sourcetext_add(r, &access_to_one);
	CHECK(r->tables.p[0].nr_columns == 3);
	report_free(r);
}
