/* Thread pool; see work.h. */
#include "base/base.h"
#include "base/process/work.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/mem.h"

struct work_thread {
	struct work_pool *pool;
	pthread_t id;
	unsigned worker;
};

struct work_pool {
	unsigned nr_wanted; /* with the caller */
	unsigned nr_started;
	bool has_started;
	struct work_thread threads[WORK_THREADS_MAX];

	pthread_mutex_t lock;
	pthread_cond_t has_work;
	pthread_cond_t is_idle;
	uint64_t run; /* number of the current run; each thread takes part once per run */
	unsigned nr_busy;
	bool is_ending;

	/* The current run; constant while threads work, except for the counter of claimed items. */
	work_fn fn;
	void *ctx;
	size_t nr_items;
	atomic_size_t next;
};

static void claim_items(struct work_pool *p, unsigned worker)
{
	for (;;) {
		size_t item = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
		if (item >= p->nr_items)
			return;
		p->fn(p->ctx, item, worker);
	}
}

static void *thread_main(void *arg)
{
	struct work_thread *t = arg;
	struct work_pool *p = t->pool;
	uint64_t seen = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->is_ending && p->run == seen)
			pthread_cond_wait(&p->has_work, &p->lock);
		if (p->is_ending)
			break;
		seen = p->run;
		pthread_mutex_unlock(&p->lock);
		claim_items(p, t->worker);
		pthread_mutex_lock(&p->lock);
		if (!--p->nr_busy)
			pthread_cond_signal(&p->is_idle);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are handled by the main thread: the workers block all of them. */
static void start_threads(struct work_pool *p)
{
	p->has_started = true;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned i = 0; i + 1 < p->nr_wanted; i++) {
		p->threads[i] = (struct work_thread){.pool = p, .worker = i + 1};
		if (pthread_create(&p->threads[i].id, NULL, thread_main, &p->threads[i]))
			break;
		p->nr_started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

unsigned work_threads_wanted(unsigned nr_threads)
{
	if (!nr_threads) {
		cpu_set_t set;
		CPU_ZERO(&set);
		int nr = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
		nr_threads = (unsigned)MIN(MAX(nr, 1), 16);
	}
	return MIN(nr_threads, WORK_THREADS_MAX);
}

struct work_pool *work_new(unsigned nr_threads)
{
	struct work_pool *p = xcalloc(1, sizeof(*p));
	p->nr_wanted = work_threads_wanted(nr_threads);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->has_work, NULL);
	pthread_cond_init(&p->is_idle, NULL);
	return p;
}

void work_free(struct work_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_ending = true;
	pthread_cond_broadcast(&p->has_work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nr_started; i++)
		pthread_join(p->threads[i].id, NULL);
	pthread_cond_destroy(&p->has_work);
	pthread_cond_destroy(&p->is_idle);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void work_free_p(struct work_pool **p)
{
	work_free(*p);
}

void work_run(struct work_pool *p, size_t nr_items, work_fn fn, void *ctx)
{
	for (size_t i = 0; !p && i < nr_items; i++)
		fn(ctx, i, 0);
	if (!p || !nr_items)
		return;
	p->fn = fn;
	p->ctx = ctx;
	p->nr_items = nr_items;
	atomic_store_explicit(&p->next, 0, memory_order_relaxed);
	if (nr_items > 1 && p->nr_wanted > 1 && !p->has_started)
		start_threads(p);
	if (nr_items == 1 || !p->nr_started) {
		claim_items(p, 0);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->run++;
	p->nr_busy = p->nr_started;
	pthread_cond_broadcast(&p->has_work);
	pthread_mutex_unlock(&p->lock);
	claim_items(p, 0);
	pthread_mutex_lock(&p->lock);
	while (p->nr_busy)
		pthread_cond_wait(&p->is_idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
