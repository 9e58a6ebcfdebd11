/*
 * Option groups that several commands share, so that a flag means the same everywhere: what part
 * of a profile is looked at (filter), and where the result goes (output).
 *
 *	struct filter_opts filter = {0};
 *	... .groups = {{&filter_group, &filter}, {&output_group, &output}}
 *	if (filter_finish(&filter, &err)) return cmd_fail(&err);
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
#include "render/renderers.h"

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

extern const struct opt_group filter_group;

/* Splits the phases into rules; -EINVAL. */
int filter_finish(struct filter_opts *f, struct err *err);
/* Has the profile weighed as --weight says, before anything is selected; -EINVAL, -ENOENT. */
int filter_weigh(const struct filter_opts *f, struct profile *p, struct err *err);
void filter_release(struct filter_opts *f);

struct output_opts {
	const char *path;            /* NULL or "-": standard output */
	struct renderer_choice form; /* bound to renderer_group */
};

extern const struct opt_group output_group;

/* The report in the form that was asked for, as output_write takes it. */
void output_render(const struct output_opts *o, struct buf *to, const struct report *r);
/* Both: an exit code. */
int output_report(const struct output_opts *o, const struct report *r);
/* How text looks there: names cut and headings bold on terminals only. */
struct text_style output_style(int fd);
/* To the file, whole or not at all, or to standard output. An exit code; errors are told. */
int output_write(const struct output_opts *o, const struct buf *b);

#endif
