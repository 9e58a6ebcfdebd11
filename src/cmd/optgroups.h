/*
 * Option groups that several commands share, so that a flag means the same everywhere: phases,
 * and where the result goes. What is in view is in select_opts.h.
 *
 *	struct phase_opts phases = {0};
 *	... .groups = {{&phase_group, &phases}, {&output_group, &output}}
 *	if (phases_finish(&phases, &spec, &err)) return cmd_fail(&err);
 *	select_run(&arena, p, &spec, &sel, &err);
 */
#ifndef ASSAY_CMD_OPTGROUPS_H
#define ASSAY_CMD_OPTGROUPS_H

#include "analyze/select.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

struct phase_opts {
	struct opt_list phases; /* NAME=RULE */
	const char *only;
	struct phase_rule *rules;
	char **names; /* owned copies of the rules' names */
};

extern const struct opt_group phase_group;

/* Splits the phases into rules and adds them to the spec, which borrows them; -EINVAL. */
int phases_finish(struct phase_opts *o, struct select_spec *spec, struct err *err);
void phases_release(struct phase_opts *o);

struct output_opts {
	const char *path; /* NULL or "-": standard output */
	bool is_json;
};

extern const struct opt_group output_group;

/* To the file, whole or not at all, or to standard output. An exit code; errors are told. */
int output_write(const struct output_opts *o, const struct buf *b);

#endif
