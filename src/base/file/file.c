/* Files; see file.h. */
#include "base/base.h"
#include "base/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define READ_STEP ((size_t)64 << 10)

ssize_t file_read_some(int fd, void *p, size_t n, struct err *err)
{
	ssize_t got;
	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? err_sys(err, "cannot read") : got;
}

int file_read_fd(struct buf *to, int fd, size_t limit, struct err *err)
{
	size_t start = to->n;
	ssize_t n;
	while ((n = file_read_some(fd, buf_reserve(to, READ_STEP), READ_STEP, err)) > 0) {
		to->n += (size_t)n;
		to->p[to->n] = 0;
		if (to->n - start > limit)
			return err_set(err, -EFBIG, "larger than %zu bytes", limit);
	}
	return (int)n;
}

int file_read_at(struct buf *to, int dirfd, const char *path, size_t limit, struct err *err)
{
	CLEANUP(close_p) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (file_read_fd(to, fd, limit, err))
		return err_wrap(err, "reading '%s'", path);
	return 0;
}

int file_read(struct buf *to, const char *path, size_t limit, struct err *err)
{
	return file_read_at(to, AT_FDCWD, path, limit, err);
}

ssize_t file_pread_some(int fd, void *p, size_t n, uint64_t off, struct err *err)
{
	ssize_t got;
	do
		got = pread(fd, p, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	return got < 0 ? err_sys(err, "cannot read at offset %" PRIu64, off) : got;
}

int file_pread(int fd, void *p, size_t n, uint64_t off, struct err *err)
{
	char *to = p;
	while (n) {
		ssize_t got = file_pread_some(fd, to, n, off, err);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return err_set(err, -ENODATA,
				       "file ends at offset %" PRIu64 ", %zu bytes short", off, n);
		to += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

int file_info_fd(struct file_info *ret_f, int fd, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(err, "cannot stat");
	*ret_f = (struct file_info){.is_regular = S_ISREG(st.st_mode),
				    .is_dir = S_ISDIR(st.st_mode)};
	if (ret_f->is_regular)
		ret_f->nr_bytes = (uint64_t)st.st_size;
	return 0;
}

/* @off negative: at the file position. */
static int write_all(int fd, const char *from, size_t n, off_t off, struct err *err)
{
	while (n) {
		ssize_t put = off < 0 ? write(fd, from, n) : pwrite(fd, from, n, off);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_sys(err, "cannot write");
		from += put;
		off += off < 0 ? 0 : put;
		n -= (size_t)put;
	}
	return 0;
}

int file_write_all(int fd, const void *p, size_t n, struct err *err)
{
	return write_all(fd, p, n, -1, err);
}

int file_pwrite_all(int fd, const void *p, size_t n, uint64_t off, struct err *err)
{
	return write_all(fd, p, n, (off_t)off, err);
}

bool file_is_seekable(int fd)
{
	return lseek(fd, 0, SEEK_CUR) >= 0;
}

int file_truncate(int fd, uint64_t n, struct err *err)
{
	if (ftruncate(fd, (off_t)n))
		return err_sys(err, "cannot truncate");
	if (lseek(fd, (off_t)n, SEEK_SET) < 0)
		return err_sys(err, "cannot seek");
	return 0;
}

int out_open(struct out *ret_o, const char *path, mode_t mode, struct err *err)
{
	struct stat st;
	bool is_stdout = !strcmp(path, "-");
	/* /dev/null, a fifo: write in place */
	bool is_special = !is_stdout && !stat(path, &st) && !S_ISREG(st.st_mode);
	CLEANUP(free_p) char *tmp = NULL;
	int fd = STDOUT_FILENO;
	if (is_special) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else if (!is_stdout) {
		tmp = xasprintf("%s.%d.tmp", path, (int)getpid());
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	}
	if (fd < 0)
		return is_special ? err_sys(err, "cannot open '%s' for writing", path)
				  : err_sys(err, "cannot create '%s'", path);
	*ret_o = (struct out){fd, xstrdup(path), TAKE(tmp)};
	return 0;
}

int out_write(struct out *o, const void *p, size_t n, struct err *err)
{
	if (file_write_all(o->fd, p, n, err))
		return err_wrap(err, "writing '%s'", o->path);
	return 0;
}

int out_patch(struct out *o, const void *p, size_t n, uint64_t off, struct err *err)
{
	if (file_pwrite_all(o->fd, p, n, off, err))
		return err_wrap(err, "writing '%s'", o->path);
	return 0;
}

int out_commit(struct out *o, struct err *err)
{
	if (!o->tmp_path)
		return 0;
	if (close(take_fd(&o->fd)))
		return err_sys(err, "cannot write '%s'", o->path);
	if (rename(o->tmp_path, o->path))
		return err_sys(err, "cannot rename to '%s'", o->path);
	free(TAKE(o->tmp_path));
	return 0;
}

int out_file(const char *path, mode_t mode, const struct buf *text, struct err *err)
{
	CLEANUP(out_release) struct out o = {.fd = -1};
	TRY(out_open(&o, path, mode, err));
	TRY(out_write(&o, text->p, text->n, err));
	return out_commit(&o, err);
}

void out_release(struct out *o)
{
	if (o->tmp_path)
		(void)unlink(o->tmp_path); /* not committed: remove the temporary file */
	if (o->path && o->fd > STDERR_FILENO)
		close_p(&o->fd);
	free(o->tmp_path);
	free(o->path);
	*o = (struct out){.fd = -1};
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
	CLEANUP(free_p) char *copy = xstrdup(path);
	for (char *s = copy + 1; *s; s++) {
		if (*s != '/')
			continue;
		*s = 0;
		if (mkdir(copy, mode) && errno != EEXIST)
			return err_sys(err, "cannot create directory '%s'", copy);
		*s = '/';
	}
	if (mkdir(copy, mode) && errno != EEXIST)
		return err_sys(err, "cannot create directory '%s'", copy);
	return 0;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
