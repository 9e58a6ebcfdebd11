/*
 * Reading files and parts of files; atomic output files.
 *
 * Files are read, not mapped: a mapped file that another process truncates would raise SIGBUS
 * (binaries of targets, recordings).
 */
#ifndef ASSAY_BASE_FILE_FILE_H
#define ASSAY_BASE_FILE_FILE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

#define FILE_LIMIT ((size_t)8 << 30) /* default limit of bytes read into memory */

/* Append the contents of a file (of /proc, and other small files). Fail beyond @limit bytes. */
int file_read(struct buf *to, const char *path, size_t limit, struct err *err);
int file_read_at(struct buf *to, int dirfd, const char *path, size_t limit, struct err *err);
int file_read_fd(struct buf *to, int fd, size_t limit, struct err *err);
/*
 * Open or read a file that was named by a person or found in a folder that others may write. Never
 * waits for another user: a FIFO or device is opened only if root, this user or /dev offers it, and
 * block devices not at all. -EPERM: refused. Returns the descriptor, or negative.
 */
int file_open_named(const char *path, struct err *err);
int file_read_named(struct buf *to, const char *path, size_t limit, struct err *err);
/* Reads exactly n bytes at off; handles EINTR and short reads. */
int file_pread(int fd, void *p, size_t n, uint64_t off, struct err *err);
/* Reads up to n bytes at the file position. Returns the number, 0 at the end, or negative errno. */
ssize_t file_read_some(int fd, void *p, size_t n, struct err *err);
/* One pread of up to n bytes. Returns the number, 0 at the end, or negative errno. */
ssize_t file_pread_some(int fd, void *p, size_t n, uint64_t off, struct err *err);
struct file_info {
	bool is_regular;
	bool is_dir;
	uint64_t nr_bytes; /* of a regular file */
};
int file_info_fd(struct file_info *ret_f, int fd, struct err *err);
int file_write_all(int fd, const void *p, size_t n, struct err *err);
int file_pwrite_all(int fd, const void *p, size_t n, uint64_t off, struct err *err);
bool file_is_seekable(int fd);
/* Sets the length to n and moves the file position to the new end. */
int file_truncate(int fd, uint64_t n, struct err *err);

/*
 * An output file that is replaced atomically: data go to a temporary file in the same directory,
 * which out_commit renames. out_release without out_commit removes the temporary file. The path "-"
 * is standard output. A FIFO or character device is written in place, under the conditions of
 * file_open_named.
 */
struct out {
	int fd;
	int dirfd; /* of the directory; valid if tmp_name is set */
	char *path;
	char *tmp_name; /* in the directory; NULL: written in place */
};
int out_open(struct out *ret_o, const char *path, mode_t mode, struct err *err);
int out_write(struct out *o, const void *p, size_t n, struct err *err);
/* Overwrites n bytes at an offset that was written before; not allowed if tmp_path is NULL. */
int out_patch(struct out *o, const void *p, size_t n, uint64_t off, struct err *err);
int out_commit(struct out *o, struct err *err);
void out_release(struct out *o);
/* Writes @text as the whole file: open, write, commit. */
int out_file(const char *path, mode_t mode, const struct buf *text, struct err *err);

/* mkdir -p. */
int dir_make(const char *path, mode_t mode, struct err *err);
/* Returns the part of path after the last slash, borrowed. */
const char *path_base(const char *path);

#endif
