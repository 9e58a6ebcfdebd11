/* Parts of static HTML pages; see htmlparts.h. */
#include "base/base.h"
#include "render/page/htmlparts.h"

#include <math.h>

#include "base/text/escape.h"
#include "base/text/num.h"
#include "render/assets.h"
#include "render/cells.h"
#include "render/text_table.h"

void html_add_line(struct buf *to, const char *tag, const char *class, struct sv text)
{
	buf_addf(to, "<%s class=\"%s\">", tag, class);
	escape_xml(to, text);
	buf_addf(to, "</%s>\n", tag);
}

void html_add_start(struct buf *to, const struct report *r, const char *title,
		    const char *script_policy)
{
	buf_addf(to,
		 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		 "%sstyle-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\">\n"
		 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		 "<meta name=\"color-scheme\" content=\"light dark\">\n"
		 "<meta name=\"generator\" content=\"assay\">\n<title>",
		 script_policy);
	escape_xml(to, sv_from_str(title));
	buf_add_str(to, "</title>\n<style>\n");
	buf_add_sv(to, asset_diff_css());
	buf_add_str(to, "</style>\n</head>\n<body>\n<header>\n");
	html_add_line(to, "h1", "title", sv_from_str(title));
	for (size_t i = 0; i < r->notes.n; i++)
		html_add_line(to, "p", i < r->findings.n ? "finding" : "quiet",
			      sv_from_str(r->notes.p[i]));
	buf_add_str(to, "</header>\n<main>\n");
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

void html_add_table(struct buf *to, const struct report_table *t)
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
		html_add_line(to, "p", "quiet", sv_from_str(t->note));
}

void html_add_losses(struct buf *to, const struct report *r)
{
	CLEANUP(buf_release) struct buf losses = {0};
	text_add_losses(&losses, r);
	html_add_line(to, "footer", "quiet", buf_sv(&losses));
}
