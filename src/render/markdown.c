/* Reports as Markdown; see markdown.h. */
#include "base/base.h"
#include "render/markdown.h"

#include "base/mem.h"
#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/text/shortname.h"
#include "render/cells.h"
#include "render/text_table.h"

#define NAME_COLUMNS 80 /* of a name in a table, unless the width is unlimited */

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c < 0;
}

/* Appends text with markup and HTML escaped, safe in a table cell as well. */
static void add_escaped(struct buf *to, struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		/* an underscore inside a word is literal; > and # are markup only at the start */
		bool is_inside = i && i + 1 < s.n && is_word(s.p[i - 1]) && is_word(s.p[i + 1]);
		if (c == '\n' || c == '\r') /* it would end the cell */
			buf_add_ch(to, ' ');
		else if (c == '<')
			buf_add_str(to, "&lt;");
		else if (c == '&')
			buf_add_str(to, "&amp;");
		else if ((c && strchr("\\`*[]|~", c)) || (c == '_' && !is_inside) ||
			 (!i && (c == '#' || c == '>')))
			buf_addf(to, "\\%c", c);
		else
			buf_add_ch(to, c);
	}
}

static void add_text(struct buf *to, const char *text)
{
	CLEANUP(buf_release) struct buf plain = {0};
	escape_term(&plain, sv_from_str(text));
	add_escaped(to, buf_sv(&plain));
}

static void add_heading(struct buf *to, int level, const char *text)
{
	buf_add_repeat(to, '#', (size_t)level);
	buf_add_ch(to, ' ');
	add_text(to, text);
	buf_add_str(to, "\n\n");
}

/* A code span, safe in a table cell; its delimiter is longer than any run of backticks in it. */
void markdown_add_code(struct buf *to, struct sv s)
{
	size_t most = 0;
	size_t run = 0;
	for (size_t i = 0; i < s.n; i++) {
		run = s.p[i] == '`' ? run + 1 : 0;
		most = MAX(most, run);
	}
	bool needs_space = most > 0 && (s.p[0] == '`' || s.p[s.n - 1] == '`');
	buf_add_repeat(to, '`', most + 1);
	buf_add_str(to, needs_space ? " " : "");
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '|') /* GFM splits cells before it reads code spans */
			buf_add_ch(to, '\\');
		buf_add_ch(to, s.p[i] == '\n' || s.p[i] == '\r' ? ' ' : s.p[i]);
	}
	buf_add_str(to, needs_space ? " " : "");
	buf_add_repeat(to, '`', most + 1);
}

static void add_item(struct buf *to, struct sv text)
{
	buf_add_str(to, "- ");
	add_escaped(to, text);
	buf_add_ch(to, '\n');
}

static void add_facts(struct buf *to, const struct report *r, const struct text_style *style)
{
	vec_foreach(f, &r->facts) {
		CLEANUP(buf_release) struct buf fact = {0};
		const char *key = intern_str(&r->names, f->key);
		const char *value = intern_str(&r->names, f->value);
		if (!style->has_details && fact_is_second(key, value))
			continue;
		struct num_text scratch;
		key = fact_shown(key, value, &scratch, &value);
		buf_addf(&fact, "%s: ", key);
		escape_term(&fact, sv_from_str(value));
		add_item(to, buf_sv(&fact));
	}
	CLEANUP(buf_release) struct buf losses = {0};
	if (style->has_details)
		text_add_losses(&losses, r);
	else
		(void)text_add_loss_summary(&losses, r);
	for (struct sv rest = buf_sv(&losses); rest.n;)
		add_item(to, sv_split(&rest, '\n'));
}

static bool is_of(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == text)
			return true;
	return false;
}

/* The answer, as the first paragraph: one sentence a line. */
static void add_answer(struct buf *to, const struct report *r)
{
	vec_foreach(f, &r->findings) {
		buf_add_str(to, "**");
		add_text(to, *f);
		buf_add_str(to, "**\n\n");
	}
}

static void add_notes(struct buf *to, const struct report *r, const struct text_style *style)
{
	vec_foreach(n, &r->notes) {
		if (is_of(r->findings.p, r->findings.n, *n) ||
		    (!style->has_details && is_of(r->details.p, r->details.n, *n)))
			continue;
		buf_add_str(to, "\n> ");
		add_text(to, *n);
		buf_add_ch(to, '\n');
	}
}

struct md_table {
	const struct report_table *t;
	const struct plan_table *plan;
	struct cells_form *forms;
	struct shortnames *names; /* by column */
};

/* The cells of a text column: names are short, unless the width is unlimited. */
static void shorten(struct md_table *m, size_t c, size_t columns)
{
	size_t n = m->plan->nr_rows;
	CLEANUP(free_p) struct sv *names = xcalloc(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = sv_from_str(m->t->cells[m->plan->rows[i] * m->t->nr_columns + c].text);
	shortnames_make(&m->names[c], names, n, columns);
}

static void add_cell(struct buf *to, const struct md_table *m, size_t c, size_t i)
{
	CLEANUP(buf_release) struct buf cell = {0};
	const struct report_column *column = &m->t->columns[c];
	if (column->kind != CELL_TEXT) {
		cells_add(&cell, column, &m->forms[c],
			  &m->t->cells[m->plan->rows[i] * m->t->nr_columns + c]);
		add_escaped(to, buf_sv(&cell));
		return;
	}
	escape_term(&cell, sv_from_str(shortnames_at(&m->names[c], i)));
	if (column->is_prose || !cell.n || !strcmp(buf_str(&cell), "-"))
		add_escaped(to, buf_sv(&cell));
	else
		markdown_add_code(to, buf_sv(&cell));
}

static void add_rows(struct buf *to, const struct md_table *m)
{
	const struct report_table *t = m->t;
	for (size_t c = 0; c < t->nr_columns; c++) {
		CLEANUP(buf_release) struct buf title = {0};
		if (!cells_has_column(t, c))
			continue;
		cells_add_title(&title, &t->columns[c], &m->forms[c]);
		buf_add_str(to, "| ");
		add_escaped(to, buf_sv(&title));
		buf_add_ch(to, ' ');
	}
	buf_add_str(to, "|\n|");
	for (size_t c = 0; c < t->nr_columns; c++)
		if (cells_has_column(t, c))
			buf_add_str(to, t->columns[c].kind == CELL_TEXT ? "---|" : "--:|");
	buf_add_ch(to, '\n');
	for (size_t i = 0; i < m->plan->nr_rows; i++) {
		for (size_t c = 0; c < t->nr_columns; c++) {
			if (!cells_has_column(t, c))
				continue;
			buf_add_str(to, "| ");
			add_cell(to, m, c, i);
			buf_add_ch(to, ' ');
		}
		buf_add_str(to, "|\n");
	}
}

static void add_table(struct buf *to, const struct report_table *t, const struct plan_table *plan,
		      const struct text_style *style)
{
	size_t nr_all = MAX(t->nr_rows_total, plan->nr_items);
	CLEANUP(buf_release) struct buf title = {0};
	buf_add_str(&title, t->title);
	if (plan->nr_items < nr_all)
		buf_addf(&title, ": %s of %s", num_count(plan->nr_items).s, num_count(nr_all).s);
	buf_add_ch(to, '\n');
	add_heading(to, 3, buf_str(&title));
	if (!plan->nr_rows) {
		buf_add_str(to, "(nothing to show)\n");
		return;
	}
	CLEANUP(free_p) struct cells_form *forms = xcalloc(t->nr_columns, sizeof(*forms));
	CLEANUP(free_p) struct shortnames *names = xcalloc(t->nr_columns, sizeof(*names));
	struct md_table m = {t, plan, forms, names};
	for (size_t c = 0; c < t->nr_columns; c++) {
		bool is_whole = column_is_cut_at_end(&t->columns[c]) || !style->width;
		forms[c] = cells_form_of(t, c, plan->rows, plan->nr_rows);
		if (t->columns[c].kind == CELL_TEXT)
			shorten(&m, c, is_whole ? SIZE_MAX : NAME_COLUMNS);
	}
	add_rows(to, &m);
	for (size_t c = 0; c < t->nr_columns; c++)
		shortnames_release(&names[c]);
	if (!t->note || !style->has_details)
		return;
	buf_add_str(to, "\n(");
	add_text(to, t->note);
	buf_add_str(to, ")\n");
}

/* Each line of the tree starts with numbers, so no name can end the code block. */
static void add_tree(struct buf *to, const struct report *r, const struct report_tree *t,
		     const struct text_style *style)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct text_style plain = {.width = style->width};
	text_add_tree(&text, r, t, &plain);
	struct sv rest = buf_sv(&text);
	(void)sv_split(&rest, '\n'); /* an empty line, then the title */
	(void)sv_split(&rest, '\n');
	buf_add_ch(to, '\n');
	add_heading(to, 3, t->title);
	buf_add_str(to, "```text\n");
	buf_add_sv(to, rest);
	buf_add_str(to, "```\n");
}

void markdown_render(struct buf *to, const struct report *r, const struct text_style *style)
{
	CLEANUP(pageplan_release) struct pageplan plan;
	pageplan_make(&plan, r, PLAN_UNLIMITED, style->max_rows ? style->max_rows : PLAN_UNLIMITED);
	add_heading(to, 2, r->title);
	add_answer(to, r);
	add_facts(to, r, style);
	add_notes(to, r, style);
	for (size_t i = 0; i < r->tables.n; i++)
		if (plan.tables[i].is_shown)
			add_table(to, &r->tables.p[i], &plan.tables[i], style);
	vec_foreach(t, &r->trees)
		if (!style->max_rows || !t->is_detail)
			add_tree(to, r, t, style);
	CLEANUP(buf_release) struct buf hints = {0};
	const struct text_style whole = {.add_hint = style->add_hint};
	text_add_hints(&hints, r, &whole, "");
	if (hints.n)
		buf_addf(to, "\nNext:\n\n```sh\n%s```\n", buf_str(&hints));
}
