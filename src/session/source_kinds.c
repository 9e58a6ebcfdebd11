/*
 * What each source is to the pump, and the tables that it fills; see sources.h. The shapes of the
 * tables are what analyze/ looks for.
 */
#include "base/base.h"
#include "session/source_kinds.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/clock.h"
#include "base/num.h"
#include "capture/counts.h"
#include "capture/heapsource.h"
#include "capture/io.h"
#include "capture/memorysource.h"
#include "capture/perfcounts.h"
#include "capture/spans.h"
#include "capture/switches.h"
#include "capture/waitsource.h"
#include "host/mempressure.h"
#include "host/proc.h"
#include "model/heap.h"
#include "model/tables.h"
#include "session/event_tables.h"
#include "session/heap_kind.h"
#include "session/probes_kind.h"
#include "model/tables.h"

/* ---- waits without programs in the kernel (switches.h) ------------------------------------ */

static int switches_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	const struct target *t = env->options->target;
	struct switches_spec spec = {.child = env->child, .is_side = env->has_sampler};
	if (t) {
		spec.pids = &t->pids;
		spec.tids = &t->tids;
		spec.is_system = t->is_system;
	}
	struct switches *s = NULL;
	int rc = switches_open(&s, &spec, err);
	*ret_s = s;
	return rc;
}

static int switches_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			       struct err *err)
{
	return switches_start(s, env->start_ns, sink, err);
}

static int switches_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return switches_drain(s, sink, err);
}

static int switches_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return switches_stop(s, sink, err);
}

static void switches_kind_facts(void *s, struct profile *p)
{
	struct switches_info info = switches_info(s);
	profile_fact(p, "accuracy", info.accuracy);
	if (info.remedy[0])
		profile_fact(p, "remedy", info.remedy);
}

static const int *switches_kind_fds(const void *s, size_t *ret_nr)
{
	return switches_fds(s, ret_nr);
}

static int switches_kind_patience_ms(const void *s)
{
	return switches_patience_ms(s);
}

static void switches_kind_grow(void *s, int32_t tid, uint64_t nr_bytes)
{
	switches_grow(s, tid, nr_bytes);
}

static void switches_kind_free(void *s)
{
	switches_free(s);
}

/* ---- input and output, faults, reclaim (io.h) --------------------------------------------- */

struct io_kind {
	struct io_source *io;
	int32_t pid; /* whose memory cgroup is looked at, 0 = nobody's */
	bool wants_pressure;
	bool wants_growth;
	bool is_beside;  /* growth of some, while the heap of others is recorded */
	const char *why; /* growth, and nothing better; may be NULL */
	struct mempressure before;
	bool has_reads; /* of @pid alone */
	struct proc_reads reads_before;
	struct proc_reads reads; /* as last seen: a process that has ended tells nothing */
};

static int io_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct io_source *io = NULL;
	TRY(io_open(&io, env->engine, env->options->io_parts, err));
	const struct target *t = env->options->target;
	struct io_kind *k = xcalloc(1, sizeof(*k));
	k->io = io;
	k->pid = t && t->pids.pids.n ? t->pids.pids.p[0] : env->child;
	/* whoever puts the command into a group tells of it, too */
	k->wants_pressure = env->options->io_parts & IO_PART_RECLAIM && !env->options->gate;
	k->wants_growth = env->options->io_parts & IO_PART_GROWTH;
	k->is_beside = env->options->programs & ENGINE_HEAP;
	k->why = env->options->heap ? env->options->heap->why : NULL;
	*ret_s = k;
	return 0;
}

static int io_kind_load(void *s, const struct source_env *env, struct err *err)
{
	(void)env;
	return io_attach(((struct io_kind *)s)->io, err);
}

static int io_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			 struct err *err)
{
	(void)sink;
	(void)err;
	struct io_kind *k = s;
	if (k->wants_pressure)
		mempressure_read(&k->before, k->pid, NULL);
	k->has_reads = k->wants_pressure && k->pid && !proc_reads(k->pid, &k->reads_before, NULL);
	k->reads = k->reads_before;
	io_start(k->io, env->start_ns);
	return 0;
}

static int io_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	struct io_kind *k = s;
	if (k->has_reads)
		(void)proc_reads(k->pid, &k->reads, NULL);
	return io_poll(k->io, sink, err);
}

static int io_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return io_stop(((struct io_kind *)s)->io, sink, err);
}

static void add_nr_fact(struct profile *p, const char *key, uint64_t nr)
{
	if (!nr)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_u64(&b, nr);
	profile_fact(p, key, buf_str(&b));
}

/* What faults cost the disk: "4.58 GiB from disk, 631 major faults: 7.43 MiB each". */
static void add_reads_fact(struct profile *p, const struct io_kind *k)
{
	uint64_t disk_bytes = k->reads.disk_bytes - k->reads_before.disk_bytes;
	uint64_t call_bytes = k->reads.call_bytes - k->reads_before.call_bytes;
	uint64_t nr_major = k->reads.nr_major - k->reads_before.nr_major;
	if (!disk_bytes && !nr_major)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	num_add_bytes(&b, disk_bytes);
	buf_addf(&b, " from disk, %" PRIu64 " major faults", nr_major);
	/* Where calls read as well, nobody knows which bytes are whose. */
	if (nr_major && call_bytes < disk_bytes / 10) {
		buf_add_str(&b, ": ");
		num_add_bytes(&b, disk_bytes / nr_major);
		buf_add_str(&b, " each");
	}
	profile_fact(p, "read for the process", buf_str(&b));
}

static void add_pressure_facts(struct profile *p, const struct io_kind *k)
{
	CLEANUP(mempressure_release) struct mempressure after = {0};
	CLEANUP(buf_release) struct buf machine = {0};
	CLEANUP(buf_release) struct buf group = {0};
	mempressure_read(&after, 0, &k->before);
	mempressure_add_machine(&machine, &k->before, &after);
	mempressure_add_group(&group, &k->before, &after);
	if (machine.n)
		profile_fact(p, "memory pressure", buf_str(&machine));
	if (group.n)
		profile_fact(p, "memory cgroup", buf_str(&group));
}

static void add_growth_facts(struct profile *p, const struct io_kind *k, const struct io_info *i)
{
	CLEANUP(buf_release) struct buf tier = {0};
	buf_addf(&tier, "growth%s%s", k->why ? ": " : "", k->why ? k->why : "");
	if (!k->is_beside)
		profile_fact(p, HEAP_FACT_TIER, buf_str(&tier));
	profile_fact(p, "growth",
		     i->has_fault_pages ? "pages that the kernel handed out, exactly"
					: "one page a fault: huge pages count as small ones");
}

static void io_kind_facts(void *s, struct profile *p)
{
	struct io_kind *k = s;
	struct io_info i = io_info(k->io);
	add_nr_fact(p, "io under way at start", i.nr_no_start);
	add_nr_fact(p, "io without stack and file", i.nr_rows_full);
	add_nr_fact(p, "io not counted", i.nr_lost);
	add_nr_fact(p, "io file names lost", i.nr_files_lost);
	add_nr_fact(p, "faults without mapping", i.nr_busy_maps);
	add_nr_fact(p, "block requests without issue", i.nr_no_issue);
	add_nr_fact(p, "block requests not followed", i.nr_requests_full);
	add_nr_fact(p, "block requests in flight at most", i.max_inflight);
	if (k->wants_growth)
		add_growth_facts(p, k, &i);
	if (k->wants_pressure)
		add_pressure_facts(p, k);
	if (k->has_reads)
		add_reads_fact(p, k);
}

static int io_kind_patience_ms(const void *s)
{
	(void)s;
	return 100;
}

static void io_kind_free(void *s)
{
	struct io_kind *k = s;
	io_free(k->io);
	mempressure_release(&k->before);
	free_p(&k);
}

/* ---- events by name (counts.h) ------------------------------------------------------------ */

static int counts_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct counts *c = NULL;
	int rc = counts_open(&c, env->engine, env->options->counts, err);
	*ret_s = c;
	return rc;
}

static int counts_kind_load(void *s, const struct source_env *env, struct err *err)
{
	(void)env;
	return counts_attach(s, err);
}

static int counts_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			     struct err *err)
{
	return counts_start(s, env->start_ns, sink, err);
}

static int counts_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return counts_collect(s, clock_mono_ns(), sink, err);
}

static int counts_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return counts_stop(s, sink, err);
}

static void counts_kind_facts(void *s, struct profile *p)
{
	event_tables_facts(s, p);
}

static void counts_kind_free(void *s)
{
	counts_free(s);
}

/* ---- the ledger of waits (waitsource.h) -------------------------------------------------------
 */

static int waits_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct waits *w = NULL;
	int rc = waits_open(&w, env->engine, env->options->programs, err);
	*ret_s = w;
	return rc;
}

static int waits_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			    struct err *err)
{
	(void)sink;
	return waits_start(s, env->start_ns, err);
}

static int waits_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return waits_drain(s, sink, err);
}

static int waits_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	(void)sink;
	return waits_stop(s, err);
}

static int waits_kind_finish(void *s, const struct event_sink *sink, struct err *err)
{
	return waits_finish(s, sink, err);
}

static int waits_kind_patience_ms(const void *s)
{
	(void)s;
	return 50;
}

static uint64_t waits_kind_end_ns(const void *s)
{
	return waits_info(s).stop_ns;
}

static void waits_kind_facts(void *s, struct profile *p)
{
	struct waits_info info = waits_info(s);
	add_nr_fact(p, "intervals without a reason, no room", info.nr_unbooked);
	if (!info.lost_ns)
		return;
	CLEANUP(buf_release) struct buf text = {0};
	num_add_ns(&text, info.lost_ns);
	profile_fact(p, "waits in no row", buf_str(&text));
}

static void waits_kind_free(void *s)
{
	waits_free(s);
}

/* ---- the same by the kernel's counters (perfcounts.h) ------------------------------------- */

static int perfcounts_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	const struct target *t = env->options->target;
	struct perfcounts_spec spec = {.counts = env->options->counts, .child = env->child};
	if (t) {
		spec.pids = &t->pids;
		spec.tids = &t->tids;
		spec.is_system = t->is_system;
	}
	struct perfcounts *c = NULL;
	int rc = perfcounts_open(&c, &spec, err);
	*ret_s = c;
	return rc;
}

static int perfcounts_kind_start(void *s, const struct source_env *env,
				 const struct event_sink *sink, struct err *err)
{
	return perfcounts_start(s, env->start_ns, sink, err);
}

static int perfcounts_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return perfcounts_collect(s, clock_mono_ns(), sink, err);
}

static void perfcounts_kind_facts(void *s, struct profile *p)
{
	bool is_user_only = perfcounts_is_user_only(s);
	profile_fact(p, "accuracy",
		     is_user_only ? "counters of the kernel, by thread, faults of user code only; "
				    "no outcomes, no stacks"
				  : "counters of the kernel, by thread; no outcomes, no stacks");
	if (perfcounts_refused(s)[0])
		profile_fact(p, "events refused", perfcounts_refused(s));
}

static void perfcounts_kind_free(void *s)
{
	perfcounts_free(s);
}

/* ---- latency of operations (spans.h) ------------------------------------------------------ */

struct spans_kind {
	struct spans *spans;
	const struct spans_spec *spec;
};

static int spans_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct spans *spans = NULL;
	TRY(spans_open(&spans, env->engine, env->options->spans, err));
	struct spans_kind *k = xcalloc(1, sizeof(*k));
	*k = (struct spans_kind){spans, env->options->spans};
	*ret_s = k;
	return 0;
}

static int spans_kind_load(void *s, const struct source_env *env, struct err *err)
{
	(void)env;
	return spans_attach(((struct spans_kind *)s)->spans, err);
}

static int spans_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			    struct err *err)
{
	(void)sink;
	(void)err;
	spans_start(((struct spans_kind *)s)->spans, env->start_ns);
	return 0;
}

static int spans_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return spans_poll(((struct spans_kind *)s)->spans, sink, err);
}

static int spans_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return spans_stop(((struct spans_kind *)s)->spans, sink, err);
}

static void spans_kind_facts(void *s, struct profile *p)
{
	const struct spans_kind *k = s;
	struct span_counts sum = {0};
	CLEANUP(buf_release) struct buf idle = {0};
	size_t nr_idle = 0;
	for (size_t i = 0; i < k->spec->nr_probes; i++) {
		struct span_counts c = spans_counts(k->spans, i);
		if (!c.nr_started && !c.nr_inside && nr_idle++ < 5)
			buf_addf(&idle, "%s%s", idle.n ? ", " : "", k->spec->probes[i].name);
		sum.nr_started += c.nr_started;
		sum.nr_ended += c.nr_ended;
		sum.nr_inside += c.nr_inside;
		sum.nr_lost += c.nr_lost;
		sum.nr_unsent += c.nr_unsent;
	}
	if (nr_idle > 5)
		buf_addf(&idle, " and %zu more", nr_idle - 5);
	if (nr_idle)
		profile_fact(p, "never called", buf_str(&idle));
	add_nr_fact(p, "spans unfinished", sum.nr_started - MIN(sum.nr_ended, sum.nr_started));
	add_nr_fact(p, "spans inside others", sum.nr_inside);
	add_nr_fact(p, "spans without a row", sum.nr_lost);
	add_nr_fact(p, "slow spans without details", sum.nr_unsent);
}

static int spans_kind_patience_ms(const void *s)
{
	(void)s;
	return 100;
}

static void spans_kind_free(void *s)
{
	spans_free(((struct spans_kind *)s)->spans);
	free_p(&s);
}

/* ---- memory over time (memorysource.h) ---------------------------------------------------- */

static int memory_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	const struct target *t = env->options->target;
	struct memory_spec spec = {.child = env->child,
				   .spacing_ns = env->options->memory_spacing_ns};
	if (t) {
		spec.pids = &t->pids;
		spec.tids = &t->tids;
	}
	struct memory_source *s = NULL;
	int rc = memory_source_open(&s, &spec, err);
	*ret_s = s;
	return rc;
}

static int memory_kind_read(void *s, const struct event_sink *sink, struct err *err)
{
	return memory_source_read(s, sink, err);
}

static void memory_kind_facts(void *s, struct profile *p)
{
	struct memory_info info = memory_source_info(s);
	CLEANUP(buf_release) struct buf text = {0};
	if (info.is_refused)
		profile_fact(p, "memory refused", "PSS and stacks: no right to trace the target");
	if (!info.nr_walks)
		return;
	buf_addf(&text,
		 "%" PRIu64 " readings, %" PRIu64 " walks of page tables: ", info.nr_readings,
		 info.nr_walks);
	num_add_ns(&text, info.walks_ns);
	buf_add_str(&text, ", longest ");
	num_add_ns(&text, info.longest_ns);
	profile_fact(p, "memory readings", buf_str(&text));
}

static int memory_kind_patience_ms(const void *s)
{
	return (int)MIN(memory_source_spacing_ns(s) / 1000000, (uint64_t)INT_MAX);
}

static void memory_kind_free(void *s)
{
	memory_source_free(s);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct source_kind kinds[] = {
	{
		.name = "waits",
		.program = ENGINE_WAITS,
		.needs_engine = true,
		.open = waits_kind_open,
		.start = waits_kind_start,
		.drain = waits_kind_drain,
		.stop = waits_kind_stop,
		.finish = waits_kind_finish,
		.end_ns = waits_kind_end_ns,
		.facts = waits_kind_facts,
		.patience_ms = waits_kind_patience_ms,
		.free = waits_kind_free,
	},
	{
		.name = "counts",
		.program = ENGINE_COUNTS,
		.needs_engine = true,
		.open = counts_kind_open,
		.load = counts_kind_load,
		.start = counts_kind_start,
		.drain = counts_kind_drain,
		.stop = counts_kind_stop,
		.facts = counts_kind_facts,
		.free = counts_kind_free,
	},
	{
		.name = "perfcounts",
		.program = ENGINE_COUNTS,
		.is_fallback = true,
		.open = perfcounts_kind_open,
		.start = perfcounts_kind_start,
		.drain = perfcounts_kind_drain,
		.stop = perfcounts_kind_drain,
		.facts = perfcounts_kind_facts,
		.free = perfcounts_kind_free,
	},
	{
		.name = "switches",
		.program = ENGINE_WAITS,
		.is_fallback = true,
		.open = switches_kind_open,
		.start = switches_kind_start,
		.drain = switches_kind_drain,
		.stop = switches_kind_stop,
		.facts = switches_kind_facts,
		.fds = switches_kind_fds,
		.patience_ms = switches_kind_patience_ms,
		.grow = switches_kind_grow,
		.free = switches_kind_free,
	},
	{
		.name = "io",
		.program = ENGINE_IO,
		.needs_engine = true,
		.open = io_kind_open,
		.load = io_kind_load,
		.start = io_kind_start,
		.drain = io_kind_drain,
		.stop = io_kind_stop,
		.facts = io_kind_facts,
		.patience_ms = io_kind_patience_ms,
		.free = io_kind_free,
	},
	{
		.name = "spans",
		.program = ENGINE_SPANS,
		.needs_engine = true,
		.open = spans_kind_open,
		.load = spans_kind_load,
		.start = spans_kind_start,
		.drain = spans_kind_drain,
		.stop = spans_kind_stop,
		.facts = spans_kind_facts,
		.patience_ms = spans_kind_patience_ms,
		.free = spans_kind_free,
	},
	{
		.name = "memory",
		.program = ENGINE_MEMORY,
		.open = memory_kind_open,
		.drain = memory_kind_read,
		.stop = memory_kind_read,
		.facts = memory_kind_facts,
		.patience_ms = memory_kind_patience_ms,
		.free = memory_kind_free,
	},
};

const struct source_kind *source_kind_at(size_t i)
{
	if (i == ARRAY_LEN(kinds))
		return &heap_kind;
	if (i == ARRAY_LEN(kinds) + 1)
		return &probes_kind;
	return i < ARRAY_LEN(kinds) ? &kinds[i] : NULL;
}

#define HEAP_PROGRAMS (ENGINE_HEAP | ENGINE_PROBES)

/* ---- tables ------------------------------------------------------------------------------- */

/* What each part of a capture fills, in the order in which the tables are made. */
static const struct {
	unsigned program; /* enum engine_programs */
	enum table_id table;
} filled[] = {
	{ENGINE_WAITS, TABLE_OFF_CPU},    {ENGINE_WAITS, TABLE_ON_CPU},
	{ENGINE_WAITS, TABLE_BLAME},      {ENGINE_IO, TABLE_IO},
	{ENGINE_IO, TABLE_BLOCK},         {ENGINE_IO, TABLE_FAULTS},
	{ENGINE_IO, TABLE_RECLAIM},       {ENGINE_SPANS, TABLE_SPANS},
	{ENGINE_SPANS, TABLE_SPAN_TIME},  {ENGINE_SPANS, TABLE_SLOWEST_SPANS},
	{HEAP_PROGRAMS, TABLE_ALLOCATED}, {HEAP_PROGRAMS, TABLE_LIVE},
	{HEAP_PROGRAMS, TABLE_PEAK},      {HEAP_PROGRAMS, TABLE_FREED},
	{HEAP_PROGRAMS, TABLE_OLDER},     {HEAP_PROGRAMS, TABLE_MAPPED},
};

void sources_make_tables(const struct sources *s, struct profile *p, struct builder *b)
{
	const struct capture_options *o = s->env.options;
	unsigned programs = o ? o->programs : 0;
	bool is_sampled = o && o->heap && !o->heap->is_every;
	for (size_t i = 0; i < ARRAY_LEN(filled); i++) {
		unsigned flags =
			is_sampled && filled[i].program == HEAP_PROGRAMS ? TABLES_ESTIMATE : 0;
		if (programs & filled[i].program)
			builder_set_table(b, filled[i].table,
					  tables_add(p, filled[i].table, flags));
	}
	if (programs & ENGINE_IO && o->io_parts & IO_PART_GROWTH) {
		builder_set_table(b, TABLE_GROWTH, tables_add(p, TABLE_GROWTH, 0));
		builder_set_table(b, TABLE_MAPPED, tables_add(p, TABLE_MAPPED, 0));
	}
	if (programs & ENGINE_MEMORY)
		builder_set_table(b, TABLE_MEMORY, tables_add(p, TABLE_MEMORY, 0));
	if (programs & ENGINE_COUNTS)
		event_tables_add(p, b, o->counts);
}
