/*
 * Patches functions of a running target and restores them, as planned in h->regions (stubs.h).
 */
#ifndef ASSAY_REMOTE_PATCH_PATCHTEXT_H
#define ASSAY_REMOTE_PATCH_PATCHTEXT_H

#include "base/base.h"
#include "base/err.h"

struct heapinject;
struct remote;

/* Applies or reverts all patches that are single stores. -ESTALE: the code has changed. */
int heaptext_patch(struct heapinject *h, struct remote *r, struct err *err);
int heaptext_restore(struct heapinject *h, struct remote *r, struct err *err);
/*
 * Applies or reverts all PATCH_MULTI patches, with all threads stopped unless the target is held.
 * No session may be open.
 */
int heaptext_change_multi(struct heapinject *h, bool is_restore, struct err *err);
/*
 * After heaptext_restore: waits until no thread executes padding, stubs or image, then restores the
 * padding.
 */
int heaptext_quiesce(struct heapinject *h, struct err *err);
/* Writes the heads of all regions. */
int heaptext_write_heads(struct heapinject *h, struct err *err);

#endif
