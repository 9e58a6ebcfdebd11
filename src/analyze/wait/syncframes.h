/*
 * Functions that wait for a lock, and functions that wait for work: what the frames of known
 * libraries and runtimes mean when a thread waits on a futex below them. The table is in
 * syncframes.c; one line a pattern.
 */
#ifndef ASSAY_ANALYZE_WAIT_SYNCFRAMES_H
#define ASSAY_ANALYZE_WAIT_SYNCFRAMES_H

#include "base/base.h"
#include "base/sv.h"

enum sync_kind {
	SYNC_UNKNOWN = 0, /* says nothing: look at the next frame outwards */
	SYNC_LOCK,        /* waits for a lock; holds for what it calls */
	SYNC_PARK,        /* waits for something to do */
	/* Parks, but locks are made of it (condition variables, parkers): a SYNC_LOCK_BY_PARK
	 * further outwards, with nothing known between, makes it a lock. */
	SYNC_PARK_PART,
	SYNC_LOCK_BY_PARK, /* a lock whose waiters park */
	SYNC_PASS,         /* known to say nothing, although a general pattern would match */
};

/* By the name as shown (demangled). */
enum sync_kind sync_kind_of(struct sv function);

#endif
