/*
 * Waits moved to their cause: what the thread that ended a wait was doing meanwhile. From the table
 * "blame", in which each row says: this waiter (stack), that long, while that culprit (other) was
 * doing this (reason, other_stack).
 *
 * A culprit that itself waited for a lock passes the blame on to those whom it waited for, in
 * proportion, up to BLAME_DEPTH_MAX steps. A chain that comes back to somebody in it is a convoy:
 * threads that hand one lock around; its time is booked there.
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
	uint32_t tag; /* of the first step: lock, evidence */
	task_id culprit;
	stack_id culprit_stack; /* what it did then: where it released, or where it waited itself */
	enum wait_reason doing; /* WAIT_ON_CPU: it ran */
	uint8_t nr_steps;       /* 1 = directly */
	bool is_convoy;
	uint64_t nr_waits;
	uint64_t ns;
};

struct blame {
	struct selection sel;   /* of the table, filters applied to the waiters */
	struct blame_row *rows; /* largest first */
	size_t nr_rows;
	uint64_t ns;
	uint64_t convoy_ns;
};

/* -ENODATA when the recording has no such table. */
int blame_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct blame *ret_b, struct err *err);
/* Tables "blame" (what culprits did: reason, function, thread) and "blame_pairs" (who for whom). */
void blame_report(struct report *r, const struct blame *b, const struct view_limits *limits);
/* Waiter's frames, "[blamed on] thread", culprit's frames, what it did; width is waited time. */
void blame_add_to_tree(struct calltree *ct, const struct blame *b);

#endif
