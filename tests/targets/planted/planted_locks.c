/* build: gcc -O1 -g -pthread */
/* planted_locks CASE ill|well SECONDS: threads that wait for other threads; see planted.h. */
#include "planted.h"
#include <semaphore.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* join: a program that starts a worker for each piece and waits for it; well: that does its own work
 * meanwhile and joins threads that have ended. */
static FAR void *piece_of_work(void *arg)
{
	sleep_us(20000);
	burn_us(5000);
	return arg;
}

static void join(void)
{
	for (struct clocks start = now(); goes_on(start); whole_ns = mono_ns() - start.wall_ns) {
		pthread_t worker = start_thread(piece_of_work, NULL);
		if (!is_ill)
			burn_us(40000);
		struct clocks from = now();
		pthread_join(worker, NULL);
		count_wait(from);
	}
}

/* permit: six workers, two permits for the back end that each call needs; well: six workers that take
 * jobs from a queue, of which there are few. */
static sem_t permits;

static FAR void call_back_end(void)
{
	sleep_us(10000);
	STAY();
}

static FAR void await_permit(void)
{
	while (sem_wait(&permits))
		;
	STAY();
}

static void *permit_worker(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		await_permit();
		count_wait(from);
		burn_us(200);
		if (!is_ill)
			continue;
		call_back_end();
		sem_post(&permits);
	}
	count_whole(start);
	return arg;
}

static void *giver_of_jobs(void *arg)
{
	while (!is_over) {
		sleep_us(30000);
		sem_post(&permits);
	}
	for (int i = 0; i < 6; i++)
		sem_post(&permits);
	return arg;
}

static void permit(void)
{
	sem_init(&permits, 0, is_ill ? 2 : 0);
	if (!is_ill)
		start_thread(giver_of_jobs, NULL);
	run_threads(6, permit_worker, NULL);
}

/* holder: one thread sleeps with the lock held, three others need it for a moment; well: it sleeps
 * before it takes the lock. */
static FAR void *flush_table(void *arg)
{
	while (!is_over) {
		pthread_mutex_lock(&table_lock);
		if (is_ill)
			sleep_us(30000);
		burn_us(100);
		pthread_mutex_unlock(&table_lock);
		sleep_us(is_ill ? 1000 : 31000);
	}
	return arg;
}

static FAR void look_up(void)
{
	pthread_mutex_lock(&table_lock);
	burn_us(20);
	pthread_mutex_unlock(&table_lock);
}

static FAR void *request_thread(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		look_up();
		count_wait(from);
		burn_us(500);
		sleep_us(2000);
	}
	count_whole(start);
	return arg;
}

static void holder(void)
{
	pthread_t flusher = start_thread(flush_table, NULL);
	run_threads(3, request_thread, NULL);
	pthread_join(flusher, NULL);
}

/* hung: one thread takes the lock and keeps it, asleep in wait_for_peer, and three wait for it all the time;
 * well: they wait for a condition variable, of which nobody is in the way. */
static pthread_cond_t has_answer = PTHREAD_COND_INITIALIZER;

static FAR void wait_for_peer(void)
{
	while (!is_over)
		sleep_us(50000);
	STAY();
}

static FAR void *keep_lock(void *arg)
{
	if (is_ill)
		pthread_mutex_lock(&table_lock);
	wait_for_peer();
	if (!is_ill)
		pthread_mutex_lock(&table_lock);
	pthread_cond_broadcast(&has_answer);
	pthread_mutex_unlock(&table_lock);
	return arg;
}

static FAR void *hung_thread(void *arg)
{
	struct clocks start = now();
	sleep_us(10000); /* until the other has it */
	struct clocks from = now();
	pthread_mutex_lock(&table_lock);
	while (!is_over)
		pthread_cond_wait(&has_answer, &table_lock);
	pthread_mutex_unlock(&table_lock);
	count_wait(from);
	count_whole(start);
	return arg;
}

static void hung(void)
{
	pthread_t keeper = start_thread(keep_lock, NULL);
	pthread_setname_np(keeper, "keeper");
	run_threads(3, hung_thread, NULL);
	pthread_join(keeper, NULL);
}

/* convoy: eight threads that do everything under one lock; well: each has its own. */
static pthread_mutex_t own_locks[8];
static atomic_uint next_lock;

static FAR void *convoy_thread(void *arg)
{
	struct clocks start = now();
	pthread_mutex_t *lock = is_ill ? &table_lock : &own_locks[next_lock++ % 8];
	while (!is_over) {
		struct clocks from = now();
		pthread_mutex_lock(lock);
		count_wait(from);
		burn_us(300);
		sleep_us(1000);
		pthread_mutex_unlock(lock);
	}
	count_whole(start);
	return arg;
}

static void convoy(void)
{
	for (int i = 0; i < 8; i++)
		pthread_mutex_init(&own_locks[i], NULL);
	run_threads(8, convoy_thread, NULL);
}

/* pool: a queue of four places that producers find full, as its one consumer is slow; well: eight
 * consumers that wait for the few jobs of one producer. */
static pthread_cond_t has_place = PTHREAD_COND_INITIALIZER, has_job = PTHREAD_COND_INITIALIZER;
static int nr_jobs;

static void wake_all(void)
{
	pthread_mutex_lock(&table_lock);
	pthread_cond_broadcast(&has_place);
	pthread_cond_broadcast(&has_job);
	pthread_mutex_unlock(&table_lock);
}

static FAR void put_job(void)
{
	pthread_mutex_lock(&table_lock);
	struct clocks from = now();
	while (nr_jobs >= 4 && !is_over)
		pthread_cond_wait(&has_place, &table_lock);
	if (is_ill)
		count_wait(from);
	nr_jobs++;
	pthread_cond_signal(&has_job);
	pthread_mutex_unlock(&table_lock);
}

static FAR void take_job(void)
{
	pthread_mutex_lock(&table_lock);
	struct clocks from = now();
	while (!nr_jobs && !is_over)
		pthread_cond_wait(&has_job, &table_lock);
	if (!is_ill)
		count_wait(from);
	nr_jobs--;
	pthread_cond_signal(&has_place);
	pthread_mutex_unlock(&table_lock);
}

static void *producer(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		burn_us(100);
		if (!is_ill)
			sleep_us(30000);
		put_job();
	}
	if (is_ill)
		count_whole(start);
	return arg;
}

static void *consumer(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		take_job();
		if (is_ill)
			sleep_us(10000);
		burn_us(300);
	}
	if (!is_ill)
		count_whole(start);
	return arg;
}

static void pool(void)
{
	wake_at_end = wake_all;
	unsigned n = is_ill ? 1 : 8;
	pthread_t t[8];
	for (unsigned i = 0; i < n; i++)
		t[i] = start_thread(consumer, NULL);
	run_threads(is_ill ? 3 : 1, producer, NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* yield: three threads ask again and again whether a result is there, and yield; well: they wait
 * with a condition variable. */
static atomic_uint turn;

static FAR void await_turn(unsigned last)
{
	if (is_ill)
		while (turn == last && !is_over)
			sched_yield();
	else {
		pthread_mutex_lock(&table_lock);
		while (turn == last && !is_over)
			pthread_cond_wait(&has_job, &table_lock);
		pthread_mutex_unlock(&table_lock);
	}
}

static void *yielding_thread(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		await_turn(turn);
		part_ns += mono_ns() - from.wall_ns;
		burn_us(300);
	}
	count_whole(start);
	return arg;
}

static void *turning_thread(void *arg)
{
	while (!is_over) {
		sleep_us(20000);
		pthread_mutex_lock(&table_lock);
		turn++;
		pthread_cond_broadcast(&has_job);
		pthread_mutex_unlock(&table_lock);
	}
	return arg;
}

static void yield(void)
{
	wake_at_end = wake_all;
	start_thread(turning_thread, NULL);
	run_threads(3, yielding_thread, NULL);
}

/* spin: two threads contend for a lock that spins, held for 2 ms; well: held for 1 us in 2 ms. */
static atomic_flag spin_lock = ATOMIC_FLAG_INIT;

static FAR void spin_until_free(void)
{
	while (atomic_flag_test_and_set_explicit(&spin_lock, memory_order_acquire))
		for (int i = 0; i < 50; i++)
			__builtin_ia32_pause();
}

static FAR void update_shared(uint64_t us)
{
	burn_us(us);
	STAY();
}

static void *spinning_thread(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		spin_until_free();
		count_cpu(from);
		update_shared(is_ill ? 2000 : 1);
		atomic_flag_clear_explicit(&spin_lock, memory_order_release);
		update_shared(is_ill ? 100 : 2000);
	}
	whole_ns += clock_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
	return arg;
}

static void spin(void)
{
	run_threads(2, spinning_thread, NULL);
}

static const struct planted cases[] = {
	{"join", join, "main waits for the worker that it started"},
	{"permit", permit, "workers wait for one of two permits"},
	{"holder", holder, "request threads wait for the lock that flush_table holds"},
	{"hung", hung, "threads wait for the lock that keeper holds all the time"},
	{"convoy", convoy, "eight threads wait for one lock"},
	{"pool", pool, "producers wait for a place in the queue (well: consumers for a job)"},
	{"yield", yield, "threads wait by sched_yield (well: by a condition variable)"},
	{"spin", spin, "CPU time in spin_until_free"},
};

int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
