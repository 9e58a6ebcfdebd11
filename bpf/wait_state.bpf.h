/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Off-CPU accounting: the part of each thread's state (task_state.bpf.h) that belongs to it.
 *
 * Writers of the fields: `now` (the cause of the last switch out) and the sums are written by the
 * CPU that switches the thread in or out. `wake` is written by the waker, under the thread's own
 * lock (pi_lock), before the thread can run again. `first` is written by the task iterator when the
 * capture starts, which writes nothing else; it is only used for a thread of which no switch was
 * seen. `cached_rows` and `history` are written when the thread is switched in and, while it is
 * blocked, by its waker. So no field has two writers at a time, and no lock is needed.
 */
#ifndef ASSAY_BPF_WAIT_STATE_H
#define ASSAY_BPF_WAIT_STATE_H

#include "kernel_wait.h"

/* Whether a thread is on a CPU, according to the context switches that were seen. */
enum wait_cpu_state {
	WAIT_CPU_OFF = 0,
	WAIT_CPU_ON = 1,        /* the switch in was seen: on_ns is its time */
	WAIT_CPU_ON_UNSEEN = 2, /* the switch in was not seen: on_ns is an estimate */
};

/* Why a thread left the CPU. */
struct wait_cause {
	__u64 user_ref; /* stack references, 0 = none */
	__u64 kernel_ref;
	__u64 object;
	__s32 fd;
	__u32 dev;
	__s32 owner_tid; /* of the lock, in the process's PID namespace; 0 = unknown */
	__s16 syscall;
	__u8 reason;      /* enum wait_reason */
	__u8 evidence;    /* bits of enum wait_evidence */
	__u8 how;         /* enum wait_how */
	__u8 object_kind; /* enum wait_object_kind */
	__u8 is_valid;    /* only used in `first` */
};

/* The last wake-up of the thread (sched_waking): time, waker and the waker's stack. */
struct wait_wake {
	__u64 time_ns;
	__u64 ref; /* stack of the waker */
	__s32 tid; /* 0: not woken by a thread */
	__s32 tgid;
	__u8 evidence; /* bits of enum wait_evidence */
};

/*
 * Rows in which intervals are summed before they are added to the map. Most threads wait in few
 * places, so most intervals are added to a row that is in the cache.
 */
#define WAIT_CACHED_ROWS      4
#define WAIT_CACHED_ROW_BLAME WAIT_CACHED_ROWS /* one more, for WAITACCOUNT_BLAME rows */
struct wait_cached_row {
	struct wait_key key;
	struct wait_row row;
};

/*
 * A recent interval off the CPU: `ns` blocked for `reason` and `queue_ns` in the run queue, between
 * start_ns and end_ns. Consecutive intervals with the same reason and stack are merged into one
 * entry if the gaps between them are short, so entries may overlap.
 */
#define WAIT_HISTORY_NR 4
struct wait_interval {
	__u64 start_ns;
	__u64 end_ns;
	__u64 ns;
	__u64 queue_ns;
	__u64 ref; /* user stack */
	__u64 object;
	__u32 reason;
	__u32 nr; /* of merged intervals; 0: unused */
};

struct wait_state {
	__u64 on_ns;       /* last switch in */
	__u64 off_ns;      /* last switch out */
	__u64 delay_ns;    /* sched_info.run_delay at off_ns */
	__u8 is_accounted; /* the accounting has begun: on_ns or off_ns is set */
	__u8 cpu_state;    /* enum wait_cpu_state */
	__u8 has_ended;    /* exited, or accounting ended */
	__u8 pad;
	__u32 second; /* current second since the start of the capture; it ends at second_end_ns */
	__u64 second_end_ns;
	/* Runs on the CPU in second run_second that are not in the map yet: number and time. */
	__u32 run_second;
	__u32 runs;
	__u64 run_ns;
	/* Off-CPU and on-CPU time and intervals for which the map had no room; sent later. */
	__u64 unaccounted_ns;
	__u64 unaccounted_run_ns;
	__u32 unaccounted;
	__u32 unaccounted_runs;
	struct wait_cause now;
	struct wait_cause first;
	struct wait_wake wake;
	struct wait_cached_row cached_rows[WAIT_CACHED_ROWS + 1];
	struct wait_interval history[WAIT_HISTORY_NR];
	__u64 history_lost_ns; /* intervals that ended before this time may be missing */
};

#endif
