/*
 * Classifies futex waits (WAIT_SYNC): waiting for a lock that another thread holds, for another
 * thread to take, end or release something, or parked until there is work.
 *
 * The names of the frames decide, from the leaf outwards (table in syncframes.c). A futex word that
 * looks like a lock with an owner (EVIDENCE_LOCK_WORD) decides only if no frame is known, since the
 * words of condition variables can look the same. A condition variable is idle, unless who ends the
 * waits shows that it is part of a lock (peerlocks.h). If nothing decides, the reason stays WAIT_SYNC.
 * So an idle thread pool is not reported as lock contention.
 *
 * Results are cached by stack. Lives in the caller's arena and borrows the profile, whose names
 * must not change any more.
 *
 *	struct reasons *rs = reasons_new(&arena, p);
 *	enum wait_reason why = reason_of(rs, t->stack[i], &p->tags.p[t->tag[i]]);
 */
#ifndef ASSAY_ANALYZE_WAIT_REASON_H
#define ASSAY_ANALYZE_WAIT_REASON_H

#include "analyze/wait/syncframes.h"
#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

struct reasons;

struct reasons *reasons_new(struct arena *a, const struct profile *p);
/*
 * Returns the tag's reason, WAIT_SYNC replaced by what the frames show. A poll or sleep in a lock
 * function is a wait for that lock (postgres waits for row locks by polling a latch, spin locks
 * sleep). A wait in a write to a pipe or socket is WAIT_BACKPRESSURE, for a lock of a file WAIT_LOCK;
 * a read of a timer, or of a terminal and other sources of events, is idle. The run queue after
 * sched_yield is WAIT_YIELD. A wait that would be idle (poll, sleep,
 * park, child) is WAIT_EXECUTOR below the poll function of a future.
 */
enum wait_reason reason_of(struct reasons *rs, stack_id stack, const struct tag *tag);
/*
 * True for a wait that blocks the executor of an async task: a blocking call, lock or channel below
 * the poll function of a future, whatever its reason. Page faults and the run queue are not.
 */
bool reason_blocks_executor(struct reasons *rs, stack_id stack, enum wait_reason r);
/*
 * Classifies a futex wait by the frames of its stack alone. SYNC_LOCK_BY_PARK: a lock whose waiters
 * park on a futex word of their own, so the word does not identify the lock. SYNC_UNKNOWN,
 * SYNC_UNCLEAR, SYNC_JOIN_AROUND: the frames do not show which.
 */
enum sync_kind reason_of_frames(struct reasons *rs, stack_id stack);
/* Whether the wait is for a lock that is known by who ends the waits (peerlocks.h). */
bool reason_is_by_peers(struct reasons *rs, stack_id stack);

#endif
