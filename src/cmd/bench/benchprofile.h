/*
 * assay bench --profile: records the CPU samples of both commands, alternating (A B B A ...), and
 * compares the recordings of all runs: assay cpu and assay diff --runs, as processes of their own.
 *
 * The process that starts them is forked before assay gives up rights, which captures need.
 */
#ifndef ASSAY_CMD_BENCH_BENCHPROFILE_H
#define ASSAY_CMD_BENCH_BENCHPROFILE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

#define BENCH_PROFILE_RUNS 6           /* recordings of each command */
#define BENCH_PROFILE_NS   1500000000u /* CPU time of one: the command is repeated in it */

struct bench_profile {
	pid_t pid; /* 0: none */
	int fd;    /* to the process; closed: it ends */
};

struct bench_profile_spec {
	const char *dir; /* is created */
	char *const *a;
	char *const *b;
	const char *const
		*phases; /* "NAME=REGEX": samples below such functions are compared, too */
	size_t nr_phases;
};
int bench_profile_start(struct bench_profile *ret, const struct bench_profile_spec *spec,
			struct err *err);
/* Records and prints the comparison. @cpu_ns: CPU time of one run. Returns its exit status. */
int bench_profile_run(struct bench_profile *p, uint64_t cpu_ns);
/* Ends the process if bench_profile_run was not called. */
void bench_profile_release(struct bench_profile *p);

#endif
