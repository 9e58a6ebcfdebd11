/* Files; see file.h. */
#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/zio.h"

#define READ_STEP ((size_t)64 << 10)

int file_read_fd(struct buf *to, int fd, size_t limit, struct err *err)
{
	size_t start = to->n;
	for (;;) {
		char *p = buf_reserve(to, READ_STEP);
		ssize_t n = read(fd, p, READ_STEP);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "cannot read");
		if (n == 0)
			break;
		to->n += (size_t)n;
		to->p[to->n] = 0;
		if (to->n - start > limit)
			return err_set(err, -EFBIG, "larger than %zu bytes", limit);
	}
	return 0;
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

int file_pread(int fd, void *p, size_t n, uint64_t off, struct err *err)
{
	char *to = p;
	while (n) {
		ssize_t got = pread(fd, to, n, (off_t)off);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, "cannot read at offset %" PRIu64, off);
		if (got == 0)
			return err_set(err, -ENODATA,
				       "file ends at offset %" PRIu64 ", %zu bytes short", off, n);
		to += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

ssize_t file_read_some(int fd, void *p, size_t n, struct err *err)
{
	ssize_t got;
	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? err_sys(err, "cannot read") : got;
}

ssize_t file_pread_some(int fd, void *p, size_t n, uint64_t off, struct err *err)
{
	ssize_t got;
	do
		got = pread(fd, p, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	return got < 0 ? err_sys(err, "cannot read at offset %" PRIu64, off) : got;
}

int file_facts_fd(struct file_facts *ret_f, int fd, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(err, "cannot stat");
	*ret_f = (struct file_facts){.is_regular = S_ISREG(st.st_mode),
				     .is_dir = S_ISDIR(st.st_mode)};
	if (ret_f->is_regular)
		ret_f->nr_bytes = (uint64_t)st.st_size;
	return 0;
}

int file_write_all(int fd, const void *p, size_t n, struct err *err)
{
	const char *from = p;
	while (n) {
		ssize_t put = write(fd, from, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_sys(err, "cannot write");
		from += put;
		n -= (size_t)put;
	}
	return 0;
}

int file_pwrite_all(int fd, const void *p, size_t n, uint64_t off, struct err *err)
{
	const char *from = p;
	while (n) {
		ssize_t put = pwrite(fd, from, n, (off_t)off);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_sys(err, "cannot write");
		from += put;
		off += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
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

static int decompress_in_place(struct file_view *v, size_t limit, struct err *err)
{
	enum zkind kind = zio_sniff(v->p, v->n);
	if (kind == ZKIND_NONE)
		return 0;
	CLEANUP(buf_release) struct buf plain = {0};
	int rc = zio_decompress(&plain, kind, v->p, v->n, limit, err);
	if (rc && rc != -ENODATA)
		return rc;
	if (rc && !plain.n)
		return rc;
	err_clear(err); /* a truncated stream still gives what it holds */
	file_view_release(v);
	*v = (struct file_view){(const uint8_t *)plain.p, plain.n, false};
	plain = (struct buf){0};
	return 0;
}

int file_view_open_fd(struct file_view *ret_v, int fd, unsigned flags, size_t limit,
		      struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(err, "cannot stat");
	if (S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "is a directory");

	struct file_view v = {0};
	struct buf raw = {0};
	bool is_regular = S_ISREG(st.st_mode) && st.st_size > 0;
	if (is_regular && (uint64_t)st.st_size > limit)
		return err_set(err, -EFBIG, "%jd bytes is over the limit of %zu",
			       (intmax_t)st.st_size, limit);
	if (is_regular && (flags & VIEW_MAP)) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED)
			v = (struct file_view){p, (size_t)st.st_size, true};
	}
	if (!v.p) {
		if (is_regular) {
			(void)buf_reserve(&raw, (size_t)st.st_size + READ_STEP);
			(void)lseek(fd, 0, SEEK_SET); /* pipes have no start to go back to */
		}
		if (file_read_fd(&raw, fd, limit, err)) {
			buf_release(&raw);
			return err->code;
		}
		v = (struct file_view){(const uint8_t *)buf_str(&raw), raw.n, false};
		if (!raw.p)
			v.p = (const uint8_t *)buf_detach(&raw);
	}
	if (flags & VIEW_DECOMPRESS) {
		int rc = decompress_in_place(&v, limit, err);
		if (rc) {
			file_view_release(&v);
			return rc;
		}
	}
	*ret_v = v;
	return 0;
}

int file_view_open(struct file_view *ret_v, const char *path, unsigned flags, size_t limit,
		   struct err *err)
{
	struct err local = {0};
	if (!err)
		err = &local;
	CLEANUP(close_p) int own = -1;
	int fd = STDIN_FILENO;
	if (strcmp(path, "-")) {
		own = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (own < 0) {
			int rc = err_sys(err, "cannot open '%s'", path);
			err_clear(&local);
			return rc;
		}
		fd = own;
	}
	int rc = file_view_open_fd(ret_v, fd, flags, limit, err);
	if (rc)
		err_wrap(err, "reading '%s'", path);
	err_clear(&local);
	return rc;
}

void file_view_release(struct file_view *v)
{
	if (v->is_mapped)
		munmap((void *)(uintptr_t)v->p, v->n);
	else
		free((void *)(uintptr_t)v->p);
	*v = (struct file_view){0};
}

int out_open(struct out *ret_o, const char *path, mode_t mode, struct err *err)
{
	if (!strcmp(path, "-")) {
		*ret_o = (struct out){STDOUT_FILENO, xstrdup(path), NULL};
		return 0;
	}
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) { /* /dev/null, a fifo: write in place */
		int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			return err_sys(err, "cannot open '%s' for writing", path);
		*ret_o = (struct out){fd, xstrdup(path), NULL};
		return 0;
	}
	char *tmp = xasprintf("%s.%d.tmp", path, (int)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0) {
		int rc = err_sys(err, "cannot create '%s'", path);
		free(tmp);
		return rc;
	}
	*ret_o = (struct out){fd, xstrdup(path), tmp};
	return 0;
}

int out_write(struct out *o, const void *p, size_t n, struct err *err)
{
	if (file_write_all(o->fd, p, n, err))
		return err_wrap(err, "writing '%s'", o->path);
	return 0;
}

bool out_can_patch(const struct out *o)
{
	return o->tmp_path !=
	       NULL; /* made by out_open; what was there may be a pipe or appended to */
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

void out_release(struct out *o)
{
	if (o->tmp_path)
		(void)unlink(o->tmp_path); /* not committed: nothing may stay behind */
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
