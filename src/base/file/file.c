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

/* What a person may name although opening it can wait: not what another user put there. */
static bool is_offered(const char *path, const struct stat *st)
{
	struct stat link;
	if (S_ISBLK(st->st_mode) || lstat(path, &link))
		return false;
	if (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/self/", 11))
		return true;
	return (!st->st_uid || st->st_uid == geteuid()) &&
	       (!link.st_uid || link.st_uid == geteuid());
}

/* Checks the type of a file before it is opened; @flags: of open. */
static int open_checked(const char *path, int flags, struct err *err)
{
	struct stat st;
	CLEANUP(close_p) int at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || fstat(at, &st))
		return err_sys(err, "cannot open '%s'", path);
	bool can_wait = !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
	if (can_wait && !is_offered(path, &st)) {
		(void)err_set(err, -EPERM, "'%s' is not a regular file and belongs to user %u",
			      path, st.st_uid);
		(void)err_hint(err, "reading or writing it could wait for ever; name a regular "
				    "file, or use a pipe and '-'");
		return -EPERM;
	}
	char self[32];
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	int fd = open(self, flags | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? err_sys(err, "cannot open '%s'", path) : fd;
}

int file_open_named(const char *path, struct err *err)
{
	return open_checked(path, O_RDONLY, err);
}

int file_read_named(struct buf *to, const char *path, size_t limit, struct err *err)
{
	CLEANUP(close_p) int fd = file_open_named(path, err);
	if (fd < 0)
		return fd;
	return file_read_fd(to, fd, limit, err) ? err_wrap(err, "reading '%s'", path) : 0;
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

/* Opens the directory of a path. */
static int open_parent(const char *path, struct err *err)
{
	CLEANUP(free_p) char *dir = xstrndup(path, (size_t)(path_base(path) - path));
	int fd = open(*dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, "cannot create '%s'", path) : fd;
}

int out_open(struct out *ret_o, const char *path, mode_t mode, struct err *err)
{
	struct stat st;
	bool is_stdout = !strcmp(path, "-");
	bool is_in_place = !is_stdout && !stat(path, &st) && !S_ISREG(st.st_mode);
	if (is_stdout || is_in_place) {
		int fd = is_stdout ? STDOUT_FILENO : open_checked(path, O_WRONLY, err);
		if (fd < 0)
			return fd;
		*ret_o = (struct out){.fd = fd, .dirfd = -1, .path = xstrdup(path)};
		return 0;
	}
	CLEANUP(close_p) int dirfd = open_parent(path, err);
	if (dirfd < 0)
		return dirfd;
	CLEANUP(free_p) char *tmp = xasprintf("%s.%d.tmp", path_base(path), (int)getpid());
	int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_sys(err, "cannot create '%s'", path);
	*ret_o = (struct out){fd, take_fd(&dirfd), xstrdup(path), TAKE(tmp)};
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
	if (!o->tmp_name)
		return 0;
	if (close(take_fd(&o->fd)))
		return err_sys(err, "cannot write '%s'", o->path);
	if (renameat(o->dirfd, o->tmp_name, o->dirfd, path_base(o->path)))
		return err_sys(err, "cannot rename to '%s'", o->path);
	free(TAKE(o->tmp_name));
	close_p(&o->dirfd);
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
	if (o->tmp_name) { /* not committed: remove the temporary file */
		(void)unlinkat(o->dirfd, o->tmp_name, 0);
		close_p(&o->dirfd);
	}
	if (o->path && o->fd > STDERR_FILENO)
		close_p(&o->fd);
	free(o->tmp_name);
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
