/*
 * Writes a report as JSON: one object, schema "assay-report/1", described in
 * docs/formats/report-json.md. Keys are only ever added. Numbers are exact integers where the
 * report holds integers; shares have four decimals; unknown values are null.
 */
#ifndef ASSAY_RENDER_JSONOUT_H
#define ASSAY_RENDER_JSONOUT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

void jsonout_render(struct buf *to, const struct report *r);

#endif
