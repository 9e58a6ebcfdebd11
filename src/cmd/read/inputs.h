/*
 * The profiles that a command reads: the FILEs that were named, or the newest recording.
 *
 *	CLEANUP(inputs_release) struct inputs in = {0};
 *	if (inputs_find(&in, &args, &err) || inputs_load(&p, in.paths, in.nr, &options, &err))
 *		return cmd_fail(&err);
 */
#ifndef ASSAY_CMD_READ_INPUTS_H
#define ASSAY_CMD_READ_INPUTS_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "session/load.h"

struct inputs {
	const char *const *paths; /* borrowed from the arguments, or newest */
	size_t nr;
	char *newest; /* NULL where files were named */
};

int inputs_find(struct inputs *ret_in, const struct opt_args *args, struct err *err);
void inputs_release(struct inputs *in);
/* load_profiles with our folder for caches. */
int inputs_load(struct profile **ret_p, const char *const *paths, size_t nr,
		const struct load_options *options, struct err *err);

#endif
