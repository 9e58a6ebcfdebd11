/*
 * Symbolizes locations on a worker thread while a capture runs. New locations are queued in
 * batches, one per module; the worker looks them up and returns finished batches, which the owner
 * of the profile applies. The threads exchange whole batches and share no table.
 *
 *	symbolworker_submit    queues the locations that are new since the last submit
 *	symbolworker_collect   applies finished batches; with SYMBOLWORKER_WAIT waits for all
 */
#ifndef ASSAY_INGEST_SYMBOLWORKER_H
#define ASSAY_INGEST_SYMBOLWORKER_H

#include "base/base.h"
#include "base/err.h"
#include "ingest/modules.h"
#include "ingest/file_access.h"
#include "model/profile.h"

struct symbolworker_options {
	const char *const *debug_dirs; /* extra folders with debug files */
	size_t nr_debug_dirs;
	unsigned symbolizer_flags;     /* enum symbolizer_flags */
	unsigned demangle_flags;       /* enum demangle_flags */
	const char *cache_dir;         /* for results (symbol/namecache.h), may be NULL */
	void (*on_thread_start)(void); /* called first by the worker; may be NULL */
};

enum symbolworker_collect_flags { SYMBOLWORKER_WAIT = 1 << 0 };

struct symbolworker;

/* Borrows the profile, the modules and @files. */
struct symbolworker *symbolworker_new(struct profile *p, struct modules *m,
				      const struct file_access *files,
				      const struct symbolworker_options *options);
void symbolworker_free(struct symbolworker *sw);
DEFINE_FREE_P(symbolworker, struct symbolworker)
void symbolworker_submit(struct symbolworker *sw);
/* Queues locations in JIT code: called at the end, when perf maps are complete. */
void symbolworker_submit_jit(struct symbolworker *sw);
void symbolworker_collect(struct symbolworker *sw, unsigned flags);
/*
 * Returns the symbolizer of a module, NULL: none was opened. May be called, and the result used, only
 * while the worker has nothing to do: from symbolworker_collect with SYMBOLWORKER_WAIT until the next
 * symbolworker_submit. Valid until symbolworker_free.
 */
struct symbolizer *symbolworker_symbolizer(const struct symbolworker *sw, module_id module);
/* Returns the worker's CPU time so far. */
uint64_t symbolworker_cpu_ns(const struct symbolworker *sw);
/* Returns the numbers of finished and of queued locations. */
void symbolworker_progress(const struct symbolworker *sw, uint64_t *ret_done, uint64_t *ret_total);

/* Demangles every function's linkage name again, with other flags (--hashes, --raw). */
void symbolworker_redemangle(struct profile *p, unsigned demangle_flags);

#endif
