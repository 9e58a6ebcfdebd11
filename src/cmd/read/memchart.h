/* The chart of a profile's memory over time (analyze/memory/timeline.h) as a file. */
#ifndef ASSAY_CMD_READ_MEMCHART_H
#define ASSAY_CMD_READ_MEMCHART_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/capture/outputs.h"
#include "model/profile.h"

/* As a file, whole or not at all. The profile is sealed. -ENODATA: nothing over time. */
int memchart_file(const char *path, const struct profile *p, struct err *err);
/*
 * The same beside a recording, as STEM.memory.svg; told on stderr. An exit status; nothing to draw
 * is EXIT_OK.
 */
int memchart_output(const struct outputs *o, const struct profile *p);

#endif
