/*
 * Runs the call frame program of one FDE and gives, for each address range, the rules that find
 * every register of the caller (DWARF 5 section 6.4.2, LSB 10.6, GNU extensions).
 *
 *	struct cfi_run run;
 *	cfi_start(&run, &fde, init);
 *	while (cfi_next(&run))
 *		run.rules holds for [run.start, run.end)
 *
 * Nothing is allocated; the number of steps is bounded by the program's length. Expressions are
 * borrowed views of the program. Rules for registers from ARCH_NR_DWARF_REG on (vector, floating
 * point) are skipped.
 */
#ifndef ASSAY_UNWIND_CFI_H
#define ASSAY_UNWIND_CFI_H

#include "arch.h"
#include "base/base.h"
#include "object/ehframe.h"

enum cfi_kind {
	CFI_SAME = 0, /* the caller's value is the same, or there is no rule */
	CFI_UNDEFINED,
	CFI_OFFSET,     /* saved at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER,   /* saved in the register number 'value' */
	CFI_EXPR,       /* saved at the address computed by the expression */
	CFI_VAL_EXPR,   /* is the value computed by the expression */
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

#define CFI_REMEMBER_MAX 16 /* depth of DW_CFA_remember_state; compilers use one or two */

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

/* Runs a CIE's initial instructions and returns the rules that they set. */
bool cfi_init_rules(const struct ehframe_cie *cie, struct cfi_rules *ret_rules);
/* Starts a run. @init: the initial rules of the FDE's CIE; borrowed during the run. */
void cfi_start(struct cfi_run *run, const struct ehframe_fde *fde, const struct cfi_rules *init);
/* Goes to the next range; false at the end or, with is_bad set, if the program is malformed. */
bool cfi_next(struct cfi_run *run);
/* Returns the rules at @pc by running the FDE's program. They point into @run, scratch memory. */
const struct cfi_rules *cfi_at(struct cfi_run *run, const struct ehframe_fde *fde, uint64_t pc);

/* The state that a DWARF expression may read. Registers are indexed by DWARF number. */
struct expr_env {
	const uint64_t *regs;
	uint64_t valid; /* one bit per register: its value is known */
	uint64_t cfa;
	uint64_t bias; /* run-time minus link-time address of the module, for DW_OP_addr */
	/* Reads 1 to 8 bytes of the target's stack; false if they were not copied. */
	bool (*read)(const void *ctx, uint64_t addr, size_t n, uint64_t *ret_v);
	const void *ctx;
};

/*
 * Evaluates a DWARF expression; false if it is malformed or reads an unknown value. @first: pushed
 * before the expression runs (the CFA for register rules); NULL: the stack starts empty.
 */
bool expr_eval(const struct expr_env *env, const uint8_t *expr, size_t n, const uint64_t *first,
	       uint64_t *ret_v);

#endif
