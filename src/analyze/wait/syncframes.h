/*
 * Classifies functions of known libraries and runtimes by what a futex wait below them means:
 * waiting for a lock, or waiting for work (parking). The table is in syncframes.c, one line per
 * pattern.
 */
#ifndef ASSAY_ANALYZE_WAIT_SYNCFRAMES_H
#define ASSAY_ANALYZE_WAIT_SYNCFRAMES_H

#include "base/base.h"
#include "base/sv.h"

enum sync_kind {
	SYNC_UNKNOWN = 0, /* not known: the next outer frame decides */
	SYNC_LOCK,        /* waits for a lock, whatever it calls */
	SYNC_PARK,        /* idle: waits for work */
	/*
	 * A function that parks and from which some locks are built (condition variables, parkers).
	 * A wait for a lock if an outer frame is SYNC_LOCK_BY_PARK, with only unknown frames
	 * between; else the same as SYNC_PARK.
	 */
	SYNC_PARK_PART,
	/*
	 * A function of a lock whose waiters park: waits for a lock also if the reason is a poll
	 * or a sleep. The futex word is the waiter's own, so it does not identify the lock.
	 */
	SYNC_LOCK_BY_PARK,
	SYNC_PASS, /* treated as SYNC_UNKNOWN, although a more general pattern matches */
};

/* @function: the name as shown (demangled). */
enum sync_kind sync_kind_of(struct sv function);

#endif
