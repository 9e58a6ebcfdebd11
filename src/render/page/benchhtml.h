/*
 * Writes a benchmark as one self-contained HTML file without scripts: the report's sentences and tables,
 * and for each command the distribution of its values and their course from run to run. Commands whose
 * values are of the same size have the same scale in the latter. The same report gives the same bytes.
 */
#ifndef ASSAY_RENDER_PAGE_BENCHHTML_H
#define ASSAY_RENDER_PAGE_BENCHHTML_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

void benchhtml_write(struct buf *to, const struct report *r, const char *title);

#endif
