/* Report of `assay limit`; see limitreport.h. */
#include "base/base.h"
#include "analyze/memory/limitreport.h"

#include <math.h>

#include "analyze/memory/heapframes.h"
#include "analyze/io/taggroups.h"
#include "analyze/view.h"
#include "base/map.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "model/heap.h"

#define NEAR_LIMIT_PCT 95.0  /* readings are milliseconds apart */
#define REFAULTS_PER_S 100.0 /* fewer pages per second cost nothing */
#define NAMED_MAX      3

/* Sums all rows of a table; false: no such table. */
static bool open_rows(struct tag_rows *ret_r, struct arena *a, const struct profile *p,
		      enum table_id id)
{
	const struct select_spec all = {0};
	return p && !tag_rows_open(ret_r, a, p, id, &all, NULL);
}

/* Direct reclaim by threads of the command, as recorded by BPF programs. */
static struct tag_row reclaim_of(const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct tag_rows rows;
	struct tag_row row;
	struct tag_row sum = {0};
	if (!open_rows(&rows, &a, p, TABLE_RECLAIM))
		return sum;
	while (tag_rows_next(&rows, &row)) {
		if (!strcmp(row.detail, "kswapd"))
			continue;
		sum.nr += row.nr;
		sum.ns += row.ns;
		sum.pages += row.pages;
	}
	return sum;
}

static const char *limit_text(struct arena *a, const struct limit_spec *spec,
			      const struct limit_outcome *s)
{
	const char *memory = arena_fmt(a, "%s", num_bytes(spec->memory_bytes).s);
	if (!s->has_group)
		return arena_fmt(a, "%s of private memory per process (RLIMIT_DATA)", memory);
	return !s->has_swap
		       ? memory
		       : arena_fmt(a, "%s and %s of swap", memory, num_bytes(spec->swap_bytes).s);
}

/* ---- killed ------------------------------------------------------------------------------- */

static uint64_t weight_of(const struct tag_group *g)
{
	return g->amounts[0].bytes;
}

/* The blocks that recorded processes held when SIGKILL ended them; @pid: of one, 0: of all. */
struct killed {
	const struct profile *p;
	enum table_id table;
	struct tag_rows rows;
	int32_t pid;
};

static bool killed_open(struct killed *k, struct arena *a, enum table_id id, int32_t pid)
{
	k->table = id;
	k->pid = pid;
	return open_rows(&k->rows, a, k->p, id);
}

static bool killed_next(struct killed *k, struct tag_row *row)
{
	while (tag_rows_next(&k->rows, row)) {
		bool is_held =
			k->table == TABLE_LIVE || heap_is_freed_by_kill(k->p, k->rows.t, row->i);
		if (is_held && (!k->pid || k->p->tasks.p[row->task].pid == k->pid))
			return true;
	}
	return false;
}

/* The task of the process that held most, in @k->table from then on; false: none was recorded. */
static bool find_killed(struct killed *k, struct arena *a, task_id *ret_task)
{
	const char *end = profile_get_fact(k->p, FACT_TARGET_END);
	bool is_target = end && sv_has_prefix(sv_from_str(end), SV("killed by SIGKILL"));
	struct map by_pid = {0};
	struct tag_row row;
	uint64_t most = 0;
	enum table_id of = TABLE_LIVE;
	for (int i = is_target ? 0 : 1; i < 2; i++) {
		if (!killed_open(k, a, i ? TABLE_FREED : TABLE_LIVE, 0))
			continue;
		VEC(uint64_t) sums = {0};
		map_clear(&by_pid);
		while (killed_next(k, &row)) {
			bool is_new;
			int32_t pid = k->p->tasks.p[row.task].pid;
			uint32_t *at = map_put(&by_pid, (uint64_t)(uint32_t)pid + 1, &is_new);
			if (is_new) {
				*at = (uint32_t)sums.n;
				vec_push(&sums, 0);
			}
			sums.p[*at] += row.bytes;
			if (sums.p[*at] > most) {
				most = sums.p[*at];
				*ret_task = row.task;
				of = k->table;
			}
		}
		vec_release(&sums);
	}
	map_release(&by_pid);
	return most && killed_open(k, a, of, k->p->tasks.p[*ret_task].pid);
}

/*
 * Appends "; largest allocators in eats (pid 7): parse 1.20 GiB (70 %), ..." of the killed process, or
 * that it is not known, if heaps were recorded.
 */
static void add_allocators(struct buf *to, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct killed k = {.p = p};
	struct tag_row row;
	task_id task;
	if (!p || !tables_has_rows(p, TABLE_ALLOCATED))
		return;
	if (!find_killed(&k, &a, &task)) {
		buf_addf(to,
			 "; what it held is not known: no recorded process is known to have been "
			 "killed by SIGKILL");
		return;
	}
	CLEANUP(tag_groups_release) struct tag_groups functions = {.arena = &a};
	struct heapframes *frames = heapframes_new(&a, p);
	uint64_t all = 0;
	while (killed_next(&k, &row)) {
		const char *name = heapframe_name(p, heapframes_of(frames, row.stack));
		amount_add(&tag_groups_at(&functions, &name, 1)->amounts[0], &row);
		all += row.bytes;
	}
	tag_groups_sort(&functions, weight_of);
	const struct task *t = &p->tasks.p[profile_main_task(p, task)];
	buf_addf(to, "; largest allocators in %s (pid %d), which SIGKILL ended:",
		 t->comm ? profile_text(p, t->comm) : "the process", t->pid);
	for (size_t i = 0; all && i < MIN(functions.groups.n, (size_t)NAMED_MAX); i++) {
		const struct tag_group *one = &functions.groups.p[i];
		buf_addf(to, "%s %s %s (%s %%)", i ? "," : "", one->texts[0],
			 num_bytes(weight_of(one)).s, num_pct(view_pct(weight_of(one), all)).s);
	}
}

static void kill_sentence(struct buf *to, const struct limit_result *e)
{
	const struct limit_outcome *s = e->outcome;
	uint64_t nr = s->numbers.nr_oom_kill;
	if (!nr)
		return;
	const struct limit_point *at = s->at_kill.usage_bytes ? &s->at_kill : &s->largest;
	if (nr > 1)
		buf_addf(to, "%" PRIu64 " processes OOM-killed, the last one ", nr);
	buf_addf(to, "killed by the OOM killer at the limit, %s: %s of it anonymous, %s page cache",
		 num_bytes(MAX(at->usage_bytes, MIN(s->numbers.peak_bytes, e->spec->memory_bytes)))
			 .s,
		 num_bytes(at->anon_bytes).s, num_bytes(at->file_bytes).s);
	if (at->swap_bytes)
		buf_addf(to, ", and %s in swap", num_bytes(at->swap_bytes).s);
	add_allocators(to, e->profile);
}

/* ---- facts -------------------------------------------------------------------------------- */

static const char *pressure_text(struct arena *a, const struct limit_outcome *s)
{
	const struct memgroup_numbers *n = &s->numbers;
	uint64_t all_us = s->duration_ns / 1000;
	return arena_fmt(a, "some threads stalled for %s (%s %%), all threads for %s (%s %%)%s",
			 num_ns(n->some_us * 1000).s, num_pct(view_pct(n->some_us, all_us)).s,
			 num_ns(n->full_us * 1000).s, num_pct(view_pct(n->full_us, all_us)).s,
			 n->has & MEMGROUP_HAS_OWN_PRESSURE ? "" : ", whole machine");
}

void limit_facts(struct profile *p, const struct limit_spec *spec, const struct limit_outcome *s)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	profile_fact(p, FACT_MEMORY_LIMIT, limit_text(&a, spec, s));
	profile_fact(p, FACT_MEMORY_PEAK, num_bytes(s->numbers.peak_bytes).s);
	if (s->has_group) /* nothing counts what RLIMIT_DATA refuses */
		profile_factf(p, FACT_AT_LIMIT, "%s", num_noun(s->numbers.nr_at_limit, "times").s);
	const struct limit_result end = {.spec = spec,
					 .outcome = s}; /* functions are not symbolized yet */
	kill_sentence(&b, &end);
	if (b.n)
		profile_fact(p, FACT_OUT_OF_MEMORY, buf_str(&b));
}

void limit_rows(struct profile *p, const struct limit_spec *spec, const struct limit_outcome *s)
{
	const struct tag none = {.log2_ns = LOG2_NONE, .syscall = -1};
	if (!s->has_group || !s->points.n)
		return;
	uint32_t table = tables_add(p, TABLE_CGROUP, 0);
	uint32_t tag = profile_tag(p, &none);
	vec_foreach(one, &s->points) {
		const int64_t values[CGROUP_COLUMNS] = {
			[CGROUP_USAGE] = (int64_t)one->usage_bytes,
			[CGROUP_LIMIT] = (int64_t)spec->memory_bytes,
			[CGROUP_ANON] = (int64_t)one->anon_bytes,
			[CGROUP_FILE] = (int64_t)one->file_bytes,
			[CGROUP_SWAP] = (int64_t)one->swap_bytes,
		};
		profile_tagged_sample(p, table, s->start_ns + one->time_ns, 0, 0, -1, tag, values);
	}
	uint64_t kill_ns = s->start_ns + s->at_kill.time_ns;
	if (s->numbers.nr_oom_kill && kill_ns > p->start_ns)
		profile_fact_nr(p, FACT_OOM_KILL, kill_ns - p->start_ns);
}

/* ---- tables ------------------------------------------------------------------------------- */

static const struct report_column byte_columns[] = {
	{"bytes", "bytes", CELL_BYTES, NULL},
	{"pct", "% of limit", CELL_PERCENT, NULL},
	{"what", "memory", CELL_TEXT, NULL},
};

/* The recorder's memory in a process counts towards RLIMIT_DATA. */
static bool has_recorder(const struct profile *p)
{
	return p && profile_get_fact(p, FACT_HEAP_METHOD);
}

static void add_memory(struct report *r, const struct limit_result *e)
{
	const struct limit_outcome *s = e->outcome;
	const struct memgroup_numbers *n = &s->numbers;
	uint64_t limit = e->spec->memory_bytes;
	bool has_group = s->has_group;
	const struct {
		bool is_there;
		bool is_limited; /* RLIMIT_DATA limits other memory than what is resident */
		const char *what;
		uint64_t bytes;
	} rows[] = {
		{true, true, "limit", limit},
		{n->limit_above_bytes < limit, true, "limit of the parent cgroups",
		 n->limit_above_bytes},
		{!has_group, true,
		 has_recorder(e->profile)
			 ? "highest reading: private writable memory and the recorder's, which is limited"
			 : "highest reading: private writable memory, which is limited",
		 s->data_bytes},
		{true, has_group, has_group ? "peak" : "peak RSS, which is not limited",
		 n->peak_bytes},
		{true, has_group, "highest reading: anonymous", s->highest.anon_bytes},
		{true, has_group,
		 has_group ? "highest reading: page cache" : "highest reading: resident file pages",
		 s->highest.file_bytes},
		{n->has & MEMGROUP_HAS_SWAP, has_group, "highest reading: swap",
		 s->highest.swap_bytes},
	};
	struct report_table *t =
		report_add_table(r, "memory", "memory", byte_columns, ARRAY_LEN(byte_columns));
	if (!(n->has & MEMGROUP_HAS_PEAK))
		t->note = "this kernel has no peak counter: peak is the highest reading";
	else if (s->has_group)
		t->note = "charged to the command: file pages that others had in the page cache "
			  "already are not, so its RSS can be larger";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is_there)
			report_add_row(
				r, t,
				(union cell[]){
					{.u = rows[i].bytes},
					{.d = rows[i].is_limited
						      ? 100.0 * (double)rows[i].bytes /
								(double)MAX(limit, (uint64_t)1)
						      : (double)NAN},
					{.text = rows[i].what}});
}

static const struct report_column count_columns[] = {
	{"count", "count", CELL_COUNT, NULL},
	{"what", "what", CELL_TEXT, NULL},
};

static void add_counts(struct report *r, const struct limit_result *e)
{
	const struct memgroup_numbers *n = &e->outcome->numbers;
	const struct tag_row reclaim = reclaim_of(e->profile);
	bool has_reclaim = n->has & MEMGROUP_HAS_RECLAIM;
	const struct {
		bool is_there;
		const char *what;
		uint64_t nr;
	} rows[] = {
		{true, "times at the limit", n->nr_at_limit},
		{n->nr_high, "times above memory.high", n->nr_high},
		{e->has_reclaim, "direct reclaims", reclaim.nr},
		{e->has_reclaim, "pages reclaimed by them", reclaim.pages},
		{has_reclaim, "pages scanned", n->nr_scanned},
		{has_reclaim, "pages reclaimed", n->nr_stolen},
		{has_reclaim, "of these by direct reclaim", n->nr_stolen_direct},
		{true, "file pages read again (refaults)", n->nr_refault_file},
		{true, "anonymous pages swapped in again (refaults)", n->nr_refault_anon},
		{true, "page faults", n->nr_faults},
		{true, "major page faults", n->nr_major},
		{true, "processes killed", n->nr_oom_kill},
	};
	struct report_table *t = report_add_table(r, "counts", "event counts", count_columns,
						  ARRAY_LEN(count_columns));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is_there)
			report_add_row(r, t,
				       (union cell[]){{.u = rows[i].nr}, {.text = rows[i].what}});
}

static const struct report_column time_columns[] = {
	{"ns", "time", CELL_NS, NULL},
	{"pct", "%", CELL_PERCENT, "of the command's time"},
	{"what", "what", CELL_TEXT, NULL},
};

static void add_time(struct report *r, struct report_table *t, const struct limit_outcome *s,
		     const char *what, uint64_t ns)
{
	double all = (double)MAX(s->duration_ns, (uint64_t)1);
	union cell cells[] = {{.u = ns}, {.d = 100.0 * (double)ns / all}, {.text = what}};
	report_add_row(r, t, cells);
}

static void add_times(struct report *r, const struct limit_result *e)
{
	const struct limit_outcome *s = e->outcome;
	const struct memgroup_numbers *n = &s->numbers;
	bool has_pressure = n->has & MEMGROUP_HAS_PRESSURE;
	if (!has_pressure && !e->has_reclaim)
		return;
	struct report_table *t = report_add_table(r, "pressure", "memory stall time", time_columns,
						  ARRAY_LEN(time_columns));
	bool is_own = n->has & MEMGROUP_HAS_OWN_PRESSURE;
	if (has_pressure) {
		add_time(r, t, s,
			 is_own ? "some threads stalled" : "some threads stalled, whole machine",
			 n->some_us * 1000);
		add_time(r, t, s,
			 is_own ? "all threads stalled" : "all threads stalled, whole machine",
			 n->full_us * 1000);
	}
	if (e->has_reclaim)
		add_time(r, t, s, "direct reclaim, sum over threads", reclaim_of(e->profile).ns);
}

static const struct report_column point_columns[] = {
	{"time_ns", "after", CELL_NS, NULL},     {"usage", "in use", CELL_BYTES, NULL},
	{"anon", "anonymous", CELL_BYTES, NULL}, {"file", "page cache", CELL_BYTES, NULL},
	{"swap", "swap", CELL_BYTES, NULL},
};

static void add_points(struct report *r, const struct limit_outcome *s, size_t max_rows)
{
	struct report_table *t = report_add_table(r, "over_time", "over time", point_columns,
						  ARRAY_LEN(point_columns));
	t->cut = CUT_EVERY;
	t->cut_by = 1;
	size_t n = s->points.n;
	size_t nr = max_rows ? MIN(max_rows, n) : n;
	for (size_t i = 0; i < nr; i++) {
		size_t at = nr > 1 ? i * (n - 1) / (nr - 1) : n - 1;
		const struct limit_point *p = &s->points.p[at];
		union cell cells[] = {{.u = p->time_ns},
				      {.u = p->usage_bytes},
				      {.u = p->anon_bytes},
				      {.u = p->file_bytes},
				      {.u = p->swap_bytes}};
		report_add_row(r, t, cells);
	}
}

/* Pages that are read again show that the limit is smaller than what is in use; reclaim does not. */
static void note_refaults(struct report *r, const struct limit_outcome *s)
{
	const struct memgroup_numbers *n = &s->numbers;
	uint64_t nr = n->nr_refault_file + n->nr_refault_anon;
	double per_s = s->duration_ns ? (double)nr * 1e9 / (double)s->duration_ns : 0;
	if (!s->has_group || !n->nr_at_limit || per_s < REFAULTS_PER_S)
		return;
	report_note(
		r,
		"the limit is smaller than what the command uses: %s and %s were reclaimed and needed again (%s per second)",
		num_noun(n->nr_refault_file, "file pages").s,
		num_noun(n->nr_refault_anon, "anonymous pages").s, num_count((uint64_t)per_s).s);
}

/* Without a cgroup: nothing counts what was refused, so only what was read is said. */
static void note_rlimit(struct report *r, const struct limit_result *e)
{
	uint64_t limit = MAX(e->spec->memory_bytes, (uint64_t)1);
	double pct = 100.0 * (double)e->outcome->data_bytes / (double)limit;
	const char *end = profile_get_fact(e->profile, FACT_TARGET_END);
	if (!e->outcome->data_bytes)
		report_note(r, "the command ended before its private memory could be read%s%s",
			    end ? ": it was " : "", end ? end : "");
	else if (pct >= NEAR_LIMIT_PCT)
		report_note(r,
			    "the command reached %s %% of the limit: memory beyond it is refused, "
			    "and the call fails with ENOMEM%s%s",
			    num_pct(pct).s, end ? "; it was " : "", end ? end : "");
	else
		report_note(
			r,
			"the command's private memory%s was %s %% of the limit at most, when it was "
			"read; whether more was asked for and refused is not counted by the "
			"kernel%s%s",
			has_recorder(e->profile) ? ", with the recorder's," : "", num_pct(pct).s,
			end ? "; it was " : "", end ? end : "");
}

static void add_notes(struct report *r, const struct limit_result *e)
{
	const struct limit_outcome *s = e->outcome;
	CLEANUP(buf_release) struct buf b = {0};
	kill_sentence(&b, e);
	if (b.n)
		report_note(r, "%s", buf_str(&b));
	else if (!s->has_group)
		note_rlimit(r, e);
	else if (e->exit_code == 137)
		report_note(r, "ended by SIGKILL, but not because of the memory limit");
	note_refaults(r, s);
	if (s->has_group && e->spec->swap_bytes != MEMGROUP_NO_LIMIT && !s->has_swap)
		report_note(r, "swap was not limited: the kernel does not account for swap "
			       "(boot with swapaccount=1)");
	if (s->nr_moved)
		report_note(r, "%s outlived the command and %s no memory limit from now on",
			    num_noun(s->nr_moved, "processes").s,
			    s->nr_moved == 1 ? "has" : "have");
}

void limit_report(struct report *r, const struct limit_result *e, size_t max_rows)
{
	r->title = "memory under a limit";
	r->has_no_samples = true;
	report_fact(r, FACT_COMMAND, e->command);
	report_fact(r, FACT_LIMIT, limit_text(&r->arena, e->spec, e->outcome));
	report_fact(r, FACT_TIME, num_ns(e->outcome->duration_ns).s);
	if (e->outcome->numbers.has & MEMGROUP_HAS_PRESSURE)
		report_fact(r, FACT_PRESSURE, pressure_text(&r->arena, e->outcome));
	add_notes(r, e);
	add_memory(r, e);
	if (e->outcome->has_group) {
		add_counts(r, e);
		add_times(r, e);
	}
	if (e->outcome->points.n)
		add_points(r, e->outcome, max_rows);
}
