/*
 * Function symbols of ELF images as one sorted table: add the tables of a binary, of its debug
 * file and of its mini debug information, seal, then look addresses up by binary search.
 *
 * Taken are STT_FUNC and STT_GNU_IFUNC, and untyped symbols of executable sections where nothing
 * else covers (assembler entry points). A symbol of size 0 reaches to the next typed symbol or to
 * its section's end. Of symbols that overlap, the one that starts last wins until it ends.
 *
 * Of several names at one address one is shown, always the same: a sized symbol before one
 * without size, typed before untyped, then global and weak before local, fewer leading
 * underscores, global before weak, the shorter name, the smaller in byte order. So libc gives
 * 'write' and 'malloc', not '__GI___libc_write', whether or not its debug file is installed.
 * A symbol version ('memcpy@@GLIBC_2.14') is no part of a name.
 *
 * Names are borrowed from the images, which must live as long as the table.
 */
#ifndef ASSAY_SYMBOL_SYMTAB_H
#define ASSAY_SYMBOL_SYMTAB_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/elf.h"

/* Better ranks win where two kinds of names cover one address. */
enum symtab_rank {
	SYMTAB_RANK_TYPED = 0,
	SYMTAB_RANK_UNTYPED,
	SYMTAB_RANK_STUB,   /* PLT entries */
	SYMTAB_RANK_GUESS,  /* function starts by unwind tables, without a name */
	SYMTAB_RANK_CALLED, /* function starts by calls to them */
	SYMTAB_RANK_NR,
};

enum symtab_what {
	SYMTAB_STATIC,  /* .symtab */
	SYMTAB_DYNAMIC, /* .dynsym, without section headers by PT_DYNAMIC */
};

struct symtab_hit {
	uint64_t start; /* link-time */
	uint64_t end;
	struct sv name; /* empty for a guess */
	unsigned tag;   /* as given when it was added */
	enum symtab_rank rank;
	bool has_size; /* false: end is where the next one starts, a guess */
};

struct symtab; /* opaque */

struct symtab *symtab_new(void);
void symtab_free(struct symtab *t);
/* Adds the image's table; *ret_nr (may be NULL): functions taken. An absent table is no error. */
int symtab_add_elf(struct symtab *t, struct elf *e, enum symtab_what what, unsigned tag,
		   size_t *ret_nr, struct err *err);
/* Adds one function; the name is copied. nr_bytes 0 = up to the next. */
void symtab_add(struct symtab *t, uint64_t start, uint64_t nr_bytes, struct sv name, unsigned tag,
		enum symtab_rank rank);
/* Sorts; afterwards only symtab_find and symtab_has_alias are allowed. */
void symtab_seal(struct symtab *t);

bool symtab_find(const struct symtab *t, uint64_t vaddr, struct symtab_hit *ret_hit);
/* Whether a symbol that starts at @start has this name. */
bool symtab_has_alias(const struct symtab *t, uint64_t start, struct sv name);
size_t symtab_count(const struct symtab *t);

#endif
