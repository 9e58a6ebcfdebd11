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
	/* Parks, but locks are built from it (condition variables, parkers): a lock wait if an
	 * outer frame is SYNC_LOCK_BY_PARK, with only unknown frames between. */
	SYNC_PARK_PART,
	SYNC_LOCK_BY_PARK, /* a lock whose waiters park */
	SYNC_PASS,         /* as unknown, although a more general pattern matches */
};

/* @function: the name as shown (demangled). */
enum sync_kind sync_kind_of(struct sv function);

#endif
