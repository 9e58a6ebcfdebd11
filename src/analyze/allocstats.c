/* An allocator's statistics as a report; see allocstats.h. */
#include "base/base.h"
#include "analyze/allocstats.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"

/* Shares of resident memory from which something is worth a sentence. */
#define UNUSED_PCT  15.0
#define KEPT_PCT    20.0
#define NOTED_BYTES ((uint64_t)4 << 20)
#define BOOKS_PCT   10.0

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t r;
	return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static double pct(uint64_t part, uint64_t whole)
{
	return whole ? (double)part * 100.0 / (double)whole : 0;
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

static void add_total(struct report *r, struct report_table *t, const struct allocstats *s,
		      const char *what, uint64_t bytes, const char *meaning)
{
	report_add_row(r, t,
		       (union cell[]){{.text = what},
				      {.u = bytes},
				      {.d = pct(bytes, s->resident_bytes)},
				      {.text = meaning}});
}

static uint64_t kept_bytes(const struct allocstats *s)
{
	return minus(s->resident_bytes, s->active_bytes + s->metadata_bytes);
}

static void add_totals(struct report *r, const struct allocstats *s)
{
	struct report_table *t = report_add_table(r, "allocator", "memory of the allocator",
						  total_columns, ARRAY_LEN(total_columns));
	add_total(r, t, s, "allocated", s->allocated_bytes,
		  "in use by the program, or in its threads' caches");
	if (s->tcache_bytes != ALLOCSTATS_UNKNOWN)
		add_total(r, t, s, "  of it in caches", s->tcache_bytes,
			  "free, ready for the next allocation of a thread");
	add_total(r, t, s, "unused in active pages", minus(s->active_bytes, s->allocated_bytes),
		  "empty places beside blocks in use: fragmentation");
	add_total(r, t, s, "active", s->active_bytes, "pages with blocks in use");
	add_total(r, t, s, "metadata", s->metadata_bytes, "the allocator's own books");
	add_total(r, t, s, "free pages kept", kept_bytes(s),
		  "given back to the system after a while, or used again");
	add_total(r, t, s, "resident", s->resident_bytes,
		  "all of the above: memory that the allocator occupies");
	add_total(r, t, s, "mapped", s->mapped_bytes, "address space in use");
	add_total(r, t, s, "retained", s->retained_bytes,
		  "address space kept for later; no memory");
	if (s->rss_bytes)
		add_total(r, t, s, "RSS of the process", s->rss_bytes,
			  "what the kernel counts, with code, stacks, files");
}

/* ---- classes ------------------------------------------------------------------------------- */

static const struct report_column class_columns[] = {
	{"size_bytes", "size", CELL_BYTES, "blocks up to this size"},
	{"blocks", "blocks", CELL_COUNT, "in use; those in threads' caches count"},
	{"live_bytes", "in use", CELL_BYTES, NULL},
	{"slabs", "slabs", CELL_COUNT, "runs of pages that are cut into blocks; 0: large blocks"},
	{"used_pct", "used %", CELL_PERCENT, "of the places in these slabs"},
	{"unused_bytes", "unused", CELL_BYTES, "empty places in them"},
};

static int by_unused(const void *a, const void *b)
{
	const struct allocstats_class *x = a;
	const struct allocstats_class *y = b;
	uint64_t ux = allocstats_unused(x);
	uint64_t uy = allocstats_unused(y);
	if (ux != uy)
		return ux > uy ? -1 : 1;
	uint64_t lx = times(x->nr_live, x->size_bytes);
	uint64_t ly = times(y->nr_live, y->size_bytes);
	if (lx != ly)
		return lx > ly ? -1 : 1;
	return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

static struct allocstats_class *sorted_classes(const struct allocstats *s)
{
	struct allocstats_class *c = xreallocarray(NULL, s->nr_classes + 1, sizeof(*c));
	if (s->nr_classes) {
		memcpy(c, s->classes, s->nr_classes * sizeof(*c));
		qsort(c, s->nr_classes, sizeof(*c), by_unused);
	}
	return c;
}

static void add_classes(struct report *r, const struct allocstats *s,
			const struct allocstats_class *sorted, size_t max_rows)
{
	struct report_table *t =
		report_add_table(r, "size_classes", "size classes by memory unused in them",
				 class_columns, ARRAY_LEN(class_columns));
	for (size_t i = 0; i < s->nr_classes && (!max_rows || i < max_rows); i++) {
		const struct allocstats_class *c = &sorted[i];
		report_add_row(r, t,
			       (union cell[]){{.u = c->size_bytes},
					      {.u = c->nr_live},
					      {.u = times(c->nr_live, c->size_bytes)},
					      {.u = c->nr_slabs},
					      {.d = pct(c->nr_live, nr_places(c))},
					      {.u = allocstats_unused(c)}});
	}
	t->nr_rows_total = s->nr_classes;
}

/* ---- sentences ----------------------------------------------------------------------------- */

static char *bytes_text(struct report *r, uint64_t bytes)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_bytes(&b, bytes);
	return arena_strndup(&r->arena, b.p, b.n);
}

static char *pct_text(struct report *r, double v)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_pct(&b, v);
	return arena_strndup(&r->arena, b.p, b.n);
}

/* A share that is worth a sentence: of small programs none is. */
static bool is_much(const struct allocstats *s, uint64_t bytes, double least_pct)
{
	return bytes >= NOTED_BYTES && pct(bytes, s->resident_bytes) >= least_pct;
}

static void note_unused(struct report *r, const struct allocstats *s,
			const struct allocstats_class *sorted)
{
	uint64_t unused = minus(s->active_bytes, s->allocated_bytes);
	if (!is_much(s, unused, UNUSED_PCT))
		return;
	const struct allocstats_class *c = s->nr_classes ? &sorted[0] : NULL;
	if (c && allocstats_unused(c))
		report_note(r,
			    "fragmentation: %s lie unused beside blocks in use, most of it in "
			    "blocks of %s (%s; %s %% of their places are used): many were in use "
			    "at once, and the few that are left hold their slabs",
			    bytes_text(r, unused), bytes_text(r, c->size_bytes),
			    bytes_text(r, allocstats_unused(c)),
			    pct_text(r, pct(c->nr_live, nr_places(c))));
	else
		report_note(r, "fragmentation: %s lie unused beside blocks in use",
			    bytes_text(r, unused));
}

static void note_kept(struct report *r, const struct allocstats *s)
{
	uint64_t kept = kept_bytes(s);
	if (!is_much(s, kept, KEPT_PCT))
		return;
	if (s->dirty_decay_ms < 0) {
		report_note(r,
			    "%s are free pages, and this process never gives them back "
			    "(dirty_decay_ms:-1): set it to some thousand milliseconds",
			    bytes_text(r, kept));
		return;
	}
	report_note(r, "%s are free pages that the allocator keeps for %" PRId64 " ms%s",
		    bytes_text(r, kept), s->dirty_decay_ms,
		    s->has_background_thread ? ""
					     : "; idle arenas keep them longer: "
					       "background_thread:true gives them back in time");
}

static void note_sum(struct report *r, const struct allocstats *s)
{
	uint64_t cached = s->tcache_bytes == ALLOCSTATS_UNKNOWN ? 0 : s->tcache_bytes;
	uint64_t used = minus(s->allocated_bytes, cached);
	report_note(r, "of %s that the allocator occupies, %s are in use (%s %%)",
		    bytes_text(r, s->resident_bytes), bytes_text(r, used),
		    pct_text(r, pct(used, s->resident_bytes)));
	if (is_much(s, s->metadata_bytes, BOOKS_PCT))
		report_note(r, "%s are the allocator's own books: %u arenas",
			    bytes_text(r, s->metadata_bytes), s->nr_arenas);
	uint64_t absent = s->rss_bytes ? minus(s->resident_bytes, s->rss_bytes) : 0;
	if (is_much(s, absent, UNUSED_PCT))
		report_note(
			r,
			"the kernel counts less than the allocator (RSS %s): at least %s of its "
			"pages were never touched, or were given back",
			bytes_text(r, s->rss_bytes), bytes_text(r, absent));
	uint64_t others = minus(s->rss_bytes, s->resident_bytes);
	if (s->rss_bytes && pct(others, s->rss_bytes) >= 50)
		report_note(r,
			    "most of the process's RSS (%s of %s) is not this allocator's: `assay "
			    "watch` tells files, stacks and other mappings apart",
			    bytes_text(r, others), bytes_text(r, s->rss_bytes));
}

void allocstats_report(struct report *r, const struct allocstats *s, size_t max_rows)
{
	CLEANUP(buf_release) struct buf counts = {0};
	r->has_no_samples = true;
	report_fact(r, FACT_PROCESS, s->process);
	report_fact(r, FACT_ALLOCATOR, s->allocator);
	buf_addf(&counts, "%u, of %u threads", s->nr_arenas, s->nr_threads);
	report_fact(r, FACT_ARENAS, buf_str(&counts));
	struct allocstats_class *sorted CLEANUP(free_p) = sorted_classes(s);
	note_sum(r, s);
	note_unused(r, s, sorted);
	note_kept(r, s);
	add_totals(r, s);
	add_classes(r, s, sorted, max_rows);
}
