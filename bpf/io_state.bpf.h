/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bpf/io.bpf.h, bpf/faults.bpf.h and bpf/growth.bpf.h keep of each thread, between begin and
 * end. */
#ifndef ASSAY_BPF_IO_STATE_H
#define ASSAY_BPF_IO_STATE_H

/* The mapping that the thread's last fault was in; see faults.bpf.h. */
struct vma_memo {
	__u64 mm;
	__u64 start;
	__u64 end; /* 0 = none */
	__u64 object;
	__u32 seq;
	__u32 flags; /* enum vma_flags */
};

enum vma_flags { VMA_IS_SHARED = 1, VMA_HAS_FILE = 2 };

struct io_state {
	__u64 enter_ns; /* 0 = in no call that is looked at */
	__u64 stack;
	__u64 object;
	__s32 syscall;
	__u32 what;
	__u64 fault_ns; /* since when the current fault is handled, 0 = not known */
	__u64 reclaim_ns;
	__u64 reclaim_stack;
	__u64 map_stack;
	__u64 map_bytes;     /* of the call under way: asked for; brk: where the heap ended */
	__u64 map_old_bytes; /* mremap */
	__u32 map_what;      /* enum io_what, 0 = in no such call */
	__u32 map_flags;
	__u32 growth_pages; /* movable ones that the thread got since the fault or call began */
	__u32 growth_flags; /* enum growth_flags */
	struct vma_memo vma;
};

#endif
