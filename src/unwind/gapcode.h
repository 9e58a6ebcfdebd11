/*
 * Rules for code that has no call frame information but whose shape is known: looked for in the
 * gaps between FDEs only.
 *
 *	entry point      to its end: the outermost frame (crt1 of musl, Go, hand-made)
 *	PLT              stubs that a linker left undescribed (lld), by section name
 *	signal restorer  mov $15,%eax; syscall (musl, Go, static binaries, own libcs)
 *	thread start     call *reg; mov %eax,%edi; exit(2) by syscall (musl's __clone)
 *	anything else    followed instruction by instruction (unwind/codescan.h), up to 1 MiB
 */
#ifndef ASSAY_UNWIND_GAPCODE_H
#define ASSAY_UNWIND_GAPCODE_H

#include "base/base.h"
#include "base/vec.h"
#include "object/elf.h"

struct gap_rule {
	uint64_t start; /* link-time */
	uint64_t end;
	uint32_t rule; /* packed, wire/unwind_row.h */
};

struct gap_code {
	VEC(struct gap_rule) rules; /* sorted, disjoint: of the gap that was scanned last */
	uint64_t entry;
	bool has_cfi;              /* the binary describes most of its code */
	uint64_t nr_scanned_bytes; /* these two limit what one binary may cost */
	uint64_t nr_followed_bytes;
	uint8_t *chunk;
	VEC(uint64_t) starts; /* functions by symbols and calls, link-time, sorted */
};

void gap_code_init(struct gap_code *g, struct elf *elf);
/* Adds the targets of all calls in [start, end) to the functions that are known. */
void gap_code_find_calls(struct gap_code *g, struct elf *elf, uint64_t start, uint64_t end);
void gap_code_release(struct gap_code *g);
/* Fills g->rules with what is known of [start, end). */
void gap_code_scan(struct gap_code *g, struct elf *elf, uint64_t start, uint64_t end);

#endif
