/*
 * Encodes the unwind rules of a code range (unwind/cfi.h) as one packed 8-byte row. Rules that do
 * not fit into a row are added to the table of special rules (struct unwind_special), and the row
 * holds their index.
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
/* Returns the encoded rule; ROW_NONE if the rules cannot be used. */
uint32_t row_code(struct row_coder *c, const struct cfi_rules *rules);
/* Returns the rule of a row that refers to @s; equal ones are stored once. */
uint32_t row_code_special(struct row_coder *c, const struct unwind_special *s);

#endif
