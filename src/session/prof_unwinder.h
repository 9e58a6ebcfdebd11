/*
 * assay's unwinder lent to jemalloc's own profiling, in one running process: the recorder's image
 * is put there (remote/patch/inject.h, method PROF), tables of what the process maps are kept up to
 * date for it, and jemalloc's function for stacks is replaced by the image's (5.3.0 and later,
 * experimental.hooks.prof_backtrace). Stacks are whole, as by the unwinder of the C++ runtime, and
 * take a fraction of its time.
 *
 * The former function is asked for each stack that the image cannot say: before the tables are
 * there, in children that were forked, and from two seconds after assay's last sign of life on. It
 * is put back at the end.
 */
#ifndef ASSAY_SESSION_PROF_UNWINDER_H
#define ASSAY_SESSION_PROF_UNWINDER_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

struct prof_unwinder;

/* Whether this jemalloc lets its function for stacks be replaced. */
bool prof_unwinder_is_possible(const struct heap_plan *plan);
/*
 * The plan is of method PROF, and taken over; @cache_dir: of unwind tables, may be NULL. On an error
 * jemalloc's own unwinder is in place.
 */
int prof_unwinder_begin(struct prof_unwinder **ret_w, int32_t pid, struct heap_plan *plan,
			const char *cache_dir, struct err *err);
/* A sign of life, and what was mapped since. To be called several times a second. */
void prof_unwinder_tick(struct prof_unwinder *w);
/* As it was before, and @w is gone. Returns the longest stop of a thread. */
uint64_t prof_unwinder_end(struct prof_unwinder *w);

#endif
