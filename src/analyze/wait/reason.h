/*
 * Why a thread waited, where the kernel side could only say "a futex" (WAIT_SYNC): for a lock
 * that somebody holds, or parked until there is something to do.
 *
 * The names of the frames decide, from the leaf outwards (syncframes.h has them); a word that looks
 * like a lock's with an owner (EVIDENCE_LOCK_WORD) decides only where no frame says anything, since
 * the words of condition variables can look alike. What neither tells stays WAIT_SYNC. So an idle
 * pool is never called contention.
 *
 * Answers are kept by stack; ask as often as you like. Lives in the caller's arena and borrows the
 * profile, whose names must not change any more.
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
 * The tag's reason, WAIT_SYNC replaced by WAIT_LOCK or WAIT_PARK where that can be told. A poll or
 * a sleep that a lock's function makes (postgres waits for row locks on a latch, spinning locks
 * nap) is a wait for that lock.
 */
enum wait_reason reason_of(struct reasons *rs, stack_id stack, const struct tag *tag);
/*
 * What the frames of a stack say about a futex wait in it: SYNC_UNKNOWN, SYNC_PARK, SYNC_LOCK, or
 * SYNC_LOCK_BY_PARK: a lock whose waiters park on words of their own, so that the word says nothing
 * about which lock it is.
 */
enum sync_kind reason_of_frames(struct reasons *rs, stack_id stack);

#endif
