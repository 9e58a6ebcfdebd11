/*
 * Derives unwind rules for address ranges that no FDE covers ("gaps"), from code patterns:
 *
 *	entry point      outermost frame, up to its last instruction (crt1 of musl, Go, assembly)
 *	PLT              stubs for which the linker wrote no CFI (lld), found by section name
 *	signal restorer  mov $15,%eax; syscall (musl, Go, static binaries, other libcs)
 *	thread start     call *reg; mov %eax,%edi; exit(2) by syscall (musl's __clone)
 *	other code       instructions are followed one by one (unwind/codescan.h), up to 1 MiB
 */
#ifndef ASSAY_UNWIND_NOCFI_H
#define ASSAY_UNWIND_NOCFI_H

#include "base/base.h"
#include "base/vec.h"
#include "object/elf.h"

struct nocfi_rule {
	uint64_t start; /* link-time */
	uint64_t end;
	uint32_t rule; /* packed, wire/unwind_row.h */
};

struct nocfi_code {
	VEC(struct nocfi_rule) rules; /* of the gap scanned last; sorted, disjoint */
	uint64_t entry;               /* entry point of the binary, link-time */
	bool has_cfi;                 /* FDEs cover most of the binary's code */
	uint64_t nr_scanned_bytes;    /* searched for patterns so far; limited per binary */
	uint64_t nr_followed_bytes;   /* followed by codescan so far; limited per binary */
	uint8_t *chunk;               /* buffer for reading code; owned */
	VEC(uint64_t) starts; /* function starts from symbols and calls, link-time, sorted */
};

void nocfi_init(struct nocfi_code *g, struct elf *elf);
/* Adds the targets of all call instructions in [start, end) to the known function starts. */
void nocfi_find_calls(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end);
void nocfi_release(struct nocfi_code *g);
/* Sets g->rules to the rules derived for [start, end). */
void nocfi_scan(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end);

#endif
