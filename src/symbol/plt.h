/*
 * Names of PLT entries ("memcpy@plt"), which have no symbols: each entry jumps through a GOT slot,
 * and the relocation of that slot names the function. Entries are recognised by their code, so
 * every layout is covered: .plt, .plt.sec and .plt.got, lazy or not, with and without endbr64
 * (x86-64 ABI 5.2 and its IBT extension), adrp/ldr with and without bti (arm64 ELF ABI).
 */
#ifndef ASSAY_SYMBOL_PLT_H
#define ASSAY_SYMBOL_PLT_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"
#include "symbol/symtab.h"

/*
 * Adds the image's PLT entries to @to, as SYMTAB_RANK_STUB. @functions (sealed; may be NULL) names
 * the resolvers of static IFUNC entries, which have no dynamic symbol.
 */
int plt_add(struct symtab *to, struct elf *e, const struct symtab *functions, unsigned tag,
	    struct err *err);

#endif
