/*
 * Modules that a file names by path and inode only (dumps with a copy of /proc/PID/maps) become
 * known by build-id: the opener decides whether the file that is there now is the one that was
 * mapped; what it opens gives the module its build-id, or its inode where it has none. After that
 * modules_restore() finds them as it finds those of a recording.
 */
#ifndef ASSAY_INGEST_MODULE_BUILDIDS_H
#define ASSAY_INGEST_MODULE_BUILDIDS_H

#include "base/base.h"
#include "ingest/file_access.h"
#include "model/profile.h"

/* Not sealed, and nothing is added by module afterwards: identities change. */
void modules_resolve_build_ids(struct profile *p, const struct file_access *files);

#endif
