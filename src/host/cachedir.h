/*
 * The cache directory for data derived from binaries (compiled unwind rules, symbols):
 * $XDG_CACHE_HOME/assay, else ~/.cache/assay. All of it can be deleted at any time.
 *
 * A folder of another user, or one that others may write, is not used, and nothing is created in
 * it: HOME may be somebody else's (sudo -E). base/file/cachefile.h checks the files.
 */
#ifndef ASSAY_HOST_CACHEDIR_H
#define ASSAY_HOST_CACHEDIR_H

#include "base/base.h"
#include "base/err.h"

/*
 * Returns the directory's path, creating it if needed; the caller frees it. NULL: no cache, with the
 * reason in *err.
 */
char *host_cache_dir(struct err *err);

#endif
