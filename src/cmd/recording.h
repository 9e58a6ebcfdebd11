/*
 * Running a capture from a command line: place, signals, progress, exit status. What the end of it
 * looks like is the command's business.
 *
 *	struct recording rec = {.options = {.kind = "offcpu", ...}, .finish = offcpu_finish, ...};
 *	return recording_run(&rec, o->output, target_name);
 */
#ifndef ASSAY_CMD_RECORDING_H
#define ASSAY_CMD_RECORDING_H

#include "base/base.h"
#include "cmd/outputs.h"
#include "cmd/targetopts.h"
#include "session/capture.h"

#define RECORDING_SECONDS_DEFAULT 60

struct recording {
	struct capture_options options; /* target and command by recording_target */
	const char *count_name;         /* what the progress line counts: "samples", "waits" */
	bool skips_pictures;
	/* Pictures, summary, last lines; an exit status. */
	int (*finish)(void *ctx, struct outputs *o, const struct capture_result *r);
	void *ctx;
};

/* Sets target, command and duration. */
void recording_target(struct recording *rec, const struct chosen_target *t,
		      const struct opt_args *args);
/* Name of the folder for it. */
const char *recording_target_name(const struct chosen_target *t, const struct opt_args *args);
/* One capture into a place that is open; an exit status. */
int recording_into(const struct recording *rec, struct outputs *out);
/* The same with the place opened. @output: -o, or NULL. */
int recording_run(const struct recording *rec, const char *output, const char *target_name);

#endif
