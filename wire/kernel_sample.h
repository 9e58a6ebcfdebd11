/*
 * RECORD_SAMPLE: a CPU sample. In user mode (KSAMPLE_USER) ip is the leaf and user_ref the stack of
 * its callers (KSTACK_CALLERS). In kernel mode ip is a kernel address, kernel_ref the kernel stack
 * including ip, and user_ref the whole user stack.
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
	wire_u64 user_ref;   /* stack reference (kernel_stack.h), 0 = none */
	wire_u64 kernel_ref; /* stack reference, 0 = none */
	wire_u64 period;     /* of the perf event: ns for a clock, else counted units */
};

/* CPU time of the targets on one CPU: the element of the per-CPU array "cpu_times". */
struct kernel_cpu_time {
	wire_u64 since_ns; /* since when the target thread runs that runs now; 0: none does */
	wire_u64 sum_ns;   /* of those that ran before */
	wire_u64 nr_switches;
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_cpu_time) == 24, "CPU time");
_Static_assert(sizeof(struct kernel_sample) == 64, "sample record");
#endif

#endif
