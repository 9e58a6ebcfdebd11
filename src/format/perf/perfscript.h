/*
 * Reader and writer of `perf script` text. scriptline.h parses single lines.
 *
 * Reading: each event becomes a table, with the period as second column if it is printed. Frames
 * keep their full names; addresses are kept only for unsymbolized frames, so one function is one
 * location. Functions marked (inlined) become inlined frames of the location they belong to. Lines
 * that cannot be parsed are counted as LOSS_UNPARSED; -EINVAL if no line is an event.
 *
 * Writing: one block per sample, in order of time over all tables, as perf script does. A row with
 * a count above 1 (from an aggregated input) is one block with the count as its period.
 */
#ifndef ASSAY_FORMAT_PERF_PERFSCRIPT_H
#define ASSAY_FORMAT_PERF_PERFSCRIPT_H

#include "base/base.h"

struct perfscript_options {
	/* Writing: returns whether to write a sample (by its index in a table); NULL: all. */
	bool (*has)(void *ctx, uint32_t table, size_t sample_idx);
	void *ctx;
};

#endif
