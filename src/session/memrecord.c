/* Stores readings of memory in a profile; see memrecord.h. */
#include "base/base.h"
#include "session/memrecord.h"

#include <sys/utsname.h>

#include "base/clock.h"
#include "host/limits.h"
#include "model/heap.h"
#include "model/tables.h"

#define FLUSH_NS (NS_PER_SEC / 2) /* below the time between readings: each one is written */

int memrecord_open(struct memrecord *w, const char *output, const char *target, struct err *err)
{
	*w = (struct memrecord){.p = profile_new()};
	if (output) {
		int fd = -1;
		TRY(store_place_at(&w->place, &fd, output, err));
		w->writer = assayfile_writer_new(fd, "memory");
	}
	w->table = tables_add(w->p, TABLE_MEMORY, 0);
	w->allocator_table = tables_add(w->p, TABLE_ALLOCATOR, 0);
	w->p->start_ns = clock_mono_ns();
	w->p->wall_start_ns = clock_real_ns();
	profile_fact(w->p, FACT_TARGET, target);
	struct utsname u;
	if (!uname(&u)) {
		profile_fact(w->p, FACT_HOST, u.nodename);
		profile_fact(w->p, FACT_KERNEL, u.release);
	}
	profile_fact_nr(w->p, FACT_CPUS, host_nr_cpus());
	profile_fact_nr(w->p, FACT_MEMORY_MACHINE, memstat_machine_bytes());
	if (w->writer) /* at once, so that the file opens whenever assay is killed */
		(void)assayfile_flush(w->writer, w->p, NULL);
	return 0;
}

void memrecord_release(struct memrecord *w)
{
	profile_free(w->p);
	assayfile_writer_free(w->writer);
	vec_release(&w->tasks);
	if (w->place.stem)
		store_place_release(&w->place);
}

static task_id task_of(struct memrecord *w, size_t i, int32_t pid, uint64_t now)
{
	while (w->tasks.n <= i)
		vec_push(&w->tasks, 0);
	if (w->tasks.p[i])
		return w->tasks.p[i];
	CLEANUP(buf_release) struct buf comm = {0};
	(void)proc_comm(&comm, pid, pid, NULL); /* on failure without a name */
	w->tasks.p[i] = profile_task(w->p, pid, pid, profile_cstr(w->p, buf_str(&comm)), now);
	return w->tasks.p[i];
}

static uint32_t no_tag(struct memrecord *w)
{
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	return profile_tag(w->p, &tag);
}

/* Allocators are asked more rarely than memory is read; each answer is one row. */
static void add_allocator(struct memrecord *w, const struct memwatch *from,
			  const struct memallocator *a, uint64_t time_ns)
{
	if (!a->is_known || a->query_ns == w->query_ns || !from->processes.n)
		return;
	const int64_t values[ALLOCATOR_COLUMNS] = {
		[ALLOCATOR_IN_USE] = (int64_t)a->in_use_bytes,
		[ALLOCATOR_ACTIVE] = (int64_t)a->active_bytes,
		[ALLOCATOR_RESIDENT] = (int64_t)a->resident_bytes,
		[ALLOCATOR_RETAINED] = (int64_t)a->retained_bytes,
	};
	w->query_ns = a->query_ns;
	profile_tagged_sample(w->p, w->allocator_table, time_ns, 0,
			      task_of(w, 0, from->processes.p[0].pid, time_ns), -1, no_tag(w),
			      values);
}

void memrecord_add(struct memrecord *w, const struct memwatch *from, const struct memreading *t)
{
	for (size_t i = 0; i < from->processes.n; i++) {
		const struct memwatch_process *one = &from->processes.p[i];
		if (one->has_exited)
			continue;
		/* glibc's heaps are walked too rarely for a value of every reading. */
		uint64_t live = from->is_stats_open ? t->allocator.in_use_bytes : 0;
		const int64_t values[HEAP_MEMORY_NR] = {
			[HEAP_MEMORY_RSS] = (int64_t)one->last.rss_bytes,
			[HEAP_MEMORY_PSS] = (int64_t)one->last.pss_bytes,
			[HEAP_MEMORY_ANON] = (int64_t)one->last.anon_bytes,
			[HEAP_MEMORY_FILE] = (int64_t)one->last.file_bytes,
			[HEAP_MEMORY_SHMEM] = (int64_t)one->last.shmem_bytes,
			[HEAP_MEMORY_SWAP] = (int64_t)one->last.swap_bytes,
			[HEAP_MEMORY_STACKS] = (int64_t)one->stack_bytes,
			[HEAP_MEMORY_VIRTUAL] = (int64_t)one->last.virtual_bytes,
			[HEAP_MEMORY_LIVE] = (int64_t)live,
		};
		profile_tagged_sample(w->p, w->table, t->time_ns, 0,
				      task_of(w, i, one->pid, t->time_ns), -1, no_tag(w), values);
	}
	add_allocator(w, from, &t->allocator, t->time_ns);
	w->p->end_ns = t->time_ns;
	if (w->writer && t->time_ns >= w->next_flush_ns) {
		/* Errors are reported at the end; each flush retries what was not written. */
		(void)assayfile_flush(w->writer, w->p, NULL);
		w->next_flush_ns = t->time_ns + FLUSH_NS;
	}
}

static void add_facts(struct memrecord *w, const struct memwatch *from)
{
	const struct memgroup_numbers *g = &from->last.group;
	uint64_t limit = memgroup_least_limit(g);
	if (from->last.has_group && limit != MEMGROUP_NO_LIMIT)
		profile_fact_nr(w->p, FACT_MEMORY_LIMIT, limit);
	if (from->refused)
		profile_fact(w->p, FACT_MEMORY_REFUSED,
			     "PSS and stacks: no permission to ptrace the target");
}

void memrecord_abandon(struct memrecord *w)
{
	if (w->writer)
		store_abandon(&w->place);
}

int memrecord_finish(struct memrecord *w, const struct memwatch *from, const struct procend *end,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	add_allocator(w, from, &from->stats, w->p->end_ns); /* of the last mappings */
	add_facts(w, from);
	procend_add(&text, end);
	if (text.n)
		profile_fact(w->p, FACT_TARGET_END, buf_str(&text));
	int rc = w->writer ? assayfile_finish(w->writer, w->p, err) : 0;
	if (w->writer)
		w->nr_bytes = assayfile_bytes(w->writer);
	profile_seal(w->p);
	return rc;
}
