/*
 * What a binary says of the jemalloc in it besides its functions: version, environment variable,
 * whether it was built with profiling (by constant strings, which are there in stripped ones too),
 * and where all of its code is, internal functions included.
 */
#ifndef ASSAY_PLAN_ALLOCCODE_H
#define ASSAY_PLAN_ALLOCCODE_H

#include "base/base.h"
#include "object/elf.h"
#include "plan/allocfind.h"

/* A symbol table that is not only for linking. */
bool alloccode_has_symbols(const struct elf *e);
/* Fills version, variable, has_prof of @f->jemalloc. */
void alloccode_facts(struct allocfind *f, struct elf *image);
/* Fills @f->code by the symbols of @symbols. */
void alloccode_ranges(struct allocfind *f, struct elf *symbols);

#endif
