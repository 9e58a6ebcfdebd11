/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Per-thread state of heap.bpf.h: sampling, and the allocator call that is under way. */
#ifndef ASSAY_BPF_HEAP_STATE_H
#define ASSAY_BPF_HEAP_STATE_H

#include <linux/types.h>

struct heap_state {
	__s64 left_bytes; /* to allocate until the next sample */
	__u64 sp;         /* at the entry of the call whose return is probed, 0 = none */
	__u64 nr_bytes;   /* requested */
	__u64 old;        /* block that the call frees (realloc), 0 = none */
	__u64 old_ns;     /* time of the entry */
	__u64 out;        /* address at which posix_memalign stores its result */
	__u64 stack;      /* reference */
	__u64 last_free;  /* block of the last free; 0 after an allocation */
	__u64 last_sp;    /* sp, return address and function of the last entry */
	__u64 last_ret;
	__u32 last_site;
	__u32 pad;
	__u32 shape; /* enum heap_shape */
	__u32 flags; /* enum heap_state_flags */
};

enum heap_state_flags {
	HEAP_HAS_COUNTDOWN = 1,  /* left_bytes is set */
	HEAP_IS_SAMPLED = 2,     /* the block of this call is sent */
	HEAP_OLD_IS_REPORTED = 4 /* the old block was sent */
};

#endif
