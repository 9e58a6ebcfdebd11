/*
 * Writes charts over time as one self-contained SVG file: stacked areas and lines of bytes, marks,
 * and a legend. A script in the file shows the values at the mouse position, or at a position that
 * the arrow keys change. Colours follow the browser's light or dark setting. The same input gives
 * the same bytes.
 *
 * More than CHART_POINTS_MAX points are downsampled: of each group the point with the largest sum
 * of areas is kept, so peaks remain.
 */
#ifndef ASSAY_RENDER_CHART_H
#define ASSAY_RENDER_CHART_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

#define CHART_POINTS_MAX 1000

void chart_write(struct buf *to, const struct chart *c);

#endif
