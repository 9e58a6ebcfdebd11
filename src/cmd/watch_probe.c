/* Readings of a target's memory; see watch_probe.h. */
#include "base/base.h"
#include "cmd/watch_probe.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"

/* Walks of page tables take one part in so many of the time. */
#define WALK_SHARE 100

static void add_process(struct watch_probe *w, int32_t pid)
{
	vec_foreach(one, &w->processes)
		if (one->pid == pid)
			return;
	vec_add(&w->processes)->pid = pid;
}

/* A group that cannot be read is a column less. */
static void open_group(struct watch_probe *w)
{
	w->tree = (struct memgroup_tree)MEMGROUP_TREE_INIT;
	w->group = (struct memgroup)MEMGROUP_INIT;
	w->has_group = w->processes.n && !memgroup_tree_open(&w->tree, "/", NULL) &&
		       !memgroup_open(&w->group, &w->tree, w->processes.p[0].pid, NULL);
}

int watch_probe_open(struct watch_probe *w, const struct pid_list *pids,
		     const struct pid_list *tids, struct err *err)
{
	*w = (struct watch_probe){0};
	for (size_t i = 0; pids && i < pids->pids.n; i++)
		add_process(w, pids->pids.p[i]);
	for (size_t i = 0; tids && i < tids->pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(tids->pids.p[i], &pid, NULL))
			add_process(w, pid);
	}
	open_group(w);
	if (!w->processes.n)
		return err_set(err, -ESRCH, "the target has ended");
	return 0;
}

void watch_probe_release(struct watch_probe *w)
{
	vec_foreach(one, &w->processes)
		memstacks_release(&one->stacks);
	vec_release(&w->processes);
	memgroup_release(&w->group);
	memgroup_tree_release(&w->tree);
}

static bool read_one(struct watch_probe *w, struct watch_process *one, unsigned parts,
		     struct memstat *ret_m, struct err *err)
{
	struct memstat m;
	int refused = 0;
	if (memstat_read(&m, one->pid, parts, &refused, err))
		return false;
	if (one->last.nr_processes && m.start_ticks != one->start_ticks) {
		err_set(err, -ESRCH, "process %d has ended", one->pid);
		return false;
	}
	one->start_ticks = m.start_ticks;
	if (refused && !w->refused)
		w->refused = refused;
	w->counters_ns += m.counters_ns;
	if (m.has & MEMSTAT_HAS_PSS) {
		w->nr_walks++;
		w->walks_ns += m.rollup_ns;
		w->longest_walk_ns = MAX(w->longest_walk_ns, m.rollup_ns);
	}
	memstat_keep_rollup(&m, &one->last);
	one->last = m;
	*ret_m = m;
	return true;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

static void add_rates(struct watch_tick *t, const struct watch_tick *before)
{
	double s = (double)(t->time_ns - before->time_ns) / 1e9;
	if (!(s > 0))
		return;
	/* The faults of a process that has ended are gone from the sum. */
	bool is_same = t->m.nr_processes == before->m.nr_processes;
	t->has_rates = is_same;
	t->minor_per_s = is_same ? rate(before->m.nr_minor, t->m.nr_minor, s) : 0;
	t->major_per_s = is_same ? rate(before->m.nr_major, t->m.nr_major, s) : 0;
	t->rss_per_s = ((double)t->m.rss_bytes - (double)before->m.rss_bytes) / s;
	if (t->has_group && before->has_group)
		t->pressure_pct = rate(before->group.some_us, t->group.some_us, s) / 1e4;
}

int watch_probe_read(struct watch_probe *w, const struct watch_allocator *allocator,
		     struct watch_tick *ret_t, struct err *err)
{
	struct watch_tick t = {.time_ns = clock_mono_ns()};
	bool is_walk = t.time_ns >= w->next_walk_ns;
	unsigned parts = MEMSTAT_COUNTERS | (is_walk ? MEMSTAT_ROLLUP : 0);
	uint64_t walks_ns = w->walks_ns;
	vec_foreach(one, &w->processes) {
		struct memstat m;
		if (one->is_gone)
			continue;
		if (read_one(w, one, parts, &m, err)) {
			memstat_add(&t.m, &m);
			t.shmem_most_bytes = MAX(t.shmem_most_bytes, m.shmem_bytes);
		} else {
			one->is_gone = true;
			w->nr_gone++;
		}
	}
	if (!t.m.nr_processes)
		return -ESRCH;
	err_clear(err); /* others live */
	if (is_walk)
		w->next_walk_ns =
			t.time_ns + MAX(NS_PER_SEC, (w->walks_ns - walks_ns) * WALK_SHARE);
	t.has_pss = t.m.has & MEMSTAT_HAS_PSS;
	t.has_group = w->has_group && !memgroup_read(&w->group, &w->tree, &t.group, NULL);
	if (allocator)
		t.allocator = *allocator;
	if (w->has_last)
		add_rates(&t, &w->last);
	w->last = t;
	w->has_last = true;
	w->nr_ticks++;
	*ret_t = t;
	return 0;
}

void watch_probe_maps(struct watch_probe *w, struct watch_maps *ret_m)
{
	struct watch_maps all = {0};
	vec_foreach(one, &w->processes) {
		struct memmaps m = {0};
		if (one->is_gone || memmaps_read(&m, one->pid, &one->stacks, NULL))
			continue;
		all.nr_unseen += one->stacks.nr_unseen;
		if (m.has_rss)
			one->stack_bytes = memmaps_rss(&m, MEMMAP_STACK);
		w->nr_walks++;
		w->walks_ns += m.read_ns;
		w->longest_walk_ns = MAX(w->longest_walk_ns, m.read_ns);
		vec_push(&all.list, m);
		vec_push(&all.pids, one->pid);
	}
	*ret_m = all;
}

void watch_maps_release(struct watch_maps *m)
{
	vec_foreach(one, &m->list)
		memmaps_release(one);
	vec_release(&m->list);
	vec_release(&m->pids);
}
