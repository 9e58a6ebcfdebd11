/* Memory over time; see memorysource.h. */
#include "base/base.h"
#include "capture/memorysource.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/memmaps.h"
#include "host/memstat.h"
#include "model/heap.h"
#include "model/wait.h"
#include "model/tables.h"

/* Walks take one part in so many of the time; the target's own page faults wait meanwhile. */
#define WALK_SHARE 400

struct one_process {
	int32_t pid;
	bool is_gone;
	struct memstacks stacks;
	uint64_t next_walk_ns;
	uint64_t pss_bytes;
	uint64_t stack_bytes;
};

struct memory_source {
	VEC(struct one_process) processes;
	uint64_t spacing_ns;
	struct memory_info info;
};

void memory_source_free(struct memory_source *s)
{
	if (!s)
		return;
	vec_foreach(one, &s->processes)
		memstacks_release(&one->stacks);
	vec_release(&s->processes);
	free_p(&s);
}

static void add_process(struct memory_source *s, int32_t pid)
{
	vec_foreach(one, &s->processes)
		if (one->pid == pid)
			return;
	vec_add(&s->processes)->pid = pid;
}

int memory_source_open(struct memory_source **ret_s, const struct memory_spec *spec,
		       struct err *err)
{
	(void)err;
	struct memory_source *s = xcalloc(1, sizeof(*s));
	s->spacing_ns = spec->spacing_ns ? MAX(spec->spacing_ns, (uint64_t)MEMORY_SPACING_MIN_NS)
					 : NS_PER_SEC;
	for (size_t i = 0; spec->pids && i < spec->pids->pids.n; i++)
		add_process(s, spec->pids->pids.p[i]);
	for (size_t i = 0; spec->tids && i < spec->tids->pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(spec->tids->pids.p[i], &pid, NULL))
			add_process(s, pid);
	}
	if (spec->child)
		add_process(s, spec->child);
	*ret_s = s;
	return 0;
}

static void walk(struct memory_source *s, struct one_process *one, uint64_t now)
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
	one->pss_bytes = 0;
	vec_foreach(m, &maps.list)
		one->pss_bytes += m->pss_bytes;
}

static int tell(const struct one_process *one, const struct memstat *m, uint64_t now,
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
	const struct event ev = {
		.kind = EVENT_TALLY,
		.time_ns = now,
		.pid = one->pid,
		.tid = one->pid,
		.cpu = -1,
		.tally = {.spec = TABLE_MEMORY,
			  .log2_ns = LOG2_NONE,
			  .syscall = -1,
			  .values = values},
	};
	return sink->event(sink->ctx, &ev, err);
}

int memory_source_read(struct memory_source *s, const struct event_sink *sink, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < s->processes.n; i++) {
		struct one_process *one = &s->processes.p[i];
		struct memstat m;
		if (one->is_gone)
			continue;
		/* The walk first: it takes long, and the row is to be of one moment. */
		uint64_t now = clock_mono_ns();
		if (now >= one->next_walk_ns)
			walk(s, one, now);
		now = clock_mono_ns();
		one->is_gone = memstat_read(&m, one->pid, MEMSTAT_COUNTERS, NULL, NULL);
		if (one->is_gone)
			continue;
		s->info.nr_readings++;
		rc = tell(one, &m, now, sink, err);
	}
	return rc;
}

uint64_t memory_source_spacing_ns(const struct memory_source *s)
{
	return s->spacing_ns;
}

struct memory_info memory_source_info(const struct memory_source *s)
{
	return s->info;
}
