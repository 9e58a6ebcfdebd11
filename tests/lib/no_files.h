/* Access to files (ingest/file_access.h) where no mapping has a file. */
#ifndef ASSAY_TESTS_LIB_NO_FILES_H
#define ASSAY_TESTS_LIB_NO_FILES_H

#include <errno.h>

#include "base/base.h"
#include "ingest/file_access.h"

static inline int open_nothing(void *ctx, struct byte_source *ret_s, int32_t pid,
			       const struct event_map *map)
{
	(void)ctx;
	(void)ret_s;
	(void)pid;
	(void)map;
	return -ENOENT;
}

#endif
