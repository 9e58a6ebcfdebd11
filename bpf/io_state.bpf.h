/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bpf/io.bpf.h and bpf/faults.bpf.h keep of each thread, between begin and end. */
#ifndef ASSAY_BPF_IO_STATE_H
#define ASSAY_BPF_IO_STATE_H

struct io_state {
	__u64 enter_ns; /* 0 = in no call that is looked at */
	__u64 stack;
	__u64 object;
	__s32 syscall;
	__u32 what;
	__u64 fault_ns; /* since when the current fault is handled, 0 = not known */
	__u64 reclaim_ns;
	__u64 reclaim_stack;
};

#endif
