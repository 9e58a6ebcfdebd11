/* Opens the files of mappings; see mapped.h. */
#include "base/base.h"
#include "host/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"

/*
 * Opening a FIFO may block and opening a device has effects (rewinds a tape, starts a watchdog). The
 * type of a file in a possibly hostile root is therefore checked first, through an O_PATH descriptor.
 */
#define STAT_FLAGS (O_PATH | O_CLOEXEC)
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* Opens the file of an O_PATH descriptor, which is closed, if it is a regular one. */
static int open_regular(int path_fd)
{
	CLEANUP(close_p) int fd = path_fd;
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fd/%d", fd);
	int opened = open(path, OPEN_FLAGS);
	return opened < 0 ? -errno : opened;
}

int host_open_in_root(int root_fd, const char *path)
{
	if (root_fd < 0)
		return open_regular(open(path, STAT_FLAGS));
	struct open_how how = {.flags = STAT_FLAGS,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	return open_regular((int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how)));
}

int host_open_root(int32_t pid)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/root", pid);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_same_inode(int fd, uint32_t dev_major, uint32_t dev_minor, uint64_t inode)
{
	struct stat st;
	return !fstat(fd, &st) && st.st_ino == inode && major(st.st_dev) == dev_major &&
	       minor(st.st_dev) == dev_minor;
}

int host_open_mapped(struct mapped_file *ret_f, int32_t pid, uint64_t start, uint64_t end,
		     const char *path, uint32_t dev_major, uint32_t dev_minor, uint64_t inode)
{
	CLEANUP(free_p)
	char *link = xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
	int fd = open_regular(open(link, STAT_FLAGS));
	if (fd >= 0) {
		*ret_f = (struct mapped_file){fd, true};
		return 0;
	}
	if (path[0] != '/')
		return -ENOENT;
	CLEANUP(close_p) int root = host_open_root(pid);
	fd = host_open_in_root(root, path);
	if (fd < 0 && root >= 0)
		fd = host_open_in_root(-1, path);
	if (fd < 0)
		return fd;
	*ret_f = (struct mapped_file){fd, inode && is_same_inode(fd, dev_major, dev_minor, inode)};
	return 0;
}
