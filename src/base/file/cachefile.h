/*
 * Files of a cache that only its owner may write: what a file says is used without asking anybody
 * else, so nobody else may have written it. A folder or file is used only if it belongs to the
 * effective user, neither group nor others may write it, and it is not a symbolic link; a file also
 * has to be a regular one with one link. A new file is written under a temporary name in the same
 * folder, then renamed.
 *
 * A file identity says which version of which file a cached result came from. It is stored and
 * compared as a whole. A build-id is not an identity: every binary may carry any build-id.
 */
#ifndef ASSAY_BASE_FILE_CACHEFILE_H
#define ASSAY_BASE_FILE_CACHEFILE_H

#include "base/base.h"
#include "base/buf.h"

/* Device, inode, size, times of the last change (s, ns) of contents and of inode, owner. */
struct file_identity {
	uint64_t dev;
	uint64_t inode;
	uint64_t nr_bytes;
	int64_t mtime_s;
	int64_t mtime_ns;
	int64_t ctime_s;
	int64_t ctime_ns;
	uint64_t uid;
};
_Static_assert(sizeof(struct file_identity) == 64, "no padding: compared as bytes");

/*
 * Fills the identity of an open file. -ENOTSUP: the file system is FUSE, whose server may answer
 * with the identity of another file.
 */
int file_identity_read(struct file_identity *ret_i, int fd);
bool file_identity_eq(const struct file_identity *a, const struct file_identity *b);
/* The name of the cache file of a source file: "<device>-<inode><suffix>". The caller frees it. */
char *file_identity_name(const struct file_identity *i, const char *suffix);

/* Opens file @name of folder @dir for reading; negative: there is none that may be used. */
int cache_file_open(const char *dir, const char *name, uint64_t max_bytes, uint64_t *ret_nr_bytes);
/*
 * Replaces file @name (0600) of folder @dir, which is created if it does not exist. Then removes
 * the oldest files with the same suffix, at most 4, until these have @dir_bytes at most. Does its
 * best: a failure leaves the cache without the file, or with the old one.
 */
void cache_file_write(const char *dir, const char *name, const struct buf *bytes,
		      uint64_t dir_bytes);

#endif
