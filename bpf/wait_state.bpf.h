/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the ledger keeps in the state of each thread (task_state.bpf.h).
 *
 * Who writes: `now` and the sums belong to whoever switches the thread in or out, on the CPU that
 * does it; `wake` to the waker, under the thread's own lock, before the thread can run again;
 * `first` to the sweep at the start, which touches nothing else and is only believed where no
 * switch was seen. `memo` and `past` change when the thread is switched in, and, while it is
 * blocked, by its waker. So no field has two writers at a time, and nothing is locked.
 */
#ifndef ASSAY_BPF_WAIT_STATE_H
#define ASSAY_BPF_WAIT_STATE_H

#include "kernel_wait.h"

/* What a thread left the CPU for. */
struct wait_cause {
	__u64 user_ref;
	__u64 kernel_ref;
	__u64 object;
	__s32 fd;
	__u32 dev;
	__s32 owner_tid; /* of the lock, as the program numbers it; 0 = unknown */
	__s16 syscall;
	__u8 reason;
	__u8 evidence;
	__u8 how;
	__u8 object_kind;
	__u8 is_valid; /* of `first` */
};

/* Who made it runnable again. */
struct wait_wake {
	__u64 time_ns;
	__u64 ref;
	__s32 tid;
	__s32 tgid;
	__u8 evidence;
};

/* Sums not yet in the map, since most threads wait in few places. */
#define WAIT_MEMOS      4
#define WAIT_MEMO_BLAME WAIT_MEMOS /* apart, as each lock wait has one of these besides its own */
struct wait_memo {
	struct wait_key key;
	struct wait_row row;
};

/*
 * Off the CPU, lately: `ns` for `reason` and `queue_ns` in the run queue, all of it between start
 * and end. Those with the same reason at the same place are one entry while little time lies
 * between them, so entries overlap.
 */
#define WAIT_PASTS 4
struct wait_past {
	__u64 start_ns;
	__u64 end_ns;
	__u64 ns;
	__u64 queue_ns;
	__u64 ref;
	__u64 object;
	__u32 reason;
	__u32 nr;
};

struct wait_state {
	__u64 on_ns;    /* last time it came onto a CPU */
	__u64 off_ns;   /* last time it left it */
	__u64 delay_ns; /* all time in run queues until then */
	__u8 is_seen;   /* one of these two holds */
	__u8 is_on;
	__u8 is_over; /* its last switch was seen */
	__u8 pad;
	__u32 second; /* of second_end_ns - 1 */
	__u64 second_end_ns;
	__u32 run_second;
	__u32 runs;
	__u64 run_ns;
	/* What found no room in the map. */
	__u64 unaccounted_ns;
	__u64 unaccounted_run_ns;
	__u32 unaccounted;
	__u32 unaccounted_runs;
	struct wait_cause now;
	struct wait_cause first;
	struct wait_wake wake;
	struct wait_memo memo[WAIT_MEMOS + 1];
	struct wait_past past[WAIT_PASTS];
	__u64 past_lost_ns; /* what was before this is forgotten */
};

#endif
