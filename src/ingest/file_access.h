/*
 * Callbacks with which ingest opens the files of mappings, so that it does not depend on /proc or
 * the host. session/module_files.h implements them: for live processes through /proc/PID/map_files,
 * the target's root or the host's; for recordings by path and build-id.
 */
#ifndef ASSAY_INGEST_FILE_ACCESS_H
#define ASSAY_INGEST_FILE_ACCESS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/file/bytesource.h"
#include "model/event.h"

struct file_access {
	/*
	 * Opens the mapped file; -errno. -ESTALE: the file there has another inode. The caller
	 * owns the source and compares the build-id.
	 */
	int (*open)(void *ctx, struct byte_source *ret_s, int32_t pid, const struct event_map *map);
	/* Opens debug files (struct debug_search). */
	int (*open_path)(struct byte_source *ret_s, int root_fd, const char *path);
	/*
	 * Appends the path of another name of the program @mapped by which the process, named
	 * @comm, was started. -errno: none is known. NULL: recordings hold no such names.
	 */
	int (*invoked)(void *ctx, int32_t pid, const char *comm, const char *mapped,
		       struct buf *to);
	/* Returns the process's root directory, for debug files, or -1; borrowed. */
	int (*root)(void *ctx, int32_t pid);
	/* The following append the content of a file; -errno. */
	int (*read_kallsyms)(void *ctx, struct buf *to);
	/*
	 * Reads assay's cached symbols of this boot, which is faster: lines of
	 * functions in the order of their addresses. Symbols of kernel modules and BPF programs
	 * loaded later may be missing. NULL: there is no cache.
	 */
	int (*read_cached_kallsyms)(void *ctx, struct buf *to);
	/* Opens a process's perf map; -errno. */
	int (*open_perfmap)(void *ctx, int32_t pid, struct byte_source *ret_s);
	/* @path: of a jitdump that the process mapped, in its root. */
	int (*read_jitdump)(void *ctx, int32_t pid, const char *path, struct buf *to);
	int (*read_vdso)(void *ctx, struct buf *to);
	void *ctx;
};

#endif
