/*
 * Finds function starts in code that has neither symbols nor unwind tables (a stripped static musl
 * program). A function start is the target of a call instruction, an address loaded by lea, or the
 * entry point.
 *
 * x86-64 code is searched at every byte offset, so false matches occur. A target is therefore
 * accepted only where a function can begin: at an address aligned to 16, or after a return, padding
 * or a trap. Checked against the symbols of unstripped programs: musl 47 of 72 starts found and
 * none wrong, glibc 60 % found and 0.3 % wrong.
 */
#ifndef ASSAY_SYMBOL_CALLSCAN_H
#define ASSAY_SYMBOL_CALLSCAN_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"
#include "symbol/symtab.h"

/*
 * Adds the function starts to @to with SYMTAB_RANK_CALLED. Each function ends where the next one
 * starts. Scans at most 256 MB of code.
 */
int callscan_add(struct symtab *to, struct elf *e, unsigned tag, struct err *err);

#endif
