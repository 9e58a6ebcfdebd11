/*
 * The chart of a profile's memory over time: heap, stacks, other anonymous memory, shared memory,
 * files and swap stacked, RSS and PSS as lines over them, the peak marked.
 */
#ifndef ASSAY_CMD_MEMCHART_H
#define ASSAY_CMD_MEMCHART_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/outputs.h"
#include "model/profile.h"

/* The profile is sealed. @title: NULL = "memory over time". -ENODATA: nothing over time. */
int memchart_svg(struct buf *to, const struct profile *p, const char *title, struct err *err);
/* The same as a file, whole or not at all. */
int memchart_file(const char *path, const struct profile *p, struct err *err);
/*
 * The same beside a recording, as STEM.memory.svg; told on stderr. An exit status; nothing to draw
 * is EXIT_OK.
 */
int memchart_output(const struct outputs *o, const struct profile *p);

#endif
