/*
 * Makes jemalloc's heap profiling use assay's unwinder, in one running process: injects the
 * recorder (remote/patch/inject.h, method PROF), keeps its unwind tables up to date with the
 * process's mappings, and replaces jemalloc's backtrace function by the recorder's (jemalloc 5.3.0
 * and later, experimental.hooks.prof_backtrace). Stacks are complete, as with the unwinder of the
 * C++ runtime, and take a fraction of the time of that unwinder.
 *
 * The recorder calls the original function for stacks that it cannot unwind: before the tables are
 * ready, in forked children, and when assay has not called prof_unwinder_tick for two seconds. The
 * original function is restored at the end.
 */
#ifndef ASSAY_SESSION_PROF_UNWINDER_H
#define ASSAY_SESSION_PROF_UNWINDER_H

#include "base/base.h"
#include "base/err.h"
#include "host/target.h"
#include "plan/heapplan.h"

struct prof_unwinder;

/* Returns whether this jemalloc's backtrace function can be replaced. */
bool prof_unwinder_is_possible(const struct heap_plan *plan);
/*
 * Installs the unwinder. @plan: of method PROF, owned from here on; @cache_dir: of unwind tables,
 * may be NULL. On an error jemalloc's own unwinder stays installed.
 */
int prof_unwinder_begin(struct prof_unwinder **ret_w, const struct target *target, int32_t pid,
			struct heap_plan *plan, const char *cache_dir, struct err *err);
/* Updates alive_tsc (the recorder becomes inert without it) and the tables. Call several times a
 * second. */
void prof_unwinder_tick(struct prof_unwinder *w);
/* Restores jemalloc's unwinder and frees @w. Returns the longest stop of a thread in ns. */
uint64_t prof_unwinder_end(struct prof_unwinder *w);

#endif
