/* Reads a target's memory use; see memwatch.h. */
#include "base/base.h"
#include "session/memwatch.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "capture/heap/planner.h"
#include "host/memory/anon.h"
#include "host/memory/mallocheap.h"
#include "plan/heapchoice.h"
#include "remote/jemalloc/jemalloc.h"

/*
 * Page table walks take at most 1/100 of a CPU, stops of the thread 1/250 of the time. How long a walk waits for a CPU
 * does not count: on a busy machine too few walks would remain for a verdict.
 */
#define WALK_SHARE 100
/* A little less than a second, so that readings of each second have a PSS. */
#define WALK_SPACING_NS (NS_PER_SEC * 9 / 10)
#define STOP_SHARE      250

/* ---- the allocator ------------------------------------------------------------------------ */

void memwatch_name_allocator(struct memwatch *w)
{
	const struct memwatch_process *one = w->processes.p;
	if (w->allocator || w->processes.n != 1 || one->has_exited)
		return;
	CLEANUP(heaptargets_free_p) struct heaptargets *targets = heapplanner_new();
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	if (heaptargets_inspect(targets, one->pid, &h, NULL))
		return;
	enum heap_allocator kind = heaptarget_allocator(&h);
	w->maps_itself = kind == HEAP_ALLOCATOR_JEMALLOC || kind == HEAP_ALLOCATOR_TCMALLOC ||
			 kind == HEAP_ALLOCATOR_MIMALLOC;
	w->allocator = heaptarget_describe(&h);
}

static int check_answer(const struct heap_plan *plan, int32_t pid, struct err *err)
{
	if (plan->allocator != HEAP_ALLOCATOR_JEMALLOC || !plan->mallctl) {
		err_set(err, -ENOTSUP, "--allocator: %s has no statistics that can be read",
			plan->allocator_text ? plan->allocator_text : "the allocator");
		return err_hint(err,
				"only jemalloc's statistics can be read; assay heap shows live "
				"memory of any allocator");
	}
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	if (jemalloc_stats_totals(&s, pid, plan, err))
		return err_wrap(err, "--allocator");
	if (!s.has_stats)
		return err_set(err, -ENOTSUP,
			       "--allocator: this jemalloc was built without statistics");
	return 0;
}

static int open_stats(struct memwatch *w, struct err *err)
{
	if (w->processes.n != 1)
		return err_set(err, -EINVAL,
			       "--allocator: needs a single process, but the target has %zu",
			       w->processes.n);
	CLEANUP(heaptargets_free_p) struct heaptargets *targets = heapplanner_new();
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	int32_t pid = w->processes.p[0].pid;
	TRY(heapplanner_plan(targets, pid, HEAP_METHOD_NONE, &plan, err));
	TRY(check_answer(&plan, pid, err));
	w->plan = plan;
	plan = (struct heap_plan){0};
	w->is_stats_open = true;
	w->next_stats_ns = 0;
	return 0;
}

/* Reads the allocator's statistics if due. For a command it is retried until it succeeds. */
static void read_stats(struct memwatch *w, uint64_t now)
{
	if (!(w->flags & MEMWATCH_ALLOCATOR_STATS) || now < w->next_stats_ns)
		return;
	if (!w->is_stats_open) {
		err_release(&w->no_stats);
		w->next_stats_ns = now + NS_PER_SEC;
		if (open_stats(w, &w->no_stats))
			return;
	}
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	CLEANUP(err_release) struct err err = {0};
	w->next_stats_ns = now + NS_PER_SEC;
	if (jemalloc_stats_totals(&s, w->processes.p[0].pid, &w->plan, &err)) {
		/* All threads are in the allocator: retried in the next second. */
		log_debug(LOG_SESSION, 1, "%s", err_msg(&err));
		return;
	}
	w->stats = (struct memallocator){.is_known = s.has_stats,
					 .query_ns = now,
					 .in_use_bytes = s.allocated_bytes,
					 .active_bytes = s.active_bytes,
					 .resident_bytes = s.resident_bytes,
					 .retained_bytes = s.retained_bytes};
	w->nr_stats_readings++;
	w->longest_stats_stop_ns = MAX(w->longest_stats_stop_ns, s.stopped_ns);
	w->next_stats_ns =
		now + MAX(NS_PER_SEC, s.stopped_ns * MAX(s.nr_sessions, 1u) * STOP_SHARE);
}

void memwatch_read_stats(struct memwatch *w)
{
	w->next_stats_ns = 0;
	if (w->is_stats_open)
		read_stats(w, clock_mono_ns());
}

/* ---- processes ---------------------------------------------------------------------------- */

static void add_process(struct memwatch *w, int32_t pid)
{
	vec_foreach(one, &w->processes)
		if (one->pid == pid && !one->has_exited)
			return;
	vec_add(&w->processes)->pid = pid;
	if (!pid_list_has(&w->family.pids, pid))
		vec_push(&w->family.pids.pids, pid);
}

static void add_new(struct memwatch *w)
{
	size_t nr_before = w->processes.n;
	if (w->flags & MEMWATCH_CHILDREN)
		for (size_t i = target_family_grow(&w->family); i < w->family.pids.pids.n; i++)
			add_process(w, w->family.pids.pids.p[i]);
	if (w->target && w->target->groups.n)
		for (size_t i = target_list_joined(w->target); i < w->target->pids.pids.n; i++)
			add_process(w, w->target->pids.pids.p[i]);
	w->nr_joined += (uint32_t)(w->processes.n - nr_before);
}

/* Opens the cgroup; without it that column is missing. */
static void open_group(struct memwatch *w)
{
	w->has_group = w->processes.n && !memgroup_tree_open(&w->tree, "/", NULL) &&
		       !memgroup_open(&w->group, &w->tree, w->processes.p[0].pid, NULL);
}

int memwatch_open(struct memwatch *w, struct target *target, int32_t child, unsigned flags,
		  struct err *err)
{
	*w = (struct memwatch)MEMWATCH_INIT;
	w->flags = flags;
	w->target = target;
	if (target)
		(void)target_drop_ended(target);
	else
		add_process(w, child);
	for (size_t i = 0; target && i < target->pids.pids.n; i++)
		add_process(w, target->pids.pids.p[i]);
	for (size_t i = 0; target && i < target->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(target->tids.pids.p[i], &pid, NULL))
			add_process(w, pid);
	}
	open_group(w);
	if (!w->processes.n)
		return err_set(err, -ESRCH, "the target has exited");
	if (flags & MEMWATCH_ALLOCATOR_STATS && target)
		return open_stats(w, err);
	w->next_stats_ns = clock_mono_ns() + NS_PER_SEC;
	return 0;
}

static void release_maps(struct memwatch *w)
{
	vec_foreach(one, &w->maps)
		memmaps_release(one);
	vec_release(&w->maps);
}

void memwatch_release(struct memwatch *w)
{
	vec_foreach(one, &w->processes)
		memstacks_release(&one->stacks);
	vec_release(&w->processes);
	pid_list_release(&w->family.pids);
	memgroup_release(&w->group);
	memgroup_tree_release(&w->tree);
	release_maps(w);
	heap_plan_release(&w->plan);
	err_release(&w->no_stats);
	free(w->allocator);
}

static bool read_one(struct memwatch *w, struct memwatch_process *one, unsigned parts,
		     struct memstat *ret_m, struct err *err)
{
	struct memstat m;
	int refused = 0;
	if (memstat_read(&m, one->pid, parts, &refused, err))
		return false;
	if (one->last.nr_processes && m.start_ticks != one->start_ticks) {
		err_set(err, -ESRCH, "process %d has exited", one->pid);
		return false;
	}
	one->start_ticks = m.start_ticks;
	if (refused && !w->refused)
		w->refused = refused;
	if (m.has & MEMSTAT_HAS_PSS) {
		w->nr_walks++;
		w->walks_ns += m.rollup_ns;
		w->longest_walk_ns = MAX(w->longest_walk_ns, m.rollup_ns);
	}
	one->last = m;
	*ret_m = m;
	return true;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

static void add_rates(struct memreading *t, const struct memreading *before)
{
	double s = (double)(t->time_ns - before->time_ns) / 1e9;
	if (!(s > 0))
		return;
	/* The sum no longer contains the faults of processes that have exited. */
	bool is_same = t->m.nr_processes == before->m.nr_processes;
	t->has_rates = is_same;
	t->minor_per_s = is_same ? rate(before->m.nr_minor, t->m.nr_minor, s) : 0;
	t->major_per_s = is_same ? rate(before->m.nr_major, t->m.nr_major, s) : 0;
	t->rss_per_s = ((double)t->m.rss_bytes - (double)before->m.rss_bytes) / s;
	if (t->has_group && before->has_group)
		t->pressure_pct = rate(before->group.some_us, t->group.some_us, s) / 1e4;
}

/* Memory of allocators whose state is visible in the process: glibc's malloc and pymalloc. */
static void read_heaps(struct memwatch *w, const struct memmaps *m)
{
	struct memanon_part blocks = {0};
	w->heap = (struct memheap){0};
	if (w->processes.n != 1 || w->is_stats_open ||
	    !mallocheap_read(&w->heap, m, w->processes.p[0].pid))
		return;
	vec_foreach(one, &m->list) {
		static const enum memanon_owner owners[] = {MEMANON_GLIBC_MMAP, MEMANON_PYMALLOC};
		for (size_t i = 0; one->kind == MEMMAP_ANON && i < ARRAY_LEN(owners); i++) {
			blocks.resident_bytes += one->anon.of[owners[i]].resident_bytes;
			blocks.used_bytes += one->anon.of[owners[i]].used_bytes;
		}
	}
	if (w->heap.main_unread_bytes) /* what is in use in it is not known */
		return;
	uint64_t resident = w->heap.resident_bytes + blocks.resident_bytes;
	w->stats = (struct memallocator){
		.is_known = true,
		.query_ns = clock_mono_ns(),
		.in_use_bytes = w->heap.used_bytes + blocks.used_bytes,
		.active_bytes = resident - w->heap.trimmable_bytes,
		.resident_bytes = resident,
	};
}

void memwatch_read_maps(struct memwatch *w)
{
	__typeof__(w->maps) fresh = {0};
	uint64_t start_ns = clock_mono_ns();
	uint64_t start_cpu_ns = clock_thread_cpu_ns();
	uint32_t nr_unseen = 0;
	vec_foreach(one, &w->processes) {
		struct memmaps m = {0};
		if (one->has_exited || memmaps_read(&m, one->pid, &one->stacks, NULL))
			continue;
		memanon_classify_all(&m, one->pid);
		read_heaps(w, &m);
		nr_unseen += one->stacks.nr_unseen;
		if (m.has_rss)
			one->stack_bytes = memmaps_rss(&m, MEMMAP_STACK);
		w->nr_walks++;
		w->walks_ns += m.read_ns;
		w->longest_walk_ns = MAX(w->longest_walk_ns, m.read_ns);
		vec_push(&fresh, m);
	}
	if (!fresh.n) /* it has just exited */
		return;
	if (w->maps_ns) /* not at the first reading: a command may still call execve */
		memwatch_name_allocator(w);
	release_maps(w);
	w->maps = fresh;
	w->nr_unseen = nr_unseen;
	w->maps_ns = start_ns;
	w->next_maps_ns =
		start_ns + MAX(NS_PER_SEC, (clock_thread_cpu_ns() - start_cpu_ns) * WALK_SHARE);
}

/* Reads all processes and sums them up; -ESRCH if all have exited. */
static int sum_up(struct memwatch *w, struct memreading *t, unsigned parts, struct err *err)
{
	vec_foreach(one, &w->processes) {
		struct memstat m;
		if (one->has_exited)
			continue;
		if (read_one(w, one, parts, &m, err)) {
			if (!t->m.nr_processes || m.shmem_bytes > t->shmem_most_bytes) {
				t->shmem_most_bytes = m.shmem_bytes;
				t->shmem_space_bytes = m.virtual_bytes;
			}
			memstat_add(&t->m, &m);
			t->stack_bytes += one->stack_bytes;
		} else {
			one->has_exited = true;
			w->nr_exited++;
		}
	}
	if (!t->m.nr_processes)
		return -ESRCH;
	err_release(err); /* other processes still run */
	return 0;
}

int memwatch_read(struct memwatch *w, struct memreading *ret_t, struct err *err)
{
	add_new(w);
	if (clock_mono_ns() >= w->next_maps_ns)
		memwatch_read_maps(w);
	read_stats(w, clock_mono_ns());
	struct memreading t = {.time_ns = clock_mono_ns(), .allocator = w->stats};
	bool is_walk = t.time_ns >= w->next_walk_ns;
	uint64_t start_cpu_ns = clock_thread_cpu_ns();
	TRY(sum_up(w, &t, MEMSTAT_COUNTERS | (is_walk ? MEMSTAT_ROLLUP : 0), err));
	if (is_walk)
		w->next_walk_ns =
			t.time_ns +
			MAX(WALK_SPACING_NS, (clock_thread_cpu_ns() - start_cpu_ns) * WALK_SHARE);
	t.has_pss = t.m.has & MEMSTAT_HAS_PSS;
	t.has_group = w->has_group && !memgroup_read(&w->group, &w->tree, &t.group, NULL);
	if (w->nr_readings++)
		add_rates(&t, &w->last);
	*ret_t = w->last = t;
	return 0;
}
