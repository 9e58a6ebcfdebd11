/*
 * Writes the tables and trees of a report as CSV (RFC 4180): for each a line of column names and its
 * rows, with an empty line between; the first column is the table's key. Numbers are those of the JSON
 * (render/jsonout.h), unknown values are empty. The last table has the losses. Text that a
 * spreadsheet would take for a formula begins with a quote ('). docs/formats/report-csv.md
 */
#ifndef ASSAY_RENDER_CSVOUT_H
#define ASSAY_RENDER_CSVOUT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

void csvout_render(struct buf *to, const struct report *r);

/* Appends a text cell: quoted where needed, control characters and formulas defused. */
void csvout_add_text(struct buf *to, struct sv text);

#endif
