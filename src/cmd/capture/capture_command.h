/*
 * Runs a capture command (cpu, offcpu, latency, io, events, faults, heap, limit) from the command
 * line to the exit status. A command is a constant `struct capture_command`: its own options, the
 * view that its recording is for, and callbacks that turn its options into capture options.
 *
 * capture_command does what they share: it parses, resolves the target, opens the recording, runs
 * the capture with progress and signal handling, prints the first page and the notes, writes flame
 * graphs, and prints what was written.
 *
 *	static const struct capture_command io_command = {.name = "io", .view = VIEW_IO, ...};
 *	struct io_opts o = {0};
 *	return capture_command(&io_command, &o, argc, argv);
 *
 * A view (analyze/views.h) is a kind of report: which rows of the profile it selects, its first
 * page and its flame graphs. A page is a report with several tables and notes, printed to stdout
 * after the capture. The first page is the command's own page if it has the callback `page`, else
 * the first page of the view.
 *
 * Shared options mean the same in each command; a command lists those that it refuses in
 * `excluded`, with the reason.
 */
#ifndef ASSAY_CMD_CAPTURE_CAPTURE_COMMAND_H
#define ASSAY_CMD_CAPTURE_CAPTURE_COMMAND_H

#include "analyze/report.h"
#include "analyze/views.h"
#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "cmd/capture/outputs.h"
#include "cmd/capture/startwhen.h"
#include "cmd/capture/targetopts.h"
#include "cmd/optgroups.h"
#include "render/renderers.h"
#include "session/capture.h"

#define CAPTURE_SECONDS_DEFAULT 60

extern const struct opt_group capture_freq_group;
extern const struct opt_group capture_group;

/* Values of the options that every capture command has. */
struct capture_opts {
	struct target_opts target;
	uint64_t freq_hz;            /* --freq; 0 = not given */
	uint64_t delay_ns;           /* --delay: time before the capture begins */
	const char *when;            /* --when: a condition to wait for, or NULL */
	uint64_t nr_rows;            /* --limit: maximum rows of a table, 0 = all */
	const char *output;          /* -o: path of the recording; NULL = not given */
	struct renderer_choice form; /* format of the first page */
	bool has_no_pictures;        /* write neither page nor folded stacks nor flame graphs */
	bool has_svg;                /* also write flame graphs as single files */
	bool has_no_bpf;             /* do not load BPF programs */
	bool has_no_inlines;         /* do not look up inlined functions */
	bool has_jit_map;            /* ask runtimes for the names of JIT code */
	bool has_hashes;             /* keep hashes in demangled names (DEMANGLE_HASHES) */
	struct opt_list debug_dirs;  /* directories with debug files */
	struct share_opts share;     /* of the page and the files beside the recording */
	struct source_opts source;   /* of the page */
};

/* Which folded stacks are written beside the recording, as STEM.folded. */
enum capture_folded {
	CAPTURE_FOLDED_NONE,    /* no file */
	CAPTURE_FOLDED_COUNTS,  /* number of samples, as `assay convert --to folded` writes */
	CAPTURE_FOLDED_WEIGHTS, /* stacks and weights of the first flame graph */
};

struct capture_job;
typedef int (*capture_run_fn)(struct capture_job *job, struct outputs *out,
			      struct capture_result *ret_r, struct err *err);

/* One run of a command. Valid during capture_command. */
struct capture_job {
	const struct capture_command *command;
	void *own; /* values of the command's own options */
	struct capture_opts common;
	struct opt_args args;
	struct chosen_target target;
	struct startwhen when;
	struct capture_options options; /* for capture_run; complete after prepare */
	struct codefiles code;          /* for the page */

	/* Defaults from the command; check and prepare may change them. */
	enum capture_folded folded; /* which folded stacks are written; none without pictures */
	const struct view *view;    /* NULL: no page of a view, no flame graphs */
	struct select_spec spec;    /* selects the rows of the page and the flame graphs */
	unsigned flame_flags;       /* enum view_pictures_flags */
	bool draws_idle;            /* flame graphs include idle waits */
	bool is_unrecorded;         /* write no recording and no flame graphs */
	const char *recording;      /* its path, when the first page is made; NULL: none */
	bool has_two_pages; /* print the page of command->page, then the first page of the view */
	uint64_t nr_runs;   /* of --runs; 0 = one capture, without the spread of runs */
	capture_run_fn run; /* default capture_job_run */
	bool is_done;       /* prepare did everything: no capture, exit with status */
	int status;
};

/* A group of options that only this command has. */
struct capture_own_group {
	const struct opt_group *group;
	/* Offset of the structure that receives the values, in the command's own options. */
	size_t at;
};

struct capture_command {
	const char *name;     /* the command, and the kind of its recordings */
	const char *usage[2]; /* what follows the name in usage lines; none: the default lines */
	const char *details;  /* text of --help and of the man page (struct opt_cmd) */
	const char *examples; /* lines "command\tcomment\n" of --help and the man page */
	struct capture_own_group groups[4];
	enum view_id view;   /* the view of the recording; VIEW_NR: job->view decides */
	uint64_t nr_rows;    /* maximum rows of a table without --limit; 0 = all */
	const char *noun;    /* what the progress line counts; NULL: no count */
	const char *nothing; /* the warning if nothing was recorded for the view */
	/* Appends to that warning what is known: counters, reasons. May be NULL. */
	void (*add_reason)(struct buf *to, const struct capture_job *job,
			   const struct capture_result *r);
	enum capture_folded folded; /* default of job->folded */
	bool has_no_target;         /* accepts only -- CMD */
	bool is_whole;              /* the first page is printed whole, however long it is */

	/* Shared options that this command refuses (base/opt/opt.h); may be NULL. */
	const struct opt_exclusion *excluded;

	/*
	 * Checks the options before the target is resolved; may be NULL. -EINVAL and -ENOENT from
	 * check and prepare are usage errors.
	 */
	int (*check)(struct capture_job *job, struct err *err);
	/* Fills job->options. The target is resolved. */
	int (*prepare)(struct capture_job *job, struct err *err);
	/* Makes the first page; NULL: the page of the view. */
	int (*page)(struct capture_job *job, const struct capture_result *r, struct report *report,
		    struct err *err);
	/* Prints notes and warnings after the first page; may be NULL. */
	void (*print_notes)(const struct capture_job *job, const struct capture_result *r);
};

/* Runs the command. @own: values of its own options. Returns the exit status. */
int capture_command(const struct capture_command *c, void *own, int argc, char **argv);
/* The index of the first operand behind options of the command; argc: none, or an unknown option. */
int capture_command_operand(const struct capture_command *c, void *own, int argc, char **argv);

/*
 * Returns the samples per second of CPU time: --freq, or by the length of the capture, 0 = unknown.
 */
uint32_t capture_freq_hz(const struct capture_opts *o, uint64_t duration_ns);
/* Returns the limits of a page, from --limit. */
struct view_limits capture_job_limits(const struct capture_job *job);
/* Calls capture_run and shows progress. The default of job->run. */
int capture_job_run(struct capture_job *job, struct outputs *out, struct capture_result *ret_r,
		    struct err *err);
/* Does one capture into the opened outputs, or without a recording. Returns an exit status. */
int capture_job_record(struct capture_job *job, struct outputs *out);
/* Opens the outputs. @output: path given with -o; NULL = a new recording below ./profiling. */
int capture_job_open(const struct capture_job *job, struct outputs *ret_o, const char *output,
		     struct err *err);
/*
 * Prints why BPF programs could not be used, and the remedy. Prints nothing if they were used or if
 * --no-bpf was given. A callback for `print_notes`.
 */
void capture_job_print_no_bpf(const struct capture_job *job, const struct capture_result *r);
/* Returns outputs without a recording: only where and in which format reports are printed. */
struct outputs capture_job_outputs(const struct capture_job *job);
/* Returns the exit status of a capture that failed to start: 125 with -- CMD, else 1. */
int capture_job_failed(const struct capture_job *job);

#endif
