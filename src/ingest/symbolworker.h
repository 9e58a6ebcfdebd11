/*
 * Names for locations. A namer takes locations by module, asks the symbolizers on a worker thread
 * while the capture goes on, and hands back finished batches that the owner of the profile applies.
 * The two threads share no table: whole batches change hands.
 *
 *	symbolworker_submit(n)    every location that is new since the last submit goes to the worker
 *	symbolworker_collect(n)   applies what is finished; WAIT: until everything submitted is
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
	const char *cache_dir;         /* for answers (symbol/namecache.h), may be NULL */
	void (*on_thread_start)(void); /* called first by the worker; may be NULL */
};

enum symbolworker_collect_flags { SYMBOLWORKER_WAIT = 1 << 0 };

struct symbolworker;

/* Borrows the profile, the modules and the opener. */
struct symbolworker *symbolworker_new(struct profile *p, struct modules *m,
				      const struct file_access *files,
				      const struct symbolworker_options *options);
void symbolworker_free(struct symbolworker *n);
DEFINE_FREE_P(symbolworker, struct symbolworker)
void symbolworker_submit(struct symbolworker *n);
/* The JIT code of processes waits for their perf maps, which are whole only at the end. */
void symbolworker_submit_jit(struct symbolworker *n);
void symbolworker_collect(struct symbolworker *n, unsigned flags);
/* CPU time of the worker so far; done and submitted locations, for progress. */
uint64_t symbolworker_cpu_ns(const struct symbolworker *n);
void symbolworker_progress(const struct symbolworker *n, uint64_t *ret_done, uint64_t *ret_total);

/* Demangles every function's linkage name again, with other flags (--hashes, --raw). */
void symbolworker_redemangle(struct profile *p, unsigned demangle_flags);

#endif
