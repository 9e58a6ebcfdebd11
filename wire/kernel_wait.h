/*
 * What off-CPU accounting in the kernel (bpf/waits.bpf.h) sends to user space: rows of two hash
 * maps (the programs write one while user space reads the other), and single long waits through the
 * ring (RECORD_WAIT).
 *
 * Times are CLOCK_MONOTONIC ns. Seconds count from wait_clock.epoch_ns.
 */
#ifndef ASSAY_WIRE_KERNEL_WAIT_H
#define ASSAY_WIRE_KERNEL_WAIT_H

#include "kernel_record.h"
#include "wire_types.h"

/* Start, stop and active map, written by user space and read by the programs. */
struct wait_clock {
	wire_u64 epoch_ns;   /* start of second 0; 0 = nothing is accounted yet */
	wire_u64 start_ns;   /* start of the accounting of all threads */
	wire_u64 stop_ns;    /* end of the accounting; 0 = no end yet */
	wire_u32 active_map; /* the map that programs write: 0 = wait_rows0, 1 = wait_rows1 */
	wire_u32 pad;
};

/* What a row or a RECORD_WAIT accounts. */
enum wait_account {
	WAITACCOUNT_OFF_CPU = 1, /* an interval off the CPU; row.queue_ns of it in the run queue */
	WAITACCOUNT_ON_CPU = 2,  /* the thread ran; row.count times, without stack */
	WAITACCOUNT_BLAME = 3,   /* what another thread did while this one waited for its lock */
	WAITACCOUNT_OBJECT = 4,  /* RECORD_WAIT without times: names a file that is waited for */
};

/* How an interval off the CPU began. */
enum wait_how {
	HOW_BLOCKED = 0,     /* blocked until it was woken */
	HOW_PREEMPTED = 1,   /* preempted while runnable */
	HOW_YIELDED = 2,     /* sched_yield() */
	HOW_NEW_THREAD = 3,  /* from its creation to its first run */
	HOW_UNACCOUNTED = 4, /* sum of intervals for which a map had no room */
};

/* What a thread waits for. */
enum wait_object_kind {
	OBJECT_NONE = 0,
	OBJECT_FUTEX = 1, /* object: address of the futex word */
	/* Files, by type. object: inode number; fd: the descriptor; wait_row.dev: device. */
	OBJECT_FILE = 2,
	OBJECT_SOCKET = 3,
	OBJECT_PIPE = 4,
	OBJECT_OTHER = 5, /* a device, an eventfd ... */
};

/* fd of a key without a descriptor. */
#define WAIT_NO_FD (-1)

/* Key of a row. */
struct wait_key {
	wire_u64 user_ref;  /* stack of the waiting thread, 0 = none */
	wire_u64 other_ref; /* stack of the waker or (BLAME) of the blocking thread, 0 = none */
	wire_u64 object;    /* see enum wait_object_kind */
	wire_u32 second;
	wire_s32 tgid; /* all ids are of the root PID namespace */
	wire_s32 tid;
	wire_s32 other_tid;  /* waker or (BLAME) blocking thread, 0 = none */
	wire_s32 fd;         /* file descriptor or WAIT_NO_FD */
	wire_s16 syscall;    /* -1 = none */
	wire_u8 reason;      /* enum wait_reason */
	wire_u8 evidence;    /* enum wait_evidence */
	wire_u8 account;     /* enum wait_account */
	wire_u8 how;         /* enum wait_how */
	wire_u8 object_kind; /* enum wait_object_kind */
	wire_u8 log2_ns;     /* log2 of the blocked time of each interval, or LOG2_NONE */
	wire_u8 pad[4];
};

/*
 * Wake-up latencies (time in the run queue after a wait) are a histogram in the row, by log2 of the
 * duration. As part of the key they would multiply the rows. Class 0 is everything below 4 us, the
 * last one is 4 ms and more.
 */
#define WAIT_QUEUE_CLASSES    12
#define WAIT_QUEUE_LOG2_FIRST 11

struct wait_row {
	/* ON_CPU: time on CPU. OFF_CPU: blocked time, or run queue time if it was not blocked. */
	wire_u64 ns;
	wire_u64 queue_ns;     /* time in the run queue after the wake-up */
	wire_u64 max_ns;       /* of one interval */
	wire_u64 max_queue_ns; /* of one interval */
	wire_u64 kernel_ref; /* kernel stack, taken when the row's stack was first seen; 0 = none */
	wire_u32 count;      /* of intervals */
	wire_s32 other_tgid; /* process of other_tid */
	wire_u32 dev;        /* device (dev_t) of the file */
	wire_u32 queued[WAIT_QUEUE_CLASSES]; /* intervals by wake-up latency; HOW_BLOCKED only */
	wire_u32 pad;
};

/*
 * RECORD_WAIT. Intervals of WAITACCOUNT_ON_CPU have woken_ns == end_ns. With HOW_UNACCOUNTED `dev`
 * is a number of intervals, end_ns - start_ns is their total time, and all of them ended before
 * end_ns. WAITACCOUNT_OBJECT: sent when the wait begins, since user space can find the name of a
 * file in /proc only while the file is open.
 */
struct wait_single {
	struct kernel_record head; /* time_ns: when it was sent */
	struct wait_key key;       /* second and log2_ns are not set */
	wire_u64 start_ns;
	wire_u64 woken_ns; /* from here on it was in the run queue */
	wire_u64 end_ns;
	wire_u64 kernel_ref; /* as in struct wait_row */
	wire_s32 other_tgid;
	wire_u32 dev;
};

/* Intervals of this length and more are sent singly if the ring has room. */
#define WAIT_SINGLE_NS 50000000ull

/* Time and intervals that were lost: neither a map nor the ring had room. */
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
