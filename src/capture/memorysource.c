/* Memory use over time; see memorysource.h. */
#include "base/base.h"
#include "capture/memorysource.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "host/memory/maps.h"
#include "host/memory/memstat.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "model/heap.h"
#include "model/tables.h"

/* Page table walks take at most this fraction of the time; page faults wait meanwhile. */
#define WALK_SHARE 400
/*
 * At first readings are closer: the time to the next one is a millisecond, later this part of the time
 * passed, up to the spacing. So a program of milliseconds has a course, in 500 readings at most.
 */
#define EARLY_SHARE 64

struct one_process {
	int32_t pid;
	bool is_gone;
	uint64_t image; /* of a command that has not called execve yet; 0: not waited for */
	uint64_t first_peak_bytes; /* the kernel's peak at the first reading, before the capture */
	struct memstacks stacks;
	uint64_t next_walk_ns;
	uint64_t pss_bytes; /* 0: not read this time */
	uint64_t stack_bytes;
};

struct memory_info {
	uint64_t nr_readings;
	uint64_t nr_walks;
	uint64_t walks_ns;   /* total: the target's mmap calls may have waited that long */
	uint64_t longest_ns; /* longest walk */
	bool is_refused;     /* PSS and stacks could not be read for any target */
};

struct memory {
	VEC(struct one_process) processes;
	struct target_family family; /* those that are not gone */
	bool takes_children;
	uint64_t spacing_ns;
	uint64_t first_ns; /* of the first reading; before it, of the opening */
	uint64_t peak_bytes;
	struct memory_info info;
};

static void memory_free(void *self)
{
	struct memory *s = self;
	vec_foreach(one, &s->processes)
		memstacks_release(&one->stacks);
	vec_release(&s->processes);
	pid_list_release(&s->family.pids);
	free_p(&s);
}

static void add_process(struct memory *s, int32_t pid)
{
	vec_foreach(one, &s->processes)
		if (one->pid == pid && !one->is_gone)
			return;
	vec_add(&s->processes)->pid = pid;
	if (!pid_list_has(&s->family.pids, pid))
		vec_push(&s->family.pids.pids, pid);
}

static int memory_open(void **ret_s, const struct source_env *env, struct err *err UNUSED)
{
	struct memory *s = xcalloc(1, sizeof(*s));
	const struct target *t = env->target;
	s->takes_children =
		t->takes_children || t->groups.n; /* forks of a group's processes are in it */
	s->spacing_ns = env->memory_spacing_ns
				? MAX(env->memory_spacing_ns, (uint64_t)MEMORY_SPACING_MIN_NS)
				: NS_PER_SEC;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		add_process(s, t->pids.pids.p[i]);
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(t->tids.pids.p[i], &pid, NULL))
			add_process(s, pid);
	}
	if (t->child) {
		add_process(s, t->child);
		vec_last(&s->processes)->image = proc_exec_id(t->child);
	}
	s->first_ns = clock_mono_ns();
	*ret_s = s;
	return 0;
}

static void memory_add_process(void *self, int32_t pid)
{
	add_process(self, pid);
}

static void walk(struct memory *s, struct one_process *one, uint64_t now)
{
	CLEANUP(memmaps_release) struct memmaps maps = {0};
	if (memmaps_read(&maps, one->pid, &one->stacks, NULL))
		return;
	one->next_walk_ns = now + MAX(NS_PER_SEC, maps.read_ns * WALK_SHARE);
	if (!maps.has_rss) {
		s->info.is_refused = true;
		return;
	}
	s->info.nr_walks++;
	s->info.walks_ns += maps.read_ns;
	s->info.longest_ns = MAX(s->info.longest_ns, maps.read_ns);
	one->stack_bytes = memmaps_rss(&maps, MEMMAP_STACK);
	vec_foreach(m, &maps.list)
		one->pss_bytes += m->pss_bytes;
}

/* Until then a command is a copy of assay, whose memory is not the command's. */
static bool has_executed(struct one_process *one)
{
	if (one->image && proc_exec_id(one->pid) != one->image)
		one->image = 0;
	return !one->image;
}

/* The kernel's peak is of the process's life: it is of the capture if it has risen since. */
static void note_peak(struct memory *s, struct one_process *one, const struct memstat *m)
{
	one->first_peak_bytes = one->first_peak_bytes ? one->first_peak_bytes : m->peak_rss_bytes;
	bool has_risen = m->peak_rss_bytes > one->first_peak_bytes;
	s->peak_bytes = MAX(s->peak_bytes, has_risen ? m->peak_rss_bytes : m->rss_bytes);
}

static int emit(const struct one_process *one, const struct memstat *m, uint64_t now,
		const struct event_sink *sink, struct err *err)
{
	const int64_t values[HEAP_MEMORY_NR] = {
		[HEAP_MEMORY_RSS] = (int64_t)m->rss_bytes,
		[HEAP_MEMORY_PSS] = (int64_t)one->pss_bytes,
		[HEAP_MEMORY_ANON] = (int64_t)m->anon_bytes,
		[HEAP_MEMORY_FILE] = (int64_t)m->file_bytes,
		[HEAP_MEMORY_SHMEM] = (int64_t)m->shmem_bytes,
		[HEAP_MEMORY_SWAP] = (int64_t)m->swap_bytes,
		[HEAP_MEMORY_STACKS] = (int64_t)one->stack_bytes,
		[HEAP_MEMORY_VIRTUAL] = (int64_t)m->virtual_bytes,
	};
	const struct event ev = event_aggregate(TABLE_MEMORY, one->pid, one->pid, now, values);
	return sink->event(sink->ctx, &ev, err);
}

/* Reads all targets, also at start and end. Ended targets are skipped. */
static int memory_read(void *self, const struct event_sink *sink, struct err *err)
{
	struct memory *s = self;
	if (s->takes_children)
		for (size_t i = target_family_grow(&s->family); i < s->family.pids.pids.n; i++)
			add_process(s, s->family.pids.pids.p[i]);
	vec_foreach(one, &s->processes) {
		struct memstat m;
		if (one->is_gone || !has_executed(one))
			continue;
		/* The walk first: it is slow, and the other values should be of one time. */
		uint64_t now = clock_mono_ns();
		one->pss_bytes = 0; /* an old value would be listed as if it had been read */
		if (now >= one->next_walk_ns)
			walk(s, one, now);
		now = clock_mono_ns();
		one->is_gone = memstat_read(&m, one->pid, MEMSTAT_COUNTERS, NULL, NULL);
		if (one->is_gone)
			continue;
		s->first_ns = s->info.nr_readings ? s->first_ns : now;
		note_peak(s, one, &m);
		s->info.nr_readings++;
		TRY(emit(one, &m, now, sink, err));
	}
	return 0;
}

static void memory_early_facts(const void *self, struct profile *p)
{
	const struct memory_info *i = &((const struct memory *)self)->info;
	if (i->is_refused)
		profile_fact(p, FACT_MEMORY_REFUSED,
			     "PSS and stacks: no permission to ptrace the target");
}

/* Readings are of instants. */
static uint64_t memory_reach_ns(const void *self UNUSED)
{
	return UINT64_MAX;
}

static void memory_facts(const void *self, struct profile *p)
{
	const struct memory_info *i = &((const struct memory *)self)->info;
	memory_early_facts(self, p);
	profile_fact_nr(p, FACT_MEMORY_PEAK_RSS, ((const struct memory *)self)->peak_bytes);
	if (i->nr_walks)
		profile_factf(p, FACT_MEMORY_READINGS,
			      "%s, %s of smaps and smaps_rollup: %s, longest %s",
			      num_noun(i->nr_readings, "readings").s,
			      num_noun(i->nr_walks, "reads").s, num_ns(i->walks_ns).s,
			      num_ns(i->longest_ns).s);
}

static unsigned memory_poll_timeout(const void *self)
{
	const struct memory *s = self;
	uint64_t passed_ns = clock_mono_ns() - s->first_ns;
	uint64_t ms = MIN(s->spacing_ns, passed_ns / EARLY_SHARE) / NS_PER_MS;
	return (unsigned)MIN(MAX(ms, (uint64_t)1), (uint64_t)INT_MAX);
}

const struct source memory_source = {
	.name = "memory",
	.fills = TABLE_SET(MEMORY),
	.late_caps = HOST_CAP_BIT(CAP_SYS_PTRACE), /* smaps */
	.open = memory_open,
	.drain = memory_read,
	.stop = memory_read,
	.facts = memory_facts,
	.early_facts = memory_early_facts,
	.reach_ns = memory_reach_ns,
	.poll_timeout = memory_poll_timeout,
	.add_process = memory_add_process,
	.free = memory_free,
};
