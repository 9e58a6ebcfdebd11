/* The HTML page of a comparison; see diffhtml.h. */
#include "base/base.h"
#include "render/page/diffhtml.h"

#include <math.h>

#include "base/text/escape.h"
#include "base/text/num.h"
#include "diff_hash.h"
#include "render/assets.h"
#include "render/cells.h"
#include "render/text_table.h"

static void add_head(struct buf *to, const char *title)
{
	buf_add_str(to,
		    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "script-src 'sha256-" DIFF_JS_HASH "'; style-src 'unsafe-inline'; "
		    "form-action 'none'; base-uri 'none'\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    "<meta name=\"generator\" content=\"assay\">\n<title>");
	escape_xml(to, sv_from_str(title));
	buf_add_str(to, "</title>\n<style>\n");
	buf_add_sv(to, asset_diff_css());
	buf_add_str(to, "</style>\n</head>\n<body>\n");
}

static void add_line(struct buf *to, const char *tag, const char *class, struct sv text)
{
	buf_addf(to, "<%s class=\"%s\">", tag, class);
	escape_xml(to, text);
	buf_addf(to, "</%s>\n", tag);
}

/* The number by which a column is sorted. */
static double sort_key(const struct report_column *c, const union cell *v)
{
	switch (cell_form(c->kind)) {
	case CELL_ESTIMATE:
		return (double)v->estimate.value;
	case CELL_CHANGE:
		return (double)v->estimate.change;
	case CELL_PLAIN:
		break;
	}
	bool is_double = c->kind == CELL_PERCENT || c->kind == CELL_FLOAT;
	return is_double ? (isfinite(v->d) ? v->d : -1e300) : (double)v->u;
}

static void add_cell(struct buf *to, const struct report_column *c, const union cell *v)
{
	CLEANUP(buf_release) struct buf text = {0};
	cells_add(&text, c, &(struct cells_form){0}, v);
	if (c->kind == CELL_TEXT) {
		buf_addf(to, "<td class=\"%s\">", c->key);
	} else {
		buf_add_str(to, "<td class=\"num\" data-v=\"");
		num_add_double(to, sort_key(c, v), 6);
		buf_add_str(to, "\">");
	}
	escape_xml(to, buf_sv(&text));
	buf_add_str(to, "</td>");
}

static const union cell *cell_of(const struct report_table *t, size_t row, const char *key)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, key))
			return &t->cells[row * t->nr_columns + c];
	return NULL;
}

static void add_table(struct buf *to, const struct report_table *t)
{
	buf_addf(to, "<h2>");
	escape_xml(to, sv_from_str(t->title));
	buf_addf(to, "</h2>\n<div class=\"scroll\"><table id=\"%s\">\n<thead><tr>", t->key);
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!cells_has_column(t, c))
			continue;
		buf_addf(to, "<th class=\"%s\"", t->columns[c].kind == CELL_TEXT ? "text" : "num");
		if (t->columns[c].help) {
			buf_add_str(to, " title=\"");
			escape_xml(to, sv_from_str(t->columns[c].help));
			buf_add_ch(to, '"');
		}
		buf_add_ch(to, '>');
		escape_xml(to, sv_from_str(t->columns[c].title));
		buf_add_str(to, "</th>");
	}
	buf_add_str(to, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < t->nr_rows; i++) {
		const union cell *note = cell_of(t, i, "note");
		bool is_marked = note && *note->text;
		buf_add_str(to, is_marked ? "<tr class=\"marked\">" : "<tr>");
		for (size_t c = 0; c < t->nr_columns; c++)
			if (cells_has_column(t, c))
				add_cell(to, &t->columns[c], &t->cells[i * t->nr_columns + c]);
		buf_add_str(to, "</tr>\n");
	}
	buf_add_str(to, "</tbody></table></div>\n");
	if (t->note)
		add_line(to, "p", "quiet", sv_from_str(t->note));
}

static bool has_marks(const struct report_table *t)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, "note"))
			return true;
	return false;
}

static void add_picture(struct buf *to, struct sv picture)
{
	const char *start = picture.n ? memmem(picture.p, picture.n, "<svg", 4) : NULL;
	if (!start)
		return;
	buf_add_str(to, "<div class=\"picture\">\n");
	buf_add_sv(to, sv_from_idx(picture, (size_t)(start - picture.p)));
	buf_add_str(to, "</div>\n");
}

void diffhtml_write(struct buf *to, const struct report *r, const char *title, struct sv picture)
{
	add_head(to, title);
	buf_add_str(to, "<header>\n");
	add_line(to, "h1", "title", sv_from_str(title));
	for (size_t i = 0; i < r->notes.n; i++)
		add_line(to, "p", i < r->findings.n ? "finding" : "quiet",
			 sv_from_str(r->notes.p[i]));
	buf_add_str(to, "</header>\n<main>\n");
	/* The picture stands before the first table of rows that can be marked. */
	bool has_picture = false;
	vec_foreach(t, &r->tables) {
		if (!has_picture && strcmp(t->key, "total") != 0 && has_marks(t)) {
			add_picture(to, picture);
			has_picture = true;
		}
		add_table(to, t);
	}
	buf_add_str(to, "</main>\n");
	CLEANUP(buf_release) struct buf losses = {0};
	text_add_losses(&losses, r);
	add_line(to, "footer", "quiet", buf_sv(&losses));
	buf_add_str(to, "<script>");
	buf_add_sv(to, asset_diff_js());
	buf_add_str(to, "</script>\n</body>\n</html>\n");
}
