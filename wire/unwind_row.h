/*
 * The compiled unwind rule of a code range, 8 bytes, read by the user-space walker and by the
 * unwinder in the kernel alike. Rows of a binary are sorted by pc and cover everything: a gap is
 * a row of kind NONE. pc is relative to the table's base (link-time address of its first page).
 *
 * rule, by its low 3 bits (kind):
 *	bits 3..16   CFA offset / 8, unsigned 14 bits (reach 128 KiB)
 *	bits 17..31  where the caller's frame pointer is saved: (CFA-relative offset) / 8, signed 15
 *	             bits; ROW_FP_SAME: not saved, the register still holds it
 * The return address is at CFA - 8 on x86-64. On arm64 it is saved beside the frame pointer, at
 * the slot after it, and in x30 when the frame pointer is not saved. Whatever differs is
 * ROW_SPECIAL: bits 3..31 index the binary's table of struct unwind_special, which hold what one
 * register and one load can say; the rest (SPECIAL_CFA_FULL) needs the binary's own call frame
 * program and is done in user space only.
 */
#ifndef ASSAY_WIRE_UNWIND_ROW_H
#define ASSAY_WIRE_UNWIND_ROW_H

#include "wire_types.h"

enum unwind_row_kind {
	ROW_NONE = 0,    /* no rule: gap between functions, no CFI */
	ROW_SP = 1,      /* CFA = sp + offset */
	ROW_FP = 2,      /* CFA = fp + offset */
	ROW_STOP = 3,    /* the outermost frame: return address undefined */
	ROW_PLT = 4,     /* CFA = sp + 8 + ((pc & 15) >= offset/8 ? 8 : 0), fp unchanged */
	ROW_SIGNAL = 5,  /* the kernel's signal frame at sp (CFA offset: sp -> ucontext) */
	ROW_SPECIAL = 6, /* index into the specials */
	ROW_OWN = 7,     /* never in a table: for the reader's own use (caches) */
};

#define ROW_KIND_BITS 3
#define ROW_KIND_MASK 7u
#define ROW_CFA_BITS  14
#define ROW_FP_SHIFT  17
#define ROW_FP_SAME   (-0x4000) /* most negative 15-bit value */
#define ROW_CFA_REACH (((wire_u32)1 << ROW_CFA_BITS) * 8)

struct unwind_row {
	wire_u32 pc;
	wire_u32 rule;
};

static inline wire_u32 row_kind(wire_u32 rule)
{
	return rule & ROW_KIND_MASK;
}
static inline wire_u32 row_cfa_bytes(wire_u32 rule)
{
	return ((rule >> ROW_KIND_BITS) & ((1u << ROW_CFA_BITS) - 1)) * 8;
}
/* In units of 8 bytes, or ROW_FP_SAME. */
static inline wire_s32 row_fp_slot(wire_u32 rule)
{
	return (wire_s32)rule >> ROW_FP_SHIFT;
}
static inline wire_u32 row_special_idx(wire_u32 rule)
{
	return rule >> ROW_KIND_BITS;
}
static inline wire_u32 row_make(wire_u32 kind, wire_u32 cfa_bytes, wire_s32 fp_slot)
{
	return kind | (cfa_bytes / 8) << ROW_KIND_BITS | (wire_u32)fp_slot << ROW_FP_SHIFT;
}

enum special_cfa {
	SPECIAL_CFA_REG = 0,   /* reg + off */
	SPECIAL_CFA_DEREF = 1, /* *(reg + off) + off2 */
	SPECIAL_CFA_FULL = 2,  /* the FDE's program has to be run */
};
enum special_reg {
	SPECIAL_SAME = 0,   /* unchanged */
	SPECIAL_AT_CFA = 1, /* saved at CFA + off */
	SPECIAL_AT_REG = 2, /* saved at reg + off, reg as in this frame */
	SPECIAL_IN_REG = 3, /* in reg, as in this frame */
};
enum special_flags { SPECIAL_IS_SIGNAL = 1 }; /* the caller was interrupted, it did not call */

/* Registers by their DWARF numbers. */
struct unwind_special {
	wire_u8 cfa_kind;
	wire_u8 cfa_reg;
	wire_u8 fp_kind;
	wire_u8 fp_reg;
	wire_u8 ra_kind;
	wire_u8 ra_reg;
	wire_u8 flags;
	wire_u8 pad;
	wire_s32 cfa_off;
	wire_s32 cfa_off2;
	wire_s32 fp_off;
	wire_s32 ra_off;
};

#ifndef __bpf__
_Static_assert(sizeof(struct unwind_row) == 8, "row size");
_Static_assert(sizeof(struct unwind_special) == 24, "special size");
#endif

#endif
