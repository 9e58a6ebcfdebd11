/*
 * Writes a report as text for a terminal or a pipe: the sentences that answer the view's question,
 * facts, losses, notes, tables, trees, and suggested next commands. The text that assay adds is ASCII.
 * The bytes depend only on the report and the style.
 *
 * With max_lines the report is a page: it has the facts, notes and rows that matter most, says what is
 * left out, and fits. Names are shortened to the width (base/text/shortname.h).
 */
#ifndef ASSAY_RENDER_TEXT_H
#define ASSAY_RENDER_TEXT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

struct text_style {
	unsigned width;   /* columns; 0 = no limit */
	size_t max_lines; /* 0 = no limit */
	size_t max_rows;  /* of all tables together; 0 = no limit */
	bool has_color;   /* headings, answer, hot rows and losses (escape sequences) */
	bool has_details; /* all facts, losses with their causes, all notes, notes of tables */
	/* Appends a hint as a command line; false if there is none for it. NULL: no hints. */
	bool (*add_hint)(struct buf *to, const struct report_hint *h);
};

void text_render(struct buf *to, const struct report *r, const struct text_style *style);

#endif
