/*
 * Counts the CPU time of a target and of all that its threads create, by a counter of the kernel on
 * each of its threads that takes no samples. A counter stops before the end of a thread's exit, some
 * 25 us; the clocks of processes, which include that, are read as well, but they lack children that
 * were not waited for. The result is the larger of both. Used by one thread.
 */
#ifndef ASSAY_CAPTURE_PERF_CPUTIME_H
#define ASSAY_CAPTURE_PERF_CPUTIME_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "host/target.h"

struct cputime {
	VEC(int) fds;
	struct map threads; /* those with a counter */
	VEC(int32_t) pids;
	uint64_t before_ns;
	uint64_t before_clock_ns;
};

/*
 * Opens the counters; those of a launched command start with its exec, the others at once. Opens
 * none if more than @max_fds are needed, or if it is not permitted.
 */
void cputime_open(struct cputime *c, const struct target *t, uint64_t max_fds);
/* Adds a process, whose CPU time counts from now on; without a counter the sum is not known. */
void cputime_add(struct cputime *c, int32_t pid, uint64_t max_fds);
/* Counts from now on. */
void cputime_begin(struct cputime *c);
/* The CPU time since cputime_begin; 0: not known. */
uint64_t cputime_ns(const struct cputime *c);
void cputime_release(struct cputime *c);

#endif
