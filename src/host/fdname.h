/*
 * What a descriptor of a process is, for people: the path of a file, a socket with its peer, a
 * pipe. Read from /proc once and kept by inode: a descriptor is only believed while what is open
 * there still has the inode that was asked for.
 *
 *	/var/lib/db/wal.1          tcp 127.0.0.1:6379 -> 127.0.0.1:51234   udp 0.0.0.0:53
 *	unix /run/app.sock         pipe:[1234]     eventfd   terminal /dev/pts/0
 *
 * Paths are as the process sees them; other bytes of theirs are the process's own, so whoever
 * prints them escapes them.
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
 * The name of what process @pid has open as @fd, if its inode is @inode (0: whatever it is). An
 * object that was gone before it was ever looked at is "KIND [INODE]", a file "file [DEV:INODE]".
 * Never NULL; borrowed until the next call.
 */
const char *fdnames_get(struct fdnames *f, int32_t pid, int32_t fd, uint64_t inode, uint32_t dev,
			const char *kind);

#endif
