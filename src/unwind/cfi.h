/*
 * Call frame programs: runs the instructions of one FDE and gives, range by range, the rules by
 * which every register of the caller is found (DWARF 5 section 6.4.2, LSB 10.6, GNU extensions).
 *
 *	struct cfi_run run;
 *	for (bool ok = cfi_start(&run, &fde, init); ok && cfi_next(&run);)
 *		run.rules holds for [run.start, run.end)
 *
 * Nothing is allocated; the steps are bounded by the program's length. Expressions are kept as
 * borrowed views of the program. Registers past ARCH_NR_DWARF_REG (vector, floating point) are
 * read over.
 */
#ifndef ASSAY_UNWIND_CFI_H
#define ASSAY_UNWIND_CFI_H

#include "arch.h"
#include "base/base.h"
#include "object/ehframe.h"

enum cfi_kind {
	CFI_SAME = 0, /* also: nothing was said */
	CFI_UNDEFINED,
	CFI_OFFSET,     /* saved at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER,   /* is in register value */
	CFI_EXPR,       /* saved at the address that the expression gives */
	CFI_VAL_EXPR,   /* is what the expression gives */
};

struct cfi_rule {
	uint8_t kind;
	uint32_t nr_expr;
	union {
		int64_t value;
		const uint8_t *expr;
	};
};

enum cfi_cfa { CFI_CFA_NONE = 0, CFI_CFA_REG, CFI_CFA_EXPR };

struct cfi_rules {
	uint8_t cfa_kind;
	bool is_signal_frame;
	uint32_t cfa_reg;
	uint32_t nr_cfa_expr;
	uint32_t ra_column; /* < ARCH_NR_DWARF_REG */
	int64_t cfa_off;
	const uint8_t *cfa_expr;
	struct cfi_rule reg[ARCH_NR_DWARF_REG];
};

#define CFI_REMEMBER_MAX 16 /* compilers nest one or two deep */

struct cfi_run {
	struct cfi_rules rules;
	uint64_t start;
	uint64_t end;
	uint64_t fde_end;
	uint64_t pc; /* where the next range starts */
	uint64_t code_align;
	int64_t data_align;
	struct rd program;
	const struct cfi_rules *init; /* for DW_CFA_restore; NULL while the CIE runs */
	uint32_t nr_remembered;
	uint8_t address_bytes;
	uint8_t pointer_encoding;
	bool is_bad;
	struct cfi_rules remembered[CFI_REMEMBER_MAX];
};

/* The rules that a CIE's initial instructions leave. */
bool cfi_init_rules(const struct ehframe_cie *cie, struct cfi_rules *ret_rules);
/* @init: of the FDE's CIE; borrowed while the run lasts. */
void cfi_start(struct cfi_run *run, const struct ehframe_fde *fde, const struct cfi_rules *init);
/* The next range; false at the end or, with is_bad, where the program makes no sense. */
bool cfi_next(struct cfi_run *run);
/* The rules at @pc, found by running the FDE. @run: scratch. */
const struct cfi_rules *cfi_at(struct cfi_run *run, const struct ehframe_fde *fde, uint64_t pc);

/* What an expression may look at. Registers by DWARF number. */
struct expr_env {
	const uint64_t *regs;
	uint64_t valid; /* bit a register: its value is known */
	uint64_t cfa;
	uint64_t bias; /* of the module, for DW_OP_addr */
	/* Reads 1..8 bytes of the target's stack; false if they were not copied. */
	bool (*read)(const void *ctx, uint64_t addr, size_t n, uint64_t *ret_v);
	const void *ctx;
};

/* @first: what lies on the stack at the start (the CFA for register rules); NULL: nothing. */
bool expr_eval(const struct expr_env *env, const uint8_t *expr, size_t n, const uint64_t *first,
	       uint64_t *ret_v);

#endif
