/*
 * The two ways to get at the files behind mappings (ingest/file_access.h): live, as the kernel holds
 * them; offline, by path and build-id on this machine.
 */
#ifndef ASSAY_SESSION_MODULE_FILES_H
#define ASSAY_SESSION_MODULE_FILES_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/file_access.h"

/*
 * Remembers each process's root and inner pid while it lives: JIT maps are read at the end.
 * Processes with the same root (of one container) share its descriptor.
 */
struct live_files {
	struct file_access access; /* access.ctx is this structure */
	struct map by_pid;         /* pid -> index + 1 */
	VEC(struct live_process) processes;
	VEC(struct live_root) roots;
};
struct live_root {
	uint64_t mount_ns; /* inode of the namespace */
	uint64_t dev;      /* of the root directory */
	uint64_t inode;
	int fd;
};
struct live_process {
	int32_t pid;
	int32_t nspid;
	int root_fd; /* of roots, or -1 */
	uint32_t uid;
};
void live_files_init(struct live_files *l);
void live_files_release(struct live_files *l);

struct stored_files {
	struct file_access access;
	const char *symfs;     /* prefix for all paths, or NULL */
	const char *cache_dir; /* where kernel symbols are kept, or NULL */
	bool is_this_kernel;   /* /proc/kallsyms is that of the recording */
	/*
	 * Of files without build-ids: when they were written (wall clock), 0 = unknown. A binary
	 * with another inode is taken if it is not younger, or lies below symfs.
	 */
	int64_t written_ns;
};
void stored_files_init(struct stored_files *s, const char *symfs, const char *cache_dir);

#endif
