/* Reports as Markdown. */
#include "base/base.h"
#include "render/markdown.h"
#include "tap.h"

static const struct report_column columns[] = {
	{"nr", "nr", CELL_COUNT, NULL},
	{"name", "name", CELL_TEXT, NULL},
};

static void check_cell(const char *text, const char *want)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf row = {0};
	const struct text_style plain = {0};
	r->title = "t";
	r->has_no_samples = true;
	struct report_table *t = report_add_table(r, "t", "t", columns, ARRAY_LEN(columns));
	report_add_row(r, t, (union cell[]){{.u = 1}, {.text = text}});
	markdown_render(&b, r, &plain);
	buf_addf(&row, "\n| 1 | %s |\n", want);
	if (!strstr(buf_str(&b), buf_str(&row)))
		tap_fail(__FILE__, __LINE__, "no row '%s' in:\n%s", buf_str(&row), buf_str(&b));
}

TEST(markdown_has_names_in_code_spans)
{
	check_cell("a|b <i>*x* & _y_", "`a\\|b <i>*x* & _y_`");
	check_cell("a`b``c", "```a`b``c```");
	check_cell("`z`", "`` `z` ``");
	check_cell("# no heading", "`# no heading`");
	check_cell("two\nlines", "`two\\x0alines`");
	check_cell("-", "-");
	check_cell("", "");
}

TEST(markdown_escapes_markup_in_sentences)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	const struct text_style plain = {0};
	r->has_no_samples = true;
	report_note(r, "a|b <i>*x* & `z` snake_case _y_ [l](u)");
	report_finding(r, "# no heading");
	markdown_render(&b, r, &plain);
	CHECK(strstr(buf_str(&b), "\n> a\\|b &lt;i>\\*x\\* &amp; \\`z\\` snake_case \\_y\\_ "
				  "\\[l\\](u)\n"));
	CHECK(strstr(buf_str(&b), "\n**\\# no heading**\n"));
}
