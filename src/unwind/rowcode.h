/*
 * Turns the rules of all registers (unwind/cfi.h) into a packed row, or into an entry of the
 * table of specials where a row cannot say it.
 */
#ifndef ASSAY_UNWIND_ROWCODE_H
#define ASSAY_UNWIND_ROWCODE_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "unwind/cfi.h"
#include "unwind_row.h"

struct row_coder {
	VEC(struct unwind_special) specials;
	struct map special_by_hash;
};

void row_coder_release(struct row_coder *c);
uint32_t row_code(struct row_coder *c, const struct cfi_rules *rules);

#endif
