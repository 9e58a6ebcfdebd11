/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Off-CPU accounting: the part of each thread's state (task_state.bpf.h) that belongs to it.
 *
 * Writers of the fields: `wake` is written by the waker, under the thread's own lock (pi_lock),
 * before the thread can run again. `first` is written by the task iterator when the capture starts,
 * which writes no other field but exec_ns and has_exec of a thread of which no switch was seen.
 * Everything else is written by the CPU that switches the thread in or out. So no field has two
 * writers at a time, and no lock is needed.
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
	__s32 fd; /* or the owner of a lock: see struct wait_record */
	__u32 dev;
	__s16 syscall;
	__u8 reason;      /* enum wait_reason */
	__u8 evidence;    /* bits of enum wait_evidence */
	__u8 how;         /* enum wait_how */
	__u8 object_kind; /* enum wait_object_kind */
	__u8 is_valid;    /* only used in `first` */
	__u8 pad;
};

/* The last wake-up of the thread (sched_waking): time, waker and the waker's stack. */
struct wait_wake {
	__u64 time_ns;
	__u64 ref; /* stack of the waker */
	__s32 tid; /* 0: not woken by a thread */
	__s32 tgid;
	__u32 evidence; /* bits of enum wait_evidence */
	__u32 pad;
};

struct wait_state {
	__u64 on_ns;    /* last switch in */
	__u64 off_ns;   /* last switch out */
	__u64 delay_ns; /* sched_info.run_delay at off_ns */
	__u64 exec_ns;  /* sum_exec_runtime at off_ns */
	/* The run that ended at off_ns: elapsed time and CPU time. */
	__u64 ran_ns;
	__u64 run_ns;
	__u8 is_accounted; /* the accounting has begun: on_ns or off_ns is set */
	__u8 cpu_state;    /* enum wait_cpu_state */
	__u8 has_ended;    /* exited, or accounting ended */
	__u8 has_exec;     /* exec_ns is set */
	__u8 is_reported;  /* RECORD_THREAD was sent */
	__u8 pad[3];
	struct wait_cause now;
	struct wait_wake wake;
	/* Sums of records for which there was no room; sent later. */
	__u64 unaccounted_ns; /* off the CPU */
	__u64 unaccounted_ran_ns;
	__u64 unaccounted_run_ns;
	__u32 unaccounted;
	__u32 unaccounted_runs;
	struct wait_cause first;
};

#endif
