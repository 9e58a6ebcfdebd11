/*
 * Facts about the jemalloc in a binary: version, environment variable and whether it was built with
 * profiling, from constant strings, which stripped binaries have as well; and the address ranges of
 * all its code, internal functions included.
 */
#ifndef ASSAY_PLAN_ALLOCCODE_H
#define ASSAY_PLAN_ALLOCCODE_H

#include "base/base.h"
#include "object/elf.h"
#include "plan/allocfind.h"

/* Whether the binary has a .symtab. */
bool alloccode_has_symbols(const struct elf *e);
/* Fills version, variable, has_prof of @f->jemalloc. */
void alloccode_facts(struct allocfind *f, struct elf *image);
/* Fills @f->code from the symbol tables of @symbols. */
void alloccode_ranges(struct allocfind *f, struct elf *symbols);

#endif
