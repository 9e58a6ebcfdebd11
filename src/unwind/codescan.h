/*
 * Unwind rules for x86-64 code that has neither call frame information nor frame pointers (musl,
 * hand-written assembly): its instructions are followed from function starts along branches, and
 * what they do to the stack pointer and to the saved frame pointer is taken down.
 *
 * A function starts at the target of a call, and where code follows a return or jump and nothing
 * jumps to it. Code whose stack pointer cannot be followed stays without rules.
 */
#ifndef ASSAY_UNWIND_CODESCAN_H
#define ASSAY_UNWIND_CODESCAN_H

#include "base/base.h"

/*
 * @rules: one packed rule a byte of code (wire/unwind_row.h), filled where it is ROW_NONE.
 * @starts: offsets where functions are known to start, any order; those past @n are ignored.
 */
void code_scan(const uint8_t *code, size_t n, const uint64_t *starts, size_t nr_starts,
	       uint32_t *rules);

#endif
