/* Turns the sums of heapsums.h into rows. */
#include "base/base.h"
#include "capture/heap/heapaccount.h"

#include <math.h>
#include <signal.h>

#include "capture/heap/heapsums.h"
#include "model/heap.h"
#include "model/tables.h"

/* Sums come from the target and may be out of range. */
static int64_t saturate(double v)
{
	return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : (int64_t)rint(v);
}

/* Takes the rounded part of a sum; the remainder stays for the next row. */
static double take_whole(double *sum)
{
	double whole = rint(*sum);
	*sum -= whole;
	return whole;
}

static struct heap_sum take_sum(struct heap_sum *f)
{
	double nr = take_whole(&f->nr);
	return (struct heap_sum){nr, take_whole(&f->nr_bytes)};
}

static struct heapaccount_row row_of(const struct heapaccount *b, const struct heapsite *s,
				     uint32_t spec)
{
	return (struct heapaccount_row){.spec = spec,
					.stack = heapsite_stack(s),
					.tid = b->threads.p[heapsite_thread(s)].tid,
					.size_class = heapsite_class(s),
					.time_ns = heapaccount_reach_ns(b)};
}

static void emit(struct heapaccount *b, const struct heapaccount_row *row)
{
	for (size_t i = 0; i < ARRAY_LEN(row->values); i++)
		if (row->values[i]) {
			b->spec.on_row(b->spec.ctx, row);
			return;
		}
}

struct event heapaccount_event(const struct heapaccount_row *row, int32_t pid, uint64_t stack_ref)
{
	struct event ev = event_aggregate(row->spec, pid, row->tid > 0 ? row->tid : pid,
					  row->time_ns, row->values);
	ev.aggregate.user_ref = stack_ref;
	ev.aggregate.size_class = row->size_class;
	ev.aggregate.detail = row->detail;
	return ev;
}

/* ---- what is live ------------------------------------------------------------------------- */

/* At most 2,000 rows of a process, whatever it does: the first events, then by time. */
#define LEVEL_FIRST    256
#define LEVEL_FIRST_NS 16384u
#define LEVEL_SHARE    128          /* of the time passed */
#define LEVEL_UNTIL_NS 64000000000u /* from then on slices are as fine */

void heapaccount_emit_level(struct heapaccount *b, uint64_t ns)
{
	uint64_t passed_ns = ns - MIN(b->spec.slices_ns, ns);
	const struct heapaccount_row row = {.spec = TABLE_HEAP_LEVEL,
					    .time_ns = ns,
					    .values = {[HEAP_BLOCKS] = saturate(b->live.nr),
						       [HEAP_BYTES] = saturate(b->live.nr_bytes)}};
	if (b->done_tsc) /* 0 bytes as well, but not before the first event */
		b->spec.on_row(b->spec.ctx, &row);
	b->level_ns = ns + (++b->nr_levels < LEVEL_FIRST
				    ? 0
				    : MAX(passed_ns / LEVEL_SHARE, (uint64_t)LEVEL_FIRST_NS));
	if (passed_ns > LEVEL_UNTIL_NS)
		b->level_ns = UINT64_MAX;
}

/* ---- each slice --------------------------------------------------------------------------- */

static void emit_site(struct heapaccount *b, uint32_t idx)
{
	struct heapsite *s = &b->sites.p[idx];
	struct heapsite_rest *rest = &b->rest.p[idx];
	struct heapaccount_row a = row_of(b, s, TABLE_ALLOCATED);
	struct heapaccount_row f = row_of(b, s, TABLE_FREED);
	struct heap_sum allocated = take_sum(&s->allocated);
	struct heap_sum freed = take_sum(&s->freed);
	struct heap_sum temporary = take_sum(&rest->temporary);
	heap_sum_add(&rest->reported, &allocated);
	heap_sum_sub(&rest->reported, &freed);
	heap_sum_sub(&s->at_peak, &allocated);
	heap_sum_add(&s->at_peak, &freed);
	s->peak &= ~HEAPSITE_DIRTY;
	a.values[HEAP_ALLOCATED_CALLS] = a.values[HEAP_ALLOCATED_SAMPLES] = saturate(allocated.nr);
	a.values[HEAP_ALLOCATED_BYTES] = saturate(allocated.nr_bytes);
	a.values[HEAP_ALLOCATED_TEMPORARY] = saturate(temporary.nr);
	a.values[HEAP_ALLOCATED_TEMPORARY_BYTES] = saturate(temporary.nr_bytes);
	f.values[HEAP_BLOCKS] = f.values[HEAP_SAMPLES] = saturate(freed.nr);
	f.values[HEAP_BYTES] = saturate(freed.nr_bytes);
	if (b->spec.interval_bytes) {
		struct heapsite_samples *m = &b->samples.p[idx];
		a.values[HEAP_ALLOCATED_SAMPLES] = (int64_t)m->nr_allocated;
		a.values[HEAP_ALLOCATED_VARIANCE] = saturate(m->allocated_variance);
		f.values[HEAP_SAMPLES] = (int64_t)m->nr_freed;
		f.values[HEAP_VARIANCE] = saturate(m->freed_variance);
		m->nr_allocated = m->nr_freed = 0;
		m->allocated_variance = m->freed_variance = 0;
	}
	emit(b, &a);
	emit(b, &f);
}

static void emit_preexisting(struct heapaccount *b)
{
	for (size_t i = 0; i < b->preexisting.n; i++) {
		struct heap_thread_sums *t = &b->threads.p[b->preexisting.p[i]];
		t->is_dirty = false;
		if (t->nr_preexisting <= 0)
			continue;
		struct heapaccount_row row = {.spec = TABLE_FREED_PREEXISTING,
					      .tid = t->tid,
					      .time_ns = heapaccount_reach_ns(b)};
		row.values[HEAP_BLOCKS] = row.values[HEAP_SAMPLES] = t->nr_preexisting;
		t->nr_preexisting = 0;
		emit(b, &row);
	}
	vec_clear(&b->preexisting);
}

static void emit_mapped(struct heapaccount *b)
{
	vec_foreach(m, &b->mapped) {
		struct heapaccount_row row = {.spec = TABLE_MAPPED,
					      .stack = m->stack,
					      .tid = b->threads.p[m->thread].tid,
					      .detail = m->detail,
					      .time_ns = heapaccount_reach_ns(b),
					      .values = {m->nr_calls, m->nr_bytes, m->nr_unmapped}};
		emit(b, &row);
	}
	vec_clear(&b->mapped);
	map_clear(&b->mapped_index);
}

static void update_memory(struct heapaccount *b)
{
	uint64_t nr = b->blocks.nr_bytes + b->sites.cap * sizeof(*b->sites.p) +
		      b->rest.cap * sizeof(*b->rest.p) + b->samples.cap * sizeof(*b->samples.p) +
		      ((uint64_t)sizeof(*b->index) << b->index_log2);
	b->info.max_bytes = MAX(b->info.max_bytes, nr);
}

void heapaccount_emit_slice(struct heapaccount *b)
{
	for (size_t i = 0; i < b->dirty.n; i++)
		emit_site(b, b->dirty.p[i]);
	vec_clear(&b->dirty);
	emit_preexisting(b);
	emit_mapped(b);
	update_memory(b);
	if (b->peak_tsc) {
		b->peak_ns = heapclock_ns(&b->clock, b->peak_tsc);
		b->peak_tsc = 0;
	}
}

/* ---- the end ------------------------------------------------------------------------------ */

static void emit_peak(struct heapaccount *b)
{
	for (uint32_t i = 0; i < b->sites.n; i++) {
		const struct heapsite *s = &b->sites.p[i];
		bool is_unchanged = s->peak >> 1 != b->peak; /* no change since the peak */
		struct heap_sum at = b->rest.p[i].reported;
		if (is_unchanged)
			at = heapsite_live(b, i);
		else
			heap_sum_add(&at, &s->at_peak);
		struct heapaccount_row row = row_of(b, s, TABLE_PEAK);
		row.time_ns = b->peak_ns;
		row.values[HEAP_BLOCKS] = row.values[HEAP_SAMPLES] = saturate(at.nr);
		row.values[HEAP_BYTES] = saturate(at.nr_bytes);
		if (b->spec.interval_bytes) {
			const struct heapsite_samples *m = &b->samples.p[i];
			row.values[HEAP_SAMPLES] =
				(int64_t)(is_unchanged ? m->nr_live : m->nr_at_peak);
			row.values[HEAP_VARIANCE] =
				saturate(is_unchanged ? m->live_variance : m->at_peak_variance);
		}
		if (row.values[HEAP_SAMPLES])
			emit(b, &row);
	}
}

struct live_group {
	uint32_t site;
	uint32_t tick;
	struct heap_sum sum;
	double variance;
	int64_t nr;
};

static void emit_live(struct heapaccount *b)
{
	uint32_t step = (uint32_t)(heap_age_step((uint64_t)b->tick * HEAP_TICK_NS) / HEAP_TICK_NS);
	VEC(struct live_group) groups = {0};
	struct map index = {0};
	uint64_t it = 0;
	const struct heapblock *block;
	while ((block = heapblocks_next(&b->blocks, &it))) {
		uint32_t tick = heapblock_tick(block) / step * step;
		bool is_new;
		uint32_t *idx = map_put(&index, (uint64_t)block->site << 32 | tick, &is_new);
		if (is_new) {
			*idx = (uint32_t)groups.n;
			vec_push(&groups, (struct live_group){.site = block->site, .tick = tick});
		}
		struct live_group *g = &groups.p[*idx];
		bool is_all = heapsite_is_all(&b->sites.p[block->site]);
		double share = heapaccount_probability(heapblock_bytes(block),
						       is_all ? 0 : b->spec.interval_bytes);
		double bytes = (double)heapblock_bytes(block);
		g->nr++;
		g->sum.nr += 1 / share;
		g->sum.nr_bytes += bytes / share;
		g->variance += bytes * bytes * (1 - share) / (share * share);
	}
	map_release(&index);
	vec_foreach(g, &groups) {
		struct heapaccount_row row = row_of(b, &b->sites.p[g->site], TABLE_LIVE);
		row.time_ns = b->spec.start_ns + (uint64_t)g->tick * HEAP_TICK_NS;
		row.values[HEAP_BLOCKS] = saturate(g->sum.nr);
		row.values[HEAP_BYTES] = saturate(g->sum.nr_bytes);
		row.values[HEAP_SAMPLES] = g->nr;
		row.values[HEAP_VARIANCE] = saturate(g->variance);
		emit(b, &row);
	}
	vec_release(&groups);
}

/* Emits what is live as freed. */
static void emit_held(struct heapaccount *b, const char *detail, uint64_t ns)
{
	for (uint32_t i = 0; i < b->sites.n; i++) {
		struct heap_sum live = heapsite_live(b, i);
		struct heapaccount_row row = row_of(b, &b->sites.p[i], TABLE_FREED);
		row.detail = detail;
		row.time_ns = ns;
		row.values[HEAP_BLOCKS] = row.values[HEAP_SAMPLES] = saturate(live.nr);
		row.values[HEAP_BYTES] = saturate(live.nr_bytes);
		if (b->spec.interval_bytes) {
			row.values[HEAP_SAMPLES] = (int64_t)b->samples.p[i].nr_live;
			row.values[HEAP_VARIANCE] = saturate(b->samples.p[i].live_variance);
		}
		if (row.values[HEAP_SAMPLES])
			emit(b, &row);
	}
}

static void end_flows(struct heapaccount *b)
{
	if (b->done_tsc && b->level_ns != UINT64_MAX)
		heapaccount_emit_level(b, heapclock_ns(&b->clock, b->done_tsc));
	heapaccount_emit_slice(b);
	emit_peak(b);
}

void heapaccount_end(struct heapaccount *b)
{
	end_flows(b);
	emit_live(b);
}

void heapaccount_end_freed(struct heapaccount *b, int killed_by)
{
	end_flows(b);
	uint64_t end_ns = heapclock_ns(&b->clock, MAX(b->done_tsc, b->advanced_tsc));
	emit_held(b, killed_by == SIGKILL ? HEAP_FREED_BY_KILL : HEAP_FREED_BY_END, end_ns);
	b->live = (struct heap_sum){0};
	if (b->level_ns != UINT64_MAX)
		heapaccount_emit_level(b, end_ns);
}

struct heapaccount_info heapaccount_info(const struct heapaccount *b)
{
	struct heapaccount_info i = b->info;
	i.live_bytes = b->live.nr_bytes;
	i.live_blocks = b->live.nr;
	i.peak_bytes = b->peak_bytes;
	i.peak_ns = b->peak_tsc ? heapclock_ns(&b->clock, b->peak_tsc) : b->peak_ns;
	i.nr_live = b->blocks.n;
	i.nr_sites = b->sites.n;
	return i;
}
