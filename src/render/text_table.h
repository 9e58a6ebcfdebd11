/* Tables, trees, losses and hints of a report as aligned text; the parts of text.h. */
#ifndef ASSAY_RENDER_TEXT_TABLE_H
#define ASSAY_RENDER_TEXT_TABLE_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/pageplan.h"
#include "render/text.h"

enum text_color { TEXT_HEADING, TEXT_ANSWER, TEXT_HOT, TEXT_LOSS };

/* Appends text, coloured if the style has colours; it must be escaped. */
void text_add_colored(struct buf *to, const struct text_style *style, enum text_color color,
		      const char *text);
void text_add_heading(struct buf *to, const struct text_style *style, const char *text);
/* Appends the tables that the plan shows; @plan NULL: all of them. */
void text_add_tables(struct buf *to, const struct report *r, const struct pageplan *plan,
		     const struct text_style *style);
void text_add_tree(struct buf *to, const struct report *r, const struct report_tree *t,
		   const struct text_style *style);

/* Appends all losses with their causes: zero to four lines. */
void text_add_losses(struct buf *to, const struct report *r);
/* Appends the losses that matter, on one line without its end; returns whether there are any. */
bool text_add_loss_summary(struct buf *to, const struct report *r);
/* Appends the suggested next commands, one per line. */
void text_add_hints(struct buf *to, const struct report *r, const struct text_style *style,
		    const char *indent);

#endif
