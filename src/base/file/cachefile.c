/* Files of a cache; see cachefile.h. */
#include "base/base.h"
#include "base/file/cachefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"

#define REMOVED_MAX 4          /* per write; later writes continue */
#define FUSE_MAGIC  0x65735546 /* linux/magic.h has none for FUSE */

int file_identity_read(struct file_identity *ret_i, int fd)
{
	struct stat st;
	struct statfs fs;
	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	if ((uint32_t)fs.f_type == FUSE_MAGIC)
		return -ENOTSUP;
	*ret_i = (struct file_identity){.dev = st.st_dev,
					.inode = st.st_ino,
					.nr_bytes = (uint64_t)st.st_size,
					.mtime_s = st.st_mtim.tv_sec,
					.mtime_ns = st.st_mtim.tv_nsec,
					.ctime_s = st.st_ctim.tv_sec,
					.ctime_ns = st.st_ctim.tv_nsec,
					.uid = st.st_uid};
	return 0;
}

bool file_identity_eq(const struct file_identity *a, const struct file_identity *b)
{
	return !memcmp(a, b, sizeof(*a));
}

char *file_identity_name(const struct file_identity *i, const char *suffix)
{
	return xasprintf("%" PRIx64 "-%" PRIx64 "%s", i->dev, i->inode, suffix);
}

static bool is_private(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & 022);
}

static int open_dir(const char *dir)
{
	struct stat st;
	CLEANUP(close_p) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return is_private(&st) ? take_fd(&fd) : -EPERM;
}

int cache_file_open(const char *dir, const char *name, uint64_t max_bytes, uint64_t *ret_nr_bytes)
{
	struct stat st;
	CLEANUP(close_p) int dirfd = open_dir(dir);
	if (dirfd < 0)
		return dirfd;
	CLEANUP(close_p)
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_private(&st))
		return -EPERM;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	*ret_nr_bytes = (uint64_t)st.st_size;
	return take_fd(&fd);
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Returns the total size of the files with a suffix; *ret_oldest is the oldest of them. */
static uint64_t sum_files(DIR *d, const char *suffix, char ret_oldest[NAME_MAX + 1])
{
	uint64_t sum = 0;
	struct timespec first = {0};
	ret_oldest[0] = 0;
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (!sv_has_suffix(sv_from_str(e->d_name), sv_from_str(suffix)) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		sum += (uint64_t)st.st_size;
		if (ret_oldest[0] && !is_older(&st.st_mtim, &first))
			continue;
		first = st.st_mtim;
		(void)snprintf(ret_oldest, NAME_MAX + 1, "%s", e->d_name);
	}
	return sum;
}

static void make_room(int dirfd, const char *suffix, uint64_t dir_bytes)
{
	char oldest[NAME_MAX + 1];
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		close_p(&fd);
		return;
	}
	for (int i = 0; i < REMOVED_MAX && sum_files(d, suffix, oldest) > dir_bytes; i++)
		if (unlinkat(dirfd, oldest, 0))
			break;
	closedir(d);
}

void cache_file_write(const char *dir, const char *name, const struct buf *bytes,
		      uint64_t dir_bytes)
{
	(void)mkdir(dir, 0700); /* exists, or open_dir fails */
	CLEANUP(close_p) int dirfd = open_dir(dir);
	if (dirfd < 0)
		return;
	CLEANUP(free_p) char *tmp = xasprintf("%s.%d.tmp", name, (int)getpid());
	CLEANUP(close_p)
	int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (file_write_all(fd, bytes->p, bytes->n, NULL) || close(take_fd(&fd)) ||
	    renameat(dirfd, tmp, dirfd, name)) {
		(void)unlinkat(dirfd, tmp, 0);
		return;
	}
	const char *dot = strrchr(name, '.');
	if (dot)
		make_room(dirfd, dot, dir_bytes);
}
