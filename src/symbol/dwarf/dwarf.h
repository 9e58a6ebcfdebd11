/*
 * DWARF 2 to 5: link-time addresses in; functions with file, line and inlined frames out.
 *
 * A scanner of our own over the raw sections (libdw's scope queries take milliseconds an address).
 * Only the units that the addresses of a batch hit are read, each once for functions and inlines
 * and once for lines, several units at a time by worker threads; names are built only for what is
 * hit. So one large batch is cheap, many small ones are not. Handles 32- and 64-bit DWARF, split
 * units (.dwo files and .dwp packages, GNU and version 5), dwz files, and hostile bytes: every
 * offset, count and reference chain is bounded; what does not parse is left out and counted.
 *
 *	struct dwarf *d;
 *	if (dwarf_new(&d, elf, path, &search, 0, err)) return ...;
 *	if (d && dwarf_query(d, vaddrs, nr, 0, result, ctx, err)) ...
 *	dwarf_free(d);
 *
 * One thread at a time uses a struct dwarf; several may run in parallel over different images.
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
	struct sv file; /* full path: compilation folder, include folder, name; empty = unknown */
	uint32_t line;  /* 0 = unknown, or code of no line */
	uint64_t func_start; /* link-time entry of the physical function, 0 = unknown */
	bool is_inlined;
	bool is_plain; /* no linkage name: a symbol of func_start would be a better name */
};

struct dwarf_stats {               /* since dwarf_new */
	uint64_t nr_units;         /* in the file, without type units */
	uint64_t nr_units_scanned; /* counted again for each query that hits them */
	uint64_t nr_units_bad;     /* did not parse to their end */
	uint64_t nr_dwo_missing;   /* skeletons whose split unit was not found */
	uint64_t nr_scanned_bytes; /* of .debug_info */
};

/*
 * Called once per address, in the order given, on the calling thread; frames innermost first,
 * borrowed in the call. nr 0: nothing known. A single frame with an empty linkage: only the line.
 */
typedef void (*dwarf_result_fn)(void *ctx, size_t query, const struct dwarf_frame *frames,
				size_t nr);

struct dwarf; /* opaque */

/*
 * @elf: the image that holds .debug_info; borrowed until dwarf_free. Without .debug_info *ret_d
 * is NULL and 0 returned. @path: of that image, for .dwp and dwz files beside it. @search: may be
 * NULL; borrowed until dwarf_free. @nr_threads: 0 = as many as there are CPUs, at most 16.
 */
int dwarf_new(struct dwarf **ret_d, struct elf *elf, const char *path,
	      const struct debug_search *search, unsigned nr_threads, struct err *err);
void dwarf_free(struct dwarf *d);
/* @vaddrs: link-time look-up addresses, ascending (equal ones allowed). @flags: dwarf_flags. */
int dwarf_query(struct dwarf *d, const uint64_t *vaddrs, size_t nr, unsigned flags,
		dwarf_result_fn result, void *ctx, struct err *err);
struct dwarf_stats dwarf_stats(const struct dwarf *d);

#endif
