/*
 * Names for locations. A namer takes locations by module, asks the symbolizers on a worker thread
 * while the capture goes on, and hands back finished batches that the owner of the profile applies.
 * The two threads share no table: whole batches change hands.
 *
 *	namer_submit(n)    every location that is new since the last submit goes to the worker
 *	namer_collect(n)   applies what is finished; WAIT: until everything submitted is
 */
#ifndef ASSAY_INGEST_NAMING_H
#define ASSAY_INGEST_NAMING_H

#include "base/base.h"
#include "base/err.h"
#include "ingest/modules.h"
#include "ingest/opener.h"
#include "model/profile.h"

struct namer_options {
	const char *const *debug_dirs; /* extra folders with debug files */
	size_t nr_debug_dirs;
	unsigned symbolizer_flags;     /* enum symbolizer_flags */
	unsigned demangle_flags;       /* enum demangle_flags */
	const char *cache_dir;         /* for answers (symbol/namecache.h), may be NULL */
	void (*on_thread_start)(void); /* called first by the worker; may be NULL */
};

enum namer_collect_flags { NAMER_WAIT = 1 << 0 };

struct namer;

/* Borrows the profile, the modules and the opener. */
struct namer *namer_new(struct profile *p, struct modules *m, const struct opener *opener,
			const struct namer_options *options);
void namer_free(struct namer *n);
DEFINE_FREE_P(namer, struct namer)
void namer_submit(struct namer *n);
/* The JIT code of processes waits for their perf maps, which are whole only at the end. */
void namer_submit_jit(struct namer *n);
void namer_collect(struct namer *n, unsigned flags);
/* CPU time of the worker so far; done and submitted locations, for progress. */
uint64_t namer_cpu_ns(const struct namer *n);
void namer_progress(const struct namer *n, uint64_t *ret_done, uint64_t *ret_total);

/* Demangles every function's linkage name again, with other flags (--hashes, --raw). */
void naming_redemangle(struct profile *p, unsigned demangle_flags);

#endif
