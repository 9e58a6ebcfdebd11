/* The end of `assay limit`; see limitreport.h. */
#include "base/base.h"
#include "analyze/limitreport.h"

#include "analyze/heapframes.h"
#include "analyze/tallygroups.h"
#include "base/num.h"

#define NAMED_MAX 3

/* All rows of a table; false: there is none. */
static bool open_rows(struct tally_rows *ret_r, struct arena *a, const struct profile *p,
		      enum table_id id)
{
	const struct select_spec all = {0};
	return p && !tally_rows_open(ret_r, a, p, id, &all, NULL);
}

/* What the command's own threads had to free, as BPF programs saw it. */
static struct tally_row reclaim_of(const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct tally_rows rows;
	struct tally_row row;
	struct tally_row sum = {0};
	if (!open_rows(&rows, &a, p, TABLE_RECLAIM))
		return sum;
	while (tally_rows_next(&rows, &row)) {
		if (!strcmp(row.detail, "kswapd"))
			continue;
		sum.nr += row.nr;
		sum.ns += row.ns;
		sum.pages += row.pages;
	}
	return sum;
}

static void add_limit_text(struct buf *to, const struct limit_spec *spec,
			   const struct limit_story *s)
{
	num_add_bytes(to, spec->memory_bytes);
	if (!s->has_group) {
		buf_add_str(to, " of private memory asked for, each process (RLIMIT_DATA)");
	} else if (s->has_swap) {
		buf_add_str(to, " and ");
		num_add_bytes(to, spec->swap_bytes);
		buf_add_str(to, " of swap");
	}
}

static void add_share(struct buf *to, uint64_t part, uint64_t all)
{
	buf_add_str(to, " (");
	num_add_pct(to, all ? 100.0 * (double)part / (double)all : 0);
	buf_add_str(to, " %");
}

/* ---- killed ------------------------------------------------------------------------------- */

static uint64_t weight_of(const struct tally_group *g)
{
	return g->amounts[0].bytes;
}

/* "; largest allocators: parse 1.20 GiB (70 %), ..." of live blocks; nothing without a heap. */
static void add_allocators(struct buf *to, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct tally_rows rows;
	struct tally_row row;
	if (!open_rows(&rows, &a, p, TABLE_LIVE))
		return;
	CLEANUP(tally_groups_release) struct tally_groups functions = {.arena = &a};
	struct heapframes *frames = heapframes_new(&a, p);
	uint64_t all = 0;
	while (tally_rows_next(&rows, &row)) {
		const char *name = heapframe_name(p, heapframes_of(frames, row.stack));
		amount_add(&tally_groups_at(&functions, &name, 1)->amounts[0], &row);
		all += row.bytes;
	}
	tally_groups_sort(&functions, weight_of);
	for (size_t i = 0; all && i < MIN(functions.groups.n, (size_t)NAMED_MAX); i++) {
		const struct tally_group *one = &functions.groups.p[i];
		buf_addf(to, "%s%s ", i ? ", " : "; largest allocators: ", one->texts[0]);
		num_add_bytes(to, weight_of(one));
		add_share(to, weight_of(one), all);
		buf_add_ch(to, ')');
	}
}

void limit_kill_sentence(struct buf *to, const struct limit_end *e)
{
	const struct limit_story *s = e->story;
	uint64_t nr = s->numbers.nr_oom_kill;
	if (!nr)
		return;
	const struct limit_point *at = s->at_kill.usage_bytes ? &s->at_kill : &s->largest;
	if (nr > 1)
		buf_addf(to, "%" PRIu64 " processes, the last one ", nr);
	buf_add_str(to, "killed by the kernel at ");
	num_add_bytes(to, MAX(at->usage_bytes, MIN(s->numbers.peak_bytes, e->spec->memory_bytes)));
	buf_add_str(to, ", the limit: ");
	num_add_bytes(to, at->anon_bytes);
	buf_add_str(to, " of it anonymous, ");
	num_add_bytes(to, at->file_bytes);
	buf_add_str(to, " page cache");
	if (at->swap_bytes) {
		buf_add_str(to, ", and ");
		num_add_bytes(to, at->swap_bytes);
		buf_add_str(to, " in swap");
	}
	add_allocators(to, e->profile);
}

/* ---- facts -------------------------------------------------------------------------------- */

static void add_pressure(struct buf *to, const struct limit_story *s)
{
	const struct memgroup_numbers *n = &s->numbers;
	uint64_t all_us = s->duration_ns / 1000;
	if (!(n->has & MEMGROUP_HAS_PRESSURE))
		return;
	buf_add_str(to, "some waited for memory ");
	num_add_ns(to, n->some_us * 1000);
	add_share(to, n->some_us, all_us);
	buf_add_str(to, "), all ");
	num_add_ns(to, n->full_us * 1000);
	add_share(to, n->full_us, all_us);
	buf_add_str(to, n->has & MEMGROUP_HAS_OWN_PRESSURE ? ")" : "), the whole machine's");
}

void limit_facts(struct profile *p, const struct limit_spec *spec, const struct limit_story *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	add_limit_text(&b, spec, s);
	profile_fact(p, FACT_MEMORY_LIMIT, buf_str(&b));
	buf_clear(&b);
	num_add_bytes(&b, s->numbers.peak_bytes);
	profile_fact(p, FACT_MEMORY_PEAK, buf_str(&b));
	buf_clear(&b);
	buf_addf(&b, "%" PRIu64 " times", s->numbers.nr_at_limit);
	profile_fact(p, FACT_AT_LIMIT, buf_str(&b));
	const struct limit_end end = {.spec = spec, .story = s}; /* names come later */
	buf_clear(&b);
	limit_kill_sentence(&b, &end);
	if (b.n)
		profile_fact(p, FACT_OUT_OF_MEMORY, buf_str(&b));
}

/* ---- tables ------------------------------------------------------------------------------- */

static const struct report_column byte_columns[] = {
	{"bytes", "bytes", CELL_BYTES, NULL},
	{"pct", "% of limit", CELL_PERCENT, NULL},
	{"what", "memory", CELL_TEXT, NULL},
};

static void add_bytes(struct report *r, struct report_table *t, const struct limit_end *e,
		      const char *what, uint64_t bytes)
{
	union cell cells[] = {
		{.u = bytes},
		{.d = 100.0 * (double)bytes / (double)MAX(e->spec->memory_bytes, (uint64_t)1)},
		{.text = what},
	};
	report_add_row(r, t, cells);
}

static void add_memory(struct report *r, const struct limit_end *e)
{
	const struct limit_story *s = e->story;
	const struct memgroup_numbers *n = &s->numbers;
	struct report_table *t =
		report_add_table(r, "memory", "memory", byte_columns, ARRAY_LEN(byte_columns));
	bool has_peak = n->has & MEMGROUP_HAS_PEAK;
	t->note = has_peak ? NULL : "this kernel keeps no peak: the largest that was seen";
	add_bytes(r, t, e, "limit", e->spec->memory_bytes);
	if (n->limit_above_bytes < e->spec->memory_bytes)
		add_bytes(r, t, e, "limit of the groups above", n->limit_above_bytes);
	add_bytes(r, t, e, "peak", n->peak_bytes);
	add_bytes(r, t, e, "largest seen: anonymous", s->largest.anon_bytes);
	add_bytes(r, t, e, "largest seen: page cache", s->largest.file_bytes);
	if (n->has & MEMGROUP_HAS_SWAP) {
		uint64_t swap = s->largest.swap_bytes;
		vec_foreach(p, &s->points)
			swap = MAX(swap, p->swap_bytes);
		add_bytes(r, t, e, "swap, largest seen", swap);
	}
}

static const struct report_column count_columns[] = {
	{"count", "count", CELL_COUNT, NULL},
	{"what", "what", CELL_TEXT, NULL},
};

static void add_count(struct report *r, struct report_table *t, const char *what, uint64_t nr)
{
	union cell cells[] = {{.u = nr}, {.text = what}};
	report_add_row(r, t, cells);
}

static void add_counts(struct report *r, const struct limit_end *e)
{
	const struct memgroup_numbers *n = &e->story->numbers;
	struct report_table *t =
		report_add_table(r, "counts", "how often", count_columns, ARRAY_LEN(count_columns));
	struct tally_row reclaim = reclaim_of(e->profile);
	add_count(r, t, "at the limit", n->nr_at_limit);
	if (n->nr_high)
		add_count(r, t, "above its high mark", n->nr_high);
	if (e->has_reclaim) {
		add_count(r, t, "direct reclaims", reclaim.nr);
		add_count(r, t, "pages given back by them", reclaim.pages);
	}
	if (n->has & MEMGROUP_HAS_RECLAIM) {
		add_count(r, t, "pages looked at", n->nr_scanned);
		add_count(r, t, "pages given back", n->nr_stolen);
		add_count(r, t, "of these by its own threads", n->nr_stolen_direct);
	}
	add_count(r, t, "pages of files read again", n->nr_refault_file);
	add_count(r, t, "anonymous pages fetched again", n->nr_refault_anon);
	add_count(r, t, "page faults", n->nr_faults);
	add_count(r, t, "major page faults", n->nr_major);
	add_count(r, t, "processes killed", n->nr_oom_kill);
}

static const struct report_column time_columns[] = {
	{"ns", "time", CELL_NS, NULL},
	{"pct", "%", CELL_PERCENT, "of the command's time"},
	{"what", "waiting for memory", CELL_TEXT, NULL},
};

static void add_time(struct report *r, struct report_table *t, const struct limit_story *s,
		     const char *what, uint64_t ns)
{
	double all = (double)MAX(s->duration_ns, (uint64_t)1);
	union cell cells[] = {{.u = ns}, {.d = 100.0 * (double)ns / all}, {.text = what}};
	report_add_row(r, t, cells);
}

static void add_times(struct report *r, const struct limit_end *e)
{
	const struct limit_story *s = e->story;
	const struct memgroup_numbers *n = &s->numbers;
	bool has_pressure = n->has & MEMGROUP_HAS_PRESSURE;
	if (!has_pressure && !e->has_reclaim)
		return;
	struct report_table *t = report_add_table(r, "pressure", "waiting for memory", time_columns,
						  ARRAY_LEN(time_columns));
	bool is_own = n->has & MEMGROUP_HAS_OWN_PRESSURE;
	if (has_pressure) {
		add_time(r, t, s, is_own ? "some threads" : "some threads of the machine",
			 n->some_us * 1000);
		add_time(r, t, s, is_own ? "all threads" : "all threads of the machine",
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

static void add_points(struct report *r, const struct limit_story *s, size_t max_rows)
{
	struct report_table *t = report_add_table(r, "over_time", "over time", point_columns,
						  ARRAY_LEN(point_columns));
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

static void add_notes(struct report *r, const struct limit_end *e)
{
	const struct limit_story *s = e->story;
	CLEANUP(buf_release) struct buf b = {0};
	limit_kill_sentence(&b, e);
	if (b.n)
		report_note(r, "%s", buf_str(&b));
	else if (e->exit_code == 137)
		report_note(r, "ended by SIGKILL, which did not come from the limit of memory");
	if (s->has_group && e->spec->swap_bytes != MEMGROUP_NO_LIMIT && !s->has_swap)
		report_note(r, "swap is not accounted for on this machine: only memory was "
			       "limited (boot with swapaccount=1)");
	if (s->nr_moved)
		report_note(r, "%zu process%s outlived the command and %s no limit from here on",
			    s->nr_moved, s->nr_moved == 1 ? "" : "es",
			    s->nr_moved == 1 ? "has" : "have");
}

void limit_report(struct report *r, const struct limit_end *e, size_t max_rows)
{
	CLEANUP(buf_release) struct buf b = {0};
	r->title = "memory under a limit";
	r->has_no_samples = true;
	report_fact(r, FACT_COMMAND, e->command);
	add_limit_text(&b, e->spec, e->story);
	report_fact(r, FACT_LIMIT, buf_str(&b));
	buf_clear(&b);
	num_add_ns(&b, e->story->duration_ns);
	report_fact(r, FACT_TIME, buf_str(&b));
	buf_clear(&b);
	add_pressure(&b, e->story);
	if (b.n)
		report_fact(r, FACT_PRESSURE, buf_str(&b));
	add_notes(r, e);
	add_memory(r, e);
	if (e->story->has_group) {
		add_counts(r, e);
		add_times(r, e);
	}
	if (e->story->points.n)
		add_points(r, e->story, max_rows);
}
