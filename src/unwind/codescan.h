/*
 * Derives unwind rules for x86-64 code that has neither call frame information nor frame pointers
 * (musl, hand-written assembly). It follows the instructions from function starts along branches
 * and records their effect on the stack pointer and on the saved frame pointer.
 *
 * A function starts at the target of a call. It also starts at an instruction that follows a return
 * or a jump and is not the target of a jump. Code whose stack pointer cannot be tracked gets no
 * rules.
 */
#ifndef ASSAY_UNWIND_CODESCAN_H
#define ASSAY_UNWIND_CODESCAN_H

#include "base/base.h"

/*
 * Scans @n bytes of code. @rules: @n packed rules, one per byte of code (wire/unwind_row.h); sets
 * entries that are ROW_NONE and leaves the others unchanged. @starts: offsets of known function
 * starts, in any order; those past @n are ignored.
 */
void code_scan(const uint8_t *code, size_t n, const uint64_t *starts, size_t nr_starts,
	       uint32_t *rules);

#endif
