/*
 * Any file -> profile: the one call that every command makes to read its input. The format is
 * told by content (format/format.h, perf.data, our own recording); ".gz", ".xz", ".zst" and "-"
 * work everywhere. Event files go through ingest (unwinding, naming); the others come with names.
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
	unsigned symbolizer_flags; /* enum symbolizer_flags: less work, fewer details */
	unsigned demangle_flags;   /* enum demangle_flags */
	const char *cache_dir;     /* for unwind tables, names and kernel symbols, NULL = none */
	const char *dumps;         /* which of an allocator's dumps (dumpset.h), or NULL */
};

/*
 * A sealed profile, owned by the caller. @path "-": standard input; a folder or a pattern: dumps of
 * an allocator.
 */
int load_profile(struct profile **ret_p, const char *path, const struct load_options *options,
		 struct err *err);
/* Several files merged into one, in order; dumps of one process become their mean (dumpset.h). */
int load_profiles(struct profile **ret_p, const char *const *paths, size_t nr,
		  const struct load_options *options, struct err *err);

#endif
