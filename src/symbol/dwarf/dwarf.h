/*
 * Reads DWARF 2 to 5: link-time addresses in; functions with file, line and inlined frames out.
 *
 * This is our own scanner over the raw sections (libdw's scope queries take milliseconds per
 * address). Only the units that contain addresses of a batch are read, each once for functions and
 * inlined calls and once for lines, several units in parallel by worker threads. Names are built
 * only for functions that contain an address. So one large batch is cheap, many small ones are not.
 *
 * Handles 32- and 64-bit DWARF, split units (.dwo files and .dwp packages, GNU and version 5) and
 * dwz files. The input is untrusted: every offset, count and reference chain is bounded; what does
 * not parse is skipped and counted.
 *
 *	struct dwarf *d;
 *	if (dwarf_new(&d, elf, path, &search, 0, err)) return ...;
 *	if (d && dwarf_query(d, vaddrs, nr, 0, result, ctx, err)) ...
 *	dwarf_free(d);
 *
 * A struct dwarf is used by one thread at a time; several may run in parallel over different
 * images.
 */
#ifndef ASSAY_SYMBOL_DWARF_DWARF_H
#define ASSAY_SYMBOL_DWARF_DWARF_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/debugfile.h"
#include "object/elf.h"

enum dwarf_flags {
	DWARF_NO_INLINES = 1 << 0, /* the physical function only */
	DWARF_NO_LINES = 1 << 1,   /* no file and line of the innermost frame, nor of call sites */
};

struct dwarf_frame {
	struct sv linkage; /* linkage name, else the plain name qualified by its namespaces;
			    * empty = no function covers the address, or it has no name */
	struct sv
		file; /* full path: compilation directory, include directory, name; empty = unknown */
	uint32_t line;       /* 0 = unknown, or the line table gives no line */
	uint64_t func_start; /* link-time entry of the physical function, 0 = unknown */
	bool is_inlined;
	bool is_plain; /* DWARF has no linkage name: prefer a symbol at func_start */
};

struct dwarf_stats {               /* since dwarf_new */
	uint64_t nr_units;         /* in the file, without type units */
	uint64_t nr_units_scanned; /* a unit is counted once for each query that reads it */
	uint64_t nr_units_bad;     /* did not parse to their end */
	uint64_t nr_dwo_missing;   /* skeleton units whose split unit was not found */
	uint64_t nr_scanned_bytes; /* of .debug_info */
};

/*
 * Called once per address, in the order of the query, on the calling thread. @frames are innermost
 * first and borrowed during the call. @nr 0: nothing is known. A single frame with an empty
 * linkage: only the line is known.
 */
typedef void (*dwarf_result_fn)(void *ctx, size_t query, const struct dwarf_frame *frames,
				size_t nr);

struct dwarf; /* opaque */

/*
 * Opens the debug information of @elf, which is borrowed until dwarf_free. Without .debug_info
 * *ret_d is NULL and the result 0. @path: of that image; .dwp and dwz files are searched beside it.
 * @search: may be NULL; borrowed until dwarf_free. @nr_threads: 0 = the number of CPUs, at most 16.
 */
int dwarf_new(struct dwarf **ret_d, struct elf *elf, const char *path,
	      const struct debug_search *search, unsigned nr_threads, struct err *err);
void dwarf_free(struct dwarf *d);
/* @vaddrs: link-time addresses, ascending (duplicates allowed). @flags: dwarf_flags. */
int dwarf_query(struct dwarf *d, const uint64_t *vaddrs, size_t nr, unsigned flags,
		dwarf_result_fn result, void *ctx, struct err *err);
struct dwarf_stats dwarf_stats(const struct dwarf *d);

#endif
