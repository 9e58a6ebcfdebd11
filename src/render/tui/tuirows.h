/*
 * The rows of a report's first tree, table, or its text, as the terminal view shows them: which are
 * visible, in which order, and their text.
 *
 *	struct tuirows rows = {0};
 *	tuirows_make(&rows, report, TUIROWS_OF_REPORT, &style);
 *	tuirows_filter(&rows, regex);
 *	for (size_t i = 0; i < rows.shown.n; i++) tuirows_add(&rows, i, columns, &text);
 *	tuirows_release(&rows);
 */
#ifndef ASSAY_RENDER_TUI_TUIROWS_H
#define ASSAY_RENDER_TUI_TUIROWS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/text/regex.h"
#include "base/vec.h"
#include "render/cells.h"
#include "render/text.h"

enum tuirows_form { TUIROWS_OF_REPORT, TUIROWS_OF_TEXT };

struct tuirows {
	const struct report *report;      /* borrowed */
	const struct report_tree *tree;   /* the report's first tree, or NULL */
	const struct report_table *table; /* else its first table, or NULL */
	struct buf text;                  /* else its text */
	uint8_t *nodes;                   /* trees: flags of each node */
	struct cells_form *forms;         /* tables: of each column */
	size_t *widths;                   /* tables: columns of text of each column; 0: not shown */
	size_t nr_scrolled;               /* tables: columns that are scrolled away at the left */
	size_t nr_matching;               /* rows whose names match the filter */
	VEC(uint32_t) shown;              /* nodes, rows of the table, or offsets into the text */
};

/* @style: of the text. Trees are opened along the heaviest path. */
void tuirows_make(struct tuirows *ret_rows, const struct report *r, enum tuirows_form form,
		  const struct text_style *style);
void tuirows_release(struct tuirows *rows);

/* Shows only rows whose names match, in trees with the path to them. NULL: all. */
void tuirows_filter(struct tuirows *rows, struct regex *re);

bool tuirows_can_open(const struct tuirows *rows, size_t i);
bool tuirows_is_open(const struct tuirows *rows, size_t i);
/* Opens or closes a tree's row; @is_deep: with all below it. */
void tuirows_open(struct tuirows *rows, size_t i, bool is_open, bool is_deep);
/* Opens or closes all rows of a tree. */
void tuirows_open_all(struct tuirows *rows, bool is_open);
/* Returns the index of the row above it in the tree; itself for the first one. */
size_t tuirows_parent(const struct tuirows *rows, size_t i);

/* Scrolls the columns of a table by one, to the right or the left; false: there are no more. */
bool tuirows_scroll(struct tuirows *rows, int by);
/* Appends the head of the columns, "<" and ">" for what is not on the screen; nothing for texts. */
void tuirows_add_head(const struct tuirows *rows, unsigned columns, struct buf *to);
void tuirows_add(const struct tuirows *rows, size_t i, unsigned columns, struct buf *to);
/* Share of everything in per cent, by which a row is coloured; negative: it has none. */
double tuirows_pct(const struct tuirows *rows, size_t i);
/* Returns the name of a row, borrowed from the report; NULL: none. */
const char *tuirows_name(const struct tuirows *rows, size_t i);
/* Appends what a row has in the column with this key, trees: "module"; false: nothing. */
bool tuirows_add_value(const struct tuirows *rows, size_t i, const char *key, struct buf *to);

#endif
