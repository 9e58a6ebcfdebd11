/* Report of `assay watch` at the end; see watchpage.h. */
#include "base/base.h"
#include "analyze/memory/watchpage.h"

#include "analyze/memory/maptable.h"
#include "analyze/memory/explain.h"
#include "analyze/memory/timeline.h"
#include "base/text/num.h"

void watchpage_release(struct watchpage *p)
{
	vec_release(&p->points);
}

void watchpage_add(struct watchpage *p, const struct memreading *t)
{
	const struct memallocator *a = &t->allocator;
	/* An answer of the allocator is shown until the next one, but counted only once. */
	bool is_fresh = a->is_known && a->query_ns != p->last.allocator.query_ns;
	const struct mempoint point = {
		.time_ns = t->time_ns,
		.rss_bytes = t->m.rss_bytes,
		.anon_bytes = t->m.anon_bytes,
		.file_bytes = t->m.file_bytes,
		.shmem_bytes = t->shmem_most_bytes,
		.shmem_space_bytes = t->shmem_space_bytes,
		.swap_bytes = t->m.swap_bytes,
		.stack_bytes = t->stack_bytes,
		.in_use_bytes = is_fresh ? a->in_use_bytes : MEMPOINT_UNKNOWN,
		.resident_bytes = is_fresh ? a->resident_bytes : MEMPOINT_UNKNOWN,
	};
	vec_push(&p->points, point);
	p->last = *t;
}

void watchpage_set_allocator(struct watchpage *p, const struct memallocator *a)
{
	/* The answer of an earlier reading says nothing of the end. */
	if (!p->points.n || !a->is_known || a->query_ns == p->last.allocator.query_ns)
		return;
	vec_last(&p->points)->in_use_bytes = a->in_use_bytes;
	vec_last(&p->points)->resident_bytes = a->resident_bytes;
	p->last.allocator = *a;
}

struct memverdict watchpage_verdict(const struct watchpage *p, struct arena *a)
{
	struct memverdict_host host = {.machine_bytes = p->machine_bytes, .every_ns = p->every_ns};
	if (p->last.has_group)
		host.limit_bytes = memgroup_least_limit(&p->last.group);
	return memverdict_of(a, p->points.p, p->points.n, &host);
}

static void add_facts(struct report *r, const struct watchpage *p)
{
	const struct memgroup_numbers *g = &p->last.group;
	report_fact(r, FACT_TARGET, p->target);
	const char *end = profile_get_fact(p->profile, FACT_TARGET_END);
	if (end)
		report_fact(r, FACT_TARGET_END, end);
	if (p->machine_bytes)
		report_fact(r, FACT_MACHINE,
			    arena_fmt(&r->arena, "%s of memory", num_bytes(p->machine_bytes).s));
	if (p->allocator)
		report_fact(r, FACT_ALLOCATOR, p->allocator);
	if (!p->last.has_group)
		return;
	bool has_limit = g->limit_bytes != MEMGROUP_NO_LIMIT;
	report_fact(r, FACT_CGROUP,
		    arena_fmt(&r->arena, "%s, memory in use: %s%s%s", p->group,
			      num_bytes(g->usage_bytes).s, has_limit ? " of " : "",
			      has_limit ? num_bytes(g->limit_bytes).s : ""));
}

static void add_heap(struct report *r, const struct memheap *h)
{
	if (!h || !h->is_known)
		return;
	double walked = 100.0 * (double)h->walked_bytes / (double)MAX(h->total_bytes, (uint64_t)1);
	if (h->main_unread_bytes) {
		report_note(
			r,
			"malloc's main heap ([heap], %s of addresses) was not walked, because its "
			"arena was not found: what is in use in it is not known; in %s of threads, "
			"without large blocks, %s of %s are in use",
			num_bytes(h->main_unread_bytes).s, num_noun(h->nr_arenas, "arenas").s,
			num_bytes(h->used_bytes).s, num_bytes(h->resident_bytes).s);
		return;
	}
	uint64_t unused = h->resident_bytes - MIN(h->resident_bytes, h->used_bytes);
	report_note(r,
		    "malloc's heaps (%s, without large blocks, %s %% walked): %s resident, %s "
		    "in use in %s; of the rest malloc_trim() would return %s, and %s "
		    "shares pages with blocks in use",
		    num_noun(h->nr_arenas, "arenas").s, num_pct(walked).s,
		    num_bytes(h->resident_bytes).s, num_bytes(h->used_bytes).s,
		    num_noun(h->nr_used, "blocks").s, num_bytes(h->trimmable_bytes).s,
		    num_bytes(unused - MIN(unused, h->trimmable_bytes)).s);
}

/* Whether the memory of the allocator is known by address: jemalloc's. */
static bool has_extents(const struct watchpage *p)
{
	for (size_t i = 0; i < p->nr_maps; i++)
		vec_foreach(one, &p->maps[i].list)
			if (one->anon.of[MEMANON_JEMALLOC_USED].virtual_bytes)
				return true;
	return false;
}

/* Blocks count in full, also pages of them that were not touched. */
static void note_untouched(struct report *r, const struct memallocator *a)
{
	if (a->is_known && a->in_use_bytes > a->resident_bytes)
		report_note(
			r,
			"of %s in use in the allocator at most %s are resident: blocks count in "
			"full, also pages of them that the program has not touched yet, or that "
			"are swapped out",
			num_bytes(a->in_use_bytes).s, num_bytes(a->resident_bytes).s);
}

static struct memexplain *parts_of(const struct watchpage *p)
{
	struct memexplain *e = memexplain_new();
	bool is_elsewhere = p->maps_itself && !has_extents(p);
	for (size_t i = 0; i < p->nr_maps; i++)
		memexplain_maps(e, &p->maps[i], is_elsewhere ? MEMEXPLAIN_NO_REFERENCES : 0);
	if (p->allocator && is_elsewhere && p->last.allocator.is_known)
		memexplain_allocator(e, p->allocator, p->last.allocator.resident_bytes);
	else if (p->allocator && is_elsewhere)
		memexplain_assign_likely(e, p->allocator);
	return e;
}

/* When the mappings were read, if the target had ended by the last reading; else 0. */
static uint64_t stale_ns(const struct watchpage *p)
{
	return p->maps_ns < p->last.time_ns ? MAX(p->maps_ns - MIN(p->start_ns, p->maps_ns), 1u)
					    : 0;
}

static void note_stale(struct report *r, uint64_t ns)
{
	if (ns)
		report_note(r,
			    "the RSS breakdown, and what is in use in malloc's heaps, was read %s "
			    "after the start: the target has ended",
			    num_ns(ns).s);
}

static bool has_parts(const struct watchpage *p)
{
	return p->nr_maps && p->maps[0].has_rss;
}

static void explain(struct report *r, const struct watchpage *p)
{
	uint64_t stale = stale_ns(p);
	if (!has_parts(p)) {
		report_note(r, "no RSS breakdown: no permission to read the memory map of the "
			       "process (needs root or CAP_SYS_PTRACE)");
		return;
	}
	CLEANUP(memexplain_free_p) struct memexplain *e = parts_of(p);
	memexplain_report(r, e, stale ? 0 : p->last.m.rss_bytes, p->last.m.page_table_bytes,
			  p->max_rows);
	note_stale(r, stale);
	if (p->nr_unseen)
		report_note(r, "stacks not found, because the threads were running: of %s",
			    num_noun(p->nr_unseen, "threads").s);
}

/* "RSS PAGE_TABLES STALE_NS", then the parts, one a line. */
void watchpage_save(struct buf *to, const struct watchpage *p)
{
	if (!has_parts(p))
		return;
	CLEANUP(memexplain_free_p) struct memexplain *e = parts_of(p);
	buf_addf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->last.m.rss_bytes,
		 p->last.m.page_table_bytes, stale_ns(p));
	memexplain_save(to, e);
}

void watchpage_saved_parts(struct report *r, const struct profile *p, uint64_t max_rows)
{
	const char *text = profile_get_fact(p, FACT_MEMORY_PARTS);
	struct sv rest = sv_from_str(text ? text : "");
	struct sv head = sv_split(&rest, '\n');
	uint64_t v[3];
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		if (!sv_to_u64(sv_split(&head, ' '), &v[i]))
			return;
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	memexplain_load(e, rest);
	memexplain_report(r, e, v[2] ? 0 : v[0], v[1], max_rows);
	note_stale(r, v[2]);
}

void watchpage_report(struct report *r, const struct watchpage *p, const struct memverdict *v)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	r->title = "memory over time";
	r->has_no_samples = true;
	r->unit = UNIT_BYTES;
	add_facts(r, p);
	report_fact(r, FACT_VERDICT, memverdict_key(v->kind));
	memtime_answer(r, p->profile, v, 0);
	if (!memtime_make(&a, p->profile, &m, NULL))
		memtime_growth_report(r, &m);
	add_heap(r, p->heap);
	note_untouched(r, &p->last.allocator);
	if (p->end_peak_bytes)
		report_note(
			r,
			"most resident in one process: %s, the kernel's own count at the end of the "
			"command",
			num_bytes(p->end_peak_bytes).s);
	explain(r, p);
	if (p->shows_mappings)
		maptable_report(r, p->maps, p->nr_maps, 0);
}
