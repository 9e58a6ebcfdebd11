/*
 * Writes a comparison as one self-contained HTML file: the report's sentences and tables, and the
 * differential flame graph, interactive. The tables are markup, so they are there without scripts;
 * with them they can be sorted and filtered, a click on a function searches it in the graph, and the
 * graph's widths are those of both sides or of one. The file refers to no other file, and its content
 * security policy allows no request. The same report gives the same bytes.
 */
#ifndef ASSAY_RENDER_PAGE_DIFFHTML_H
#define ASSAY_RENDER_PAGE_DIFFHTML_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

/* @picture: an SVG document written with SVG_NO_SCRIPT; empty: none. */
void diffhtml_write(struct buf *to, const struct report *r, const char *title, struct sv picture);

#endif
