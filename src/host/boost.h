/*
 * While somebody is stopped and waits for the calling thread: it runs before all that is not
 * urgent (SCHED_FIFO, where it may: CAP_SYS_NICE) and wakes up on time. It must sleep, not spin,
 * while it waits. Threads are not to be made meanwhile: they would inherit it. Nested ones change
 * nothing.
 */
#ifndef ASSAY_HOST_BOOST_H
#define ASSAY_HOST_BOOST_H

#include "base/base.h"

#include <pthread.h>

struct host_boost {
	bool is_raised;
	bool has_slack;
	int slack_ns;
	/* The thread that is lent the priority, and the one of ours that waits for it. */
	uint32_t owner;
	bool has_waiter;
	bool is_over;
	pthread_t waiter;
	int32_t waiter_tid; /* 0: it has not begun */
	int only_fd;        /* held during a loan: one at a time on this machine */
};

void host_boost_begin(struct host_boost *u);
/*
 * The thread @tid of another process, which is made to run now and then until the end, is lent the
 * priority: on a busy machine it would wait for a CPU each time. Nothing of it is changed, so
 * nothing has to be undone if we are killed. It ends after 10 ms by itself. One at a time; *u stays
 * where it is until the end.
 */
void host_boost_thread(struct host_boost *u, int32_t tid);
void host_boost_end(struct host_boost *u);

#endif
