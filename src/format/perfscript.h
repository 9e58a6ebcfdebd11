/*
 * What `perf script` prints, read and written. The lines are in scriptline.h.
 *
 * Reading: every event gets a table of its own, with the period as a second column where it is
 * printed. Frames keep their full names; their addresses are dropped unless they have no name,
 * so that one function is one location. Functions marked (inlined) become frames of the location
 * that they are inlined into. Lines that make no sense are LOSS_UNPARSED and end nothing.
 */
#ifndef ASSAY_FORMAT_PERFSCRIPT_H
#define ASSAY_FORMAT_PERFSCRIPT_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct format_input;
struct format_options;
struct format_output;

struct perfscript_options {
	/* Writing: whether a sample (by its index in a table) is written; NULL is all. */
	bool (*has)(void *ctx, uint32_t table, size_t sample_idx);
	void *ctx;
};

/* Push parser of one event or all (NULL): any pieces, in order; finish ends the last sample. Never fails: it counts. */
struct perfscript_reader;
struct perfscript_reader *perfscript_reader_new(struct profile *p, const char *only_event);
void perfscript_reader_push(struct perfscript_reader *r, const char *text, size_t n);
void perfscript_reader_finish(struct perfscript_reader *r);
void perfscript_reader_free(struct perfscript_reader *r);
DEFINE_FREE_P(perfscript_reader, struct perfscript_reader)

/* -EINVAL when no line is an event. */
int perfscript_read(struct profile *p, const struct format_input *in,
		    const struct format_options *options, struct err *err);
/*
 * One block a sample, in order of time over all tables as perf script does; a sample that stands
 * for several (from an aggregated input) is one block with that number as its period.
 */
int perfscript_write(struct format_output *to, const struct profile *p,
		     const struct format_options *options, struct err *err);
int perfscript_sniff(struct sv head);

#endif
