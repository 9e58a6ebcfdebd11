/*
 * A report as Markdown (GitHub's tables): for issues, pull requests, chat. The same facts, losses,
 * notes and tables as text has; trees are blocks of code. Whatever a name holds, it stays text:
 * markup in it is escaped.
 */
#ifndef ASSAY_RENDER_MARKDOWN_H
#define ASSAY_RENDER_MARKDOWN_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/text.h"

/* Of the style only has_details and is_brief count. */
void markdown_render(struct buf *to, const struct report *r, const struct text_style *style);

#endif
