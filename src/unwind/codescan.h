/*
 * Derives unwind rules for x86-64 code that has neither call frame information nor frame pointers
 * (musl, hand-written assembly). It follows the instructions from function starts along branches
 * and records their effect on the stack pointer and on the saved frame pointer.
 *
 * A function starts at the target of a call, and after a return or jump where nothing jumps to the
 * next instruction. Code whose stack pointer cannot be tracked gets no rules.
 */
#ifndef ASSAY_UNWIND_CODESCAN_H
#define ASSAY_UNWIND_CODESCAN_H

#include "base/base.h"

/*
 * Scans @n bytes of code. @rules: one packed rule per byte of code (wire/unwind_row.h); entries
 * that are ROW_NONE are filled in. @starts: offsets of known function starts, in any order; those
 * past @n are ignored.
 */
void code_scan(const uint8_t *code, size_t n, const uint64_t *starts, size_t nr_starts,
	       uint32_t *rules);

#endif
