/*
 * What off-CPU accounting in the kernel (bpf/waits.bpf.h) sends to user space: one record for each
 * interval off the CPU that has ended, through rings of its own, one for each CPU; and a few other
 * records through the common ring (RECORD_WAIT, RECORD_THREAD).
 *
 * Times are CLOCK_MONOTONIC ns; all ids are of the root PID namespace.
 */
#ifndef ASSAY_WIRE_KERNEL_WAIT_H
#define ASSAY_WIRE_KERNEL_WAIT_H

#include "kernel_record.h"
#include "wire_types.h"

/* Start and stop of the accounting of all threads, written by user space. */
struct wait_clock {
	wire_u64 start_ns; /* 0 = nothing is accounted yet */
	wire_u64 stop_ns;  /* 0 = no end yet */
};

/* What a record is, and how an interval off the CPU began. */
enum wait_how {
	HOW_BLOCKED = 0,     /* blocked until it was woken */
	HOW_PREEMPTED = 1,   /* preempted while runnable */
	HOW_YIELDED = 2,     /* sched_yield() */
	HOW_NEW_THREAD = 3,  /* from its creation to its first run */
	HOW_UNACCOUNTED = 4, /* RECORD_WAIT: sum of records for which no ring had room */
	HOW_ENDED = 5,       /* no interval: a last run, to off_ns (EVIDENCE_OPEN: cut off there) */
	HOW_OBJECT = 6,      /* RECORD_WAIT without times: names a file that is waited for */
};

/* What a thread waits for. */
enum wait_object_kind {
	OBJECT_NONE = 0,
	OBJECT_FUTEX = 1, /* object: address of the futex word; fd: the owner, see below */
	/* Files, by type. object: inode number; fd: the descriptor; dev: device. */
	OBJECT_FILE = 2,
	OBJECT_SOCKET = 3,
	OBJECT_PIPE = 4,
	OBJECT_OTHER = 5, /* a device, an eventfd ... */
};

#define WAIT_NO_FD (-1)

/*
 * A run on a CPU and the interval off the CPU that followed it:
 *
 *	|----- ran_ns -----|--- blocked_ns ---|-- queue_ns --|
 *	                 off_ns             woken           on
 *
 * An interval that began while the thread was runnable has blocked_ns 0. Durations that do not fit
 * are sent as RECORD_WAIT.
 */
struct wait_record {
	wire_u64 off_ns;
	wire_u64 user_ref;   /* references of stacks, 0 = none: user stack of the wait ... */
	wire_u64 kernel_ref; /* ... its kernel part ... */
	wire_u64 waker_ref;  /* ... and user stack of the waker */
	wire_u64 object;     /* see enum wait_object_kind */
	wire_u32 blocked_ns;
	wire_u32 queue_ns;
	wire_u32 ran_ns; /* elapsed time of the run */
	wire_u32 run_ns; /* its CPU time (sum_exec_runtime) */
	wire_s32 tgid;
	wire_s32 tid;
	wire_s32 waker_tgid;
	wire_s32 waker_tid; /* 0 = not woken by a thread */
	/*
	 * OBJECT_FUTEX: thread that the lock word named, by its TID in the PID namespace of the
	 * process, 0 = none. Other kinds: the descriptor, or WAIT_NO_FD.
	 */
	wire_s32 fd;
	wire_u32 dev;        /* device (dev_t) of the file */
	wire_s16 syscall;    /* -1 = none */
	wire_u8 reason;      /* enum wait_reason */
	wire_u8 evidence;    /* enum wait_evidence */
	wire_u8 how;         /* enum wait_how */
	wire_u8 object_kind; /* enum wait_object_kind */
	wire_u16 cpu;        /* on which the interval ended */
};

/*
 * The ring of one CPU: element `cpu` of the array "wait_rings" (BPF_F_MMAPABLE), with
 * wait_ring_mask + 1 records. Only sched_switch on that CPU writes records, with interrupts off, so
 * there is no lock. Positions count records and are not reduced modulo the size.
 */
struct wait_ring {
	wire_u64 head;     /* next record to write; written by the BPF program */
	wire_u32 is_woken; /* user space was woken up; it clears this when it reads */
	wire_u32 pad[13];
	wire_u64 tail; /* next record to read; written by user space */
	wire_u64 pad_tail[7];
	struct wait_record records[];
};

/*
 * RECORD_WAIT: a record whose durations do not fit into 32 bits, or that sched_switch does not
 * write. The durations of `record` are not set. With HOW_UNACCOUNTED the durations are sums, of
 * nr_intervals intervals and nr_runs runs, which ended before record.off_ns. HOW_OBJECT is sent when
 * the wait begins, since user space can find the name of a file in /proc only while it is open.
 */
struct wait_single {
	struct kernel_record head; /* time_ns: when it was sent */
	struct wait_record record;
	wire_u64 blocked_ns;
	wire_u64 queue_ns;
	wire_u64 ran_ns;
	wire_u64 run_ns;
	wire_u32 nr_intervals;
	wire_u32 nr_runs;
};

/* RECORD_THREAD: a thread of the target exists; sent before its first wait. */
struct wait_thread {
	struct kernel_record head;
	wire_s32 ns_tid; /* its TID in its own PID namespace, which is what lock words contain */
	wire_u32 pad;
};

/* Time and intervals that were lost: no ring had room, and the thread has ended. */
struct wait_loss {
	wire_u64 ns;
	wire_u64 count;
};

#ifndef __bpf__
_Static_assert(sizeof(struct wait_record) == 88, "wait record");
_Static_assert(sizeof(struct wait_ring) == 128, "head of a ring of waits");
_Static_assert(sizeof(struct wait_single) == 24 + 88 + 40, "single wait");
#endif

#endif
