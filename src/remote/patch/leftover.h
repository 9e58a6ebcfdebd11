/*
 * What earlier attaches left in a process or, before a fork, in its parent: memory that the next
 * attach reuses, and, if assay was killed, patched functions and hooks.
 */
#ifndef ASSAY_REMOTE_PATCH_LEFTOVER_H
#define ASSAY_REMOTE_PATCH_LEFTOVER_H

#include "base/base.h"
#include "base/err.h"

struct heapinject;

/*
 * Reads the mappings and finds image, stubs, patches, hooks and layouts of earlier attaches. They
 * come from the target and are used only after checks. -EPROTO: patches of another version.
 */
int leftover_inspect(struct heapinject *h, struct err *err);
/* -EBUSY: another assay records the process, as its alive_tsc changes. */
int leftover_check_busy(struct heapinject *h, struct err *err);
/*
 * After leftover_inspect: restores functions and removes hooks that an assay left that has died. Does
 * not use the area for sessions (is_area_unsafe).
 */
int leftover_undo(struct heapinject *h, struct err *err);
/* Sets is_area_unsafe; waits at most 20 ms for a thread that may use the area. */
void leftover_check_area(struct heapinject *h);
/*
 * The whole detach, for the attach with h->generation of an assay that has died. Returns 0 as well
 * if another assay has attached since, or if there is nothing to undo.
 */
int leftover_undo_attach(struct heapinject *h, struct err *err);

#endif
