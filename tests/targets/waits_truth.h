/*
 * Shared by the test programs that wait in known ways: each thread measures its own regions (wall
 * time minus CPU time); when the program ends it prints one line of JSON per thread:
 *
 *	{"thread":"lock-0","tid":7,"wall":N,"cpu":N,"nvcsw":N,"nivcsw":N,"classes":{"lock":{"ns":N,"n":N}}}
 *
 * Times are nanoseconds. "ns" of a class is off-CPU time between two points around the waiting
 * function, so it includes time in the run queue after a wake-up.
 */
#ifndef ASSAY_TESTS_WAITS_TRUTH_H
#define ASSAY_TESTS_WAITS_TRUTH_H

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FAR __attribute__((noinline, noclone))
/* After a call: it is no tail call, so the caller stays on the stack. */
#define STAY()  __asm__ volatile("" ::: "memory")
#define CLASSES 6
#define THREADS 256

struct clocks {
	uint64_t wall_ns;
	uint64_t cpu_ns;
};

struct truth {
	char name[16];
	int tid;
	unsigned seed;
	struct clocks start;
	struct {
		const char *key;
		uint64_t ns;
		uint64_t n;
	} classes[CLASSES];
};

static struct truth truths[THREADS];
static unsigned nr_truths;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool is_over;
static __thread struct truth *me;

static inline uint64_t clock_of(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t mono_ns(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* The wall clock is read on the outer side: losing the CPU between the two is no error then. */
static inline struct clocks now(void)
{
	struct clocks c = {.wall_ns = mono_ns()};
	c.cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
	return c;
}

/* Books what passed off the CPU since @from. */
static inline void spent(const char *key, struct clocks from)
{
	uint64_t cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) - from.cpu_ns;
	uint64_t wall_ns = mono_ns() - from.wall_ns;
	for (unsigned i = 0; i < CLASSES; i++) {
		if (me->classes[i].key && strcmp(me->classes[i].key, key))
			continue;
		me->classes[i].key = key;
		me->classes[i].ns += wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;
		me->classes[i].n++;
		return;
	}
}

static inline void begin(const char *name)
{
	me = &truths[__atomic_fetch_add(&nr_truths, 1, __ATOMIC_RELAXED) % THREADS];
	snprintf(me->name, sizeof(me->name), "%s", name);
	me->tid = (int)syscall(SYS_gettid);
	me->seed = (unsigned)me->tid * 2654435761u + 1;
	pthread_setname_np(pthread_self(), me->name);
	me->start = now();
}

/* The counts of switches are taken last, so that only the printing is missing in them. */
static inline void end(void)
{
	char line[1024];
	int n = 0;
	for (unsigned i = 0; i < CLASSES && me->classes[i].key; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%s\"%s\":{\"ns\":%llu,\"n\":%llu}", i ? "," : "", me->classes[i].key,
			      (unsigned long long)me->classes[i].ns,
			      (unsigned long long)me->classes[i].n);
	line[n] = 0;
	struct clocks at = now();
	struct rusage use;
	getrusage(RUSAGE_THREAD, &use);
	pthread_mutex_lock(&print_lock);
	printf("{\"thread\":\"%s\",\"tid\":%d,\"wall\":%llu,\"cpu\":%llu,\"nvcsw\":%ld,\"nivcsw\":%ld,"
	       "\"classes\":{%s}}\n",
	       me->name, me->tid, (unsigned long long)(at.wall_ns - me->start.wall_ns),
	       (unsigned long long)(at.cpu_ns - me->start.cpu_ns), use.ru_nvcsw, use.ru_nivcsw,
	       line);
	fflush(stdout);
	pthread_mutex_unlock(&print_lock);
}

/* Between half and one and a half of @us. */
static inline uint64_t jitter_us(uint64_t us)
{
	return us / 2 + (uint64_t)rand_r(&me->seed) % (us + 1);
}

static inline void burn_us(uint64_t us)
{
	uint64_t end_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
	static volatile uint64_t sink;
	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		for (int i = 0; i < 300; i++)
			sink = sink * 3 + 1;
}

static inline void sleep_us(uint64_t us)
{
	struct timespec ts = {.tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000) * 1000};
	nanosleep(&ts, NULL);
}

static inline void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* A thread that keeps CPU 0 busy. */
static FAR __attribute__((unused)) void *rival_thread(void *arg)
{
	begin("rival");
	pin(0);
	while (!is_over)
		burn_us(1000);
	end();
	return arg;
}

#endif
