/* What RSS consists of; see watch_explain.h. */
#include "base/base.h"
#include "cmd/watch_explain.h"

#include <stdlib.h>

#include "base/mem.h"
#include "host/memanon.h"

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

static void add_anon(struct memexplain *e, const struct memmaps *m, size_t i,
		     struct memanon_reader *reader)
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
	const struct memmap *one = &m->list.p[i];
	struct memanon who = memanon_of(m, i, reader);
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

static void add_map(struct memexplain *e, const struct memmaps *m, size_t i,
		    struct memanon_reader *reader)
{
	static const enum memexplain_kind kinds[] = {
		[MEMMAP_ANON] = MEMEXPLAIN_UNKNOWN,  [MEMMAP_HEAP] = MEMEXPLAIN_HEAP,
		[MEMMAP_STACK] = MEMEXPLAIN_STACKS,  [MEMMAP_CODE] = MEMEXPLAIN_CODE,
		[MEMMAP_BINARY] = MEMEXPLAIN_DATA,   [MEMMAP_FILE] = MEMEXPLAIN_FILES,
		[MEMMAP_SHMEM] = MEMEXPLAIN_SHMEM,   [MEMMAP_JIT] = MEMEXPLAIN_JIT,
		[MEMMAP_NAMED] = MEMEXPLAIN_NAMED,   [MEMMAP_SPECIAL] = MEMEXPLAIN_KERNEL,
		[MEMMAP_HUGETLB] = MEMEXPLAIN_SHMEM,
	};
	const struct memmap *one = &m->list.p[i];
	if (one->kind == MEMMAP_ANON) {
		add_anon(e, m, i, reader);
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

struct memexplain *watch_explain(const struct watch_maps *m)
{
	struct memexplain *e = memexplain_new();
	for (size_t k = 0; k < m->list.n; k++) {
		CLEANUP(memanon_reader_release) struct memanon_reader reader;
		memanon_reader_open(&reader, m->pids.p[k]);
		for (size_t i = 0; i < m->list.p[k].list.n; i++)
			add_map(e, &m->list.p[k], i, &reader);
	}
	return e;
}

/* ---- single mappings ---------------------------------------------------------------------- */

static const struct report_column columns[] = {
	{"address", "address", CELL_TEXT, NULL},
	{"virtual_bytes", "virtual", CELL_BYTES, NULL},
	{"rss_bytes", "RSS", CELL_BYTES, NULL},
	{"pss_bytes", "PSS", CELL_BYTES, NULL},
	{"dirty_bytes", "dirty", CELL_BYTES, "private and shared"},
	{"anon_bytes", "anonymous", CELL_BYTES, NULL},
	{"swap_bytes", "swap", CELL_BYTES, NULL},
	{"mode", "mode", CELL_TEXT, NULL},
	{"kind", "kind", CELL_TEXT, NULL},
	{"mapping", "mapping", CELL_TEXT, NULL},
};

struct ranked {
	uint32_t process;
	uint32_t idx;
	uint64_t rss_bytes;
	uint64_t start;
};

static int compare_rss(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	if (a->rss_bytes != b->rss_bytes)
		return a->rss_bytes < b->rss_bytes ? 1 : -1;
	return (a->start > b->start) - (a->start < b->start);
}

static int compare_address(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

static void add_mapping(struct report *r, struct report_table *t, const struct memmaps *m,
			const struct memmap *one)
{
	char mode[] = {one->is_readable ? 'r' : '-', one->is_writable ? 'w' : '-',
		       one->is_exec ? 'x' : '-', one->is_shared ? 's' : 'p', 0};
	const union cell cells[] = {
		{.text = arena_fmt(&r->arena, "%012" PRIx64, one->start)},
		{.u = one->end - one->start},
		{.u = one->rss_bytes},
		{.u = one->pss_bytes},
		{.u = one->private_dirty_bytes + one->shared_dirty_bytes},
		{.u = one->anon_bytes},
		{.u = one->swap_bytes},
		{.text = mode},
		{.text = memmap_kind_name(one->kind)},
		{.text = memmaps_path(m, one)},
	};
	report_add_row(r, t, cells);
}

void watch_mappings_report(struct report *r, const struct watch_maps *m, uint64_t max_rows)
{
	VEC(struct ranked) all = {0};
	for (uint32_t k = 0; k < m->list.n; k++)
		for (uint32_t i = 0; i < m->list.p[k].list.n; i++) {
			const struct memmap *one = &m->list.p[k].list.p[i];
			vec_push(&all, (struct ranked){k, i, one->rss_bytes, one->start});
		}
	struct report_table *t =
		report_add_table(r, "mappings", "mappings", columns, ARRAY_LEN(columns));
	size_t nr = max_rows ? MIN(all.n, (size_t)max_rows) : all.n;
	if (all.n)
		qsort(all.p, all.n, sizeof(*all.p), compare_rss);
	if (nr)
		qsort(all.p, nr, sizeof(*all.p), compare_address);
	for (size_t i = 0; i < nr; i++)
		add_mapping(r, t, &m->list.p[all.p[i].process],
			    &m->list.p[all.p[i].process].list.p[all.p[i].idx]);
	t->nr_rows_total = all.n;
	vec_release(&all);
}
