/*
 * One interval of a thread off the CPU, as sources of waits deliver it to what computes with single
 * intervals (blame, kept intervals). Between two intervals of a thread it was on a CPU.
 *
 * Times are CLOCK_MONOTONIC ns: off_ns <= woken_ns <= on_ns. Ids are of the root PID namespace.
 * References (user_ref ...) are those of EVENT_STACK, 0 = none.
 */
#ifndef ASSAY_CAPTURE_WAIT_INTERVAL_H
#define ASSAY_CAPTURE_WAIT_INTERVAL_H

#include "base/base.h"

struct wait_interval {
	uint64_t off_ns; /* switched out */
	uint64_t
		woken_ns; /* put into a run queue; off_ns if it did not block (preempted, yielded) */
	uint64_t on_ns;   /* switched in, or the end of the accounting (EVIDENCE_OPEN) */
	uint64_t user_ref;   /* stack of the wait */
	uint64_t kernel_ref; /* kernel part of it */
	uint64_t waker_ref;  /* stack of the waker at the wake-up */
	uint64_t object;     /* see enum wait_object_kind */
	int32_t tgid;
	int32_t tid;
	int32_t waker_tgid;
	int32_t waker_tid;   /* 0 = not woken by a thread */
	int32_t owner_tid;   /* thread that the lock word named at off_ns; 0 = unknown */
	int32_t fd;          /* or WAIT_NO_FD */
	uint32_t dev;        /* device of the file */
	uint32_t run_ns;     /* CPU time (sum_exec_runtime) of the run that ended at off_ns */
	int16_t syscall;     /* -1 = none */
	uint8_t reason;      /* enum wait_reason */
	uint8_t evidence;    /* bits of enum wait_evidence */
	uint8_t how;         /* enum wait_how */
	uint8_t object_kind; /* enum wait_object_kind */
	uint16_t cpu;        /* on which it was switched in */
};

/* Duration bucket of rows (struct tag). */
static inline uint8_t interval_log2_of(uint64_t ns)
{
	return (uint8_t)(63 - __builtin_clzll(ns | 1));
}

#endif
