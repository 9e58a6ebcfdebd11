/* build: gcc -O2 -g -pthread */
/* also steady_je: gcc -O2 -g -pthread -ljemalloc */
/*
 * N threads whose results are known: they wait (nanosleep, epoll_wait, futex, read) or calculate in
 * vector and floating point registers, allocate, and check after each round that every wait ended as
 * it must, that memory and sums are right, and that signal mask and alternate stack are theirs.
 *
 *	steady N
 *
 * Prints "begun"; on SIGTERM "ended ROUNDS wrong NR interrupted NR least NR": rounds of all
 * threads, wrong results, epoll_waits that failed by EINTR, rounds of the slowest thread. Threads
 * that get stuck are counted as wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 1000
#define BLOCKS      20

struct worker {
	pthread_t thread;
	int role;
	int event_fd; /* for epoll_wait and read */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned long nr_sent; /* under the lock */
	unsigned long nr_rounds;
	volatile int has_ended;
};

static struct worker workers[THREADS_MAX];
static int nr_workers;
static volatile sig_atomic_t is_over;
static long nr_wrong;
static long nr_interrupted;

static void on_term(int sig)
{
	(void)sig;
	is_over = 1;
}

static void wrong(const char *what)
{
	if (__atomic_add_fetch(&nr_wrong, 1, __ATOMIC_SEQ_CST) < 10)
		printf("wrong: %s\n", what);
}

static void calculate(void)
{
	typedef double v4 __attribute__((vector_size(32)));
	v4 sum = {0, 0, 0, 0};
	long double l = 1;
	for (int i = 1; i < 20000; i++) {
		sum += (v4){1.0, 2.0, 3.0, 4.0} / (double)i;
		if (i < 200)
			l = l * 1.5L / 1.25L;
	}
	if (sum[0] < 10.4 || sum[0] > 10.5 || sum[3] != sum[0] * 4)
		wrong("vector sum");
	if (l < 5e15L || l > 6e15L)
		wrong("long double product");
}

static void allocate(unsigned long seed)
{
	unsigned char *blocks[BLOCKS];
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t n = 16 + (seed * 31 + i * 97) % 3000;
		blocks[i] = malloc(n);
		memset(blocks[i], (int)(seed + i), n);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t n = 16 + (seed * 31 + i * 97) % 3000;
		for (size_t k = 0; k < n; k += 61)
			if (blocks[i][k] != (unsigned char)(seed + i)) {
				wrong("contents of a block");
				break;
			}
		free(blocks[i]);
	}
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_exactly(void)
{
	const struct timespec t = {.tv_nsec = 20000000};
	uint64_t begin = now_ns();
	if (nanosleep(&t, NULL))
		wrong("nanosleep failed");
	else if (now_ns() - begin < 20000000)
		wrong("nanosleep ended early");
}

static void wait_epoll(struct worker *w, int ep)
{
	struct epoll_event ev = {0};
	uint64_t n = 0;
	int rc;
	while ((rc = epoll_wait(ep, &ev, 1, -1)) < 0 && errno == EINTR)
		__atomic_add_fetch(&nr_interrupted, 1, __ATOMIC_RELAXED);
	if (rc != 1 || ev.data.u64 != 0x1234567890abcdefull)
		wrong("epoll_wait");
	else if (read(w->event_fd, &n, sizeof(n)) != sizeof(n) || (n != 1 && !is_over))
		wrong("read of an event");
}

static void wait_futex(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->nr_sent)
		if (pthread_cond_wait(&w->cond, &w->lock))
			wrong("pthread_cond_wait");
	if (w->nr_sent != 1 && !is_over)
		wrong("a futex wait ended twice");
	w->nr_sent = 0;
	pthread_mutex_unlock(&w->lock);
}

static void wait_read(struct worker *w)
{
	uint64_t n = 0;
	if (read(w->event_fd, &n, sizeof(n)) != sizeof(n) || (n != 1 && !is_over))
		wrong("read");
}

/* Wakes a worker that waits. */
static void wake(struct worker *w)
{
	const uint64_t one = 1;
	if (w->role == 2) {
		pthread_mutex_lock(&w->lock);
		w->nr_sent++;
		pthread_cond_signal(&w->cond);
		pthread_mutex_unlock(&w->lock);
	} else if (write(w->event_fd, &one, sizeof(one)) != sizeof(one)) {
		wrong("write");
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	sigset_t mask;
	sigset_t mask_now;
	stack_t own = {.ss_sp = malloc(32768), .ss_size = 32768};
	stack_t own_now;
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 0x1234567890abcdefull};
	int ep = epoll_create1(0);
	sigaltstack(&own, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1 + w->role % 2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	epoll_ctl(ep, EPOLL_CTL_ADD, w->event_fd, &ev);
	while (!is_over) {
		switch (w->role) {
		case 0:
			calculate();
			usleep(w == workers ? 1000 : 20000); /* all together: half a CPU */
			break;
		case 1:
			wait_epoll(w, ep);
			break;
		case 2:
			wait_futex(w);
			break;
		case 3:
			sleep_exactly();
			break;
		case 4:
			wait_read(w);
			break;
		}
		allocate(w->nr_rounds);
		pthread_sigmask(SIG_SETMASK, NULL, &mask_now);
		if (memcmp(&mask, &mask_now, 8))
			wrong("signal mask");
		if (sigaltstack(NULL, &own_now) || own_now.ss_sp != own.ss_sp || own_now.ss_flags)
			wrong("alternate stack");
		__atomic_add_fetch(&w->nr_rounds, 1, __ATOMIC_RELEASE);
	}
	w->has_ended = 1;
	return NULL;
}

/* Wakes those that wait, each when its previous round is done. */
static void feed(void)
{
	static unsigned long nr_woken[THREADS_MAX];
	while (!is_over) {
		usleep(10000);
		for (int i = 0; i < nr_workers; i++) {
			struct worker *w = &workers[i];
			int waits = w->role == 1 || w->role == 2 || w->role == 4;
			if (waits &&
			    nr_woken[i] == __atomic_load_n(&w->nr_rounds, __ATOMIC_ACQUIRE)) {
				nr_woken[i]++;
				wake(w);
			}
		}
	}
}

static void finish(void)
{
	unsigned long sum = 0;
	unsigned long least = ~0ul;
	for (int try = 0; try < 200; try++) {
		int nr_left = 0;
		for (int i = 0; i < nr_workers; i++) {
			int role = workers[i].role;
			if (workers[i].has_ended)
				continue;
			nr_left++;
			if ((role == 1 || role == 2 || role == 4) && !(try % 50))
				wake(&workers[i]);
		}
		if (!nr_left)
			break;
		usleep(10000);
	}
	for (int i = 0; i < nr_workers; i++) {
		if (!workers[i].has_ended)
			wrong("a thread is stuck");
		sum += workers[i].nr_rounds;
		least = workers[i].nr_rounds < least ? workers[i].nr_rounds : least;
	}
	printf("ended %lu wrong %ld interrupted %ld least %lu\n", sum, nr_wrong, nr_interrupted,
	       least);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	nr_workers = argc > 1 ? atoi(argv[1]) : 10;
	signal(SIGTERM, on_term);
	for (int i = 0; i < nr_workers && i < THREADS_MAX; i++) {
		struct worker *w = &workers[i];
		w->role = i % 5;
		w->event_fd = eventfd(0, 0);
		pthread_mutex_init(&w->lock, NULL);
		pthread_cond_init(&w->cond, NULL);
		if (pthread_create(&w->thread, NULL, work, w))
			return 2;
	}
	puts("begun");
	feed();
	finish();
	_exit(nr_wrong != 0);
}
