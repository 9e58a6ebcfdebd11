/*
 * What any capture leaves behind: the recording, pictures and texts beside it, the words at the
 * end. Used between outputs_open and outputs_release; capture_command.h runs the capture itself.
 */
#ifndef ASSAY_CMD_CAPTURE_OUTPUTS_H
#define ASSAY_CMD_CAPTURE_OUTPUTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "cmd/read/flamegraph.h"
#include "render/renderers.h"
#include "session/capture.h"
#include "session/store.h"

enum outputs_flags {
	OUTPUTS_ONE_OF_RUNS = 1 << 0, /* the words at the end are about all runs: not here */
	OUTPUTS_HAS_COMMAND = 1 << 1, /* standard output is the command's */
};

struct outputs {
	struct store_place place; /* where the recording goes; pictures share its stem */
	int recording_fd;         /* taken by the capture */
	unsigned flags;           /* enum outputs_flags, set by the caller */
	/* Of reports, set by the caller; another than text goes to standard output in any case. */
	struct renderer_choice form;
	VEC(char *) flames; /* what was written, as it is printed: "PATH (title)" */
};

/* -EINVAL with a hint: the name ends as files of another kind do. @own: ".svg"; @what: in words. */
int outputs_check_name(const char *path, const char *own, const char *what, struct err *err);
/* @output: path given by the user, or NULL for ./profiling/<target>/<kind>-TIME.assay. */
int outputs_open(struct outputs *ret_o, const char *output, const char *target, const char *kind,
		 struct err *err);
void outputs_release(struct outputs *o);
/* The capture failed before it began: removes the empty recording. */
void outputs_abandon(struct outputs *o);

/* A file beside the recording, whole or not at all; an exit status, errors are told. */
int outputs_write(const struct outputs *o, const char *suffix, const struct buf *text);
/*
 * A flame graph under that suffix. @pic has its inputs; @title: what it is of, where the suffix does
 * not say it, or NULL. EXIT_NOTHING: there is nothing to draw.
 */
int outputs_flame(struct outputs *o, const char *suffix, const char *title,
		  const struct picture *pic);
/* The same stacks as lines of text, weights as they are in the picture. */
int outputs_folded(const struct outputs *o, const struct picture *pic);
/* Samples as lines of text, counted. */
int outputs_folded_samples(const struct outputs *o, const struct profile *p);

/*
 * The report: to standard output, or to standard error when that is the command's. An exit status:
 * JSON that could not be written is a failure, for text there are the files.
 */
int outputs_print(const struct outputs *o, const struct report *r);
/* What is missing in the recording. */
void outputs_print_disk_error(const struct outputs *o, const struct capture_result *r);
void outputs_print_cost(const struct capture_result *r);
/* What lies where and what to type next. */
void outputs_print_files(const struct outputs *o, const struct capture_result *r);

#endif
