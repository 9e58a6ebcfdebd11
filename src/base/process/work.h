/*
 * A fixed pool of worker threads that hands over whole work items: item indexes 0..nr-1 are
 * claimed in order, each by exactly one thread; the caller works too, as worker 0. Nothing is
 * shared by the pool itself: a function writes only to what belongs to its item or its worker.
 *
 *	struct work_pool *pool = work_new(0);
 *	work_run(pool, nr_units, scan_unit, ctx);   returns when every item is done
 *	work_free(pool);
 *
 * Threads start at the first run that has more than one item and then sleep between runs. If
 * threads cannot be made, fewer (at the least the caller) do the work. One work_run at a time.
 */
#ifndef ASSAY_BASE_PROCESS_WORK_H
#define ASSAY_BASE_PROCESS_WORK_H

#include "base/base.h"

#define WORK_THREADS_MAX 64

struct work_pool; /* opaque */

/* @item: which one; @worker: below the number of threads, for per-worker scratch memory. */
typedef void (*work_fn)(void *ctx, size_t item, unsigned worker);

/* As many threads as work_new makes of it: 0 = the CPUs this process may use, at most 16. */
unsigned work_threads_wanted(unsigned nr_threads);
/* @nr_threads: with the caller, or 0. */
struct work_pool *work_new(unsigned nr_threads);
void work_free(struct work_pool *p);
void work_run(struct work_pool *p, size_t nr_items, work_fn fn, void *ctx);

#endif
