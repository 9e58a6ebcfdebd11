/*
 * Selects the target of a command from its command line: the options -p -t -n -a --match
 * --container --cgroup --uid --all-matching --children, operands (names of containers or processes and
 * one number, SECONDS), and "-- CMD". All
 * commands that have a TARGET use it.
 *
 *	struct target_opts o = {0};
 *	... .groups = {{&target_group, &o}, ...}
 *	CLEANUP(chosen_target_release) struct chosen_target t = {0};
 *	if (!target_opts_choose(&t, &o, &args, &status))
 *		return status;
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
	struct opt_list containers;
	struct opt_list cgroups;
	struct opt_list users;
	const char *match;
	bool is_system;
	bool takes_all;
	bool takes_children;
};

extern const struct opt_group target_group;

/* Adds the options, without the operands, to @spec (host/target.h). -EINVAL: a malformed id. */
int target_opts_spec(struct target_spec *spec, const struct target_opts *o, struct err *err);

/* Whether an option names a target. */
bool target_opts_has_any(const struct target_opts *o);

struct chosen_target {
	struct target target;
	bool has_target;      /* false: only -- CMD was given */
	uint64_t duration_ns; /* SECONDS; 0 = not given */
};

void chosen_target_release(struct chosen_target *c);
/*
 * Resolves the options and operands to processes. On failure prints the error, with the candidates
 * if a name is ambiguous, sets *ret_status to the exit status and returns false.
 */
bool target_opts_choose(struct chosen_target *ret_c, const struct target_opts *o,
			const struct opt_args *args, int *ret_status);

#endif
