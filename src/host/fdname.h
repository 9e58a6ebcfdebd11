/*
 * Names what a process's descriptor refers to: the path of a file, a socket with its peer, a pipe.
 * Read from /proc once and cached by process, descriptor and inode; the name is used only if the
 * descriptor still refers to the inode that the caller asks for. At most 100 names a second are read,
 * after the first 500: a program that walks through a folder opens tens of thousands of files, and
 * reading all their names would cost more CPU time than the program itself uses.
 *
 * Examples:
 *
 *	/var/lib/db/wal.1          tcp 127.0.0.1:6379 -> 127.0.0.1:51234   udp 0.0.0.0:53
 *	unix /run/app.sock         pipe:[1234]     eventfd   terminal /dev/pts/0
 *
 * Paths are as the process sees them. They may contain any bytes: callers escape them when
 * printing.
 */
#ifndef ASSAY_HOST_FDNAME_H
#define ASSAY_HOST_FDNAME_H

#include "base/base.h"
#include "base/err.h"

struct fdnames;

struct fdnames *fdnames_new(void);
void fdnames_free(struct fdnames *f);
DEFINE_FREE_P(fdnames, struct fdnames)

/*
 * Returns the name of what process @pid has open as @fd, if its inode is @inode (0: any). If it was
 * closed before its name could be read, or too many were read just before, the name is "KIND:[INODE]";
 * with @kind "file" it is "file [MAJOR:MINOR:INODE]". @dev: the kernel's dev_t (major << 20 | minor).
 * Never NULL; valid until the next call.
 */
const char *fdnames_get(struct fdnames *f, int32_t pid, int32_t fd, uint64_t inode, uint32_t dev,
			const char *kind);

#endif
