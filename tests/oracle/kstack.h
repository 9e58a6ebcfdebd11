/* Records that kstack.bpf.c sends to kstack.c. */
#ifndef ASSAY_TESTS_ORACLE_KSTACK_H
#define ASSAY_TESTS_ORACLE_KSTACK_H

#include "arch.h"
#include "wire_types.h"

#define KSTACK_FRAMES 1016
#define KSTACK_BYTES  49152

enum kstack_kind { KSTACK_SAMPLE = 1, KSTACK_SWITCH, KSTACK_BOTH };

struct kstack_timing {
	wire_u32 kind;
	wire_u32 nr_fp;  /* frames */
	wire_u32 nr_own; /* frames of assay's walk */
	wire_u32 pad;
	wire_u64 ref;
	wire_u64 fp_ns;
	wire_u64 own_ns;
	wire_u64 again_ns; /* a second walk of the same stack */
	wire_u32 nr_rule_misses;
	wire_u32 nr_map_searches;
};

struct kstack_both {
	wire_u32 kind;
	wire_u32 end;
	wire_u32 nr_frames;
	wire_u32 nr_stack;
	wire_u64 regs[ARCH_NR_DWARF_REG]; /* by DWARF number */
	wire_u64 frames[KSTACK_FRAMES];
	wire_u8 stack[KSTACK_BYTES];
};

#endif
