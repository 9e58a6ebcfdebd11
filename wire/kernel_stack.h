/*
 * RECORD_STACK and RECORD_COPY: stacks. A stack is sent once; other records name it by its
 * reference `ref`. It may be sent again: after its record was lost, or when the BPF programs' set
 * of sent stacks has dropped it (the set is a cache). Equal references always mean equal stacks.
 *
 * Addresses are those of the process head.tgid with its mappings at head.time_ns.
 */
#ifndef ASSAY_WIRE_KERNEL_STACK_H
#define ASSAY_WIRE_KERNEL_STACK_H

#include "arch.h"
#include "kernel_record.h"
#include "walk_end.h"

/* Values of kernel_record.flags. */
enum kernel_stack_flags {
	/* Kernel addresses. */
	KSTACK_KERNEL = 1,
	/*
	 * The first address is a return address (of a call or a system call); else it is where the
	 * thread was interrupted.
	 */
	KSTACK_CALLERS = 2,
	/*
	 * RECORD_COPY only: the record that refers to the stack has the leaf itself (CPU sample in
	 * user mode), so the first frame that the walker finds is not part of the stack. A
	 * RECORD_STACK of this kind has KSTACK_CALLERS alone.
	 */
	KSTACK_NO_LEAF = 4,
};

/*
 * Of a stack of more than KSTACK_FRAMES_MAX frames only the innermost KSTACK_LEAF_FRAMES and as many
 * of the outermost ones are sent. The number of those between is sent as its logarithm, and the hash
 * has no more of it: stacks of a recursion differ in their depth each time, and would else each be
 * sent, and be a stack of its own in the profile.
 */
#define KSTACK_FRAMES_MAX  2048u
#define KSTACK_LEAF_FRAMES (KSTACK_FRAMES_MAX / 2)

struct kernel_stack {
	struct kernel_record head;
	wire_u64 ref; /* hash of the stack, never 0 */
	wire_u32 nr_frames;
	wire_u32 end; /* enum walk_end; WALK_ROOT for kernel stacks */
	wire_u32
		gap_log2; /* 2^(gap_log2 - 1) frames or more are missing, less than twice; 0: none */
	wire_u32 gap_end;  /* with a gap: frames[gap_end] is the first one after it; those from
			      KSTACK_LEAF_FRAMES on are a ring */
	wire_u64 frames[]; /* leaf first */
};

/*
 * A stack that the BPF walk could not finish, for the walker in user space: the registers of the
 * leaf and the stack from the stack pointer upwards. Only the first head.nr_bytes are valid; the
 * length of the record in the ring may be larger.
 */
struct kernel_copy {
	struct kernel_record head;
	wire_u64 ref;
	wire_u32 nr_stack;                /* bytes of stack */
	wire_u32 end;                     /* enum walk_end: why the BPF walk stopped */
	wire_u64 regs[ARCH_NR_DWARF_REG]; /* by DWARF number */
	wire_u8 stack[];
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_stack) == 48, "stack record");
#endif

#endif
