/*
 * The commands that capture: each is a row, `struct capture_command`, which says what its recording
 * is for (a view), which options it has of its own and how these become options of the capture.
 * What they share is done here once: parsing, choosing the target, the place of the recording,
 * signals, progress, the first page, pictures, the words at the end, the exit status.
 *
 *	static const struct capture_command io_command = {.name = "io", .view = VIEW_IO, ...};
 *	struct io_opts o = {0};
 *	return capture_command(&io_command, &o, argc, argv);
 *
 * Options that all of them have mean the same in each; one that makes no sense in a command is
 * refused there, with the reason (no_freq and the like).
 */
#ifndef ASSAY_CMD_CAPTURE_CAPTURE_COMMAND_H
#define ASSAY_CMD_CAPTURE_CAPTURE_COMMAND_H

#include "analyze/report.h"
#include "analyze/views.h"
#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "cmd/capture/outputs.h"
#include "cmd/capture/targetopts.h"
#include "render/renderers.h"
#include "session/capture.h"

#define CAPTURE_SECONDS_DEFAULT 60

/* The options of every capture. */
struct capture_opts {
	struct target_opts target;
	uint64_t freq_hz; /* 0 = not given */
	uint64_t delay_ns;
	uint64_t nr_rows;
	const char *output;
	struct renderer_choice form; /* of the first page */
	bool has_no_pictures;
	bool has_no_bpf;
	bool has_no_inlines;
	bool has_hashes;
	struct opt_list debug_dirs;
};

enum capture_folded {
	CAPTURE_FOLDED_NONE,
	CAPTURE_FOLDED_COUNTS,  /* as `assay convert --to folded` writes samples */
	CAPTURE_FOLDED_WEIGHTS, /* the stacks of the first picture, weighed as there */
};

struct capture_job;
typedef int (*capture_run_fn)(struct capture_job *job, struct outputs *out,
			      struct capture_result *ret_r, struct err *err);

/* One call of a command. */
struct capture_job {
	const struct capture_command *command;
	void *own; /* values of the command's own options */
	struct capture_opts common;
	struct opt_args args;
	struct chosen_target target;
	struct capture_options options; /* of the capture: complete after prepare */

	/* Set by check or prepare where the row does not say it. */
	enum capture_folded folded;
	const struct view *view; /* NULL: no page, no pictures of it */
	struct select_spec spec; /* of page and pictures */
	unsigned picture_flags;  /* enum view_pictures_flags */
	bool draws_idle;         /* pictures have idle time in them, too */
	bool is_unrecorded;      /* no recording, no pictures */
	bool has_two_pages;      /* the command's page, then the view's */
	uint64_t nr_runs;        /* 0 = one, without more words */
	capture_run_fn run;      /* capture_job_run unless set */
	bool is_done;            /* prepare did all there was to do, and says: */
	int status;
};

struct capture_own_group {
	const struct opt_group *group;
	size_t at; /* offset of what it is bound to in the command's own options */
};

struct capture_command {
	const char *name;     /* of the command, and the kind of its recordings */
	const char *usage[2]; /* what follows the name; none: as all have it */
	const char *details;
	const char *examples;
	struct capture_own_group groups[3];
	enum view_id view;   /* what the capture is for; VIEW_NR: see job->view */
	uint64_t nr_rows;    /* of a table, without --limit */
	const char *noun;    /* what the progress line counts; NULL: nothing */
	const char *nothing; /* what is said when the view has nothing */
	enum capture_folded folded;
	bool has_no_target; /* takes a command and nothing else */

	/* Shared options that this command refuses (base/opt/opt.h); may be NULL. */
	const struct opt_exclusion *excluded;

	/*
	 * Looks at the options before a target is looked for; may be NULL. Here and in prepare
	 * -EINVAL and -ENOENT say that the command line is wrong.
	 */
	int (*check)(struct capture_job *job, struct err *err);
	/* The target is chosen: what is to be captured of it, into job->options. */
	int (*prepare)(struct capture_job *job, struct err *err);
	/* The first page in place of the view's; may be NULL. */
	int (*page)(struct capture_job *job, const struct capture_result *r, struct report *report,
		    struct err *err);
	/* Words about this capture, after the first page; may be NULL. */
	void (*print_notes)(const struct capture_job *job, const struct capture_result *r);
};

/* From the command line to the exit status. */
int capture_command(const struct capture_command *c, void *own, int argc, char **argv);

/* For the rows: the limits of a page. */
struct view_limits capture_job_limits(const struct capture_job *job);
/* capture_run with progress: what job->run is unless prepare sets another. */
int capture_job_run(struct capture_job *job, struct outputs *out, struct capture_result *ret_r,
		    struct err *err);
/* One capture into a place that is open, or into none; an exit status. */
int capture_job_record(struct capture_job *job, struct outputs *out);
/* Opens the place; @output as -o, NULL = a new one in the store. */
int capture_job_open(const struct capture_job *job, struct outputs *ret_o, const char *output,
		     struct err *err);
/* Why there are no BPF programs, what that costs, and what would help. */
void capture_job_print_accuracy(const struct capture_job *job, const struct capture_result *r);
/* Outputs without a place: where reports go, and in which form. */
struct outputs capture_job_outputs(const struct capture_job *job);
/* The exit status where nothing was captured at all. */
int capture_job_failed(const struct capture_job *job);

#endif
