/*
 * The compiled unwind rule of a code range, 8 bytes, read by the user-space walker and by the
 * unwinder in the kernel alike. Rows of a binary are sorted by pc and cover everything: a gap is
 * a row of kind NONE. pc is relative to the table's base (link-time address of its first page).
 *
 * rule, by its low 3 bits (kind):
 *	bits 3..16   CFA offset / 8, unsigned 14 bits (reach 128 KiB)
 *	bits 17..31  where the caller's frame pointer is saved: (CFA-relative offset) / 8, signed 15
 *	             bits; ROW_FP_SAME: not saved, the register still holds it
 * The return address is at CFA - 8 on x86-64 unless the kind says otherwise; arm64 needs the
 * register-saved case of ROW_SPECIAL.
 *
 * What does not fit is ROW_SPECIAL: bits 3..31 index a side table of struct unwind_special.
 */
#ifndef ASSAY_WIRE_UNWIND_ROW_H
#define ASSAY_WIRE_UNWIND_ROW_H

#ifdef __bpf__
typedef __u32 wire_u32;
typedef __s32 wire_s32;
typedef __u8 wire_u8;
#else
#include <stdint.h>
typedef uint32_t wire_u32;
typedef int32_t wire_s32;
typedef uint8_t wire_u8;
#endif

enum unwind_row_kind {
	ROW_NONE = 0,    /* no rule: gap between functions, no CFI */
	ROW_SP = 1,      /* CFA = sp + offset */
	ROW_FP = 2,      /* CFA = fp + offset */
	ROW_STOP = 3,    /* the outermost frame: return address undefined */
	ROW_PLT = 4,     /* CFA = sp + 8 + ((pc & 15) >= offset/8 ? 8 : 0) */
	ROW_SIGNAL = 5,  /* the kernel's signal frame at sp (CFA offset: sp -> ucontext) */
	ROW_SPECIAL = 6, /* index into the specials */
};

#define ROW_KIND_BITS  3
#define ROW_CFA_BITS   14
#define ROW_FP_SHIFT   17
#define ROW_FP_SAME    (-0x4000) /* most negative 15-bit value */
#define ROW_CFA_REACH  (((wire_u32)1 << ROW_CFA_BITS) * 8)

struct unwind_row {
	wire_u32 pc;
	wire_u32 rule;
};

#endif
