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

#include "base/base.h"
#include "base/buf.h"

#define CHART_SERIES_MAX 8
#define CHART_POINTS_MAX 1000

enum chart_kind {
	CHART_AREA, /* on top of the areas before it */
	CHART_LINE,
};

struct chart_series {
	const char *name;
	enum chart_kind kind;
	unsigned color;        /* 0 to CHART_SERIES_MAX - 1 */
	const uint64_t *bytes; /* nr_points */
};

struct chart_mark {
	uint64_t ns;
	const char *text;
};

struct chart {
	const char *title;
	const char *subtitle; /* NULL = none */
	const char *note;     /* a second line: the verdict; NULL = none */
	const uint64_t *ns;   /* time of the points since the start, ascending */
	size_t nr_points;
	struct chart_series series[CHART_SERIES_MAX];
	size_t nr_series;
	const struct chart_mark *marks;
	size_t nr_marks;
};

void chart_write(struct buf *to, const struct chart *c);

#endif
