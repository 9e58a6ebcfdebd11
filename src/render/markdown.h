/*
 * Writes a report as Markdown (GitHub's tables), for issues, pull requests, chat and programs that
 * read text. It contains the same answer, facts, losses, notes and tables as the text form; trees are
 * code blocks. Names are in code spans, other text is escaped.
 */
#ifndef ASSAY_RENDER_MARKDOWN_H
#define ASSAY_RENDER_MARKDOWN_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/text.h"

/* Of @style: has_details, max_rows, width (0: names are whole), add_hint. */
void markdown_render(struct buf *to, const struct report *r, const struct text_style *style);

/* Appends a code span that may be in a cell of a table. */
void markdown_add_code(struct buf *to, struct sv s);

#endif
