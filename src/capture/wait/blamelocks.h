/*
 * Finds convoys: locks that threads hand around. For each lock (futex word; for locks whose waiters
 * sleep on words of their own, the pair of wait and release stacks in one process) it is counted how
 * long each thread held it between wake-ups.
 *
 * The effective number of holders is 1 / sum of (share of the hold time)^2: n if n threads hold the
 * lock for equal times, about 1 if one of them has nearly all of it. A lock is in a convoy if at
 * least CONVOY_THREADS threads both waited for it and released it, the effective number is near
 * their number, and no thread has half of the time.
 */
#ifndef ASSAY_CAPTURE_WAIT_BLAMELOCKS_H
#define ASSAY_CAPTURE_WAIT_BLAMELOCKS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"

#define CONVOY_THREADS 3

struct blamelock_thread {
	int32_t tid;
	bool has_waited;
	uint64_t hold_ns;
	uint64_t nr_releases;
};

struct blamelock {
	uint64_t released_ns; /* last release */
	VEC(struct blamelock_thread) threads;
};

struct blamelocks {
	VEC(struct blamelock) locks; /* index 0: no lock */
	struct map lock_of;          /* key -> index */
};

void blamelocks_release(struct blamelocks *l);
/* Index of the lock with a key that is not 0; 0 if there are too many locks. */
uint32_t blamelocks_at(struct blamelocks *l, uint64_t key);
/* @tid waited for the lock; @by released it at @ns, having acquired it at @since_ns. */
void blamelocks_add(struct blamelocks *l, uint32_t lock, int32_t tid, int32_t by, uint64_t since_ns,
		    uint64_t ns);
bool blamelocks_is_convoy(const struct blamelocks *l, uint32_t lock);
/*
 * Halves what was counted, so that the last seconds decide. Indexes stay valid, unless there are so
 * many locks that all are forgotten.
 */
void blamelocks_age(struct blamelocks *l);

#endif
