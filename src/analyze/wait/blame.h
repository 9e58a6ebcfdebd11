/*
 * Attributes wait time to its cause: what the blocking thread did while the waiter waited. The
 * blocking thread is the waker. If the lock had several owners during the wait, the time until the
 * waker acquired it is attributed to the owner that the lock word named (capture/wait/blamechain.h). Reads
 * the table "blame". Each of its rows has the waiter (thread and stack), the time waited, the
 * blocking thread, and what that thread did: a wait reason or WAIT_ON_CPU, with its stack.
 *
 * If the blocking thread itself waited for a lock, its share is passed on to the threads that it
 * waited for, in proportion to the times that it waited for each of them at the same stack, over up
 * to BLAME_DEPTH_MAX steps. A chain that returns to a thread already in it is a convoy: threads
 * that pass one lock around. Its time is attributed to that thread and marked.
 */
#ifndef ASSAY_ANALYZE_WAIT_BLAME_H
#define ASSAY_ANALYZE_WAIT_BLAME_H

#include "analyze/stacks/calltree.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

#define BLAME_DEPTH_MAX 8

struct blame_row {
	stack_id waiter_stack;
	task_id waiter;
	uint32_t tag;    /* tag of the waiter's wait (index in profile.tags): lock, evidence */
	task_id blocker; /* the blocking thread */
	stack_id blocker_stack; /* where it released the lock, or where it waited itself */
	enum wait_reason doing; /* WAIT_ON_CPU: it was running */
	uint8_t nr_steps;       /* 1: the waiter waited for the blocking thread directly */
	bool is_convoy;         /* the chain returned to a thread already in it */
	uint64_t nr_waits;
	uint64_t ns; /* time waited */
};

struct blame {
	struct selection sel;   /* of the table, filters applied to the waiters */
	struct blame_row *rows; /* largest first */
	size_t nr_rows;
	uint64_t ns;        /* sum of the rows */
	uint64_t convoy_ns; /* part of ns in rows with is_convoy */
};

/*
 * Makes the rows, in the arena. -ENODATA: the recording has no table "blame". Else as select_run.
 */
int blame_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct blame *ret_b, struct err *err);
/* Adds tables "blame" (by reason, function, blocking thread) and "blame_pairs" (also by waiter). */
void blame_report(struct report *r, const struct blame *b, const struct view_limits *limits);
/*
 * Adds stacks: frames of the waiter, "[blamed on] THREAD", frames of the blocking thread, its
 * reason. Weight: ns waited.
 */
void blame_add_to_tree(struct calltree *ct, const struct blame *b);

#endif
