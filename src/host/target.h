/*
 * What to profile: from the words on the command line to process ids. A name must be
 * unambiguous: several candidates come back as a list for the caller to show, never a silent
 * first. assay itself and its children are never candidates.
 */
#ifndef ASSAY_HOST_TARGET_H
#define ASSAY_HOST_TARGET_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/proc.h"

struct target_spec {
	VEC(int32_t) pids;       /* -p */
	VEC(int32_t) tids;       /* -t */
	VEC(const char *) names; /* bare words and -n: exact process names */
	const char *match;       /* --match: regular expression over the command line */
	bool is_system;          /* -a */
	bool takes_all;          /* --all-matching */
	bool takes_children;     /* --children: what these have started, and that in turn */
};

struct target {
	struct pid_list pids; /* processes, ascending, each once */
	struct pid_list tids; /* single threads (their processes are not in pids) */
	int32_t child;        /* a launched command, at its gate at first; 0 = none */
	bool is_system;
	uint32_t nr_children; /* descendants that run already and are not in pids */
	char *name;           /* for directories and titles: "redis-server", "all", "pid-42" */
};

struct target_candidate {
	int32_t pid;
	char *cmdline; /* owned */
};
struct target_candidates {
	VEC(struct target_candidate) list;
};

void target_spec_release(struct target_spec *s);
void target_release(struct target *t);
void target_candidates_release(struct target_candidates *c);

/*
 * Resolves. -ENOTUNIQ: *ret_c holds the candidates. -ESRCH: nothing matches (the message names
 * near misses). -EINVAL: a bad number or expression.
 */
int target_resolve(struct target *ret_t, const struct target_spec *spec,
		   struct target_candidates *ret_c, struct err *err);

#endif
