/* How a file is known to be ours; see store.h. The inside of the store. */
#ifndef ASSAY_SESSION_STORE_FILEINFO_H
#define ASSAY_SESSION_STORE_FILEINFO_H

#include <sys/types.h>

#include "base/base.h"

#define STORE_MANIFEST ".assay-files" /* lines "INODE NAME", appended */

struct store_fileinfo {
	uint64_t bytes;
	int64_t mtime_ns;
	dev_t dev;
	ino_t inode;
	bool is_recording;
	bool is_ours; /* a recording, or by its mark or the manifest */
};

/* False: not there, or not a regular file (a link is none). */
bool store_fileinfo_read(struct store_fileinfo *ret_m, int dirfd, const char *name);

#endif
