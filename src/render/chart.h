/*
 * Writes charts over time as one self-contained SVG file: stacked areas and lines of bytes, marks,
 * a legend, and the values at the pointer, which the arrow keys move as well. Without a script only
 * the values at the pointer are missing. Colours follow the reader's light or dark preference. The
 * same input gives the same bytes; nothing in the file refers to another file.
 *
 * More than CHART_POINTS_MAX points are downsampled: of each group the row with the highest areas
 * is kept, so peaks remain.
 */
#ifndef ASSAY_RENDER_CHART_H
#define ASSAY_RENDER_CHART_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

#define CHART_POINTS_MAX 1000

void chart_write(struct buf *to, const struct chart *c);

#endif
