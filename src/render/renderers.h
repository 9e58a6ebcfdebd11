/*
 * The registry of renderers: the output formats of reports. A new renderer is a pair of files and a
 * row in renderers.c, which also defines its command line option.
 *
 *	struct renderer_choice choice = {0};    set by the options of renderer_group
 *	renderer_render(&choice, &buf, report, &style);
 */
#ifndef ASSAY_RENDER_RENDERERS_H
#define ASSAY_RENDER_RENDERERS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/opt/opt.h"
#include "render/text.h"

/* The renderer selected by the options of renderer_group, and its options; {0} selects text. */
struct renderer_choice {
	int idx;         /* of the renderer */
	uint64_t width;  /* 0: that of the terminal, $COLUMNS or 120 */
	uint64_t rows;   /* of all tables together; 0: as many as a page has */
	bool is_wide;    /* no limit of the width */
	bool is_details; /* everything */
	bool has_limit;  /* set by the command: it decides how many rows, the page may be longer */
};

/* Fills the parts of a style that the options decide; @fd is where the text will go. */
struct text_style renderer_style(const struct renderer_choice *choice, int fd);

/* Options that select a renderer: one for each except text (--json, ...). */
extern const struct opt_group renderer_group;

/* Renders a report. @style affects text (and parts of it Markdown); JSON is always the same. */
void renderer_render(const struct renderer_choice *choice, struct buf *to, const struct report *r,
		     const struct text_style *style);
/* Returns whether the text renderer is selected. */
static inline bool renderer_is_text(const struct renderer_choice *choice)
{
	return choice->idx == 0;
}

#endif
