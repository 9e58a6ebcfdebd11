/*
 * Simulates threads that take a lock, on few CPUs, in steps of 1 us: produces their intervals off
 * the CPU (capture/wait/interval.h) and, for each wait for the lock, who held it when.
 *
 * A thread does in a loop: think (run, then sleep), acquire, hold (run, then block for a reason),
 * release. A release wakes one waiter. What then happens depends on the kind of lock.
 */
#ifndef ASSAY_TESTS_LIB_LOCKSIM_H
#define ASSAY_TESTS_LIB_LOCKSIM_H

#include "base/base.h"
#include "base/vec.h"
#include "capture/wait/interval.h"

enum locksim_kind {
	LOCKSIM_BARGING = 1 << 0,  /* the woken thread competes with others; else it has the lock */
	LOCKSIM_OWN_WORD = 1 << 1, /* waiters sleep on words of their own (parking_lot) */
	LOCKSIM_OWNER = 1 << 2,    /* the lock word names the owner */
	LOCKSIM_SPINNING = 1 << 3, /* threads spin for a while before they sleep */
};

#define LOCKSIM_THREADS 40

struct locksim_plan {
	uint32_t think_us; /* mean; the thread runs */
	uint32_t rest_us;  /* mean; it sleeps */
	uint32_t hold_us;  /* it runs */
	uint32_t block_us; /* it is blocked with the lock held */
	uint8_t reason;    /* enum wait_reason of that */
	bool is_burner;    /* only runs, never takes the lock */
	uint8_t place; /* added to the stacks: threads may take the lock in different functions */
};

struct locksim {
	unsigned kind;
	uint64_t seed;
	uint32_t nr_cpus;
	uint32_t nr_threads;
	uint32_t nr_us;
	struct locksim_plan plans[LOCKSIM_THREADS];
	uint32_t slice_us; /* 0: default */

	VEC(struct wait_interval) intervals; /* by on_ns */
	/* Of all waits for the lock, until the wake-up: time in which each thread held it. */
	uint64_t held_ns[LOCKSIM_THREADS];
	/* ... in which each thread was blocked while it held the lock */
	uint64_t blocked_ns[LOCKSIM_THREADS];
	uint64_t free_ns; /* ... and in which no thread held it */
	uint64_t wait_ns; /* all of it */
};

/* Thread i has tid LOCKSIM_TID + i. Its wait for the lock has stack LOCKSIM_WAIT, wake-ups ... */
#define LOCKSIM_TGID    1000
#define LOCKSIM_TID     1000
#define LOCKSIM_WAIT    11
#define LOCKSIM_RELEASE 22
#define LOCKSIM_BLOCK   33
#define LOCKSIM_REST    44
#define LOCKSIM_RUN     55
#define LOCKSIM_OBJECT  0x7f0000001000
#define LOCKSIM_START   1000000000ull

void locksim_run(struct locksim *s);
void locksim_release(struct locksim *s);

#endif
