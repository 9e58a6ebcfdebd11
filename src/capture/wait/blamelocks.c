/* Shares of the threads in locks; see blamelocks.h. */
#include "base/base.h"
#include "capture/wait/blamelocks.h"

#define LOCKS_MAX    65536
#define THREADS_MAX  256 /* of a lock; further ones are not counted */
#define RELEASES_MIN 4   /* per thread: fewer are no evidence */

void blamelocks_release(struct blamelocks *l)
{
	vec_foreach(lock, &l->locks)
		vec_release(&lock->threads);
	vec_release(&l->locks);
	map_release(&l->lock_of);
}

uint32_t blamelocks_at(struct blamelocks *l, uint64_t key)
{
	ASSERT(key);
	if (!l->locks.n)
		(void)vec_add(&l->locks);
	uint32_t *known = map_get(&l->lock_of, key);
	if (known)
		return *known;
	if (l->locks.n == LOCKS_MAX)
		return 0;
	*map_put(&l->lock_of, key, NULL) = (uint32_t)l->locks.n;
	(void)vec_add(&l->locks);
	return (uint32_t)l->locks.n - 1;
}

static struct blamelock_thread *thread_of(struct blamelock *lock, int32_t tid)
{
	vec_foreach(t, &lock->threads)
		if (t->tid == tid)
			return t;
	if (lock->threads.n == THREADS_MAX)
		return NULL;
	struct blamelock_thread *t = vec_add(&lock->threads);
	t->tid = tid;
	return t;
}

void blamelocks_add(struct blamelocks *l, uint32_t lock, int32_t tid, int32_t by)
{
	if (!lock)
		return;
	struct blamelock_thread *waiter = thread_of(&l->locks.p[lock], tid);
	if (waiter)
		waiter->has_waited = true;
	struct blamelock_thread *releaser = thread_of(&l->locks.p[lock], by);
	if (releaser)
		releaser->nr_releases++;
}

void blamelocks_add_time(struct blamelocks *l, uint32_t lock, int32_t tid, uint64_t ns)
{
	if (!lock)
		return;
	struct blamelock_thread *t = thread_of(&l->locks.p[lock], tid);
	if (t)
		t->blamed_ns += ns;
}

bool blamelocks_is_convoy(const struct blamelocks *l, uint32_t idx)
{
	double sum = 0;
	double sum_of_squares = 0;
	double most = 0;
	uint64_t nr_releases = 0;
	uint32_t nr = 0;
	if (!idx)
		return false;
	vec_foreach(t, &l->locks.p[idx].threads) {
		double ns = (double)t->blamed_ns;
		sum += ns;
		sum_of_squares += ns * ns;
		most = MAX(most, ns);
		nr_releases += t->nr_releases;
		nr += t->has_waited && t->nr_releases;
	}
	if (nr < CONVOY_THREADS || nr_releases < (uint64_t)nr * RELEASES_MIN || sum <= 0)
		return false;
	double nr_effective = sum * sum / sum_of_squares;
	return most < sum / 2 && nr_effective >= MAX(2.4, 0.5 * nr);
}

void blamelocks_age(struct blamelocks *l)
{
	if (l->locks.n == LOCKS_MAX) {
		blamelocks_release(l);
		return;
	}
	vec_foreach(lock, &l->locks) {
		size_t n = 0;
		vec_foreach(t, &lock->threads) {
			t->blamed_ns /= 2;
			t->nr_releases /= 2;
			if (t->nr_releases || t->blamed_ns)
				lock->threads.p[n++] = *t;
		}
		lock->threads.n = n;
	}
}
