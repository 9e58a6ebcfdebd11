/* Tables, trees, losses and hints of a report as aligned text; the parts of text.h. */
#ifndef ASSAY_RENDER_TEXT_TABLE_H
#define ASSAY_RENDER_TEXT_TABLE_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"
#include "render/text.h"

enum text_side { TEXT_LEFT, TEXT_RIGHT };

/* Returns the number of terminal columns, one per code point. */
size_t text_columns(struct sv s);
void text_add_heading(struct buf *to, const struct text_style *style, const char *text);
/* Appends a number with its unit: "1.20 MiB". */
void text_add_number(struct buf *to, enum unit unit, uint64_t v);
/* False for percentages of too few samples, which texts do not show. */
bool text_has_column(const struct report_table *t, size_t column);
/* Appends a cell as text on one line, escaped for a terminal. */
void text_add_cell(struct buf *to, const struct report_column *c, const union cell *v);
void text_add_table(struct buf *to, const struct report_table *t, const struct text_style *style);
void text_add_tree(struct buf *to, const struct report *r, const struct report_tree *t,
		   const struct text_style *style);

/* Appends the losses: zero to four lines. */
void text_add_losses(struct buf *to, const struct report *r);
/* Appends the suggested next commands, one per line. */
void text_add_hints(struct buf *to, const struct report *r, const struct text_style *style,
		    const char *indent);

#endif
