/*
 * Finds convoys: locks that threads hand around. A lock is a futex word or another object that
 * several threads wait for; if waiters sleep on words of their own, all waits at one stack of a
 * process are taken for waits for one lock. For each lock it is counted which threads waited for it,
 * which released it, and how much of the waiting each thread held it for.
 *
 * The effective number of holders is 1 / sum of (share of the waiting)^2: n if n threads held it for
 * equal parts of it, about 1 if one of them for nearly all. What a holder waited for in turn does not
 * matter. A lock is in a convoy if at least CONVOY_THREADS threads both waited for it and released it,
 * the effective number is near their number, and no thread has half of the time.
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
	uint64_t blamed_ns;
	uint64_t nr_releases;
};

struct blamelock {
	VEC(struct blamelock_thread) threads;
};

struct blamelocks {
	VEC(struct blamelock) locks; /* index 0: no lock */
	struct map lock_of;          /* key -> index */
};

void blamelocks_release(struct blamelocks *l);
/* Index of the lock with a key that is not 0; 0 if there are too many locks. */
uint32_t blamelocks_at(struct blamelocks *l, uint64_t key);
/* @tid waited for the lock, which @by released. */
void blamelocks_add(struct blamelocks *l, uint32_t lock, int32_t tid, int32_t by);
/* @tid had the lock for @ns of the waiting for it. */
void blamelocks_add_time(struct blamelocks *l, uint32_t lock, int32_t tid, uint64_t ns);
bool blamelocks_is_convoy(const struct blamelocks *l, uint32_t lock);
/*
 * Halves what was counted, so that the last seconds decide. Indexes stay valid, unless there are so
 * many locks that all are forgotten.
 */
void blamelocks_age(struct blamelocks *l);

#endif
