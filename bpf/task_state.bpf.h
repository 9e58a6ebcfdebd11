/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is kept with each watched thread (task storage). Each part owns its member struct and
 * declares it here; all of it together stays under 1.5 KB, as it is there for every thread.
 */
#ifndef ASSAY_BPF_TASK_STATE_H
#define ASSAY_BPF_TASK_STATE_H

#include "kernel.bpf.h"
#include "wait_state.bpf.h"

/* Owner: bpf/io.bpf.h */
#include "io_state.bpf.h"

/* Owner: bpf/spans.bpf.h */
#include "span_state.bpf.h"

/* Owner: bpf/heap.bpf.h */
#include "heap_state.bpf.h"

/* Owner: bpf/stack.bpf.h */
#include "stack_memo.bpf.h"

/* Watched or not: found out once. */
enum task_flags { TASK_IS_KNOWN = 1, TASK_IS_TARGET = 2 };

struct task_state {
	__u32 space_idx_1; /* + 1; 0: not known yet */
	__u32 flags;       /* enum task_flags */
	struct walk_memo memos[WALK_NR_MEMOS];
	struct wait_state wait;
	struct io_state io;
	struct span_state span;
	struct heap_state heap;
};

#endif
