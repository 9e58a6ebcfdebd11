/* Table of mappings; see maptable.h. */
#include "base/base.h"
#include "analyze/memory/maptable.h"

#include <stdlib.h>

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

static const char *const kind_names[] = {
	[MEMMAP_ANON] = "anonymous", [MEMMAP_HEAP] = "heap",       [MEMMAP_STACK] = "stack",
	[MEMMAP_CODE] = "code",      [MEMMAP_BINARY] = "binary",   [MEMMAP_FILE] = "file",
	[MEMMAP_SHMEM] = "shmem",    [MEMMAP_JIT] = "jit",         [MEMMAP_NAMED] = "named",
	[MEMMAP_SPECIAL] = "kernel", [MEMMAP_HUGETLB] = "hugetlb", [MEMMAP_RECORDER] = "assay",
};

struct ranked {
	uint32_t process;
	const struct memmap *one;
};

static int compare_rss(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	return COMPARE(b->one->rss_bytes, a->one->rss_bytes)
		       ?: COMPARE(a->one->start, b->one->start);
}

static int compare_address(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	return COMPARE(a->process, b->process) ?: COMPARE(a->one->start, b->one->start);
}

/* Without permission only sizes are known. */
static uint64_t known(const struct memmaps *m, uint64_t nr_bytes)
{
	return m->has_rss ? nr_bytes : CELL_NO_BYTES;
}

static void add_mapping(struct report *r, struct report_table *t, const struct memmaps *m,
			const struct memmap *one)
{
	char mode[] = {one->is_readable ? 'r' : '-', one->is_writable ? 'w' : '-',
		       one->is_exec ? 'x' : '-', one->is_shared ? 's' : 'p', 0};
	const union cell cells[] = {
		{.text = arena_fmt(&r->arena, "%012" PRIx64, one->start)},
		{.u = one->end - one->start},
		{.u = known(m, one->rss_bytes)},
		{.u = known(m, one->pss_bytes)},
		{.u = known(m, one->private_dirty_bytes + one->shared_dirty_bytes)},
		{.u = known(m, one->anon_bytes)},
		{.u = known(m, one->swap_bytes)},
		{.text = mode},
		{.text = kind_names[one->kind]},
		{.text = memmaps_path(m, one)},
	};
	report_add_row(r, t, cells);
}

void maptable_report(struct report *r, const struct memmaps *maps, size_t nr_maps,
		     uint64_t max_rows)
{
	VEC(struct ranked) all = {0};
	for (uint32_t k = 0; k < nr_maps; k++)
		vec_foreach(one, &maps[k].list)
			vec_push(&all, (struct ranked){k, one});
	struct report_table *t =
		report_add_table(r, "mappings", "mappings", columns, ARRAY_LEN(columns));
	size_t nr = max_rows ? MIN(all.n, (size_t)max_rows) : all.n;
	if (all.n)
		qsort(all.p, all.n, sizeof(*all.p), compare_rss);
	if (nr)
		qsort(all.p, nr, sizeof(*all.p), compare_address);
	for (size_t i = 0; i < nr; i++)
		add_mapping(r, t, &maps[all.p[i].process], all.p[i].one);
	t->nr_rows_total = all.n;
	vec_release(&all);
}
