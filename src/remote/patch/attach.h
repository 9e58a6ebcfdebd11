/*
 * Loads the recorder into a process: implements heapinject_attach (inject.h).
 */
#ifndef ASSAY_REMOTE_PATCH_ATTACH_H
#define ASSAY_REMOTE_PATCH_ATTACH_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "heap_wire.h"

struct heapcode_ops;
struct heapinject;
struct remote;

/*
 * Does the whole attach. -EEXIST: the target mapped memory at a chosen address meanwhile; the caller
 * retries.
 */
int heapattach_run(struct heapinject *h, struct err *err);
/* Adds to @l: replace rings and tables of killed recorders that this attach does not reuse. */
void heapattach_unmap_stale(const struct heapinject *h, struct heapcode_ops *l);
/* Maps the new stub regions. @code: from heapstubs_make. */
int heapattach_map_stubs(struct heapinject *h, struct remote *r, const struct buf *code,
			 struct err *err);
/* Fills heap_data.original and .nothrow for the patches of @h. */
void heapattach_originals(const struct heapinject *h, struct heap_data *data);

#endif
