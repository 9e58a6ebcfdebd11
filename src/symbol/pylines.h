/*
 * The line table of a Python code object (co_linetable of CPython 3.11 and later). It is a sequence
 * of entries, each for one to eight 2-byte units of code:
 *
 *	1 bit set | 4 bits kind | 3 bits units - 1, then what the kind says: a signed difference of
 *	lines (kinds 13 and 14), 0 to 2 (kinds 10 to 12), none (0 to 9); columns, which are skipped;
 *	kind 15 has no line
 *
 * (Objects/locations.md in the source of CPython.) The bytes come from the target.
 */
#ifndef ASSAY_SYMBOL_PYLINES_H
#define ASSAY_SYMBOL_PYLINES_H

#include "base/base.h"
#include "base/sv.h"

/*
 * Returns the line of the instruction at @offset bytes; @first_line: the code's first. 0: it has
 * none. Before the first instruction (@offset below 0) it is the first line.
 */
uint32_t pylines_find(struct sv table, uint32_t first_line, int64_t offset);

#endif
