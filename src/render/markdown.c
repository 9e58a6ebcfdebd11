/* Reports as Markdown; see markdown.h. */
#include "base/base.h"
#include "render/markdown.h"

#include "base/text/escape.h"
#include "base/sv.h"
#include "render/text_table.h"

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

static void add_facts(struct buf *to, const struct report *r, const struct text_style *style)
{
	vec_foreach(f, &r->facts) {
		const char *key = intern_str(&r->names, f->key);
		const char *value = intern_str(&r->names, f->value);
		if (!style->has_details && fact_is_detail(key, value))
			continue;
		buf_add_str(to, "- ");
		add_text(to, key);
		buf_add_str(to, ": ");
		add_text(to, value);
		buf_add_ch(to, '\n');
	}
	CLEANUP(buf_release) struct buf losses = {0};
	text_add_losses(&losses, r);
	struct sv rest = buf_sv(&losses);
	while (rest.n) {
		struct sv line = sv_split(&rest, '\n');
		if (!line.n)
			continue;
		buf_add_str(to, "- ");
		add_escaped(to, line);
		buf_add_ch(to, '\n');
	}
}

static bool is_number(const struct report_column *c)
{
	return c->kind != CELL_TEXT;
}

static void add_table(struct buf *to, const struct report_table *t)
{
	CLEANUP(buf_release) struct buf cell = {0};
	buf_add_ch(to, '\n');
	add_heading(to, 3, t->title);
	if (!t->nr_rows) {
		buf_add_str(to, "(nothing to show)\n");
		return;
	}
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!text_has_column(t, c))
			continue;
		buf_add_str(to, "| ");
		add_text(to, t->columns[c].title);
		buf_add_ch(to, ' ');
	}
	buf_add_str(to, "|\n|");
	for (size_t c = 0; c < t->nr_columns; c++)
		if (text_has_column(t, c))
			buf_add_str(to, is_number(&t->columns[c]) ? "--:|" : "---|");
	buf_add_ch(to, '\n');
	for (size_t i = 0; i < t->nr_rows; i++) {
		for (size_t c = 0; c < t->nr_columns; c++) {
			if (!text_has_column(t, c))
				continue;
			buf_clear(&cell);
			text_add_cell(&cell, &t->columns[c], &t->cells[i * t->nr_columns + c]);
			buf_add_str(to, "| ");
			add_escaped(to, buf_sv(&cell));
			buf_add_ch(to, ' ');
		}
		buf_add_str(to, "|\n");
	}
	if (!t->note)
		return;
	buf_add_str(to, "\n(");
	add_text(to, t->note);
	buf_add_str(to, ")\n");
}

/* Each line of the tree starts with numbers, so no name can end the code block. */
static void add_tree(struct buf *to, const struct report *r, const struct report_tree *t)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct text_style plain = {0};
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
	add_heading(to, 2, r->title);
	if (!style->is_brief)
		add_facts(to, r, style);
	vec_foreach(n, &r->notes) {
		buf_add_str(to, "\n> ");
		add_text(to, *n);
		buf_add_ch(to, '\n');
	}
	vec_foreach(t, &r->tables)
		add_table(to, t);
	vec_foreach(t, &r->trees)
		add_tree(to, r, t);
	CLEANUP(buf_release) struct buf hints = {0};
	text_add_hints(&hints, r, style, "");
	if (hints.n)
		buf_addf(to, "\nNext:\n\n```sh\n%s```\n", buf_str(&hints));
}
