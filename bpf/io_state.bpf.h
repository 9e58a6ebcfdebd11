/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Per-thread state of io.bpf.h, faults.bpf.h and growth.bpf.h: the system call, page fault or
 * reclaim that has begun and not ended. Stacks are references (stack.bpf.h).
 */
#ifndef ASSAY_BPF_IO_STATE_H
#define ASSAY_BPF_IO_STATE_H

/* Cache of the mapping that contained the thread's last fault; see faults.bpf.h. */
struct vma_cache {
	__u64 mm; /* address of the process's mm_struct */
	__u64 start;
	__u64 end;    /* 0 = none */
	__u64 object; /* as in struct io_key */
	__u32 seq;    /* mm_seq() when the mapping was found */
	__u32 flags;  /* enum vma_flags */
};

enum vma_flags { VMA_IS_SHARED = 1, VMA_HAS_FILE = 2 };

struct io_state {
	__u64 enter_ns;      /* start of the current I/O call, 0 = none that is counted */
	__u64 stack;         /* of that call */
	__u64 object;        /* as in struct io_key */
	__s32 syscall;       /* number of that call */
	__u32 what;          /* enum io_what */
	__u64 fault_ns;      /* start of the current page fault, 0 = not known */
	__u64 reclaim_ns;    /* start of the current reclaim of any kind, 0 = none */
	__u64 reclaim_stack; /* of that reclaim */
	__u64 map_stack;     /* of the current mmap, munmap, mremap or brk */
	__u64 map_bytes;     /* requested size; brk: the old end of the heap */
	__u64 map_old_bytes; /* mremap: old size */
	__u32 map_what;      /* enum io_what of that call, 0 = none */
	__u32 map_flags;     /* mmap: MAP_* */
	__u32 growth_pages;  /* movable pages allocated since the start of the fault or call */
	__u32 growth_flags;  /* enum growth_flags */
	struct vma_cache vma;
};

#endif
