/*
 * Charts over time as one self-contained SVG file: stacked areas and lines of bytes, marks, a
 * legend, values under the pointer (arrow keys move it, too). Drawn without a script it is whole;
 * light and dark as the reader prefers. The same input gives the same bytes; nothing in the file
 * refers to another file.
 *
 * More points than CHART_POINTS_MAX are thinned: of each stretch the row is kept whose areas are
 * highest, so peaks stay.
 */
#ifndef ASSAY_RENDER_CHART_H
#define ASSAY_RENDER_CHART_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

#define CHART_POINTS_MAX 1000

void chart_write(struct buf *to, const struct chart *c);

#endif
