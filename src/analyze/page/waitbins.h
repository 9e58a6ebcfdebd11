/*
 * Finer times for sums of waits. Rows of waits are sums over a second; recordings also keep single
 * intervals off the CPU (TABLE_INTERVALS), of the last minute or of long waits. waitbins_split divides
 * a row over the second as the kept intervals with the same thread, stack and reason say; what they do
 * not explain stays spread over the second. The weight of the parts is that of the row.
 *
 * Lives in the caller's arena and borrows the profile.
 */
#ifndef ASSAY_ANALYZE_PAGE_WAITBINS_H
#define ASSAY_ANALYZE_PAGE_WAITBINS_H

#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

#define WAITBINS_NS  ((uint64_t)10 * 1000 * 1000) /* length of a bin */
#define WAITBINS_MAX 101                          /* parts of a second, and the rest */

struct waitbin {
	uint64_t start_ns;
	uint64_t len_ns;
	uint64_t weight_ns;
};

/* A row of waits, without the scheduler's frames on its stack; @reason as classified. */
struct waitbins_row {
	task_id task;
	stack_id stack;
	unsigned reason;
	uint64_t start_ns;
	uint64_t len_ns; /* at most a second */
	uint64_t weight_ns;
};

struct waitbins;

/* Returns NULL if the profile has no single intervals. */
struct waitbins *waitbins_new(struct arena *a, const struct profile *p);
/* Stores the parts of a row, in order of time; returns their number, at least 1. */
size_t waitbins_split(const struct waitbins *w, const struct waitbins_row *row,
		      struct waitbin ret_parts[WAITBINS_MAX]);

#endif
