/*
 * The facade of naming: one symbolizer per binary (or kernel, or JIT process); addresses in,
 * functions with file, line and inlined frames out. Batches are cheap, single calls are not:
 * give all addresses of a binary at once, in any order.
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
	struct sv linkage; /* name as in the binary, mangled; empty = unknown */
	struct sv file;    /* full path by DWARF, empty = unknown */
	uint32_t line;     /* 0 = unknown */
	uint64_t func_start; /* link-time address of the physical function, 0 = unknown */
	bool is_inlined;
	bool is_guessed; /* from .eh_frame or a PLT: no symbol names it */
};

enum symbol_source { /* where the physical function's name came from */
	SYMBOL_NONE = 0,
	SYMBOL_SYMTAB,
	SYMBOL_DYNSYM,
	SYMBOL_MINI,
	SYMBOL_DEBUGFILE,
	SYMBOL_DWARF,
	SYMBOL_PLT,
	SYMBOL_EHFRAME,
};

/* Called once per query, in the queries' order; frames innermost first, borrowed in the call. */
typedef void (*symbol_result_fn)(void *ctx, size_t query, const struct symbol_frame *frames,
                                 size_t nr, enum symbol_source source);

struct symbolizer; /* opaque */

/*
 * @elf: the binary, taken over. @path: for debug file search and messages. @search: borrowed
 * while in use. Opening is cheap; tables are built by the first query that needs them.
 */
int symbolizer_new_elf(struct symbolizer **ret_s, struct elf *elf, const char *path,
                       const struct debug_search *search, unsigned flags, struct err *err);
void symbolizer_free(struct symbolizer *s);
/*
 * @vaddrs: link-time lookup addresses; a return address is looked up at address - 1 by the
 * caller's arithmetic, i.e. pass the adjusted address.
 */
int symbolizer_query(struct symbolizer *s, const uint64_t *vaddrs, size_t nr,
                     symbol_result_fn result, void *ctx, struct err *err);

#endif
