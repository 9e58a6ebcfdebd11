/* Used by the files of base/opt only: iteration over options, and parsing of option values. */
#ifndef ASSAY_BASE_OPT_VALUE_H
#define ASSAY_BASE_OPT_VALUE_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"

bool opt_takes_arg(const struct opt *o);
/*
 * Parses @arg and stores the value in the bound structure @to. @arg may be NULL if the option takes
 * no argument or an optional one.
 */
int opt_set_value(const struct opt *o, void *to, const char *arg, struct err *err);

/* Iterates over the options of all groups: for (struct opt_at at = {0}; opt_next(cmd, &at);) */
struct opt_at {
	const struct opt_bind *bind;
	const struct opt *opt;
};
bool opt_next(const struct opt_cmd *cmd, struct opt_at *at);

#endif
