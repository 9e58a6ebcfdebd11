/*
 * Kernel symbols from /proc/kallsyms text: kernel and modules, sorted. With kptr_restrict all
 * addresses read as 0; kallsyms_parse then returns -EACCES and the caller counts
 * LOSS_UNSYM_KERNEL.
 */
#ifndef ASSAY_SYMBOL_KALLSYMS_H
#define ASSAY_SYMBOL_KALLSYMS_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

struct kallsyms;

int kallsyms_parse(struct kallsyms **ret_k, struct sv text, struct err *err);
void kallsyms_free(struct kallsyms *k);
/* Name and module ("" = kernel proper) of the symbol that covers addr; false if none. */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct sv *ret_name,
                   struct sv *ret_module, uint64_t *ret_start);

#endif
