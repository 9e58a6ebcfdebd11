/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bpf/heap.bpf.h keeps of each thread. */
#ifndef ASSAY_BPF_HEAP_STATE_H
#define ASSAY_BPF_HEAP_STATE_H

#include <linux/types.h>

struct heap_state {
	__s64 left_bytes; /* until the next sample */
	__u64 sp;         /* at the entry of the call that is followed, 0 = none */
	__u64 nr_bytes;   /* asked for */
	__u64 old;        /* block that the call frees, 0 = none */
	__u64 old_ns;
	__u64 out; /* where posix_memalign puts its result */
	__u64 stack;
	__u64 last_free; /* and nothing was allocated since */
	__u64 last_sp;   /* of the last entry, with its return address and function */
	__u64 last_ret;
	__u32 last_site;
	__u32 pad;
	__u32 shape;
	__u32 flags; /* enum heap_state_flags */
};

enum heap_state_flags {
	HEAP_HAS_DRAWN = 1,      /* left_bytes is set */
	HEAP_IS_CHOSEN = 2,      /* the block of this call is told */
	HEAP_OLD_IS_REPORTED = 4 /* the old block was */
};

#endif
