/*
 * Shared by the programs with a planted cause: PROGRAM CASE ill|well SECONDS. The ill form has what the
 * case is called by; the well form looks alike and lacks nothing. At the end a program prints its truth
 * by its own clocks, one line of JSON:
 *
 *	{"planted":"join","form":"ill","what":"main waits for a worker","share":0.95}
 *
 * "share" is of the wall time (or the CPU time, where "what" says so) of the threads that it is about.
 */
#ifndef ASSAY_TESTS_PLANTED_H
#define ASSAY_TESTS_PLANTED_H

#include "../waits_truth.h"
#include <stdatomic.h>

struct planted {
	const char *name;
	void (*run)(void);
	const char *what;
};

static bool is_ill;
static double seconds;
/* Wakes who still waits when the time is over. */
static void (*wake_at_end)(void);
/* What the threads measured, and the time they had. */
static atomic_ullong part_ns, whole_ns;

/* The time since @from that passed off the CPU belongs to the planted cause. */
static inline void count_wait(struct clocks from)
{
	struct clocks at = now();
	uint64_t wall_ns = at.wall_ns - from.wall_ns, cpu_ns = at.cpu_ns - from.cpu_ns;
	part_ns += wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;
}

static inline void count_whole(struct clocks from)
{
	whole_ns += mono_ns() - from.wall_ns;
}

/* Its CPU time belongs to it, as a share of all of this thread's. */
static inline void count_cpu(struct clocks from)
{
	part_ns += clock_of(CLOCK_THREAD_CPUTIME_ID) - from.cpu_ns;
}

static inline void must(bool is_fine, const char *what)
{
	if (is_fine)
		return;
	perror(what);
	exit(77);
}

static inline pthread_t start_thread(void *(*f)(void *), void *arg)
{
	pthread_t t;
	must(!pthread_create(&t, NULL, f, arg), "pthread_create");
	return t;
}

/* Runs @n threads until the time is over. */
static inline void run_threads(unsigned n, void *(*f)(void *), void *arg)
{
	pthread_t t[64];
	for (unsigned i = 0; i < n; i++)
		t[i] = start_thread(f, arg);
	sleep_us((uint64_t)(seconds * 1e6));
	is_over = true;
	if (wake_at_end)
		wake_at_end();
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static inline bool goes_on(struct clocks since)
{
	return mono_ns() - since.wall_ns < (uint64_t)(seconds * 1e9);
}

static inline int run_planted(const struct planted *cases, unsigned nr, int argc, char **argv)
{
	for (unsigned i = 0; argc > 3 && i < nr; i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		is_ill = !strcmp(argv[2], "ill");
		seconds = atof(argv[3]);
		cases[i].run();
		printf("{\"planted\":\"%s\",\"form\":\"%s\",\"what\":\"%s\",\"share\":%.3f}\n",
		       argv[1], argv[2], cases[i].what,
		       whole_ns ? (double)part_ns / (double)whole_ns : 0);
		return 0;
	}
	fprintf(stderr, "usage: %s CASE ill|well SECONDS\n", argv[0]);
	return 2;
}

#endif
