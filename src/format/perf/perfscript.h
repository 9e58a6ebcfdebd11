/*
 * What `perf script` prints, read and written. The lines are in scriptline.h.
 *
 * Reading: every event gets a table of its own, with the period as a second column where it is
 * printed. Frames keep their full names; their addresses are dropped unless they have no name,
 * so that one function is one location. Functions marked (inlined) become frames of the location
 * that they are inlined into. Lines that make no sense are LOSS_UNPARSED and end nothing; -EINVAL
 * when no line is an event.
 *
 * Written is one block a sample, in order of time over all tables as perf script does; a sample
 * that stands for several (from an aggregated input) is one block with that number as its period.
 */
#ifndef ASSAY_FORMAT_PERF_PERFSCRIPT_H
#define ASSAY_FORMAT_PERF_PERFSCRIPT_H

#include "base/base.h"

struct perfscript_options {
	/* Writing: whether a sample (by its index in a table) is written; NULL is all. */
	bool (*has)(void *ctx, uint32_t table, size_t sample_idx);
	void *ctx;
};

#endif
