/*
 * Cells of tables as text, for text and Markdown. A column of times or bytes has one unit, which
 * stands in its title ("p99 ms", "growth MiB/min"), and as many decimals as its values need, so that
 * digits of equal value stand below each other.
 */
#ifndef ASSAY_RENDER_CELLS_H
#define ASSAY_RENDER_CELLS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

struct cells_form {
	uint64_t unit_size; /* ns or bytes, of a column of times or bytes; 0: another kind */
	const char *unit;
	int decimals;
};

/* The form of a column for the rows @rows (indexes). */
struct cells_form cells_form_of(const struct report_table *t, size_t column, const size_t *rows,
				size_t nr_rows);
#define CELLS_GAP 2 /* spaces before each column */

/*
 * Leaves out columns, whose widths become 0, until a line of @width fits: those that the table names
 * (hide_first), then numbers from the last to the second, then texts. Texts may be shortened to
 * @text_min (the table's, while hide_first has columns). @widths: of whole cells; 0: not shown.
 */
void cells_fit(const struct report_table *t, size_t *widths, size_t width, size_t text_min);
void cells_add_title(struct buf *to, const struct report_column *c, const struct cells_form *f);
/* Appends a cell as text on one line, escaped for a terminal. */
void cells_add(struct buf *to, const struct report_column *c, const struct cells_form *f,
	       const union cell *v);
/* Appends a number with its unit: "1.20 MiB". */
void cells_add_number(struct buf *to, enum unit unit, uint64_t v);
/* Appends a percentage with two decimals; one that is not 0 is not shown as 0: "<0.01". */
void cells_add_pct(struct buf *to, double pct);
/* False for percentages of too few samples, which texts do not show. */
bool cells_has_column(const struct report_table *t, size_t column);

#endif
