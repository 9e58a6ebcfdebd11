/*
 * A profile for speedscope (https://www.speedscope.app): its JSON file format, "sampled" profiles.
 * One profile a thread that has rows, heaviest first, in the order of time, weighed by the event's
 * weight (ns, bytes or counts); frames have file and line where they are known. Only written.
 *
 * What it cannot hold: losses, intervals of uncertainty, marks, tags (reasons of waits).
 * docs/formats/speedscope.md
 */
#ifndef ASSAY_FORMAT_SPEEDSCOPE_H
#define ASSAY_FORMAT_SPEEDSCOPE_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct format_options;
struct format_output;

int speedscope_write(struct format_output *to, const struct profile *p,
		     const struct format_options *options, struct err *err);

#endif
