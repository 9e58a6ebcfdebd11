/*
 * Tells whether a file in the store was written by assay (store.h): by a recording's first bytes, by
 * the generator mark of a picture or JSON file, or by an entry in the manifest.
 */
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
	bool is_ours; /* written by assay */
};

/* False: no such file, or not a regular one (symbolic links are not followed). */
bool store_fileinfo_read(struct store_fileinfo *ret_m, int dirfd, const char *name);

#endif
