/*
 * Functions of a binary by name: the way from a name that a person types to the instruction that a
 * probe goes on.
 *
 * A pattern is compared with the names of .symtab and .dynsym as linked and as shown (demangled,
 * without hashes and parameters); `*` and `?` stand for any characters. Stripped binaries have
 * only their dynamic symbols; a separate debug file's table may be given as a second image.
 */
#ifndef ASSAY_SYMBOL_FUNCFIND_H
#define ASSAY_SYMBOL_FUNCFIND_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "object/elf.h"

struct func_found {
	char *name;       /* as shown; owned */
	uint64_t vaddr;   /* link-time */
	uint64_t offset;  /* into the file, of the instruction to probe */
	bool is_emulated; /* the kernel need not step over it: a hit is 5 times cheaper */
};

struct funcs_found {
	VEC(struct func_found) list; /* by address; each address once */
};

/*
 * Adds what matches. @symbols: the image whose tables are looked through, NULL = @e itself. Takes
 * at most @max (the rest is counted in *ret_nr_more). A binary without any symbols is no error.
 */
int func_find(struct funcs_found *f, struct elf *e, struct elf *symbols, const char *pattern,
	      size_t max, size_t *ret_nr_more, struct err *err);
/* Whether a name matches a pattern with `*` and `?`. */
bool func_matches(const char *pattern, const char *name);

#endif
