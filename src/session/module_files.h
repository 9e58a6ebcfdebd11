/*
 * The two implementations of struct file_access (ingest/file_access.h), which opens the files of
 * mappings: for live processes, through /proc; for recordings, by path and build-id on this
 * machine.
 */
#ifndef ASSAY_SESSION_MODULE_FILES_H
#define ASSAY_SESSION_MODULE_FILES_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/file_access.h"
#include "session/kernelsyms.h"

/*
 * Stores each process's root directory, and its pid in its own PID namespace, while the process
 * runs: perf maps of JIT code are read at the end of the capture, when it may have exited.
 * Processes with the same root (of one container) share one descriptor.
 */
struct live_files {
	struct file_access access; /* access.ctx is this structure */
	struct map by_pid;         /* pid -> index + 1 */
	VEC(struct live_process) processes;
	VEC(struct live_root) roots;
};
/* A root directory, of one or more processes. */
struct live_root {
	uint64_t mnt_nsid; /* mount namespace: inode of /proc/PID/ns/mnt */
	uint64_t dev;      /* device and inode of the root directory */
	uint64_t inode;
	int fd; /* of the root directory; owned */
};
struct live_process {
	int32_t pid;
	int32_t nspid; /* pid in the process's own PID namespace */
	int root_fd;   /* borrowed from roots, or -1 */
	uint32_t uid;
};
void live_files_init(struct live_files *l);
void live_files_release(struct live_files *l);

struct stored_files {
	struct file_access access;
	const char *symfs;     /* prefix for all paths, or NULL */
	const char *cache_dir; /* cache of kernel symbols, or NULL */
	bool is_this_kernel;   /* the recording is of this boot: /proc/kallsyms applies */
	struct kernel_identity
		kernel; /* of the recording: where this kernel differs, it does not */
	/*
	 * For recordings without build-ids: when they were written (wall clock), 0 = unknown. A
	 * binary with another inode is used if it is not newer, or is below symfs.
	 */
	int64_t written_ns;
};
void stored_files_init(struct stored_files *s, const char *symfs, const char *cache_dir);

#endif
