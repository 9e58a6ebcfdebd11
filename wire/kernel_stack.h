/*
 * RECORD_STACK and RECORD_COPY: a stack is told once, other records refer to it by ref. After a
 * record was lost or the kernel side forgot that it told (its memory of that is a cache), it is
 * told again: equal refs always mean equal stacks.
 *
 * Addresses are those of the process head.tgid, whose mappings are the ones at head.time_ns.
 */
#ifndef ASSAY_WIRE_KERNEL_STACK_H
#define ASSAY_WIRE_KERNEL_STACK_H

#include "arch.h"
#include "kernel_record.h"
#include "walk_end.h"

enum kernel_stack_flags {                    /* kernel_record.flags */
			  KSTACK_KERNEL = 1, /* kernel addresses */
			  KSTACK_CALLERS =
				  2, /* the first address is a return address as well (a system
				      * call's too); else it is where the thread was interrupted */
			  KSTACK_NO_LEAF = 4, /* COPY only: what refers to it carries the leaf apart
					       * (CPU sample in user mode): the first frame that the
					       * walker finds is not of the stack. A STACK of this
					       * sort has KSTACK_CALLERS alone */
};

struct kernel_stack {
	struct kernel_record head;
	wire_u64 ref;
	wire_u32 nr_frames;
	wire_u32 end;      /* enum walk_end; WALK_ROOT for kernel stacks */
	wire_u64 frames[]; /* leaf first */
};

/*
 * What the walker of user space goes on from: all registers by DWARF number and the stack from the
 * stack pointer upwards. head.nr_bytes says how many bytes are valid; the ring's own length of the
 * record may be larger.
 */
struct kernel_copy {
	struct kernel_record head;
	wire_u64 ref;
	wire_u32 nr_stack; /* bytes */
	wire_u32 end;      /* why the kernel side stopped */
	wire_u64 regs[ARCH_NR_DWARF_REG];
	wire_u8 stack[];
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_stack) == 40, "stack record");
#endif

#endif
