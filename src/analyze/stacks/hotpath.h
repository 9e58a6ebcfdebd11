/*
 * The path of calls that most of the CPU time is on. The hottest leaf is often a helper (memcpy); this has its
 * callers too.
 */
#ifndef ASSAY_ANALYZE_STACKS_HOTPATH_H
#define ASSAY_ANALYZE_STACKS_HOTPATH_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"

struct hotpath {
	const char *names; /* "main > load > parse"; "": there is none */
	const char *parts; /* ": 50 % in memcpy, 31 % in hash", or "" */
	double pct;
	double error_pct; /* half width of its 95 % interval */
};

/*
 * The path goes from the root to the callee with the largest part, as long as that has half of all the
 * time and twice that of the next one; below the start of threads and of the program half is enough. Texts are
 * in the arena.
 */
void hotpath_find(struct hotpath *ret_path, struct arena *a, const struct selection *sel);

#endif
