/*
 * The registry of renderers: ways in which any report can be shown. To add one: its pair of files
 * and a row in renderers.c, which is also its option.
 *
 *	struct renderer_choice choice = {0};    bound to renderer_group by a command's options
 *	renderer_render(&choice, &buf, report, &style);
 */
#ifndef ASSAY_RENDER_RENDERERS_H
#define ASSAY_RENDER_RENDERERS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/opt/opt.h"
#include "render/text.h"

/* What the options of renderer_group set; zero is text. */
struct renderer_choice {
	int idx; /* of the renderer */
};

/* An option for each renderer but text: --json ... */
extern const struct opt_group renderer_group;

/* @style is for text; other renderers give the same bytes whatever it says. */
void renderer_render(const struct renderer_choice *choice, struct buf *to, const struct report *r,
		     const struct text_style *style);
/* Is the result for people to read on a terminal? */
static inline bool renderer_is_text(const struct renderer_choice *choice)
{
	return choice->idx == 0;
}

#endif
