/* Exact CPU time of a target; see cputime.h. */
#include "base/base.h"
#include "capture/perf/cputime.h"

#include <errno.h>
#include <unistd.h>

#include "capture/perf/open.h"
#include "host/proc.h"

/* Returns 0, also if the thread has ended. */
static int add_thread(struct cputime *c, int32_t tid, unsigned flags, uint64_t max_fds)
{
	bool is_new;
	(void)map_put(&c->threads, (uint32_t)tid, &is_new);
	if (!is_new)
		return 0;
	if (c->fds.n >= max_fds)
		return -EMFILE;
	int fd = perfopen_clock(tid, flags);
	if (fd >= 0)
		vec_push(&c->fds, fd);
	return fd < 0 && fd != -ESRCH ? fd : 0;
}

/* Threads may be created meanwhile: lists them again until no new one is found. */
static int add_process(struct cputime *c, int32_t pid, uint64_t max_fds)
{
	for (size_t before = SIZE_MAX; before != c->threads.n;) {
		CLEANUP(pid_list_release) struct pid_list tids = {0};
		before = c->threads.n;
		if (proc_threads(&tids, pid, NULL))
			return 0;
		for (size_t i = 0; i < tids.pids.n; i++)
			TRY(add_thread(c, tids.pids.p[i], 0, max_fds));
	}
	return 0;
}

static int add_all(struct cputime *c, const struct target *t, uint64_t max_fds)
{
	TRY(t->child ? add_thread(c, t->child, PERFOPEN_ON_EXEC, max_fds) : 0);
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		vec_push(&c->pids, t->pids.pids.p[i]);
		TRY(add_process(c, t->pids.pids.p[i], max_fds));
	}
	return 0;
}

void cputime_open(struct cputime *c, const struct target *t, uint64_t max_fds)
{
	if (add_all(c, t, max_fds))
		cputime_release(c);
}

void cputime_add(struct cputime *c, int32_t pid, uint64_t max_fds)
{
	if (!c->fds.n)
		return;
	c->before_clock_ns = 0; /* the clocks of processes are from their start on */
	if (add_process(c, pid, max_fds))
		cputime_release(c);
}

static uint64_t sum_ns(const struct cputime *c)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < c->fds.n; i++)
		ns += perfopen_read(c->fds.p[i]).value;
	return ns;
}

/* Of the processes with their ended threads and the children that they waited for; 0: not known. */
static uint64_t clocks_ns(const struct cputime *c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < c->pids.n; i++) {
		uint64_t ns = proc_cpu_ns(c->pids.p[i]);
		if (!ns)
			return 0;
		sum += ns;
	}
	return sum;
}

void cputime_begin(struct cputime *c)
{
	c->before_ns = sum_ns(c);
	c->before_clock_ns = clocks_ns(c);
}

uint64_t cputime_ns(const struct cputime *c)
{
	uint64_t ns = sum_ns(c);
	uint64_t clock_ns = c->before_clock_ns ? clocks_ns(c) : 0;
	ns -= MIN(c->before_ns, ns);
	clock_ns -= MIN(c->before_clock_ns, clock_ns);
	return c->fds.n ? MAX(ns, clock_ns) : 0;
}

void cputime_release(struct cputime *c)
{
	for (size_t i = 0; i < c->fds.n; i++)
		close(c->fds.p[i]);
	vec_release(&c->fds);
	vec_release(&c->pids);
	map_release(&c->threads);
}
