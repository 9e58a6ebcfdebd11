/* Tables of the sums of memory (heapfigures.h): by function, block size, thread. */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPVIEWS_H
#define ASSAY_ANALYZE_MEMORY_HEAPVIEWS_H

#include "analyze/memory/heapfigures.h"
#include "analyze/report.h"
#include "analyze/view.h"

/* Each adds one table and sorts the groups that it shows. */
void heapviews_functions(struct report *r, struct heapfigures *f, const struct view_limits *limits);
void heapviews_temporary(struct report *r, struct heapfigures *f, const struct view_limits *limits);
void heapviews_mapped(struct report *r, struct heapfigures *f, const struct view_limits *limits);
void heapviews_growth(struct report *r, struct heapfigures *f, const struct view_limits *limits);
void heapviews_sizes(struct report *r, struct heapfigures *f);
void heapviews_threads(struct report *r, struct heapfigures *f, const struct view_limits *limits);

#endif
