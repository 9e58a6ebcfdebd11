/* Converts option arguments to values. Shared by the files of base/opt; others include opt.h. */
#ifndef ASSAY_BASE_OPT_VALUE_H
#define ASSAY_BASE_OPT_VALUE_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"

/* Whether the option has an argument, optional or not. */
bool opt_takes_arg(const struct opt *o);
/*
 * Converts @arg and stores the value in the structure @to, to which the option is bound. @arg NULL:
 * the option takes no argument, or its optional argument is missing.
 */
int opt_set_value(const struct opt_cmd *cmd, const struct opt *o, void *to, const char *arg,
		  struct err *err);

/* The same for a preset, whose message begins with its origin. */
int opt_set_preset(const struct opt_cmd *cmd, const struct opt *o, void *to,
		   const struct opt_preset *p, struct err *err);

/* Iterates over the options of all groups: for (struct opt_at at = {0}; opt_next(cmd, &at);) */
struct opt_at {
	const struct opt_bind *bind;
	const struct opt *opt;
};
bool opt_next(const struct opt_cmd *cmd, struct opt_at *at);
/*
 * Returns why the command refuses the option, or with @choice why it refuses that value of the
 * option. NULL: it is accepted.
 */
const char *opt_why_excluded(const struct opt_cmd *cmd, const struct opt *o, const char *choice);
/*
 * Returns the option's letter; 0: none, or an option of an earlier group has it: `top -n` is its number of
 * pages, and names are --name there.
 */
char opt_letter(const struct opt_cmd *cmd, const struct opt *o);
/* Whether the option is listed in help, man page and completion. */
bool opt_is_listed(const struct opt_cmd *cmd, const struct opt *o);

#endif
