/*
 * Kernel symbols from /proc/kallsyms text: functions of the kernel, of its modules and of BPF
 * programs (module "bpf"), sorted. A symbol reaches to the next one; the last one of the kernel and
 * of each module to the end of its page. Aliases are chosen as in symtab.h. The text is copied.
 *
 * With kptr_restrict all addresses read as 0; kallsyms_parse then returns -EACCES and the caller
 * counts LOSS_UNSYM_KERNEL. Lines that are no symbols are passed over; no function at all:
 * -ENODATA.
 */
#ifndef ASSAY_SYMBOL_KALLSYMS_H
#define ASSAY_SYMBOL_KALLSYMS_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

struct kallsyms;

int kallsyms_parse(struct kallsyms **ret_k, struct sv text, struct err *err);
void kallsyms_free(struct kallsyms *k);
DEFINE_FREE_P(kallsyms, struct kallsyms)
/* Name and module ("" = kernel proper) of the symbol that covers addr; false if none. */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct sv *ret_name,
		   struct sv *ret_module, uint64_t *ret_start);

#endif
