/*
 * Reads two kinds of facts about an allocator in a binary: of jemalloc the version, the environment
 * variable and whether it was built with profiling (from string constants, which a stripped binary
 * has, too); and the address ranges of the allocator's code, internal functions included.
 */
#ifndef ASSAY_PLAN_ALLOCCODE_H
#define ASSAY_PLAN_ALLOCCODE_H

#include "base/base.h"
#include "object/elf.h"
#include "plan/allocfind.h"

/* Whether the binary has a .symtab. */
bool alloccode_has_symbols(const struct elf *e);
/* Whether the binary has the version and the variable of a jemalloc in its constants. */
bool alloccode_has_strings(struct elf *image);
/* Fills version, variable, has_prof of @f->jemalloc. */
void alloccode_facts(struct allocfind *f, struct elf *image);
/*
 * Fills @f->code from the symbol tables of @symbols: the binary itself, its debug file, or the
 * image in its .gnu_debugdata.
 */
void alloccode_ranges(struct allocfind *f, struct elf *symbols);

#endif
