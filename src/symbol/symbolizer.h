/*
 * Symbolizes the addresses of one binary: link-time addresses in; functions with file, line and
 * inlined frames out. One symbolizer per binary. Each call has a high fixed cost: pass all
 * addresses of a binary at once, in any order. (Kernel: kallsyms.h. JIT code: perfmap.h.)
 *
 * The physical function is named by the symbol tables where a symbol with a size covers the address
 * (.symtab; else .dynsym with those of the debug file, of .gnu_debugdata and of Go), so that foo.cold and
 * foo.constprop.0 remain distinct functions; otherwise by DWARF. If DWARF's linkage name is mangled
 * and is one of several aliases at the symbol's address, it is used: functions that the linker
 * folded because they are identical then get the name that matches their inlined frames.
 *
 * Inlined frames, files and lines come from DWARF only, of the binary or of its debug file.
 * Addresses that no symbol covers are attributed to PLT entries (memcpy@plt), to function starts
 * from .eh_frame and, where .eh_frame covers less than half of the code, to targets of call
 * instructions.
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
#include "symbol/symtab.h"

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
	bool is_guessed; /* the function is known by .eh_frame, calls or the PLT, not by a symbol */
};

/* The source of the physical function's name. */
enum symbol_source {
	SYMBOL_NONE = 0,
	SYMBOL_SYMTAB,
	SYMBOL_DYNSYM,
	SYMBOL_MINI,      /* .symtab of the image in .gnu_debugdata */
	SYMBOL_DEBUGFILE, /* .symtab of the debug file */
	SYMBOL_DWARF,
	SYMBOL_PLT,
	SYMBOL_EHFRAME, /* no name: function start from .eh_frame */
	SYMBOL_CALLED,  /* no name: target of calls, where .eh_frame covers little of the code */
	SYMBOL_GO,      /* the table of functions of a Go program without .symtab */
};

/*
 * Called once per queried address (@query is its index), in ascending order of address. @frames are
 * innermost first, at least one, borrowed during the call. An unsymbolized address has one frame
 * with an empty name and SYMBOL_NONE. A function of stripped code has one frame with is_guessed, an
 * empty linkage and func_start; it is displayed as module!fn_<func_start in hex>.
 */
typedef void (*symbol_result_fn)(void *ctx, size_t query, const struct symbol_frame *frames,
				 size_t nr, enum symbol_source source);

struct symbolizer_stats {
	uint64_t nr_symbols;      /* in the symbol tables, aliases included */
	uint64_t nr_bad_sections; /* sections that did not parse; they are ignored */
};

struct symbolizer; /* opaque */

/*
 * Takes ownership of @elf, the binary. @path: for the debug file search and for messages. @search:
 * borrowed until symbolizer_free. This call is cheap; tables are built by the first query that
 * needs them.
 */
struct symbolizer *symbolizer_new(struct elf *elf, const char *path,
				  const struct debug_search *search, unsigned flags);
/*
 * Uses the cache in @cache_dir (symbol/namecache.h); must be called before the first query.
 * symbolizer_free writes the cache.
 */
void symbolizer_use_cache(struct symbolizer *s, const char *cache_dir);
void symbolizer_free(struct symbolizer *s);
DEFINE_FREE_P(symbolizer, struct symbolizer)
/* Counters; all zero before the first query. */
struct symbolizer_stats symbolizer_stats(const struct symbolizer *s);
/* Whether a file did not answer in time (elf_silence), so that functions may be missing. */
bool symbolizer_is_silent(const struct symbolizer *s);
/*
 * The binary, its functions by the symbol tables, its PLT entries ("memcpy@plt"); borrowed until
 * symbolizer_free.
 */
struct elf *symbolizer_elf(const struct symbolizer *s);
const struct symtab *symbolizer_functions(struct symbolizer *s);
const struct symtab *symbolizer_plt(struct symbolizer *s);
/*
 * Looks up @nr link-time addresses. For a return address the caller passes address - 1, so that it
 * lies within the call instruction.
 */
int symbolizer_query(struct symbolizer *s, const uint64_t *vaddrs, size_t nr,
		     symbol_result_fn result, void *ctx, struct err *err);

#endif
