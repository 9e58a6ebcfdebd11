/*
 * The cache directory for data derived from binaries (compiled unwind rules, symbols):
 * $XDG_CACHE_HOME/assay, else ~/.cache/assay. All of it can be deleted at any time.
 */
#ifndef ASSAY_HOST_CACHEDIR_H
#define ASSAY_HOST_CACHEDIR_H

/* Returns the directory's path, creating it if needed; the caller frees it. NULL: no cache. */
char *host_cache_dir(void);

#endif
