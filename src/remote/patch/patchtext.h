/*
 * Patches functions of a running target and restores them, as planned in h->regions (stubs.h).
 */
#ifndef ASSAY_REMOTE_PATCH_PATCHTEXT_H
#define ASSAY_REMOTE_PATCH_PATCHTEXT_H

#include "base/base.h"
#include "base/err.h"

struct heapinject;
struct remote;

/*
 * Apply or revert the patches that one aligned store can change (all but PATCH_MULTI, patch.h).
 * -ESTALE: the code has changed.
 */
int heaptext_patch(struct heapinject *h, struct remote *r, struct err *err);
int heaptext_restore(struct heapinject *h, struct remote *r, struct err *err);
/*
 * Applies or reverts all PATCH_MULTI patches. Stops all threads for that, unless the target is held
 * before its first instruction (heapinject_spec.is_held). No session (remote.h) may be open.
 */
int heaptext_change_multi(struct heapinject *h, bool is_restore, struct err *err);
/*
 * After heaptext_restore: waits until no thread executes patched padding, stubs or the recorder's
 * image, then restores the padding.
 */
int heaptext_quiesce(struct heapinject *h, struct err *err);
/* Whether a thread may be in the recorder or return to it (quiesce.h), after heaptext_quiesce. */
bool heaptext_may_return(struct heapinject *h);
/* Writes struct stub_head (stubs.h) of each region to the target. */
int heaptext_write_heads(struct heapinject *h, struct err *err);

#endif
