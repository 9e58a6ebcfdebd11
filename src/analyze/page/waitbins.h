/*
 * How waits were spread within a second. Rows of waits are sums over a second; recordings also keep
 * single intervals off the CPU (TABLE_INTERVALS), of the last minute or of long waits. A shape has the
 * time of the kept intervals with the same thread, stack and reason, by bins of 10 ms of one second.
 * Rows that differ in other attributes (duration bucket, object) share a shape.
 *
 * Borrows nothing from the profile.
 */
#ifndef ASSAY_ANALYZE_PAGE_WAITBINS_H
#define ASSAY_ANALYZE_PAGE_WAITBINS_H

#include "base/base.h"
#include "model/profile.h"

#define WAITBINS_NS     ((uint64_t)10 * 1000 * 1000) /* length of a bin */
#define WAITBINS_SECOND 100                          /* bins of a second */

/* A bin with waits; a shape's bins are in order, each once. */
struct waitbin {
	uint32_t ns;
	uint8_t bin; /* below WAITBINS_SECOND */
};

/* A row of waits, without the scheduler's frames on its stack; @reason as classified. */
struct waitbins_row {
	task_id task;
	stack_id stack;
	unsigned reason;
	uint64_t start_ns; /* of its second */
};

struct waitbins;

/* Returns NULL if the profile has no single intervals. */
struct waitbins *waitbins_new(const struct profile *p);
void waitbins_free(struct waitbins *w);
/* Number of shapes; they are 1..nr, 0 is none. */
uint32_t waitbins_count(const struct waitbins *w);
/* Returns the shape of a row's second; 0: none of its waits was kept. */
uint32_t waitbins_shape(const struct waitbins *w, const struct waitbins_row *row);
/* Returns the bins of a shape and their number. */
const struct waitbin *waitbins_of(const struct waitbins *w, uint32_t shape, size_t *ret_n);

#endif
