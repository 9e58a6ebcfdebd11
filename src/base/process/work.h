/*
 * A thread pool. work_run calls a function for item indexes 0..nr-1; threads claim them in order,
 * each is processed by exactly one thread, and the calling thread works as worker 0. The function
 * must write only to data of its item or its worker.
 *
 *	struct work_pool *pool = work_new(0);
 *	work_run(pool, nr_units, scan_unit, ctx);   returns when every item is done
 *	work_free(pool);
 *
 * Threads are created by the first run with more than one item and sleep between runs. If thread
 * creation fails, the existing threads (at least the caller) do the work. Only one work_run at a
 * time.
 */
#ifndef ASSAY_BASE_PROCESS_WORK_H
#define ASSAY_BASE_PROCESS_WORK_H

#include "base/base.h"

#define WORK_THREADS_MAX 64

struct work_pool; /* opaque */

/* @item: index; @worker: 0 to the number of threads - 1, for scratch memory per worker. */
typedef void (*work_fn)(void *ctx, size_t item, unsigned worker);

/* Number of threads that work_new uses; @nr_threads 0: the CPUs of this process, at most 16. */
unsigned work_threads_wanted(unsigned nr_threads);
/* @nr_threads includes the caller; 0: see work_threads_wanted. */
struct work_pool *work_new(unsigned nr_threads);
void work_free(struct work_pool *p);
void work_free_p(struct work_pool **p);
/* @p NULL: the calling thread processes all items. */
void work_run(struct work_pool *p, size_t nr_items, work_fn fn, void *ctx);

#endif
