/*
 * Real-time priority for the time in which a thread of the target is stopped: the calling thread
 * gets SCHED_FIFO (where permitted: CAP_SYS_NICE) and a timer slack of 1 ns, so that the stop is
 * short on a busy machine too. Between begin and end the caller must sleep when it waits, not spin,
 * and must not create threads, which would inherit the policy. A nested begin changes nothing.
 */
#ifndef ASSAY_HOST_BOOST_H
#define ASSAY_HOST_BOOST_H

#include "base/base.h"

#include <pthread.h>

struct host_boost {
	bool is_raised; /* the caller's policy was changed */
	bool has_slack; /* the caller's timer slack was changed; slack_ns: what it was */
	int slack_ns;
	/* Priority inheritance: a PI futex with the boosted thread's tid; our thread waits on it. */
	uint32_t futex;
	bool has_waiter;
	bool is_over;
	pthread_t waiter;
	int32_t waiter_tid; /* 0: not started yet */
	int lock_fd;        /* held while a thread is boosted: one at a time on this machine */
};

/* Raises the calling thread's policy; without CAP_SYS_NICE only the timer slack changes. */
void host_boost_begin(struct host_boost *b);
/*
 * Boosts the thread @tid of another process by priority inheritance (PI futex), until
 * host_boost_end or for 10 ms at most: for a thread that has to run several times while it is
 * traced and would wait for a CPU each time. No attribute of the thread is changed, so nothing is
 * left to undo if assay is killed. At most one thread per machine; a second call ends the first
 * boost. *b must not move until host_boost_end.
 */
void host_boost_thread(struct host_boost *b, int32_t tid);
/* Ends both boosts and restores the caller's policy and timer slack. */
void host_boost_end(struct host_boost *b);

#endif
