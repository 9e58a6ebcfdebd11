/*
 * A report as text for a terminal or a pipe: facts, the ledger of losses, notes, tables, trees,
 * and what to type next. Plain ASCII, no colour, bytes depend on the report alone; with a width
 * (terminals only) long names are cut in their middle.
 */
#ifndef ASSAY_RENDER_TEXT_H
#define ASSAY_RENDER_TEXT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

struct text_style {
	unsigned width;   /* columns; 0 = no limit */
	bool has_color;   /* headings stand out */
	bool is_brief;    /* no facts, no hints; losses and notes stay */
	bool has_details; /* facts about the recorder, too, which say nothing of the target */
	/* Words a hint as what is typed; false if it cannot be. NULL: no hints. */
	bool (*add_hint)(struct buf *to, const struct report_hint *h);
};

void text_render(struct buf *to, const struct report *r, const struct text_style *style);

#endif
