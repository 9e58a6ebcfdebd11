/*
 * Why a thread does not run, as the BPF programs and the profile both number it;
 * model/wait.h has the words. Values reach files: append only.
 */
#ifndef ASSAY_WIRE_WAIT_REASON_H
#define ASSAY_WIRE_WAIT_REASON_H

enum wait_reason {
	WAIT_NONE = 0,      /* no wait: rows that are no time */
	WAIT_ON_CPU = 1,    /* ran */
	WAIT_RUN_QUEUE = 2, /* could run, had no CPU: preempted, yielded, or woken and not yet on */
	WAIT_SYNC = 3,      /* a futex, not told apart yet */
	WAIT_LOCK = 4,      /* mutex, rwlock: somebody holds it */
	WAIT_PARK = 5,      /* condition variable, channel, parked worker: nothing to do */
	WAIT_FSYNC = 6,     /* fsync, fdatasync, msync, sync_file_range, sync, syncfs */
	WAIT_FILE_READ = 7, /* regular file or block device */
	WAIT_FILE_WRITE = 8,  /* the same */
	WAIT_FAULT = 9,       /* a page read from a file or from swap */
	WAIT_MMAP_LOCK = 10,  /* the process's own memory map */
	WAIT_RECLAIM = 11,    /* memory had to be freed first, or the group's limit throttled */
	WAIT_POLL = 12,       /* epoll, poll, select, io_uring: no event yet */
	WAIT_SLEEP = 13,      /* nanosleep, pause */
	WAIT_NET = 14,        /* a socket: recv, send, connect, accept, read or write */
	WAIT_PIPE = 15,       /* a pipe, terminal, eventfd or such: read or write */
	WAIT_CHILD = 16,      /* wait4, waitid */
	WAIT_FILE_OTHER = 17, /* open, stat, unlink, rename, flock, ioctl ...: the file system */
	WAIT_KERNEL = 18,     /* a lock or a page inside the kernel, in a call that says no more */
	WAIT_STOPPED = 19,    /* stopped by a signal or a tracer */
	WAIT_OTHER = 20,      /* a system call of no class above */
	WAIT_UNKNOWN = 21,    /* nothing is known: no registers, a kernel thread */
	WAIT_NR
};

/* What was seen when it began; bits. */
enum wait_evidence {
	EVIDENCE_LOCK_WORD =
		1 << 0,           /* the futex word is a lock's with waiters, and names an owner */
	EVIDENCE_IOWAIT = 1 << 1, /* the kernel waited for a block device */
	EVIDENCE_AT_START = 1 << 2, /* waited already when the capture began */
	EVIDENCE_OPEN = 1 << 3,     /* had not ended when the capture ended */
	EVIDENCE_BY_IRQ = 1 << 4,   /* woken by an interrupt: device or timer, no thread */
	EVIDENCE_SELF = 1 << 5,     /* ended without a waker: time ran out, a signal */
	EVIDENCE_POLLED = 1 << 6,   /* seen by looking from time to time, not by its switches */
};

/* No duration class: a row that is no interval. */
#define LOG2_NONE 0xff

#endif
