/*
 * Determines whether assay wrote a file in the store (store.h): by the first bytes of a recording,
 * by the generator mark of a flame graph or JSON file, or by an entry in the manifest.
 */
#ifndef ASSAY_SESSION_STORE_FILEINFO_H
#define ASSAY_SESSION_STORE_FILEINFO_H

#include <sys/types.h>

#include "base/base.h"

#define STORE_MANIFEST ".assay-files" /* one line "INODE NAME" per file */

/*
 * Opens the manifest of a directory (@flags: of openat) only if it can be one: a regular file with
 * one name that belongs to this user or to the directory's owner. Never waits; -1: none.
 */
int store_manifest_open(int dirfd, int flags);

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

/* Removes the directory @fd, @target below @base_fd, and its manifest if it has no other files. */
void store_remove_empty_dir(int base_fd, int fd, const char *target);

#endif
