/* Report of allocator statistics; see allocstats.h. */
#include "base/base.h"
#include "analyze/memory/allocstats.h"

#include "analyze/view.h"
#include "base/arena.h"
#include "base/text/num.h"

/* Shares of resident memory above which a note is added. */
#define UNUSED_PCT   15.0
#define KEPT_PCT     20.0
#define NOTED_BYTES  ((uint64_t)4 << 20)
#define ACCOUNTS_PCT 10.0

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t r;
	return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t nr_places(const struct allocstats_class *c)
{
	return c->nr_slabs ? times(c->nr_slabs, c->nr_per_slab) : c->nr_live;
}

uint64_t allocstats_unused(const struct allocstats_class *c)
{
	return times(minus(nr_places(c), c->nr_live), c->size_bytes);
}

/* ---- totals -------------------------------------------------------------------------------- */

static const struct report_column total_columns[] = {
	{"what", "memory", CELL_TEXT, NULL},
	{"bytes", "bytes", CELL_BYTES, NULL},
	{"resident_pct", "% of resident", CELL_PERCENT, NULL},
	{"meaning", "meaning", CELL_TEXT, NULL},
};

static uint64_t kept_bytes(const struct allocstats *s)
{
	return minus(s->resident_bytes, s->active_bytes + s->metadata_bytes);
}

static void add_totals(struct report *r, const struct allocstats *s, uint64_t rss_bytes)
{
	const struct {
		const char *what;
		uint64_t bytes;
		const char *meaning;
		bool is_unknown;
	} rows[] = {
		{"allocated", s->allocated_bytes, "in use by the program or in per-thread caches"},
		{"  in thread caches", s->tcache_bytes, "free blocks cached per thread",
		 s->tcache_bytes == ALLOCSTATS_UNKNOWN},
		{"unused in active pages", minus(s->active_bytes, s->allocated_bytes),
		 "free slots next to live blocks: fragmentation"},
		{"active", s->active_bytes, "pages with blocks in use"},
		{"metadata", s->metadata_bytes, "the allocator's own data structures"},
		{"free pages kept", kept_bytes(s),
		 "returned to the kernel after a delay, or reused"},
		{"resident", s->resident_bytes,
		 "all of the above: memory resident in the allocator"},
		{"mapped", s->mapped_bytes, "address space in use"},
		{"retained", s->retained_bytes, "reserved address space, no memory"},
		{"RSS of the process", rss_bytes,
		 "the kernel's count: code, stacks and files included", !rss_bytes},
	};
	struct report_table *t = report_add_table(r, "allocator", "allocator memory", total_columns,
						  ARRAY_LEN(total_columns));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!rows[i].is_unknown)
			report_add_row(
				r, t,
				(union cell[]){{.text = rows[i].what},
					       {.u = rows[i].bytes},
					       {.d = view_pct(rows[i].bytes, s->resident_bytes)},
					       {.text = rows[i].meaning}});
}

/* ---- classes ------------------------------------------------------------------------------- */

static const struct report_column class_columns[] = {
	{"size_bytes", "size", CELL_BYTES, "blocks up to this size"},
	{"blocks", "blocks", CELL_COUNT, "in use, thread caches included"},
	{"live_bytes", "in use", CELL_BYTES, NULL},
	{"slabs", "slabs", CELL_COUNT, "page runs divided into equal slots; 0: large blocks"},
	{"used_pct", "used %", CELL_PERCENT, "of the slots in these slabs"},
	{"unused_bytes", "unused", CELL_BYTES, "free slots in them"},
};

static int by_unused(const void *a, const void *b)
{
	const struct allocstats_class *x = a;
	const struct allocstats_class *y = b;
	return COMPARE(allocstats_unused(y), allocstats_unused(x))
	       ?: COMPARE(times(y->nr_live, y->size_bytes), times(x->nr_live, x->size_bytes))
	       ?: COMPARE(x->size_bytes, y->size_bytes);
}

static void add_classes(struct report *r, const struct allocstats *s,
			const struct allocstats_class *sorted, size_t max_rows)
{
	struct report_table *t =
		report_add_table(r, "size_classes", "size classes by unused memory", class_columns,
				 ARRAY_LEN(class_columns));
	for (size_t i = 0; i < s->classes.n && (!max_rows || i < max_rows); i++) {
		const struct allocstats_class *c = &sorted[i];
		report_add_row(r, t,
			       (union cell[]){{.u = c->size_bytes},
					      {.u = c->nr_live},
					      {.u = times(c->nr_live, c->size_bytes)},
					      {.u = c->nr_slabs},
					      {.d = view_pct(c->nr_live, nr_places(c))},
					      {.u = allocstats_unused(c)}});
	}
	t->nr_rows_total = s->classes.n;
}

/* ---- sentences ----------------------------------------------------------------------------- */

/* True if a share is large enough for a note; never for small programs. */
static bool is_much(const struct allocstats *s, uint64_t bytes, double least_pct)
{
	return bytes >= NOTED_BYTES && view_pct(bytes, s->resident_bytes) >= least_pct;
}

static void note_unused(struct report *r, const struct allocstats *s,
			const struct allocstats_class *sorted)
{
	uint64_t unused = minus(s->active_bytes, s->allocated_bytes);
	if (!is_much(s, unused, UNUSED_PCT))
		return;
	const struct allocstats_class *c = s->classes.n ? &sorted[0] : NULL;
	if (c && allocstats_unused(c))
		report_finding(
			r,
			"fragmentation: %s of free slots next to live blocks, mostly in size "
			"class %s (%s; %s %% of its slots are used): after a peak, a few live "
			"blocks keep whole slabs resident",
			num_bytes(unused).s, num_bytes(c->size_bytes).s,
			num_bytes(allocstats_unused(c)).s,
			num_pct(view_pct(c->nr_live, nr_places(c))).s);
	else
		report_finding(r, "fragmentation: %s of free slots next to live blocks",
			       num_bytes(unused).s);
}

static void note_kept(struct report *r, const struct allocstats *s)
{
	uint64_t kept = kept_bytes(s);
	if (!is_much(s, kept, KEPT_PCT))
		return;
	if (s->dirty_decay_ms < 0) {
		report_note(r,
			    "%s are free pages that are never returned to the kernel "
			    "(dirty_decay_ms:-1): set it to a few thousand milliseconds",
			    num_bytes(kept).s);
		return;
	}
	report_note(r, "%s are free pages that the allocator keeps for %" PRId64 " ms%s",
		    num_bytes(kept).s, s->dirty_decay_ms,
		    s->has_background_thread ? ""
					     : "; idle arenas keep them longer, unless "
					       "background_thread:true is set");
}

static void note_sum(struct report *r, const struct allocstats *s, uint64_t rss_bytes)
{
	uint64_t cached = s->tcache_bytes == ALLOCSTATS_UNKNOWN ? 0 : s->tcache_bytes;
	uint64_t used = minus(s->allocated_bytes, cached);
	report_note(r, "of %s resident in the allocator, %s are in use (%s %%)",
		    num_bytes(s->resident_bytes).s, num_bytes(used).s,
		    num_pct(view_pct(used, s->resident_bytes)).s);
	if (is_much(s, s->metadata_bytes, ACCOUNTS_PCT))
		report_note(r, "%s are allocator metadata (%s)", num_bytes(s->metadata_bytes).s,
			    num_noun(s->nr_arenas, "arenas").s);
	uint64_t absent = rss_bytes ? minus(s->resident_bytes, rss_bytes) : 0;
	if (is_much(s, absent, UNUSED_PCT))
		report_note(r,
			    "RSS (%s) is less than what the allocator counts as resident: at least "
			    "%s of its pages were never touched or were returned to the kernel",
			    num_bytes(rss_bytes).s, num_bytes(absent).s);
	uint64_t others = minus(rss_bytes, s->resident_bytes);
	if (rss_bytes && view_pct(others, rss_bytes) >= 50)
		report_note(r,
			    "most of the RSS (%s of %s) is outside this allocator: `assay watch` "
			    "shows files, stacks and other mappings",
			    num_bytes(others).s, num_bytes(rss_bytes).s);
}

void allocstats_report(struct report *r, const struct allocstats_of *of, const struct allocstats *s,
		       size_t max_rows)
{
	r->has_no_samples = true;
	report_fact(r, FACT_PROCESS, of->process);
	report_fact(r, FACT_ALLOCATOR, of->allocator);
	report_fact(r, FACT_ARENAS,
		    arena_fmt(&r->arena, "%u, of %s", s->nr_arenas,
			      num_noun(s->nr_threads, "threads").s));
	struct allocstats_class *sorted =
		arena_dup(&r->arena, s->classes.p, s->classes.n * sizeof(*sorted));
	if (s->classes.n)
		qsort(sorted, s->classes.n, sizeof(*sorted), by_unused);
	note_sum(r, s, of->rss_bytes);
	note_unused(r, s, sorted);
	note_kept(r, s);
	add_totals(r, s, of->rss_bytes);
	add_classes(r, s, sorted, max_rows);
}
