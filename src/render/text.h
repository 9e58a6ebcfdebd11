/*
 * Writes a report as text for a terminal or a pipe: facts, losses, notes, tables, trees, and
 * suggested next commands. The text that assay adds is ASCII. The bytes depend only on the report
 * and the style. With text_style.width (terminals only) long names are shortened in the middle.
 */
#ifndef ASSAY_RENDER_TEXT_H
#define ASSAY_RENDER_TEXT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

struct text_style {
	unsigned width;   /* columns; 0 = no limit */
	bool has_color;   /* headings are bold (escape sequences) */
	bool is_brief;    /* omit facts and hints; losses and notes remain */
	bool has_details; /* include facts about the recorder, not only about the target */
	/* Appends a hint as a command line; false if there is none for it. NULL: no hints. */
	bool (*add_hint)(struct buf *to, const struct report_hint *h);
};

void text_render(struct buf *to, const struct report *r, const struct text_style *style);

#endif
