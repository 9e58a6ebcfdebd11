/*
 * Compares recordings of repeated runs of one program, for `assay report --runs` and `assay cpu
 * --runs`: mean self share of each function and its spread from run to run.
 */
#ifndef ASSAY_CMD_READ_RUNS_VIEW_H
#define ASSAY_CMD_READ_RUNS_VIEW_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/* Loads each file, selects rows by @spec and adds the table to @r. Errors name the file. */
int runs_view(struct report *r, const char *const *paths, size_t nr_paths,
	      const struct select_spec *spec, const struct view_limits *limits, struct err *err);

#endif
