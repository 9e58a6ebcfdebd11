/*
 * A file that is read at offsets, whoever reads it: this process from a descriptor or from memory,
 * or another process (host/reader/hostfile.h).
 */
#ifndef ASSAY_BASE_FILE_BYTESOURCE_H
#define ASSAY_BASE_FILE_BYTESOURCE_H

#include <sys/stat.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/cachefile.h"

struct byte_source_ops {
	/* Reads exactly @n bytes at @offset; 0 or -errno. */
	int (*read)(void *ctx, void *to, size_t n, uint64_t offset, struct err *err);
	/* What file_identity_read says now; -ENOENT: bytes in memory. */
	int (*identify)(void *ctx, struct file_identity *ret_i);
	void (*close)(void *ctx);
};

/* Owned by whom it is passed to, also if that call fails. A zeroed one is closed. */
struct byte_source {
	const struct byte_source_ops *ops; /* NULL: closed */
	void *ctx;
	struct stat st; /* when it was opened; st_ino 0: bytes in memory */
};

/* Takes a duplicate of @fd; regular files only. */
int source_from_fd(struct byte_source *ret_s, int fd, struct err *err);
/* Copies the bytes. */
void source_from_bytes(struct byte_source *ret_s, const void *p, size_t n);
/* Appends the whole file. Fails if it has more than @limit bytes. */
int source_read_all(struct buf *to, struct byte_source *s, size_t limit, struct err *err);
void source_close(struct byte_source *s);

#endif
