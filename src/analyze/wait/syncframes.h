/*
 * Classifies functions of known libraries and runtimes by what a futex wait below them means:
 * waiting for a lock, for work (parking), or for another thread to take, finish or release
 * something. The table is in syncframes.c, one line per pattern.
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
	/*
	 * Wait for another thread, also if they park for it or wait for a semaphore: until it takes
	 * something out of a full channel, until it ends or arrives (join, barrier, latch, future),
	 * until it returns a permit (semaphore, pool).
	 */
	SYNC_BACKPRESSURE,
	SYNC_JOIN,
	SYNC_PERMIT,
	/*
	 * Runs code of the program and then waits until other threads end. SYNC_JOIN if all frames
	 * between it and a SYNC_PARK_PART are known, else SYNC_UNKNOWN.
	 */
	SYNC_JOIN_AROUND,
	/* A semaphore, of which other things are built as well: like SYNC_PARK_PART. */
	SYNC_PERMIT_PART,
	/* Locks, condition variables and joins are built of it: only an outer frame shows which. */
	SYNC_UNCLEAR,
	/* Code that an interpreter runs: SYNC_UNCLEAR that it calls itself is a lock. */
	SYNC_CODE,
};

/* @function: the name as shown (demangled). */
enum sync_kind sync_kind_of(struct sv function);

#endif
