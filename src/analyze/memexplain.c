/* Explained RSS; see memexplain.h. */
#include "base/base.h"
#include "analyze/memexplain.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/num.h"

struct group {
	enum memexplain_kind kind;
	uint32_t key; /* in names: kind and name */
	uint32_t name;
	uint64_t nr_mappings;
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t anon_bytes;
	uint64_t swap_bytes;
	uint64_t virtual_bytes;
};

struct memexplain {
	struct intern keys;
	struct intern names;
	VEC(struct group) groups; /* by key - 1 */
};

struct memexplain *memexplain_new(void)
{
	return xcalloc(1, sizeof(struct memexplain));
}

void memexplain_free(struct memexplain *e)
{
	if (!e)
		return;
	intern_release(&e->keys);
	intern_release(&e->names);
	vec_release(&e->groups);
	free(e);
}

void memexplain_free_p(struct memexplain **e)
{
	memexplain_free(*e);
}

const char *memexplain_kind_name(enum memexplain_kind kind)
{
	static const char *const names[] = {
		[MEMEXPLAIN_HEAP] = "heap",
		[MEMEXPLAIN_ALLOCATOR] = "allocator",
		[MEMEXPLAIN_RUNTIME] = "runtime",
		[MEMEXPLAIN_STACKS] = "stacks",
		[MEMEXPLAIN_CODE] = "code",
		[MEMEXPLAIN_DATA] = "data",
		[MEMEXPLAIN_FILES] = "file",
		[MEMEXPLAIN_SHMEM] = "shared memory",
		[MEMEXPLAIN_JIT] = "JIT code",
		[MEMEXPLAIN_NAMED] = "named",
		[MEMEXPLAIN_KERNEL] = "kernel",
		[MEMEXPLAIN_PRESUMED] = "presumably",
		[MEMEXPLAIN_UNKNOWN] = "[unexplained]",
	};
	return kind < MEMEXPLAIN_NR ? names[kind] : "";
}

static struct group *group_of(struct memexplain *e, enum memexplain_kind kind, const char *name)
{
	CLEANUP(buf_release) struct buf key = {0};
	buf_addf(&key, "%d ", (int)kind);
	buf_add_str(&key, name);
	uint32_t id = intern_add(&e->keys, key.p, key.n);
	if (id > e->groups.n)
		vec_push(&e->groups, (struct group){.kind = kind,
						    .key = id,
						    .name = intern_add_str(&e->names, name)});
	return &e->groups.p[id - 1];
}

void memexplain_add(struct memexplain *e, const struct memexplain_part *part)
{
	struct group *g = group_of(e, part->kind, part->name);
	g->nr_mappings++;
	g->rss_bytes += part->rss_bytes;
	g->pss_bytes += part->pss_bytes;
	g->anon_bytes += part->anon_bytes;
	g->swap_bytes += part->swap_bytes;
	g->virtual_bytes += part->virtual_bytes;
}

/* ---- parts of mappings --------------------------------------------------------------------- */

static struct memexplain_part part_of(const struct memmap *one, enum memexplain_kind kind,
				      const char *name)
{
	return (struct memexplain_part){
		.kind = kind,
		.name = name,
		.rss_bytes = one->rss_bytes,
		.pss_bytes = one->pss_bytes,
		.anon_bytes = MIN(one->anon_bytes, one->rss_bytes),
		.swap_bytes = one->swap_bytes,
		.virtual_bytes = one->end - one->start,
	};
}

static void add_anon(struct memexplain *e, const struct memmap *one)
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
	};
	struct memanon who = one->whose;
	struct memexplain_part owned = part_of(one, owners[who.owner].kind, owners[who.owner].name);
	uint64_t len = one->end - one->start;
	if (who.owner == MEMANON_UNKNOWN || who.owned_bytes >= len) {
		memexplain_add(e, &owned);
		return;
	}
	/* Which of its pages are resident is not known: at most as many as are owned. */
	struct memexplain_part rest = part_of(one, MEMEXPLAIN_UNKNOWN, owners[0].name);
	owned.rss_bytes = MIN(owned.rss_bytes, who.owned_bytes);
	owned.anon_bytes = MIN(owned.anon_bytes, owned.rss_bytes);
	owned.pss_bytes = MIN(owned.pss_bytes, owned.rss_bytes);
	owned.virtual_bytes = who.owned_bytes;
	owned.swap_bytes = 0;
	rest.rss_bytes -= owned.rss_bytes;
	rest.anon_bytes -= MIN(owned.anon_bytes, rest.anon_bytes);
	rest.pss_bytes -= MIN(owned.pss_bytes, rest.pss_bytes);
	rest.virtual_bytes -= owned.virtual_bytes;
	memexplain_add(e, &owned);
	memexplain_add(e, &rest);
}

static void add_map(struct memexplain *e, const struct memmaps *m, const struct memmap *one)
{
	static const enum memexplain_kind kinds[] = {
		[MEMMAP_ANON] = MEMEXPLAIN_UNKNOWN,  [MEMMAP_HEAP] = MEMEXPLAIN_HEAP,
		[MEMMAP_STACK] = MEMEXPLAIN_STACKS,  [MEMMAP_CODE] = MEMEXPLAIN_CODE,
		[MEMMAP_BINARY] = MEMEXPLAIN_DATA,   [MEMMAP_FILE] = MEMEXPLAIN_FILES,
		[MEMMAP_SHMEM] = MEMEXPLAIN_SHMEM,   [MEMMAP_JIT] = MEMEXPLAIN_JIT,
		[MEMMAP_NAMED] = MEMEXPLAIN_NAMED,   [MEMMAP_SPECIAL] = MEMEXPLAIN_KERNEL,
		[MEMMAP_HUGETLB] = MEMEXPLAIN_SHMEM,
	};
	if (one->kind == MEMMAP_ANON) {
		add_anon(e, one);
		return;
	}
	const char *name = memmaps_path(m, one);
	if (one->kind == MEMMAP_STACK)
		name = "stacks of threads";
	else if (one->kind == MEMMAP_JIT)
		name = "executable memory without a file";
	const struct memexplain_part part = part_of(one, kinds[one->kind], name);
	memexplain_add(e, &part);
}

void memexplain_maps(struct memexplain *e, const struct memmaps *m)
{
	vec_foreach(one, &m->list)
		add_map(e, m, one);
}

/* ---- what allocators have ------------------------------------------------------------------- */

/* Takes bytes out of the unexplained groups, the largest first. */
void memexplain_allocator(struct memexplain *e, const char *name, uint64_t resident_bytes)
{
	uint64_t left = resident_bytes;
	struct group sum = {0};
	vec_foreach(g, &e->groups) {
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
	if (!sum.rss_bytes)
		return;
	const struct memexplain_part part = {.kind = MEMEXPLAIN_ALLOCATOR,
					     .name = name,
					     .rss_bytes = sum.rss_bytes,
					     .pss_bytes = sum.pss_bytes,
					     .anon_bytes = sum.anon_bytes};
	memexplain_add(e, &part);
}

void memexplain_presume(struct memexplain *e, const char *name)
{
	uint32_t id = intern_add_str(&e->names, name);
	vec_foreach(g, &e->groups)
		if (g->kind == MEMEXPLAIN_UNKNOWN && g->rss_bytes) {
			g->kind = MEMEXPLAIN_PRESUMED;
			g->name = id;
		}
}

struct memexplain_sum memexplain_sum(const struct memexplain *e)
{
	struct memexplain_sum s = {0};
	vec_foreach(g, &e->groups) {
		s.rss_bytes += g->rss_bytes;
		if (g->kind == MEMEXPLAIN_PRESUMED)
			s.presumed_bytes += g->rss_bytes;
		else if (g->kind != MEMEXPLAIN_UNKNOWN)
			s.explained_bytes += g->rss_bytes;
	}
	return s;
}

static const struct report_column columns[] = {
	{"rss_bytes", "RSS", CELL_BYTES, NULL},
	{"rss_pct", "%", CELL_PERCENT, "of all that is resident"},
	{"pss_bytes", "PSS", CELL_BYTES, "shared pages divided among those who map them"},
	{"anon_bytes", "anonymous", CELL_BYTES, "of RSS: memory of its own, private copies"},
	{"swap_bytes", "swap", CELL_BYTES, NULL},
	{"virtual_bytes", "virtual", CELL_BYTES, NULL},
	{"mappings", "mappings", CELL_COUNT, NULL},
	{"kind", "kind", CELL_TEXT, NULL},
	{"name", "what", CELL_TEXT, NULL},
};

/* Unexplained memory last, so that the table reads as an account. */
static int compare(const void *x, const void *y)
{
	const struct group *a = x;
	const struct group *b = y;
	bool a_last = a->kind == MEMEXPLAIN_UNKNOWN;
	bool b_last = b->kind == MEMEXPLAIN_UNKNOWN;
	if (a_last != b_last)
		return a_last ? 1 : -1;
	if (a->rss_bytes != b->rss_bytes)
		return a->rss_bytes < b->rss_bytes ? 1 : -1;
	if (a->virtual_bytes != b->virtual_bytes)
		return a->virtual_bytes < b->virtual_bytes ? 1 : -1;
	return (a->key > b->key) - (a->key < b->key);
}

static void add_row(struct report *r, struct report_table *t, const struct group *g,
		    const char *kind, const char *name, uint64_t rss_bytes)
{
	const union cell cells[] = {
		{.u = g->rss_bytes},
		{.d = rss_bytes ? 100.0 * (double)g->rss_bytes / (double)rss_bytes : 0},
		{.u = g->pss_bytes},
		{.u = g->anon_bytes},
		{.u = g->swap_bytes},
		{.u = g->virtual_bytes},
		{.u = g->nr_mappings},
		{.text = kind},
		{.text = name},
	};
	report_add_row(r, t, cells);
}

static void add_group(struct group *to, const struct group *g)
{
	to->nr_mappings += g->nr_mappings;
	to->rss_bytes += g->rss_bytes;
	to->pss_bytes += g->pss_bytes;
	to->anon_bytes += g->anon_bytes;
	to->swap_bytes += g->swap_bytes;
	to->virtual_bytes += g->virtual_bytes;
}

static void say_sum(struct report *r, struct report_table *t, const struct memexplain *e,
		    uint64_t rss_bytes, uint64_t page_table_bytes)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct memexplain_sum s = memexplain_sum(e);
	num_add_pct(&b, s.rss_bytes ? 100.0 * (double)s.explained_bytes / (double)s.rss_bytes : 0);
	buf_add_str(&b, " % of ");
	num_add_bytes(&b, s.rss_bytes);
	buf_add_str(&b, " is explained");
	if (s.presumed_bytes) {
		buf_add_str(&b, ", ");
		num_add_pct(&b, 100.0 * (double)s.presumed_bytes / (double)s.rss_bytes);
		buf_add_str(&b, " % more presumably (--allocator asks)");
	}
	if (page_table_bytes) {
		buf_add_str(&b, "; page tables, which are not part of it, take ");
		num_add_bytes(&b, page_table_bytes);
	}
	if (rss_bytes > s.rss_bytes + s.rss_bytes / 50) {
		buf_add_str(&b, "; the kernel's counters say ");
		num_add_bytes(&b, rss_bytes);
	}
	t->note = arena_strdup(&r->arena, buf_str(&b));
}

void memexplain_report(struct report *r, const struct memexplain *e, uint64_t rss_bytes,
		       uint64_t page_table_bytes, uint64_t max_rows)
{
	struct report_table *t = report_add_table(r, "memory_parts", "what the RSS consists of",
						  columns, ARRAY_LEN(columns));
	say_sum(r, t, e, rss_bytes, page_table_bytes);
	size_t n = e->groups.n;
	uint64_t whole = memexplain_sum(e).rss_bytes;
	if (!n)
		return;
	struct group *sorted = xmemdup(e->groups.p, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	struct group other = {0};
	size_t nr_shown = 0;
	for (size_t i = 0; i < n; i++) {
		bool is_unknown = sorted[i].kind == MEMEXPLAIN_UNKNOWN;
		if (max_rows && nr_shown + 1 >= max_rows && !is_unknown && n > max_rows) {
			add_group(&other, &sorted[i]);
			continue;
		}
		if (is_unknown && other.nr_mappings) {
			add_row(r, t, &other, "", "<other>", whole);
			other = (struct group){0};
		}
		add_row(r, t, &sorted[i], memexplain_kind_name(sorted[i].kind),
			intern_str(&e->names, sorted[i].name), whole);
		nr_shown++;
	}
	if (other.nr_mappings)
		add_row(r, t, &other, "", "<other>", whole);
	t->nr_rows_total = n;
	free(sorted);
}
