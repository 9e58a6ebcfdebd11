/*
 * What the ledger of threads in the kernel (bpf/waits.bpf.h) hands to user space: rows of two hash
 * maps, one for the current stretch of time and one that is read out meanwhile, and single long
 * waits through the ring (RECORD_WAIT).
 *
 * Times are CLOCK_MONOTONIC ns. A row's second counts from wait_clock.epoch_ns.
 */
#ifndef ASSAY_WIRE_KERNEL_WAIT_H
#define ASSAY_WIRE_KERNEL_WAIT_H

#include "kernel_record.h"
#include "wire_types.h"

/* The ledger's switches, written by user space, read by each program. */
struct wait_clock {
	wire_u64 epoch_ns; /* where second 0 starts; 0 = nothing is booked yet */
	wire_u64 start_ns; /* all threads are watched from here */
	wire_u64 stop_ns;  /* what happens from here on is not booked; 0 = no end yet */
	wire_u32 page;     /* which of the two maps is written */
	wire_u32 pad;
};

enum wait_account {
	WAITACCOUNT_OFF_CPU = 1, /* an interval off the CPU; row.queue_ns of it in the run queue */
	WAITACCOUNT_ON_CPU = 2,  /* the thread ran; row.count times, without stack */
	WAITACCOUNT_BLAME = 3,   /* what another thread did while this one waited for it */
	WAITACCOUNT_OBJECT = 4,  /* no time: a file that is waited for, told while it is open */
};

enum wait_how {
	HOW_BLOCKED = 0,     /* waited for something, then was woken */
	HOW_PREEMPTED = 1,   /* lost its CPU */
	HOW_YIELDED = 2,     /* gave its CPU away, sched_yield() */
	HOW_BORN = 3,        /* from its birth to its first run */
	HOW_UNACCOUNTED = 4, /* sums of intervals for which a map had no room */
};

enum wait_object_kind {
	OBJECT_NONE = 0,
	OBJECT_FUTEX = 1, /* object: address of the futex word */
	/* object: inode number; fd: the descriptor, row.dev: its device. By the kind of file: */
	OBJECT_FILE = 2,
	OBJECT_SOCKET = 3,
	OBJECT_PIPE = 4,
	OBJECT_OTHER = 5, /* a device, an eventfd ... */
};

/* fd of a key without a descriptor. */
#define WAIT_NO_FD (-1)

struct wait_key {
	wire_u64 user_ref;  /* stack of the waiting thread, 0 = none */
	wire_u64 other_ref; /* stack of the waker, or of the culprit (WAITACCOUNT_BLAME) */
	wire_u64 object;
	wire_u32 second;
	wire_s32 tgid; /* in the root PID namespace, as the others */
	wire_s32 tid;
	wire_s32 other_tid; /* waker or culprit, 0 = none */
	wire_s32 fd;
	wire_s16 syscall; /* -1 = none */
	wire_u8 reason;   /* enum wait_reason */
	wire_u8 evidence; /* enum wait_evidence */
	wire_u8 account;  /* enum wait_account */
	wire_u8 how;      /* enum wait_how */
	wire_u8 object_kind;
	wire_u8 log2_ns; /* class of each interval's blocked part, LOG2_NONE = none */
	wire_u8 pad[4];
};

/*
 * Times in the run queue after a wait, counted by duration. Were they part of the key, most rows
 * would differ in nothing else. Class 0 is everything below 4 us, the last one 4 ms and more.
 */
#define WAIT_QUEUE_CLASSES    12
#define WAIT_QUEUE_LOG2_FIRST 11

struct wait_row {
	wire_u64 ns;       /* blocked, or in the run queue of HOW_PREEMPTED and so on, or on CPU */
	wire_u64 queue_ns; /* from being woken to running */
	wire_u64 max_ns;   /* the longest */
	wire_u64 max_queue_ns; /* the longest */
	wire_u64 kernel_ref;   /* kernel stack when the row's stack was first seen */
	wire_u32 count;
	wire_s32 other_tgid;
	wire_u32 dev;
	wire_u32 queued[WAIT_QUEUE_CLASSES]; /* how many; the sum is count where it applies */
	wire_u32 pad;
};

/*
 * RECORD_WAIT. Intervals of WAITACCOUNT_ON_CPU have woken_ns == end_ns. HOW_UNACCOUNTED: the sum of dev
 * intervals, which ended by then.
 */
struct wait_single {
	struct kernel_record head; /* time_ns: when it was sent */
	struct wait_key key;       /* without second and log2 classes */
	wire_u64 start_ns;
	wire_u64 woken_ns; /* from here on it was in the run queue */
	wire_u64 end_ns;
	wire_u64 kernel_ref;
	wire_s32 other_tgid;
	wire_u32 dev;
};

/* Waits of this length and more are sent singly, while the ring has room. */
#define WAIT_SINGLE_NS 50000000ull

/* Time for which no row could be kept at all. */
struct wait_loss {
	wire_u64 ns;
	wire_u64 count;
};

#ifndef __bpf__
_Static_assert(sizeof(struct wait_key) == 56, "wait key");
_Static_assert(sizeof(struct wait_row) == 104, "wait row");
_Static_assert(sizeof(struct wait_single) == 24 + 56 + 40, "single wait");
#endif

#endif
