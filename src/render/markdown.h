/*
 * Writes a report as Markdown (GitHub's tables), for issues, pull requests and chat. It contains
 * the same facts, losses, notes and tables as the text form; trees are code blocks. Markup in names
 * is escaped.
 */
#ifndef ASSAY_RENDER_MARKDOWN_H
#define ASSAY_RENDER_MARKDOWN_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/text.h"

/* Of @style only has_details and is_brief are used. */
void markdown_render(struct buf *to, const struct report *r, const struct text_style *style);

#endif
