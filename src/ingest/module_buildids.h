/*
 * Resolves build-ids of modules that are known by path and inode only (heap dumps with a copy of
 * /proc/PID/maps): opens each file through struct file_access, which checks that it is the mapped
 * file, and stores the file's build-id, or its inode if the file has no build-id. After that,
 * modules_restore() can open the modules like those of a recording.
 */
#ifndef ASSAY_INGEST_MODULE_BUILDIDS_H
#define ASSAY_INGEST_MODULE_BUILDIDS_H

#include "base/base.h"
#include "ingest/file_access.h"
#include "model/profile.h"

/* @p is not sealed. Call after all modules were added, since their identities change. */
void modules_resolve_build_ids(struct profile *p, const struct file_access *files);

#endif
