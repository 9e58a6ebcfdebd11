/*
 * Writes the chart of memory over time (analyze/memory/timeline.h) of a profile as SVG. The
 * profile must be sealed (profile_seal in model/profile.h: tables are sorted by time).
 */
#ifndef ASSAY_CMD_READ_MEMCHART_H
#define ASSAY_CMD_READ_MEMCHART_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/capture/outputs.h"
#include "model/profile.h"

/* Writes the chart to a file, whole or not at all. -ENODATA: the profile has no data over time. */
int memchart_file(const char *path, const struct profile *p, struct err *err);
/*
 * Writes the chart beside a recording, as STEM.memory.svg, and prints its path. Prints errors.
 * Returns an exit status: EXIT_OK if there is no data over time.
 */
int memchart_output(const struct outputs *o, const struct profile *p);

#endif
