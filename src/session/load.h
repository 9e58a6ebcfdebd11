/*
 * Reads any supported file as a profile: all commands read their input with it. The format is
 * detected by content (format/format.h, perf.data, assay's recordings); ".gz", ".xz", ".zst" and
 * "-" are accepted everywhere. Event files go through ingest (unwinding, symbolization); the other
 * formats contain symbols.
 */
#ifndef ASSAY_SESSION_LOAD_H
#define ASSAY_SESSION_LOAD_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct load_options {
	const char *symfs;             /* prefix of the binaries' paths, or NULL */
	const char *const *debug_dirs; /* extra folders with debug files */
	size_t nr_debug_dirs;
	/* enum symbolizer_flags; those that omit inlined frames or source lines save time */
	unsigned symbolizer_flags;
	unsigned demangle_flags; /* enum demangle_flags */
	const char *cache_dir;   /* for unwind tables, names and kernel symbols, NULL = none */
	const char *dumps;       /* selection of jemalloc dumps (dumpset.h), or NULL */
};

/*
 * Returns a sealed profile, owned by the caller. @path "-": standard input; a folder or a pattern:
 * jemalloc dumps.
 */
int load_profile(struct profile **ret_p, const char *path, const struct load_options *options,
		 struct err *err);
/*
 * Merges several files into one profile, in order; dumps of one process are averaged (dumpset.h).
 */
int load_profiles(struct profile **ret_p, const char *const *paths, size_t nr,
		  const struct load_options *options, struct err *err);

#endif
