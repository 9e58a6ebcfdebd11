/*
 * Kernel symbols from the text of /proc/kallsyms: functions of the kernel, of its modules and of
 * BPF programs (module "bpf"), sorted by address. A symbol ends where the next one starts; the last
 * one of the kernel and of each module ends with its page. Of several symbols at one
 * address, one is chosen by the rule of symtab.h.
 *
 * Under kptr_restrict all addresses are 0: kallsyms_parse then returns -EACCES and the caller
 * counts LOSS_UNSYM_KERNEL. Lines that are not symbols are skipped. -ENODATA: the text has no
 * functions.
 */
#ifndef ASSAY_SYMBOL_KALLSYMS_H
#define ASSAY_SYMBOL_KALLSYMS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

struct kallsyms;

int kallsyms_parse(struct kallsyms **ret_k, struct sv text, struct err *err);
/*
 * Takes over lines of functions that are in the order of their addresses, without parsing them. Lines
 * in another order give wrong names.
 */
struct kallsyms *kallsyms_from_sorted(struct buf *lines);
void kallsyms_free(struct kallsyms *k);
DEFINE_FREE_P(kallsyms, struct kallsyms)
/* Finds the symbol that covers @addr: its name, module ("" = vmlinux) and start. False if none. */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct sv *ret_name,
		   struct sv *ret_module, uint64_t *ret_start);

#endif
