/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * State of a thread of the target, or of any thread in system-wide captures (BPF task storage). Each
 * of the files named below declares a struct for its member. Must stay below 1.5 KB, since each such
 * thread has one.
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

/* TASK_IS_TARGET is valid if TASK_IS_KNOWN is set: stored at the first look-up. */
enum task_flags { TASK_IS_KNOWN = 1, TASK_IS_TARGET = 2 };

/* Owner: bpf/python.bpf.h */
struct python_state {
	__u64 thread;  /* the thread's PyThreadState when it was last found */
	__u64 none_ns; /* when it had none */
	__s32 tid;     /* in its PID namespace; 0: not known yet */
	__u32 pad;
};

struct task_state {
	__u32 space_idx_1; /* 1 + index into ktables_head.spaces; 0: not known yet */
	__u32 flags;       /* enum task_flags */
	struct wait_state wait;
	struct io_state io;
	struct span_state span;
	struct heap_state heap;
	struct python_state python;
};

#endif
