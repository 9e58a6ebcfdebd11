/*
 * Opens the file of a mapping: through /proc/PID/map_files (exactly that inode, even if it was
 * deleted or replaced), else by path in the target's root, else by path in assay's root. If a path
 * was used, the caller verifies the file by its build-id (struct mapped_file.is_exact).
 */
#ifndef ASSAY_HOST_MAPPED_H
#define ASSAY_HOST_MAPPED_H

#include "base/base.h"

struct mapped_file {
	int fd;        /* owned by the caller */
	bool is_exact; /* device and inode are those of the mapping */
};

/*
 * Opens the file that is mapped at [start, end). @path: as in /proc/PID/maps. @inode 0: device and
 * inode are not known. Opens regular files only. Returns 0 or -errno.
 */
int host_open_mapped(struct mapped_file *ret_f, int32_t pid, uint64_t start, uint64_t end,
		     const char *path, uint32_t dev_major, uint32_t dev_minor, uint64_t inode);
/*
 * Opens a regular file by path in the root directory @root_fd (-1: assay's own). Returns a
 * descriptor that the caller closes, or -errno.
 */
int host_open_in_root(int root_fd, const char *path);
/* Opens the process's root directory. Returns a descriptor that the caller closes, or -errno. */
int host_open_root(int32_t pid);

#endif
