/*
 * A capture of what the kernel adds up (input and output, faults, spans), from the options to the
 * last line: what the commands of this kind share.
 */
#ifndef ASSAY_CMD_TALLY_RUN_H
#define ASSAY_CMD_TALLY_RUN_H

#include "analyze/report.h"
#include "analyze/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"
#include "base/opt.h"
#include "cmd/targetopts.h"
#include "session/capture.h"

struct tally_opts {
	struct target_opts target;
	uint64_t delay_ns;
	uint64_t limit; /* rows of a table */
	bool is_json;
	bool has_no_pictures;
	const char *output;
	struct opt_list debug_dirs;
};

extern const struct opt_group tally_group;

void tally_opts_release(struct tally_opts *o);

struct tally_kind {
	const char *name;            /* of the command and the recording */
	const char *const *pictures; /* tables drawn as flame graphs, NULL after the last */
	const char *nothing;         /* what to say when nothing was recorded */
	/* Needs programs in the kernel: what a refusal cannot be helped by. */
	int (*report)(struct report *r, const struct profile *p, const struct select_spec *spec,
		      const char *input, const struct view_limits *limits, struct err *err);
	/* Words after the tables, about this capture; may be NULL. */
	void (*say)(const struct capture_result *r);
};

/* @base: kind, programs and what belongs to them; the rest is filled in. An exit status. */
int tally_run(const struct tally_kind *kind, const struct tally_opts *o,
	      const struct capture_options *base, const struct opt_args *args);

/* The same on a target that is chosen already. */
int tally_run_on(const struct tally_kind *kind, const struct tally_opts *o,
		 const struct capture_options *base, const struct chosen_target *t,
		 const struct opt_args *args);

#endif
