/*
 * What any capture leaves behind: the recording, pictures and texts beside it, the words at the
 * end. Used by a capture command between outputs_open and outputs_release; recording.h runs the
 * capture itself.
 */
#ifndef ASSAY_CMD_OUTPUTS_H
#define ASSAY_CMD_OUTPUTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/drawing.h"
#include "session/capture.h"
#include "session/store.h"

enum outputs_flags {
	OUTPUTS_ONE_OF_RUNS = 1 << 0, /* the words at the end are about all runs: not here */
	OUTPUTS_SKIP_PICTURES = 1 << 1,
	OUTPUTS_HAS_COMMAND = 1 << 2, /* standard output is the command's */
	OUTPUTS_JSON = 1 << 3,        /* the report as JSON, to standard output in any case */
};

struct outputs {
	struct store_place place; /* where the recording goes; pictures share its stem */
	int recording_fd;         /* taken by the capture */
	unsigned flags;           /* enum outputs_flags, set by the caller */
};

/* @output: path given by the user, or NULL for ./profiling/<target>/<kind>-TIME.assay. */
int outputs_open(struct outputs *ret_o, const char *output, const char *target, const char *kind,
		 struct err *err);
void outputs_release(struct outputs *o);
/* The capture failed before it began: removes the empty recording. */
void outputs_abandon(struct outputs *o);

/* A file beside the recording, whole or not at all; an exit status, errors are told. */
int outputs_write(const struct outputs *o, const char *suffix, const struct buf *text);
/* A flame graph under that suffix. @pic has its inputs. */
int outputs_flame(const struct outputs *o, const char *suffix, const struct picture *pic);
/* The same stacks as lines of text, weights as they are in the picture. */
int outputs_folded(const struct outputs *o, const struct picture *pic);

/* The report: to standard output, or to standard error when that is the command's. */
void outputs_print(const struct outputs *o, const struct report *r);
/* What is missing in the recording. */
void outputs_say_disk(const struct outputs *o, const struct capture_result *r);
void outputs_say_cost(const struct capture_result *r);
/* What lies where and what to type next. */
void outputs_say_files(const struct outputs *o, const struct capture_result *r, bool has_pictures);

#endif
