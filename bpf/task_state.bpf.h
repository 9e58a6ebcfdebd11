/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is kept with each watched thread (task storage). Each part owns its member struct and
 * declares it here; all of it together stays under 1.5 KB, as it is there for every thread.
 */
#ifndef ASSAY_BPF_TASK_STATE_H
#define ASSAY_BPF_TASK_STATE_H

#include "kernel.bpf.h"
#include "wait_state.bpf.h"

/* Which memory of a former walk: threads come back to the same places in each of these. */
enum walk_slot { WALK_WAIT = 0, WALK_WAKE = 1, WALK_EVENT = 2, WALK_NR };

/* Owner: bpf/io.bpf.h */
#include "io_state.bpf.h"

/* Owner: bpf/spans.bpf.h */
struct span_state {
	__u64 since_ns;
};

struct task_state {
	__u32 space_idx_1; /* + 1; 0: not known yet */
	__u32 flags;
	struct wait_state wait;
	struct io_state io;
	struct span_state span;
};

#endif
