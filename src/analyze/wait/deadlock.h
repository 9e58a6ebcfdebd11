/*
 * Deadlocks: threads of which each waits for a lock that the next one holds, the last for one that the
 * first holds, in waits that were not over at the end of the capture. At that time the owner of each
 * lock was read from the lock's word (glibc's mutexes, priority-inheritance futexes). None of the owners
 * could run, so the words were still true.
 */
#ifndef ASSAY_ANALYZE_WAIT_DEADLOCK_H
#define ASSAY_ANALYZE_WAIT_DEADLOCK_H

#include "analyze/wait/blame.h"
#include "base/base.h"

/*
 * Returns a sentence on the longest one, in the arena; NULL: none is known. @window_ns: length of the
 * capture.
 */
const char *deadlock_text(struct arena *a, const struct blame *b, uint64_t window_ns);

#endif
