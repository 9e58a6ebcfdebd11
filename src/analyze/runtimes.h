/*
 * What cannot be seen of programs in managed runtimes, and of servers with allocators of their own:
 * functions and callers of JIT code, and objects in heaps that malloc does not know. A row for each:
 * how it is recognised, and what to do. Nothing is said where nothing is missing.
 */
#ifndef ASSAY_ANALYZE_RUNTIMES_H
#define ASSAY_ANALYZE_RUNTIMES_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/* Notes JIT code without symbols, and stacks that end in it, from 1 % of the selection on. */
void runtimes_note_stacks(struct report *r, const struct selection *sel);
/* Notes, for a page of waits, those of tasks that are no threads, of all processes that were recorded. */
void runtimes_note_waits(struct report *r, const struct selection *sel);
/* Notes, for a page of allocations, objects that no call of malloc shows. */
void runtimes_note_heap(struct report *r, const struct selection *sel);

#endif
