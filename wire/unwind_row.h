/*
 * Unwind rows: the unwind rule of a code range in 8 bytes. src/unwind/table.c compiles them from
 * DWARF call frame information, and for code without it derives them from the instructions
 * (src/unwind/nocfi.h, src/unwind/codescan.h). The walker in user space, the BPF walker and the
 * injected recorder read them. The rows of a binary are sorted by pc, and each holds up to the next
 * one; a gap is a row of kind NONE. pc is relative to the table's base (link-time address of its
 * first page).
 *
 * Bits 0..2 of rule are the kind (enum unwind_row_kind). The meaning of the other bits depends on
 * the kind:
 *	SP, FP      bits 3..16: CFA offset / 8, unsigned (up to 128 KiB)
 *	            bits 17..31: where the caller's frame pointer is saved: (offset from the CFA) / 8,
 *	            signed; ROW_FP_SAME: not saved, the register still holds it
 *	PLT         bits 3..16: the threshold of pc & 15; bits 17..31: ROW_FP_SAME
 *	SIGNAL      bits 3..16: (offset of the ucontext from sp) / 8; bits 17..31: not used
 *	SPECIAL     bits 3..31: index into the binary's table of struct unwind_special
 *	NONE, STOP  0
 *	PSEUDO      bits 3..31: why there is no rule (enum pseudo_rule of the walker; 0 in BPF)
 *
 * With a row of kind SP or FP the return address is at CFA - 8 on x86-64. On arm64 it is in the
 * slot after the saved frame pointer, or in x30 if the frame pointer is not saved. Rules that such
 * a row cannot express are SPECIAL; those use at most one register and one load for each value.
 * Rules that do not fit there either (SPECIAL_CFA_FULL) need the call frame program of the binary,
 * which only user space runs.
 */
#ifndef ASSAY_WIRE_UNWIND_ROW_H
#define ASSAY_WIRE_UNWIND_ROW_H

#include "wire_types.h"

enum unwind_row_kind {
	ROW_NONE = 0,    /* in a table: the code up to the next row has no rule */
	ROW_SP = 1,      /* CFA = sp + offset */
	ROW_FP = 2,      /* CFA = fp + offset */
	ROW_STOP = 3,    /* the outermost frame: return address undefined */
	ROW_PLT = 4,     /* CFA = sp + 8 + ((pc & 15) >= threshold ? 8 : 0), fp unchanged */
	ROW_SIGNAL = 5,  /* the kernel's signal frame at sp (CFA offset: sp -> ucontext) */
	ROW_SPECIAL = 6, /* index into the specials */
	ROW_PSEUDO = 7,  /* never in a table: what a walker's search returns if there is no rule */
};

#define ROW_KIND_BITS 3
#define ROW_KIND_MASK 7u
#define ROW_CFA_BITS  14
#define ROW_FP_SHIFT  17
#define ROW_FP_SAME   (-0x4000) /* most negative 15-bit value */
#define ROW_CFA_REACH (((wire_u32)1 << ROW_CFA_BITS) * 8)

struct unwind_row {
	wire_u32 pc; /* of the first byte; relative to the table's base */
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
	SPECIAL_CFA_FULL = 2,  /* needs the FDE's call frame program */
};
/* Where the value of a register in the caller is. */
enum special_reg {
	SPECIAL_SAME = 0,   /* unchanged */
	SPECIAL_AT_CFA = 1, /* saved at CFA + off */
	SPECIAL_AT_REG = 2, /* saved at reg + off, with the value of reg in this frame */
	SPECIAL_IN_REG = 3, /* the value of reg in this frame */
};
enum special_flags {
	/*
	 * The CFI marks the frame as a signal frame (augmentation "S"). Set only with SPECIAL_CFA_FULL.
	 * No walker reads it: the full walk (src/unwind/walkfull.c) takes this from the CFI.
	 */
	SPECIAL_IS_SIGNAL = 1,
	/* The caller is on another stack, which may lie below this one. */
	SPECIAL_OTHER_STACK = 2,
};

/* Rules for the CFA, the frame pointer and the return address. Registers are DWARF numbers. */
struct unwind_special {
	wire_u8 cfa_kind; /* enum special_cfa */
	wire_u8 cfa_reg;
	wire_u8 fp_kind; /* enum special_reg */
	wire_u8 fp_reg;
	wire_u8 ra_kind; /* enum special_reg */
	wire_u8 ra_reg;
	wire_u8 flags; /* enum special_flags */
	wire_u8 pad;
	wire_s32 cfa_off; /* all offsets in bytes */
	wire_s32 cfa_off2;
	wire_s32 fp_off;
	wire_s32 ra_off;
};

#ifndef __bpf__
_Static_assert(sizeof(struct unwind_row) == 8, "row size");
_Static_assert(sizeof(struct unwind_special) == 24, "special size");
#endif

#endif
