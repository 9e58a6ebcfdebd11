/*
 * Why a thread does not run. The BPF programs and the profile use the same numbers; model/wait.h
 * has the names. The values are stored in files: append only.
 */
#ifndef ASSAY_WIRE_WAIT_REASON_H
#define ASSAY_WIRE_WAIT_REASON_H

enum wait_reason {
	WAIT_NONE = 0,        /* not a wait: rows without time */
	WAIT_ON_CPU = 1,      /* ran */
	WAIT_RUN_QUEUE = 2,   /* runnable: preempted, yielded, or woken and not yet running */
	WAIT_SYNC = 3,        /* a futex; the analysis makes it LOCK or PARK if frames show which */
	WAIT_LOCK = 4,        /* mutex, rwlock, lock of a file: another thread holds it */
	WAIT_PARK = 5,        /* condition variable, channel, idle worker: nothing to do */
	WAIT_FSYNC = 6,       /* fsync, fdatasync, msync, sync_file_range, sync, syncfs */
	WAIT_FILE_READ = 7,   /* regular file or block device */
	WAIT_FILE_WRITE = 8,  /* regular file or block device */
	WAIT_FAULT = 9,       /* a page read from a file or from swap */
	WAIT_MMAP_LOCK = 10,  /* mmap_lock of its process */
	WAIT_RECLAIM = 11,    /* direct reclaim, or throttled at a memory cgroup's limit */
	WAIT_POLL = 12,       /* epoll, poll, select, io_uring: no event yet */
	WAIT_SLEEP = 13,      /* nanosleep, pause */
	WAIT_NET = 14,        /* a socket: recv, send, connect, accept, read or write */
	WAIT_PIPE = 15,       /* a pipe, terminal, eventfd or similar: read or write */
	WAIT_CHILD = 16,      /* wait4, waitid */
	WAIT_FILE_OTHER = 17, /* open, stat, unlink, rename, ioctl ...: the file system */
	WAIT_KERNEL = 18,     /* a lock or a page in the kernel; no other reason fits the call */
	WAIT_STOPPED = 19,    /* stopped by a signal or a tracer */
	WAIT_OTHER = 20,      /* any other system call */
	WAIT_UNKNOWN = 21,    /* unknown: no registers, a kernel thread */
	WAIT_STOLEN = 22,     /* on a CPU, but interrupts or the hypervisor used it */
	/* Found by the analysis, from the frames of a stack. */
	WAIT_BACKPRESSURE = 23, /* a send into a full channel: until another thread takes out */
	WAIT_JOIN = 24,     /* until other threads end or arrive: join, scope, barrier, future */
	WAIT_PERMIT = 25,   /* until another thread returns a permit: semaphore, pool */
	WAIT_YIELD = 26,    /* runnable after sched_yield() */
	WAIT_EXECUTOR = 27, /* a sleep, poll or park in an async task: blocks its executor */
	WAIT_NR
};

/* What else was observed of a wait; bits. */
enum wait_evidence {
	/* The futex word looks like that of a contended lock and has the tid of an owner. */
	EVIDENCE_LOCK_WORD = 1 << 0,
	EVIDENCE_IOWAIT = 1 << 1,   /* the kernel waited for a block device */
	EVIDENCE_AT_START = 1 << 2, /* began before the capture */
	EVIDENCE_OPEN = 1 << 3,     /* did not end before the capture, or the process, did */
	EVIDENCE_BY_IRQ = 1 << 4,   /* woken by an interrupt: device or timer, no thread */
	EVIDENCE_SELF = 1 << 5,     /* ended without a waker: timeout, signal */
	EVIDENCE_POLLED = 1 << 6,   /* seen by polling /proc, not by context switches */
};

/* Duration bucket (floor(log2(ns))) of rows that have none. */
#define LOG2_NONE 0xff

#endif
