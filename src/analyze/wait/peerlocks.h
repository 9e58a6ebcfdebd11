/*
 * Locks that programs build of condition variables or parkers, found by who ends the waits, not by
 * names: the row locks of a database whose symbols are stripped.
 *
 * A thread that waits on a condition variable is idle if it waits for work, and blocked if another
 * thread must release something first. The functions of a program do not show which. The function that
 * waits is one of a lock if
 *	- those who end its waits nearly always wait there themselves at other times: who takes a lock
 *	  releases it, while work is given by others (is_ended_by_peers), and
 *	- they end the wait within the same request: the stacks of both have a call in common that is
 *	  below the one in which the waiter waits for its requests (sockets, pipes, polls, channels).
 *
 *	serve > read                              waits for a request
 *	serve > handle > update > lock_row > cond_wait      waits for a peer ...
 *	serve > handle > commit > unlock > cond_signal      ... which is in "handle" as well
 *
 * The threads of a pool, too, wake each other; but what they have in common then is the loop in which
 * they wait. A pool whose threads have nothing else to wait for remains idle.
 *
 * What it cannot distinguish from a lock: a place in a pool of connections, or a result that one request
 * makes for the next (group commit). Nothing of it is idle.
 *
 * Lives in the caller's arena and borrows the profile.
 */
#ifndef ASSAY_ANALYZE_WAIT_PEERLOCKS_H
#define ASSAY_ANALYZE_WAIT_PEERLOCKS_H

#include "analyze/wait/stackkinds.h"
#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

struct peerlocks;

struct peerlocks *peerlocks_new(struct arena *a, const struct profile *p, struct stackkinds *kinds);
/* Whether the function that waits in this stack, of kind SYNC_PARK_PART, is one of such a lock. */
bool peerlocks_has(struct peerlocks *pl, stack_id stack);

#endif
