/*
 * Recordings as runs of one thing: loads each file, selects, and reports the spread. Shared by
 * `assay report --runs` and `assay cpu --runs`.
 */
#ifndef ASSAY_CMD_READ_RUNS_VIEW_H
#define ASSAY_CMD_READ_RUNS_VIEW_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

int runs_view(struct report *r, const char *const *paths, size_t nr_paths,
	      const struct select_spec *spec, const struct view_limits *limits, struct err *err);

#endif
