/*
 * Choosing what to profile, the same for every capture command: options -p -t -n -a --match
 * --all-matching --children, bare words (names) and one bare number (SECONDS), and "-- CMD".
 */
#ifndef ASSAY_CMD_CAPTURE_TARGETOPTS_H
#define ASSAY_CMD_CAPTURE_TARGETOPTS_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "host/target.h"

struct target_opts {
	struct opt_list pids;
	struct opt_list tids;
	struct opt_list names;
	const char *match;
	bool is_system;
	bool takes_all;
	bool takes_children;
};

extern const struct opt_group target_group;

/* What the options alone say, added to @spec (host/target.h). */
int target_opts_spec(struct target_spec *spec, const struct target_opts *o, struct err *err);

struct chosen_target {
	struct target target;
	bool has_target;      /* false: only the command */
	uint64_t duration_ns; /* 0 = none was given */
};

void chosen_target_release(struct chosen_target *c);
/*
 * Resolves, or says on stderr what is wrong (candidates listed) and gives the exit status.
 * @ret_status is set when false is returned.
 */
bool target_opts_choose(struct chosen_target *ret_c, const struct target_opts *o,
			const struct opt_args *args, int *ret_status);

#endif
