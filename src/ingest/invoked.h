/*
 * The name by which a program was started. The kernel reports the file that a path leads to
 * (redis-check-rdb), the user typed the link to it (redis-server), and one file may run under many
 * names (busybox). A name is used only if it leads to the mapped file.
 */
#ifndef ASSAY_INGEST_INVOKED_H
#define ASSAY_INGEST_INVOKED_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/file_access.h"

/* The answer for a file that is mapped by a process of some name. */
struct invoked_name {
	char *mapped; /* path of the mapping */
	char *comm;
	char *path;    /* as started, or NULL: no such name is known */
	uint32_t next; /* with the same hash: index + 1, 0 = none */
};

struct invoked {
	struct map by_hash; /* hash of mapped and comm -> index + 1 */
	VEC(struct invoked_name) list;
};

void invoked_release(struct invoked *n);
/*
 * Returns the path by which the process @pid, named @comm, was started, if @mapped is its program
 * under another name; else @mapped. Borrowed from @n or @mapped.
 */
const char *invoked_path(struct invoked *n, const struct file_access *files, int32_t pid,
			 const char *comm, const char *mapped);

#endif
