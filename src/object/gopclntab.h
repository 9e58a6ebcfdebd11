/*
 * Reads the table of functions that the Go linker puts into every Go program and that `strip` leaves
 * there, since the runtime needs it: names, addresses, and the distance of the stack pointer from the
 * caller's frame at each instruction.
 *
 * Formats: those of Go 1.2, 1.16, 1.18 and 1.20 (by their magic numbers). Source: Go's src/runtime/symtab.go
 * and src/cmd/link/internal/ld/pcln.go. The section is .gopclntab, in a position-independent program
 * .data.rel.ro.gopclntab or a part of .data.rel.ro. 64-bit programs only.
 *
 * The input is untrusted: each offset is checked; functions whose addresses do not ascend or are not code
 * are skipped.
 */
#ifndef ASSAY_OBJECT_GOPCLNTAB_H
#define ASSAY_OBJECT_GOPCLNTAB_H

#include "base/base.h"
#include "base/file/rd.h"
#include "base/sv.h"
#include "object/elf.h"

struct gopclntab; /* opaque; does not refer to the image */

enum gopclntab_kind {
	GO_ORDINARY = 0,
	GO_OUTERMOST, /* nothing called it: the start of a goroutine, a thread or the program */
	/*
	 * It continues on another stack, and code that it calls finds its caller by the frame pointer
	 * alone (systemstack, asmcgocall and others).
	 */
	GO_SWITCHES_STACK,
	GO_RESTORER, /* what a signal handler returns to: its frame is the kernel's */
};

struct gopclntab_function {
	uint64_t start; /* link-time */
	uint64_t end;   /* the start of the next function */
	struct sv name; /* "runtime.mallocgc", borrowed from the table */
	enum gopclntab_kind kind;
	uint32_t steps; /* for gopclntab_steps */
};

/* The ranges of a function in which the stack pointer is at one distance from the caller's frame. */
struct gopclntab_steps {
	struct rd rd;
	uint64_t start; /* of the range; link-time */
	uint64_t end;
	int64_t nr_bytes; /* from the stack pointer up to the return address, a multiple of 8 */
	uint64_t function_end;
	bool is_first;
};

/* Returns the table, owned by the caller, or NULL if the image is not a Go program's. */
struct gopclntab *gopclntab_open(struct elf *e);
void gopclntab_free(struct gopclntab *t);
DEFINE_FREE_P(gopclntab, struct gopclntab)
size_t gopclntab_count(const struct gopclntab *t);
/* Gets function @i, in the order of addresses; false: it is malformed. */
bool gopclntab_function(const struct gopclntab *t, size_t i, struct gopclntab_function *ret_f);
struct gopclntab_steps gopclntab_steps(const struct gopclntab *t,
				       const struct gopclntab_function *f);
/* Goes to the next range; false at the end or where the table is malformed. */
bool gopclntab_next(struct gopclntab_steps *s);

#endif
