/*
 * How ingest gets at the files behind mappings, without knowing about /proc or the host: the
 * session hands in an opener (live: /proc/PID/map_files, the target's root, the host; offline:
 * by path and build-id). It returns a descriptor or negative.
 */
#ifndef ASSAY_INGEST_FILE_ACCESS_H
#define ASSAY_INGEST_FILE_ACCESS_H

#include "base/base.h"
#include "base/buf.h"
#include "model/event.h"

struct file_access {
	/* A descriptor of the mapped file, verified (device, inode, build-id), or -errno. */
	int (*open)(void *ctx, int32_t pid, const struct event_map *map);
	/* The process's root directory for debug files, or -1; borrowed from the opener. */
	int (*root)(void *ctx, int32_t pid);
	/* Text of kallsyms, perf map or jitdump (by kind), appended to a buf; -errno. */
	int (*read_kallsyms)(void *ctx, struct buf *to);
	/* Cheaper, but what came and went since boot may be missing; NULL: there is no such copy.
	 */
	int (*read_kept_kallsyms)(void *ctx, struct buf *to);
	int (*read_perfmap)(void *ctx, int32_t pid, struct buf *to);
	/* A jitdump that the process mapped, by its path there. */
	int (*read_jitdump)(void *ctx, int32_t pid, const char *path, struct buf *to);
	int (*read_vdso)(void *ctx, struct buf *to);
	void *ctx;
};

#endif
