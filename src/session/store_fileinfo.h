/*
 * Determines whether assay wrote a file in the store (store.h): by the first bytes of a recording,
 * by the generator mark of a flame graph or JSON file, or by an entry in the manifest.
 */
#ifndef ASSAY_SESSION_STORE_FILEINFO_H
#define ASSAY_SESSION_STORE_FILEINFO_H

#include <sys/types.h>

#include "base/base.h"

#define STORE_MANIFEST ".assay-files" /* one line "INODE NAME" per file */

struct store_fileinfo {
	uint64_t bytes;
	int64_t mtime_ns;
	dev_t dev;
	ino_t inode;
	bool is_recording;
	bool is_ours; /* written by assay */
};

/*
 * Reads the properties of file @name in the directory @dirfd. False: no such file, or not a regular
 * one (symbolic links are not followed).
 */
bool store_fileinfo_read(struct store_fileinfo *ret_m, int dirfd, const char *name);

#endif
