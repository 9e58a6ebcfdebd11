/*
 * Wait time attributed to its cause: what other threads did while a thread waited for them. Reads
 * the table "blame", which the capture computes wait by wait (capture/wait/blamechain.h). Each of
 * its rows has the waiter (thread, stack, reason), the time waited, the blamed thread, and what that
 * thread did: a wait reason or WAIT_ON_CPU, with its stack. Filters select waiters.
 *
 * A wait counts once, in the row of its longest part, so rows may have time and no count.
 */
#ifndef ASSAY_ANALYZE_WAIT_BLAME_H
#define ASSAY_ANALYZE_WAIT_BLAME_H

#include "analyze/stacks/calltree.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/blametag.h"

struct waitframes;

struct blame_row {
	stack_id waiter_stack;
	task_id waiter;
	uint32_t tag;            /* one tag of the wait (index in profile.tags): object, evidence */
	enum wait_reason reason; /* of the wait */
	task_id blocker;         /* the blamed thread */
	stack_id blocker_stack;  /* where it ended the wait, or where it was blocked itself */
	enum wait_reason doing;  /* WAIT_ON_CPU: it was running */
	uint8_t nr_steps;        /* 1: the waiter waited for the blamed thread directly */
	bool is_convoy;          /* threads hand one lock around, and none of them dominates */
	uint64_t nr_waits;
	uint64_t ns; /* time waited */
};

struct blame {
	struct selection sel;   /* of the table, filters applied to the waiters */
	struct blame_row *rows; /* largest first */
	size_t nr_rows;
	uint64_t ns; /* sum of the rows */
	/* Part of ns for which it is not known what the blamed thread did: not attributed. */
	uint64_t unknown_ns;
	uint64_t convoy_ns; /* part of ns in rows with is_convoy */
	/*
	 * What the rows are a part of: off-CPU time of the same filters, without idle waits (unless
	 * the filters include them) and without the run queue. At least ns.
	 */
	uint64_t of_ns;
	/* Parts of of_ns, by reason: all of it, and what is in the rows. */
	uint64_t reason_ns[WAIT_NR];
	uint64_t blamed_ns[WAIT_NR];
};

/*
 * Returns what the blamed thread of a row of table "blame" did, and its place in the chain.
 * @reasons: of the selection.
 */
struct blametag blame_tag_of(const struct profile *p, struct reasons *reasons,
			     const struct tag *tag);
/*
 * Whether the blamed thread is one that the direct one waited for in turn. A thread that waits for a lock
 * whose waiters park has been waited for directly also while it waited for that lock itself, without it.
 */
bool blame_is_of_chain(struct reasons *reasons, stack_id waiter, const struct tag *tag,
		       unsigned nr_steps);
/*
 * Appends what a thread waited for that was waited for: "waits for db in query (sleep)". @tag: of the row;
 * @doing: what its blamed thread did.
 */
void blame_add_chain(struct buf *to, const struct profile *p, struct waitframes *wf,
		     const struct tag *tag, enum wait_reason doing);
/*
 * Makes the rows, in the arena. -ENODATA: the recording has no table "blame". Else as select_run.
 */
int blame_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct blame *ret_b, struct err *err);
/* A thread that reads what an idle thread writes now and then may wait for work, as in poll. */
bool blame_is_for_work(const struct blame_row *row);
/*
 * Adds tables "blame" (by cause, function, blamed thread) and "blame_pairs" (also by waiter), and a
 * note of how much of the waiting they explain. Percentages are of blame.of_ns.
 */
void blame_report(struct report *r, const struct blame *b, const struct view_limits *limits);
/*
 * Adds stacks: frames of the waiter, "[blamed on] THREAD", frames of the blocking thread, its
 * reason. Weight: ns waited.
 */
void blame_add_to_tree(struct calltree *ct, const struct blame *b);

#endif
