/* The drain thread of a heap capture; see heapdrain.h. */
#include "base/base.h"
#include "capture/heap/heapdrain.h"

#include <string.h>

#include "base/clock.h"
#include "host/privileges.h"

#define FULL_NO_PAUSE 600       /* of 1024 parts of a ring: no pause above this */
#define PAUSE_MAX     10000000u /* longer only if a filling ring wakes the drain thread */
#define PAUSE_FIRST   1000000u
#define RETIRE_NS     200000000u

static uint32_t pass_all(struct heapdrain *d, bool retires)
{
	uint32_t fullest = 0;
	for (size_t i = 0; i < d->list.n; i++) {
		uint32_t full = heapprocess_drain(d->list.p[i]);
		fullest = MAX(fullest, full);
		if (retires)
			heapprocess_retire(d->list.p[i]);
	}
	return fullest;
}

static void pause_for(struct heapdrain *d, uint64_t ns)
{
	uint64_t until_ns = clock_mono_ns() + ns;
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				 .tv_nsec = (long)(until_ns % NS_PER_SEC)};
	(void)pthread_cond_timedwait(&d->wakes, &d->lock, &until);
}

/* The longest pause that all processes permit. */
static uint64_t longest_pause(const struct heapdrain *d)
{
	uint64_t ns = HEAPPROCESS_POLL_NS;
	if (d->has_no_ringwait || d->list.n > RINGWAIT_FUTEXES_MAX)
		return PAUSE_MAX;
	for (size_t i = 0; i < d->list.n; i++)
		ns = MIN(ns, heapprocess_poll_ns(d->list.p[i]));
	return MAX(ns, (uint64_t)PAUSE_MAX);
}

/* Waits until a ring fills or the capture thread wakes us: true; or the time is over. */
static bool sleep_for(struct heapdrain *d, uint64_t ns)
{
	ringwait_begin(&d->ringwait);
	for (size_t i = 0; i < d->list.n; i++)
		(void)ringwait_add(&d->ringwait, heapprocess_wake_futex(d->list.p[i]));
	pthread_mutex_unlock(&d->lock);
	int rc = ringwait_sleep(&d->ringwait, clock_mono_ns() + ns);
	pthread_mutex_lock(&d->lock);
	d->has_no_ringwait |= rc < 0;
	return rc != 0;
}

static void *drainer(void *arg)
{
	struct heapdrain *d = arg;
	host_drop_all();
	uint64_t retired_ns = 0;
	uint64_t passed_ns = 0;
	uint64_t pause_ns = PAUSE_FIRST;
	pthread_mutex_lock(&d->lock);
	while (!d->is_stopping) {
		uint64_t now = clock_mono_ns();
		bool retires = now - retired_ns > RETIRE_NS;
		d->longest_gap_ns =
			MAX(d->longest_gap_ns, d->list.n && passed_ns ? now - passed_ns : 0);
		passed_ns = d->list.n ? now : 0;
		uint32_t fullest = pass_all(d, retires);
		retired_ns = retires ? now : retired_ns;
		d->drain_ns = clock_thread_cpu_ns();
		pause_ns = ringwait_next_pause(pause_ns, fullest, longest_pause(d));
		if (pause_ns > PAUSE_MAX)
			pause_ns = sleep_for(d, pause_ns) ? PAUSE_FIRST : pause_ns;
		else if (fullest < FULL_NO_PAUSE)
			pause_for(d, pause_ns);
		else if (__atomic_load_n(&d->is_wanted, __ATOMIC_RELAXED))
			pause_for(d, RINGWAIT_PAUSE_MIN_NS / 10);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* ---- life --------------------------------------------------------------------------------- */

void heapdrain_init(struct heapdrain *d)
{
	pthread_condattr_t attr;
	*d = (struct heapdrain){0};
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->wakes, &attr);
	pthread_condattr_destroy(&attr);
}

int heapdrain_start(struct heapdrain *d, struct err *err)
{
	int rc = pthread_create(&d->thread, NULL, drainer, d);
	if (rc)
		return err_set(err, -rc, "cannot start a thread: %s", strerror(rc));
	d->has_thread = true;
	return 0;
}

void heapdrain_stop(struct heapdrain *d)
{
	heapdrain_lock(d);
	d->is_stopping = true;
	pthread_cond_signal(&d->wakes);
	ringwait_wake(&d->ringwait);
	heapdrain_unlock(d);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	d->has_thread = false;
}

void heapdrain_release(struct heapdrain *d)
{
	vec_release(&d->list);
	pthread_cond_destroy(&d->wakes);
	pthread_mutex_destroy(&d->lock);
}

/* ---- the list ------------------------------------------------------------------------------ */

void heapdrain_lock(struct heapdrain *d)
{
	__atomic_store_n(&d->is_wanted, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&d->lock);
	__atomic_store_n(&d->is_wanted, false, __ATOMIC_RELAXED);
}

void heapdrain_unlock(struct heapdrain *d)
{
	pthread_mutex_unlock(&d->lock);
}

void heapdrain_add(struct heapdrain *d, struct heapprocess *p)
{
	heapdrain_lock(d);
	vec_push(&d->list, p);
	ringwait_wake(&d->ringwait);
	heapdrain_unlock(d);
}

void heapdrain_remove(struct heapdrain *d, const struct heapprocess *p)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->list.n; i++)
		if (d->list.p[i] != p)
			d->list.p[kept++] = d->list.p[i];
	d->list.n = kept;
}

struct heapprocess *heapdrain_process(const struct heapdrain *d, int32_t pid)
{
	for (size_t i = 0; i < d->list.n; i++)
		if (heapprocess_pid(d->list.p[i]) == pid)
			return d->list.p[i];
	return NULL;
}
