/* RSS breakdown; see explain.h. */
#include "base/base.h"
#include "analyze/memory/explain.h"

#include <stdlib.h>

#include "analyze/view.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/text/num.h"

struct part_group {
	struct memexplain_part sum; /* its name is interned */
	uint32_t key;               /* in order of first occurrence */
};

struct memexplain {
	struct intern keys;
	struct intern names;
	VEC(struct part_group) groups; /* by key - 1 */
};

struct memexplain *memexplain_new(void)
{
	return xcalloc(1, sizeof(struct memexplain));
}

void memexplain_free_p(struct memexplain **e)
{
	if (!*e)
		return;
	intern_release(&(*e)->keys);
	intern_release(&(*e)->names);
	vec_release(&(*e)->groups);
	free_p(e);
}

static const char *const kind_names[] = {
	[MEMEXPLAIN_HEAP] = "heap",          [MEMEXPLAIN_ALLOCATOR] = "allocator",
	[MEMEXPLAIN_RUNTIME] = "runtime",    [MEMEXPLAIN_STACKS] = "stacks",
	[MEMEXPLAIN_CODE] = "code",          [MEMEXPLAIN_DATA] = "data",
	[MEMEXPLAIN_FILES] = "file",         [MEMEXPLAIN_SHMEM] = "shared memory",
	[MEMEXPLAIN_JIT] = "JIT code",       [MEMEXPLAIN_NAMED] = "named",
	[MEMEXPLAIN_MAPPED] = "mapped by",   [MEMEXPLAIN_KERNEL] = "kernel",
	[MEMEXPLAIN_LIKELY] = "likely heap", [MEMEXPLAIN_UNKNOWN] = "[unexplained]",
};

static const char *keep_name(struct memexplain *e, const char *name)
{
	return intern_str(&e->names, intern_add_str(&e->names, name));
}

static void add_part(struct memexplain_part *to, const struct memexplain_part *part)
{
	to->nr_mappings += part->nr_mappings;
	to->rss_bytes += part->rss_bytes;
	to->pss_bytes += part->pss_bytes;
	to->anon_bytes += part->anon_bytes;
	to->swap_bytes += part->swap_bytes;
	to->virtual_bytes += part->virtual_bytes;
}

void memexplain_add(struct memexplain *e, const struct memexplain_part *part)
{
	CLEANUP(buf_release) struct buf key = {0};
	buf_addf(&key, "%d %s", (int)part->kind, part->name);
	uint32_t id = intern_add(&e->keys, key.p, key.n);
	if (id > e->groups.n)
		vec_push(&e->groups,
			 (struct part_group){{part->kind, keep_name(e, part->name)}, id});
	add_part(&e->groups.p[id - 1].sum, part);
}

/* ---- as text ------------------------------------------------------------------------------- */

#define SAVED_MAX 2000
#define NUMBERS   7 /* of a line, before the name */

void memexplain_save(struct buf *to, const struct memexplain *e)
{
	for (size_t i = 0; i < MIN(e->groups.n, (size_t)SAVED_MAX); i++) {
		const struct memexplain_part *p = &e->groups.p[i].sum;
		buf_addf(to,
			 "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			 " ",
			 (int)p->kind, p->nr_mappings, p->rss_bytes, p->pss_bytes, p->anon_bytes,
			 p->swap_bytes, p->virtual_bytes);
		for (const char *c = p->name; *c; c++)
			buf_add_ch(to, (unsigned char)*c < ' ' ? '?' : *c);
		buf_add_ch(to, '\n');
	}
}

void memexplain_load(struct memexplain *e, struct sv text)
{
	while (text.n) {
		struct sv line = sv_split(&text, '\n');
		uint64_t v[NUMBERS];
		bool is_good = true;
		for (size_t i = 0; i < NUMBERS; i++)
			is_good &= sv_to_u64(sv_split(&line, ' '), &v[i]);
		if (!is_good || v[0] >= MEMEXPLAIN_NR)
			continue;
		CLEANUP(free_p) char *name = xasprintf("%.*s", SV_ARGS(line));
		const struct memexplain_part part = {.kind = (enum memexplain_kind)v[0],
						     .name = name,
						     .nr_mappings = v[1],
						     .rss_bytes = v[2],
						     .pss_bytes = v[3],
						     .anon_bytes = v[4],
						     .swap_bytes = v[5],
						     .virtual_bytes = v[6]};
		memexplain_add(e, &part);
	}
}

/* ---- parts of mappings --------------------------------------------------------------------- */

static struct memexplain_part part_of(const struct memmap *one, enum memexplain_kind kind,
				      const char *name)
{
	return (struct memexplain_part){
		.kind = kind,
		.name = name,
		.nr_mappings = 1,
		.rss_bytes = one->rss_bytes,
		.pss_bytes = one->pss_bytes,
		.anon_bytes = MIN(one->anon_bytes, one->rss_bytes),
		.swap_bytes = one->swap_bytes,
		.virtual_bytes = one->end - one->start,
	};
}

static uint64_t take(uint64_t *from, uint64_t nr_bytes)
{
	uint64_t taken = MIN(*from, nr_bytes);
	*from -= taken;
	return taken;
}

/* Swapped pages stay in @rest: which they are is not known. */
static struct memexplain_part split_off(struct memexplain_part *rest, uint64_t rss_bytes,
					uint64_t virtual_bytes)
{
	struct memexplain_part part = {.nr_mappings = 1};
	uint64_t had = rest->rss_bytes;
	part.rss_bytes = take(&rest->rss_bytes, rss_bytes);
	part.virtual_bytes = take(&rest->virtual_bytes, virtual_bytes);
	/* PSS and anonymous bytes by page are not known either. */
	double share = had ? (double)part.rss_bytes / (double)had : 0;
	part.pss_bytes = take(&rest->pss_bytes, (uint64_t)(share * (double)rest->pss_bytes));
	part.anon_bytes = take(&rest->anon_bytes, (uint64_t)(share * (double)rest->anon_bytes));
	if (!rest->rss_bytes && !rest->virtual_bytes)
		part.swap_bytes = take(&rest->swap_bytes, rest->swap_bytes);
	return part;
}

static const char *referenced_name(const char *path)
{
	return strstr(path, "/libjvm.so") ? "Java heap and other memory of the JVM (libjvm.so)"
					  : path;
}

static void add_anon(struct memexplain *e, const struct memmaps *m, const struct memmap *one,
		     unsigned flags)
{
	static const struct {
		enum memexplain_kind kind;
		const char *name;
	} owners[] = {
		[MEMANON_UNKNOWN] = {MEMEXPLAIN_UNKNOWN, "anonymous mappings"},
		[MEMANON_GLIBC_ARENA] = {MEMEXPLAIN_HEAP, "malloc: arenas of threads"},
		[MEMANON_GLIBC_MMAP] = {MEMEXPLAIN_HEAP, "malloc: large blocks"},
		[MEMANON_V8] = {MEMEXPLAIN_RUNTIME, "V8 heap"},
		[MEMANON_GO] = {MEMEXPLAIN_RUNTIME, "Go heap"},
		[MEMANON_BSS] = {MEMEXPLAIN_DATA, "zeroed data of binaries (.bss)"},
		[MEMANON_PYMALLOC] = {MEMEXPLAIN_RUNTIME, "Python objects (pymalloc)"},
		[MEMANON_INNODB] = {MEMEXPLAIN_RUNTIME, "InnoDB buffer pool"},
		[MEMANON_JEMALLOC_USED] = {MEMEXPLAIN_HEAP, "jemalloc: slabs and large blocks"},
		[MEMANON_JEMALLOC_FREE] = {MEMEXPLAIN_HEAP, "jemalloc: free pages that it keeps"},
		[MEMANON_JEMALLOC_OWN] = {MEMEXPLAIN_HEAP, "jemalloc: its own data"},
		[MEMANON_REFERENCED] = {MEMEXPLAIN_MAPPED, NULL},
	};
	struct memexplain_part rest = part_of(one, MEMEXPLAIN_UNKNOWN, owners[0].name);
	for (size_t i = MEMANON_UNKNOWN + 1; i < MEMANON_NR; i++) {
		const struct memanon_part *of = &one->anon.of[i];
		if (i == MEMANON_REFERENCED && flags & MEMEXPLAIN_NO_REFERENCES)
			continue;
		struct memexplain_part part =
			split_off(&rest, of->resident_bytes, of->virtual_bytes);
		if (!of->virtual_bytes)
			continue;
		part.kind = owners[i].kind;
		part.name = owners[i].name
				    ?: referenced_name(intern_str(&m->paths, one->anon.referrer));
		memexplain_add(e, &part);
	}
	if (rest.rss_bytes || rest.virtual_bytes)
		memexplain_add(e, &rest);
}

static void add_map(struct memexplain *e, const struct memmaps *m, const struct memmap *one,
		    unsigned flags)
{
	static const enum memexplain_kind kinds[] = {
		[MEMMAP_ANON] = MEMEXPLAIN_UNKNOWN,  [MEMMAP_HEAP] = MEMEXPLAIN_HEAP,
		[MEMMAP_STACK] = MEMEXPLAIN_STACKS,  [MEMMAP_CODE] = MEMEXPLAIN_CODE,
		[MEMMAP_BINARY] = MEMEXPLAIN_DATA,   [MEMMAP_FILE] = MEMEXPLAIN_FILES,
		[MEMMAP_SHMEM] = MEMEXPLAIN_SHMEM,   [MEMMAP_JIT] = MEMEXPLAIN_JIT,
		[MEMMAP_NAMED] = MEMEXPLAIN_NAMED,   [MEMMAP_SPECIAL] = MEMEXPLAIN_KERNEL,
		[MEMMAP_HUGETLB] = MEMEXPLAIN_SHMEM, [MEMMAP_RECORDER] = MEMEXPLAIN_CODE,
	};
	if (one->kind == MEMMAP_ANON) {
		add_anon(e, m, one, flags);
		return;
	}
	const char *name = memmaps_path(m, one);
	if (one->kind == MEMMAP_STACK)
		name = "stacks of threads";
	else if (one->kind == MEMMAP_RECORDER)
		name = "the recorder of assay heap";
	else if (one->kind == MEMMAP_JIT)
		name = "executable memory without a file";
	const struct memexplain_part part = part_of(one, kinds[one->kind], name);
	memexplain_add(e, &part);
}

void memexplain_maps(struct memexplain *e, const struct memmaps *m, unsigned flags)
{
	vec_foreach(one, &m->list)
		add_map(e, m, one, flags);
}

/* ---- what allocators have ------------------------------------------------------------------- */

/* Takes bytes out of the unexplained groups, the largest first. */
void memexplain_allocator(struct memexplain *e, const char *name, uint64_t resident_bytes)
{
	uint64_t left = resident_bytes;
	struct memexplain_part sum = {.kind = MEMEXPLAIN_ALLOCATOR, .name = name, .nr_mappings = 1};
	vec_foreach(group, &e->groups) {
		struct memexplain_part *g = &group->sum;
		if (g->kind != MEMEXPLAIN_UNKNOWN || !g->rss_bytes)
			continue;
		uint64_t taken = MIN(left, g->rss_bytes);
		/* PSS of anonymous memory that is not shared is its RSS; else its share of it. */
		double share = (double)taken / (double)g->rss_bytes;
		uint64_t pss = (uint64_t)(share * (double)g->pss_bytes);
		sum.rss_bytes += taken;
		sum.pss_bytes += pss;
		sum.anon_bytes += MIN(taken, g->anon_bytes);
		left -= taken;
		g->rss_bytes -= taken;
		g->pss_bytes -= MIN(pss, g->pss_bytes);
		g->anon_bytes -= MIN(taken, g->anon_bytes);
	}
	if (sum.rss_bytes)
		memexplain_add(e, &sum);
}

void memexplain_assign_likely(struct memexplain *e, const char *name)
{
	vec_foreach(g, &e->groups)
		if (g->sum.kind == MEMEXPLAIN_UNKNOWN && g->sum.rss_bytes) {
			g->sum.kind = MEMEXPLAIN_LIKELY;
			g->sum.name = keep_name(e, name);
		}
}

struct memexplain_sum memexplain_sum(const struct memexplain *e)
{
	struct memexplain_sum s = {0};
	vec_foreach(g, &e->groups) {
		s.rss_bytes += g->sum.rss_bytes;
		if (g->sum.kind == MEMEXPLAIN_LIKELY)
			s.likely_bytes += g->sum.rss_bytes;
		else if (g->sum.kind != MEMEXPLAIN_UNKNOWN)
			s.explained_bytes += g->sum.rss_bytes;
	}
	return s;
}

static const struct report_column columns[] = {
	{"rss_bytes", "RSS", CELL_BYTES, NULL},
	{"rss_pct", "%", CELL_PERCENT, "of total RSS"},
	{"pss_bytes", "PSS", CELL_BYTES,
	 "shared pages divided by the number of processes that map them"},
	{"anon_bytes", "anonymous", CELL_BYTES,
	 "part of RSS: private pages without a file, or private copies"},
	{"swap_bytes", "swap", CELL_BYTES, NULL},
	{"virtual_bytes", "virtual", CELL_BYTES, NULL},
	{"mappings", "mappings", CELL_COUNT, NULL},
	{"kind", "kind", CELL_TEXT, NULL},
	{"name", "what", CELL_TEXT, NULL},
};

/* Sorts by RSS, largest first, unexplained memory last. */
static int compare(const void *x, const void *y)
{
	const struct part_group *a = x;
	const struct part_group *b = y;
	const struct memexplain_part *p = &a->sum;
	const struct memexplain_part *q = &b->sum;
	return COMPARE(p->kind == MEMEXPLAIN_UNKNOWN, q->kind == MEMEXPLAIN_UNKNOWN)
	       ?: COMPARE(q->rss_bytes, p->rss_bytes)
	       ?: COMPARE(q->virtual_bytes, p->virtual_bytes) ?: COMPARE(a->key, b->key);
}

static void add_row(struct report *r, struct report_table *t, const struct memexplain_part *p,
		    const char *kind, uint64_t rss_bytes)
{
	const union cell cells[] = {
		{.u = p->rss_bytes},   {.d = view_pct(p->rss_bytes, rss_bytes)},
		{.u = p->pss_bytes},   {.u = p->anon_bytes},
		{.u = p->swap_bytes},  {.u = p->virtual_bytes},
		{.u = p->nr_mappings}, {.text = kind},
		{.text = p->name},
	};
	report_add_row(r, t, cells);
}

static void add_other(struct report *r, struct report_table *t, struct memexplain_part *other,
		      uint64_t rss_bytes)
{
	if (other->nr_mappings)
		add_row(r, t, other, "", rss_bytes);
	*other = (struct memexplain_part){.name = "<other>"};
}

static bool has_kind(const struct memexplain *e, enum memexplain_kind kind)
{
	vec_foreach(g, &e->groups)
		if (g->sum.kind == kind && g->sum.rss_bytes)
			return true;
	return false;
}

static void set_sum_note(struct report *r, struct report_table *t, const struct memexplain *e,
			 uint64_t rss_bytes, uint64_t page_table_bytes)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct memexplain_sum s = memexplain_sum(e);
	buf_addf(&b, "%s %% of %s is explained",
		 num_pct(view_pct(s.explained_bytes, s.rss_bytes)).s, num_bytes(s.rss_bytes).s);
	if (s.likely_bytes)
		buf_addf(&b, ", another %s %% is likely the allocator's heap",
			 num_pct(view_pct(s.likely_bytes, s.rss_bytes)).s);
	if (has_kind(e, MEMEXPLAIN_MAPPED))
		buf_addf(&b, "; mapped by: variables of the binary point to the memory");
	if (page_table_bytes)
		buf_addf(&b, "; page tables, not included, take %s", num_bytes(page_table_bytes).s);
	if (rss_bytes > s.rss_bytes + s.rss_bytes / 50)
		buf_addf(&b, "; the kernel's RSS counter says %s", num_bytes(rss_bytes).s);
	t->note = arena_strdup(&r->arena, buf_str(&b));
}

void memexplain_report(struct report *r, const struct memexplain *e, uint64_t rss_bytes,
		       uint64_t page_table_bytes, uint64_t max_rows)
{
	struct report_table *t =
		report_add_table(r, "memory_parts", "RSS breakdown", columns, ARRAY_LEN(columns));
	set_sum_note(r, t, e, rss_bytes, page_table_bytes);
	size_t n = e->groups.n;
	uint64_t whole = memexplain_sum(e).rss_bytes;
	if (!n)
		return;
	struct part_group *sorted = xmemdup(e->groups.p, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	struct memexplain_part other = {.name = "<other>"};
	size_t nr_shown = 0;
	for (size_t i = 0; i < n; i++) {
		const struct memexplain_part *one = &sorted[i].sum;
		bool is_unknown = one->kind == MEMEXPLAIN_UNKNOWN;
		if (max_rows && nr_shown + 1 >= max_rows && !is_unknown && n > max_rows) {
			add_part(&other, one);
			continue;
		}
		if (is_unknown)
			add_other(r, t, &other, whole);
		add_row(r, t, one, kind_names[one->kind], whole);
		nr_shown++;
	}
	add_other(r, t, &other, whole);
	t->nr_rows_total = n;
	free(sorted);
}
