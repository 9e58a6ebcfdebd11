/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Per-thread state of heap.bpf.h: sampling, and the allocator call that is under way. */
#ifndef ASSAY_BPF_HEAP_STATE_H
#define ASSAY_BPF_HEAP_STATE_H

#include <linux/types.h>

struct heap_state {
	__s64 left_bytes; /* bytes until the next sample; valid with HEAP_HAS_COUNTDOWN */
	/* The call whose return is probed. */
	__u64 sp;       /* stack pointer at its entry, 0 = no such call */
	__u64 nr_bytes; /* requested */
	__u64 old;      /* address of the block that the call frees (realloc), 0 = none */
	__u64 old_ns;   /* time of the entry, CLOCK_MONOTONIC */
	__u64 out;      /* address at which posix_memalign stores its result */
	__u64 stack;    /* stack reference (kernel_stack.h), 0 = none */
	/* The last call of any allocator function. */
	__u64 last_free; /* address of the last freed block; 0 after an allocation */
	__u64 last_sp;   /* stack pointer at the last entry of an allocating function */
	__u64 last_ret;  /* return address there */
	__u32 last_site; /* index of that function */
	__u32 pad;
	__u32 shape; /* enum heap_shape of the call whose return is probed */
	__u32 flags; /* enum heap_state_flags */
};

enum heap_state_flags {
	HEAP_HAS_COUNTDOWN = 1,  /* left_bytes is set */
	HEAP_IS_SAMPLED = 2,     /* the call's return sends a record of the new block */
	HEAP_OLD_IS_REPORTED = 4 /* a record of the old block was sent, so its free is sent too */
};

#endif
