/*
 * Symbols for PLT entries ("memcpy@plt"), which have none in the symbol table: each entry jumps
 * through a GOT slot, and the relocation of that slot names the function. Entries are recognised by
 * their instructions, so every layout is covered: .plt, .plt.sec and .plt.got, lazy or not, with
 * and without endbr64 (x86-64 ABI 5.2 and its IBT extension), adrp/ldr with and without bti (arm64
 * ELF ABI).
 */
#ifndef ASSAY_SYMBOL_PLT_H
#define ASSAY_SYMBOL_PLT_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"
#include "symbol/symtab.h"

/*
 * The slots of .got, through which code calls and jumps without a PLT entry ("call *slot(%rip)"):
 * Rust calls most functions so, its own ones too.
 */
struct got; /* opaque */
struct got *got_new(struct elf *e);
void got_free(struct got *g);
/*
 * Finds what the dynamic linker writes into the slot at a link-time address: the address of a function
 * of this image, else *ret_vaddr is 0 and *ret_name is the function's name (borrowed from the image).
 * False: not a slot, or it is filled by a resolver (IFUNC).
 */
bool got_find(const struct got *g, uint64_t slot, uint64_t *ret_vaddr, struct sv *ret_name);

/*
 * Adds the image's PLT entries to @to with SYMTAB_RANK_STUB. @functions (sealed; may be NULL) is
 * searched for the resolvers of IRELATIVE relocations (static IFUNC), which have no dynamic symbol.
 */
int plt_add(struct symtab *to, struct elf *e, const struct symtab *functions, unsigned tag,
	    struct err *err);

#endif
