/*
 * RECORD_SAMPLE: a CPU sample. In user mode ip is the leaf and user_ref the callers
 * (KSTACK_CALLERS); in the kernel ip is the kernel's, kernel_ref holds the kernel's frames, ip
 * among them, and user_ref the whole user stack.
 */
#ifndef ASSAY_WIRE_KERNEL_SAMPLE_H
#define ASSAY_WIRE_KERNEL_SAMPLE_H

#include "kernel_record.h"

enum kernel_sample_flags { KSAMPLE_USER = 1 }; /* kernel_record.flags */

struct kernel_sample {
	struct kernel_record head;
	wire_u32 cpu;
	wire_u32 pad;
	wire_u64 ip;
	wire_u64 user_ref;   /* 0 = none */
	wire_u64 kernel_ref; /* 0 = none */
	wire_u64 period;
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_sample) == 64, "sample record");
#endif

#endif
