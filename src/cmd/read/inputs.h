/*
 * Finds and loads the profiles that a command reads: the FILE operands, or without any the newest
 * recording below ./profiling.
 *
 *	CLEANUP(inputs_release) struct inputs in = {0};
 *	if (inputs_find(&in, &args, &err) || inputs_confine(in.paths, in.nr, NULL, &err) ||
 *	    inputs_load(&p, in.paths, in.nr, &options, &err))
 *		return cmd_fail(&err);
 */
#ifndef ASSAY_CMD_READ_INPUTS_H
#define ASSAY_CMD_READ_INPUTS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "session/load.h"

struct inputs {
	const char *const *paths; /* borrowed from the operands, or &newest */
	size_t nr;
	char *newest; /* path of the newest recording; NULL if files were named */
};

/* Whether the file begins as a profile that assay reads, or is compressed; it is not parsed. */
bool inputs_is_profile(const char *path);
/* Fills *ret_in, which borrows @args. Fails if no file was named and there is no recording. */
int inputs_find(struct inputs *ret_in, const struct opt_args *args, struct err *err);
void inputs_release(struct inputs *in);
/*
 * Gives up all rights before the first byte of a file is parsed: opens the files, becomes the user
 * who ran sudo (or the owner of the folder of @output, a file that will be created; NULL or "-":
 * none), drops all capabilities. Called before there are threads.
 */
int inputs_confine(const char *const *paths, size_t nr, const char *output, struct err *err);
/* Loads and merges the files (load_profiles, with the user's cache folder). -ENOENT has a hint. */
int inputs_load(struct profile **ret_p, const char *const *paths, size_t nr,
		const struct load_options *options, struct err *err);
/*
 * For an output that has one event: notes which one it is if the profile has samples or waits of
 * others, and what the numbers count if they are not samples. @event: as the user named it, or
 * NULL.
 */
void inputs_note_event(const struct profile *p, const char *event);

/*
 * For what needs single events at their exact times, which an HTML page does not hold: fails with
 * -ENODATA if the profile was read from a page, and names its recording. @what: "the list of events".
 */
int inputs_need_events(const struct profile *p, const char *what, struct err *err);

/* Notes on stderr that the input has no end, and what is known of the cause. */
void inputs_note_incomplete(const struct profile *p);

/* Appends the path beside an input: "dir/redis.html" for "dir/redis.folded.gz" and ".html". */
void inputs_add_output(struct buf *to, const char *input, const char *extension);

#endif
