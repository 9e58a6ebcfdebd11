/*
 * Option groups of the commands that read profiles: which part of a profile is shown (filters), and
 * where the result is written (output). Shared, so that an option means the same in each command.
 *
 *	CLEANUP(filter_release) struct filter_opts filter = {0};
 *	... .groups = {FILTER_GROUPS(&filter), {&output_group, &output}}
 *	if (filter_finish(&filter, &err)) return cmd_refuse(&err);     after parsing
 *	load the profile p
 *	if (filter_weigh(&filter, p, &err)) return cmd_refuse(&err);   before any selection
 *	select_run(&arena, p, &filter.spec, &sel, &err);
 */
#ifndef ASSAY_CMD_OPTGROUPS_H
#define ASSAY_CMD_OPTGROUPS_H

#include "analyze/select/select.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "analyze/report.h"
#include "model/profile.h"
#include "render/renderers.h"
#include "cmd/codefiles.h"

struct filter_opts {
	struct select_spec spec;   /* bound to the options, completed by filter_finish */
	int mode;                  /* enum select_mode */
	const char *weight;        /* a column's name (weightcolumn.h), or NULL */
	const char *suppress_path; /* a file of suppressions, or NULL */
	const char *dumps;         /* which of an allocator's dumps (session/dumpset.h), or NULL */
	struct buf suppress;       /* its text */
	bool shows_idle;
	struct opt_list phases; /* NAME=RULE */
	struct arena arena;     /* of the phases' rules */
};

extern const struct opt_group filter_event_group;
extern const struct opt_group filter_group;
extern const struct opt_group filter_wait_group;
extern const struct opt_group filter_heap_group;
/* All of them, bound to one struct filter_opts. */
#define FILTER_GROUPS(f)                                                             \
	{&filter_event_group, (f)}, {&filter_group, (f)}, {&filter_wait_group, (f)}, \
	{                                                                            \
		&filter_heap_group, (f)                                              \
	}

/* Help of --dumps, which assay convert has, too. */
#define DUMPS_HELP                                                                                 \
	"if FILE is a folder or a pattern of an allocator's dumps, read these: latest (default), " \
	"all, last:N, NAME,NAME, PID:WHICH; several become their mean, not their sum; assay diff " \
	"of a single folder: compare the first and the last of these (default all)"

/* Completes the spec: phases become rules, the suppressions are read. -EINVAL, -errno of the file. */
int filter_finish(struct filter_opts *f, struct err *err);
/* Makes --weight the weight of the profile's rows. Call it before anything is selected. */
int filter_weigh(const struct filter_opts *f, struct profile *p, struct err *err);
void filter_release(struct filter_opts *f);

/* What may leave the machine in a file that is shared. */
struct share_opts {
	bool is_redacted;
	bool has_arguments;
};

extern const struct opt_group share_group;

/* Applies the options to a loaded profile. */
void share_apply(const struct share_opts *o, struct profile **p);

/* Source files whose lines are shown. */
struct source_opts {
	struct opt_list folders; /* DIR or PREFIX=DIR */
};

extern const struct opt_group source_group;

#define SOURCE_REFUSAL \
	"--source shows source text, --redact removes names of files: give one of them"
static inline bool source_is_refused(const struct source_opts *o, const struct share_opts *share)
{
	return o->folders.n && share->is_redacted;
}
/* Initialises @c and opens the folders, while this process may. */
int source_open(struct codefiles *c, const struct source_opts *o, struct err *err);
/* Prints which files were not found, or changed since the recording. */
void source_print_note(const struct codefiles *c);

struct output_opts {
	const char *path;            /* NULL or "-": standard output */
	struct renderer_choice form; /* bound to renderer_group */
};

extern const struct opt_group output_group;

/* Of single commands; settings (settings.h) give values to some of their options. */
extern const struct opt_group clean_group;
extern const struct opt_group convert_names_group;

/* Renders the report in the chosen format, as output_write expects it. */
void output_render(const struct output_opts *o, struct buf *to, const struct report *r);
/* Renders and writes. Returns an exit status. */
int output_report(const struct output_opts *o, const struct report *r);
/* The style of text written to @fd, -1: to a file. Colours are for terminals only. */
struct text_style output_style(const struct renderer_choice *form, int fd);
/*
 * Writes to the file, whole or not at all, or to standard output. Prints errors; returns an exit
 * status.
 */
int output_write(const struct output_opts *o, const struct buf *b);

/* The folder of the caches, owned by the caller; NULL: none, the reason is printed with -v. */
char *cmd_cache_dir(void);

#endif
