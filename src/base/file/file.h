/*
 * Files: reads of whole files and of parts, safe output.
 *
 * A mapped file that shrinks under us would raise SIGBUS: foreign files (targets' binaries,
 * recordings) are therefore read, not mapped.
 */
#ifndef ASSAY_BASE_FILE_FILE_H
#define ASSAY_BASE_FILE_FILE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

#define FILE_LIMIT ((size_t)8 << 30) /* default cap of what is read into memory */

/* Appends the file's bytes (for /proc and other small files). */
int file_read(struct buf *to, const char *path, size_t limit, struct err *err);
int file_read_at(struct buf *to, int dirfd, const char *path, size_t limit, struct err *err);
int file_read_fd(struct buf *to, int fd, size_t limit, struct err *err);
/* Exactly n bytes at off, EINTR and short reads handled. */
int file_pread(int fd, void *p, size_t n, uint64_t off, struct err *err);
/* Up to n bytes from where the descriptor stands; 0 at the end, else negative. */
ssize_t file_read_some(int fd, void *p, size_t n, struct err *err);
/* One read of up to n bytes at off; 0 at the end, else negative. */
ssize_t file_pread_some(int fd, void *p, size_t n, uint64_t off, struct err *err);
struct file_facts {
	bool is_regular;
	bool is_dir;
	uint64_t nr_bytes; /* of a regular file */
};
int file_facts_fd(struct file_facts *ret_f, int fd, struct err *err);
int file_write_all(int fd, const void *p, size_t n, struct err *err);
int file_pwrite_all(int fd, const void *p, size_t n, uint64_t off, struct err *err);
bool file_is_seekable(int fd);
/* Cuts or extends, and puts the position at the new end. */
int file_truncate(int fd, uint64_t n, struct err *err);

/*
 * Output that appears whole or not at all: written to a temporary sibling, renamed by
 * out_commit. "-" is standard output. out_release without commit removes the temporary.
 */
struct out {
	int fd;
	char *path;
	char *tmp_path; /* NULL for standard output, a fifo and the like */
};
int out_open(struct out *ret_o, const char *path, mode_t mode, struct err *err);
int out_write(struct out *o, const void *p, size_t n, struct err *err);
/* Replaces n bytes at an offset that was written before; not where tmp_path is NULL. */
int out_patch(struct out *o, const void *p, size_t n, uint64_t off, struct err *err);
int out_commit(struct out *o, struct err *err);
void out_release(struct out *o);
/* All of it at once. */
int out_file(const char *path, mode_t mode, const struct buf *text, struct err *err);

/* mkdir -p. */
int dir_make(const char *path, mode_t mode, struct err *err);
/* Borrowed part of path after the last slash. */
const char *path_base(const char *path);

#endif
