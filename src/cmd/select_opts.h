/*
 * The options that choose what a view looks at, the same for every command that reads a profile.
 *
 *	struct select_opts view = {0};
 *	... .groups = {{&select_group, &view}, ...}
 *	struct select_spec spec = select_opts_spec(&view);
 */
#ifndef ASSAY_CMD_SELECT_OPTS_H
#define ASSAY_CMD_SELECT_OPTS_H

#include "analyze/select.h"
#include "base/base.h"
#include "base/opt.h"

struct select_opts {
	const char *event;
	const char *time;
	const char *thread;
	const char *pid;
	const char *comm;
	const char *module;
	const char *function;
	const char *exclude;
	const char *within;
	int mode; /* enum select_mode */
};

extern const struct opt_group select_group;

/* Borrows the options' strings. Phases are the command's own. */
struct select_spec select_opts_spec(const struct select_opts *o);

#endif
