/*
 * Function symbols of ELF images as one sorted table. Add the symbol tables of a binary, of its
 * debug file and of its mini debug information, seal the table, then look addresses up by binary
 * search.
 *
 * STT_FUNC and STT_GNU_IFUNC symbols are added, and untyped symbols of executable sections where
 * nothing else covers the address (assembler entry points). A symbol of size 0 ends at the next
 * typed symbol or at its section's end. Where symbols overlap, the one that starts last wins until
 * it ends.
 *
 * Of several names at one address, one is chosen by a fixed rule: a symbol with a size before one
 * without, typed before untyped, global and weak before local, fewer leading underscores, global
 * before weak, the shorter name, the smaller in byte order. So libc gives 'write' and 'malloc', not
 * '__GI___libc_write', whether or not its debug file is installed. A symbol version
 * ('memcpy@@GLIBC_2.14') is not part of a name.
 *
 * The names of ELF symbols are borrowed from the images, which must live as long as the table.
 */
#ifndef ASSAY_SYMBOL_SYMTAB_H
#define ASSAY_SYMBOL_SYMTAB_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/elf.h"

/* Where symbols of several ranks cover one address, the lowest value wins. */
enum symtab_rank {
	SYMTAB_RANK_TYPED = 0,
	SYMTAB_RANK_UNTYPED,
	SYMTAB_RANK_STUB,   /* PLT entries */
	SYMTAB_RANK_GUESS,  /* function starts from unwind tables, no symbol */
	SYMTAB_RANK_CALLED, /* function starts from call instructions, no symbol */
	SYMTAB_RANK_NR,
};

enum symtab_what {
	SYMTAB_STATIC,  /* .symtab */
	SYMTAB_DYNAMIC, /* .dynsym; found through PT_DYNAMIC if there are no section headers */
};

struct symtab_hit {
	uint64_t start; /* link-time */
	uint64_t end;   /* first address after the function */
	struct sv name; /* empty for SYMTAB_RANK_GUESS and SYMTAB_RANK_CALLED */
	unsigned tag;   /* the caller's value passed when the symbol was added */
	enum symtab_rank rank;
	bool has_size; /* false: the symbol has size 0, end is the start of the next one */
};

struct symtab; /* opaque */

struct symtab *symtab_new(void);
void symtab_free(struct symtab *t);
/*
 * Adds the functions of the image's symbol table; *ret_nr (may be NULL): how many. An absent table
 * is not an error.
 */
int symtab_add_elf(struct symtab *t, struct elf *e, enum symtab_what what, unsigned tag,
		   size_t *ret_nr, struct err *err);
/* Adds one function; the name is copied. @nr_bytes 0: it ends at the next symbol. */
void symtab_add(struct symtab *t, uint64_t start, uint64_t nr_bytes, struct sv name, unsigned tag,
		enum symtab_rank rank);
/* Sorts the table. Afterwards it is read-only. */
void symtab_seal(struct symtab *t);

/* Finds the function that covers a link-time address; false: none. The table must be sealed. */
bool symtab_find(const struct symtab *t, uint64_t vaddr, struct symtab_hit *ret_hit);
/* Finds the function of that name, by a search of all; false: none, or several addresses have it. */
bool symtab_find_name(const struct symtab *t, struct sv name, struct symtab_hit *ret_hit);
/* Returns whether one of the symbols that start at @start has this name. */
bool symtab_has_alias(const struct symtab *t, uint64_t start, struct sv name);
/* Returns the number of symbols added; several may have the same address. */
size_t symtab_count(const struct symtab *t);

#endif
