/*
 * The facade of naming: one symbolizer per binary; addresses in, functions with file, line and
 * inlined frames out. Batches are cheap, single calls are not: give all addresses of a binary at
 * once, in any order. (Kernel: kallsyms.h. JIT code: perfmap.h.)
 *
 * The physical function is named by the symbol tables (.symtab; else those of the debug file and
 * the mini debug information with .dynsym) where a sized symbol covers the address, so that
 * foo.cold and foo.constprop.0 stay told apart; else by DWARF. Where DWARF's linkage name is one of
 * several aliases at the symbol's address and is mangled, it is the one shown: identical functions
 * that a linker folded keep the name that fits their inlined frames. Inlined frames, files and
 * lines come from DWARF alone, the binary's own or the debug file's. What is left is told apart by
 * PLT entries (memcpy@plt), function starts of .eh_frame and, where that covers less than half of
 * the code, targets of call instructions.
 *
 * A symbolizer is used by one thread at a time; several may run in parallel.
 */
#ifndef ASSAY_SYMBOL_SYMBOLIZER_H
#define ASSAY_SYMBOL_SYMBOLIZER_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/debugfile.h"
#include "object/elf.h"

enum symbolizer_flags {
	SYMBOLIZER_NO_INLINES = 1 << 0, /* physical functions only */
	SYMBOLIZER_NO_LINES = 1 << 1,
	SYMBOLIZER_NO_DWARF = 1 << 2, /* symbol tables only */
};

struct symbol_frame {
	struct sv linkage;   /* name as in the binary, mangled; empty = unknown */
	struct sv file;      /* full path by DWARF, empty = unknown */
	uint32_t line;       /* 0 = unknown */
	uint64_t func_start; /* link-time address of the physical function, 0 = unknown */
	bool is_inlined;
	bool is_guessed; /* from .eh_frame, calls or a PLT: no symbol names it */
};

/* Where the physical function's name came from. */
enum symbol_source {
	SYMBOL_NONE = 0,
	SYMBOL_SYMTAB,
	SYMBOL_DYNSYM,
	SYMBOL_MINI,
	SYMBOL_DEBUGFILE,
	SYMBOL_DWARF,
	SYMBOL_PLT,
	SYMBOL_EHFRAME, /* no name: a start of .eh_frame */
	SYMBOL_CALLED,  /* no name: a target of calls, where .eh_frame covers little */
};

/*
 * Called once per query (@query is its index), in ascending order of address, not of index;
 * frames innermost first, at least one, borrowed in the call. An address that nothing covers has
 * one frame without a name and SYMBOL_NONE; stripped code has a guessed frame: an empty linkage
 * and func_start, to be shown as module!fn_<hex of func_start>.
 */
typedef void (*symbol_result_fn)(void *ctx, size_t query, const struct symbol_frame *frames,
				 size_t nr, enum symbol_source source);

struct symbolizer_stats {
	uint64_t nr_symbols;      /* in the tables, aliases included */
	uint64_t nr_bad_sections; /* that were there but did not parse; ignored */
};

struct symbolizer; /* opaque */

/*
 * @elf: the binary, taken over. @path: for debug file search and messages. @search: borrowed
 * while in use. Opening is cheap; tables are built by the first query that needs them.
 */
struct symbolizer *symbolizer_new(struct elf *elf, const char *path,
				  const struct debug_search *search, unsigned flags);
/*
 * Before the first query: answers are taken from and put into the cache of this folder
 * (symbol/namecache.h), written by symbolizer_free.
 */
void symbolizer_use_cache(struct symbolizer *s, const char *cache_dir);
void symbolizer_free(struct symbolizer *s);
DEFINE_FREE_P(symbolizer, struct symbolizer)
/* Counts of what the first query opened; zeroes before it. */
struct symbolizer_stats symbolizer_stats(const struct symbolizer *s);
/*
 * @vaddrs: link-time lookup addresses; a return address is looked up at address - 1 by the
 * caller's arithmetic, i.e. pass the adjusted address.
 */
int symbolizer_query(struct symbolizer *s, const uint64_t *vaddrs, size_t nr,
		     symbol_result_fn result, void *ctx, struct err *err);

#endif
