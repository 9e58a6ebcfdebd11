/*
 * Where derived data may be kept between runs (compiled unwind rules): $XDG_CACHE_HOME/assay,
 * else ~/.cache/assay. Everything in it can be made again.
 */
#ifndef ASSAY_HOST_CACHEDIR_H
#define ASSAY_HOST_CACHEDIR_H

/* The directory, made if need be; owned by the caller. NULL: there is no place for it. */
char *host_cache_dir(void);

#endif
