/*
 * Files and messages that a capture writes: the recording, flame graphs and folded stacks beside
 * it, the printed report, and the last lines (cost, files, next command).
 *
 *	CLEANUP(outputs_release) struct outputs out = {.recording_fd = -1};
 *	if (outputs_open(&out, path, target, kind, &err)) ...
 *	the capture takes out.recording_fd; on failure: outputs_abandon(&out)
 *	outputs_print, outputs_flame, outputs_folded
 *	outputs_print_cost, outputs_print_files
 *
 * Functions that return an exit status print their errors themselves.
 */
#ifndef ASSAY_CMD_CAPTURE_OUTPUTS_H
#define ASSAY_CMD_CAPTURE_OUTPUTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "cmd/codefiles.h"
#include "cmd/read/flamegraph.h"
#include "render/renderers.h"
#include "session/capture.h"
#include "session/store.h"

enum outputs_flags {
	OUTPUTS_ONE_OF_RUNS = 1 << 0, /* one run of --runs: the caller prints one report of all */
	OUTPUTS_HAS_COMMAND = 1 << 1, /* a launched command uses stdout; text goes to stderr */
};

struct outputs {
	struct store_place place; /* path of the recording; other files share its stem */
	int recording_fd;         /* capture_run takes ownership */
	unsigned flags;           /* enum outputs_flags, set by the caller */
	/* Format of reports, set by the caller. JSON and Markdown always go to standard output. */
	struct renderer_choice form;
	bool has_page;      /* outputs_page has written it */
	VEC(char *) flames; /* flame graphs written, as printed: "PATH (title)" */
};

/*
 * Checks the path given with an option: -EINVAL if it has the suffix of another kind of file. @own:
 * the suffix expected, ".svg"; @option ("-o"), @what (the output in words): for the message.
 */
int outputs_check_name(const char *option, const char *path, const char *own, const char *what,
		       struct err *err);
/* Creates the recording at @output, or if NULL at ./profiling/<target>/<kind>-TIME.assay. */
int outputs_open(struct outputs *ret_o, const char *output, const char *target, const char *kind,
		 struct err *err);
void outputs_release(struct outputs *o);
/* Removes the empty recording of a capture that failed to start. */
void outputs_abandon(struct outputs *o);

/* Writes a file beside the recording, whole or not at all. Returns an exit status. */
int outputs_write(const struct outputs *o, const char *suffix, const struct buf *text);
/* Writes the HTML page of the recording beside it, right after the capture. Returns an exit status. */
int outputs_page(struct outputs *o, const struct profile *p, struct codefiles *code);
/* Writes the result's profile in place of the recording. On failure there is none. */
int outputs_replace_recording(struct outputs *o, struct capture_result *r, const char *kind);
/*
 * Writes a flame graph of @pic beside the recording. @title: printed after the path, or NULL.
 * Returns an exit status; EXIT_NOTHING: no row has a weight.
 */
int outputs_flame(struct outputs *o, const char *suffix, const char *title,
		  const struct picture *pic);
/* Writes the stacks and weights of that flame graph as folded stacks. Returns an exit status. */
int outputs_folded(const struct outputs *o, const struct picture *pic);
/* Writes folded stacks with numbers of samples. Returns an exit status. */
int outputs_folded_samples(const struct outputs *o, const struct profile *p);

/*
 * Prints the report to standard output; with OUTPUTS_HAS_COMMAND text goes to standard error, with
 * -q it is not printed.
 * Returns an exit status. Ignores a failed write of text, since the recording has the same data.
 */
int outputs_print(const struct outputs *o, const struct report *r);
/* Prints an error if rows could not be written to the recording. */
void outputs_print_disk_error(const struct outputs *o, const struct capture_result *r);
/* Prints the CPU time that assay used. */
void outputs_print_cost(const struct capture_result *r);
/*
 * Over ssh, prints the line that copies a page to the machine at the other end. Returns false if
 * this is no ssh connection.
 */
bool outputs_print_copy(const char *page);
/* Prints the files written and a suggested next command. Removes a recording without a byte. */
void outputs_print_files(struct outputs *o, const struct capture_result *r);

#endif
