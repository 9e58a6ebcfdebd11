/*
 * Finds functions of a binary by name pattern, and the address at which to place a uprobe.
 *
 * A pattern is compared with the names of .symtab and .dynsym, both as linked and as displayed
 * (demangled, without Rust's hashes and without parameters). `*` and `?` match as in the shell. A stripped binary
 * has only its dynamic symbols, and the functions of Go; the symbol table of a separate debug file may be
 * passed as a second image.
 */
#ifndef ASSAY_SYMBOL_FUNCFIND_H
#define ASSAY_SYMBOL_FUNCFIND_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"
#include "object/elf.h"

struct func_found {
	char *name;       /* as displayed; owned */
	uint64_t vaddr;   /* link-time */
	uint64_t offset;  /* file offset of the instruction to probe */
	bool is_emulated; /* the uprobe is emulated, not single-stepped: a fifth of the cost */
	/* A function of Go. Its runtime ends the program when it finds the return address of a return probe. */
	bool is_go;
};

struct funcs_found {
	VEC(struct func_found) list; /* sorted by address, no duplicates */
};

/*
 * Adds the matching functions to @f, at most @max; *ret_nr_more is the number of further ones. @symbols:
 * the image whose symbol tables are searched, NULL = @e itself. A binary without symbols is not an
 * error.
 */
int func_find(struct funcs_found *f, struct elf *e, struct elf *symbols, const char *pattern,
	      size_t max, size_t *ret_nr_more, struct err *err);

/*
 * The names most similar to a misspelt one, best first: those that contain it, or of which as many
 * last components ("Db::commit" has two) differ from it by few letters. The name itself is none.
 */
#define FUNCS_NEAR_MAX 5
struct funcs_near {
	struct sv word;
	size_t n;
	struct func_near {
		char *name; /* owned */
		size_t distance;
	} best[FUNCS_NEAR_MAX];
};

/* @pattern: without its `*` and `?` it is the word; borrowed. */
struct funcs_near funcs_near_of(const char *pattern);
void funcs_near_release(struct funcs_near *n);
void funcs_near_offer(struct funcs_near *n, const char *name);
/* Offers the names of all functions; arguments as in func_find. */
int func_find_near(struct funcs_near *n, struct elf *e, struct elf *symbols, struct err *err);
/* Returns whether a name matches a pattern with `*` and `?`. */
bool func_matches(const char *pattern, const char *name);

#endif
