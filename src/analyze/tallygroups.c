/* Rows under texts; see tallygroups.h. */
#include "base/base.h"

#include "analyze/tallygroups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int tally_rows_open(struct tally_rows *ret_r, struct arena *a, const struct profile *p,
		    enum table_id id, const struct select_spec *spec, struct err *err)
{
	const struct table *t = tables_find_rows(p, id);
	if (!t)
		return -ENOENT;
	struct tally_rows r = {.p = p,
			       .t = t,
			       .bytes_col = table_column(t, COLUMN_BYTES),
			       .ns_col = table_column(t, COLUMN_TIME),
			       .longest_col = table_column(t, COLUMN_LONGEST),
			       .pages_col = table_column(t, COLUMN_PAGES)};
	TRY(select_compile(a, p, (uint32_t)(t - p->tables.p), spec, &r.sieve, err));
	*ret_r = r;
	return 0;
}

static uint64_t value(const struct tally_rows *r, size_t i, int col)
{
	if (col < 0)
		return 0;
	int64_t v = r->t->values[i * r->t->nr_columns + (size_t)col];
	return v > 0 ? (uint64_t)v : 0;
}

bool tally_rows_next(struct tally_rows *r, struct tally_row *ret_row)
{
	while (r->next < r->t->n && !select_has(r->sieve, r->next))
		r->next++;
	if (r->next >= r->t->n)
		return false;
	size_t i = r->next++;
	const struct tag *tag = &r->p->tags.p[r->t->tag[i]];
	*ret_row = (struct tally_row){
		.i = i,
		.tag = tag,
		.detail = profile_text(r->p, tag->detail),
		.stack = r->t->stack[i],
		.task = r->t->task[i],
		.nr = value(r, i, r->nr_col),
		.bytes = value(r, i, r->bytes_col),
		.ns = value(r, i, r->ns_col),
		.longest_ns = value(r, i, r->longest_col),
		.pages = value(r, i, r->pages_col),
	};
	return true;
}

void tally_groups_release(struct tally_groups *g)
{
	intern_release(&g->keys);
	vec_release(&g->groups);
	buf_release(&g->key);
}

struct tally_group *tally_groups_at(struct tally_groups *g, const char *const *texts, size_t n)
{
	buf_clear(&g->key);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(&g->key, texts[i] ? texts[i] : "");
		buf_add_ch(&g->key, '\x01');
	}
	size_t idx = intern_add(&g->keys, g->key.p, g->key.n) - 1u;
	if (idx < g->groups.n)
		return &g->groups.p[idx];
	struct tally_group group = {
		.amounts = arena_calloc(g->arena, TALLY_AMOUNTS, sizeof(*group.amounts))};
	for (size_t i = 0; i < n; i++)
		group.texts[i] = arena_strdup(g->arena, texts[i] ? texts[i] : "");
	vec_push(&g->groups, group);
	return vec_last(&g->groups);
}

void amount_add(struct amount *a, const struct tally_row *row)
{
	size_t n = strlen(row->detail);
	bool has_failed = n > 7 && !strcmp(row->detail + n - 7, " failed");
	a->nr += row->nr;
	a->bytes += row->bytes;
	a->ns += row->ns;
	a->pages += row->pages;
	if (has_failed)
		a->nr_failed += row->nr;
	else if (row->tag->log2_ns != LOG2_NONE)
		quantile_add(&a->q, row->tag->log2_ns, row->nr, row->ns, row->longest_ns);
}

void amount_merge(struct amount *to, const struct amount *from)
{
	quantile_merge(&to->q, &from->q);
	to->nr += from->nr;
	to->bytes += from->bytes;
	to->ns += from->ns;
	to->pages += from->pages;
	to->nr_failed += from->nr_failed;
}

struct ranked {
	uint64_t weight;
	struct tally_group group;
};

static int by_weight(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	for (size_t i = 0; i < TALLY_TEXTS; i++) {
		if (!a->group.texts[i] || !b->group.texts[i])
			break;
		int c = strcmp(a->group.texts[i], b->group.texts[i]);
		if (c)
			return c;
	}
	return 0;
}

void tally_groups_sort(struct tally_groups *g, uint64_t (*weight)(const struct tally_group *g))
{
	size_t n = g->groups.n;
	struct ranked *ranks = xcalloc(n + 1, sizeof(*ranks));
	for (size_t i = 0; i < n; i++)
		ranks[i] = (struct ranked){weight(&g->groups.p[i]), g->groups.p[i]};
	qsort(ranks, n, sizeof(*ranks), by_weight);
	for (size_t i = 0; i < n; i++)
		g->groups.p[i] = ranks[i].group;
	free_p(&ranks);
}

static void add_group_row(struct report *r, struct report_table *t, const struct tally_shape *shape,
			  const struct amount *amounts, const char *const *texts)
{
	union cell cells[TALLY_CELLS_MAX];
	shape->fill(cells, amounts);
	for (size_t i = 0; i < shape->nr_texts; i++)
		cells[shape->nr_cells + i].text = texts[i];
	report_add_row(r, t, cells);
}

void tally_groups_report(const struct tally_groups *g, struct report *r, struct report_table *t,
			 const struct tally_shape *shape)
{
	ASSERT(shape->nr_cells + shape->nr_texts <= TALLY_CELLS_MAX &&
	       shape->nr_texts <= TALLY_TEXTS);
	size_t n = g->groups.n;
	size_t shown = shape->max_rows ? MIN(shape->max_rows, n) : n;
	for (size_t i = 0; i < shown; i++) {
		const struct tally_group *group = &g->groups.p[i];
		const char *texts[TALLY_TEXTS];
		for (size_t k = 0; k < shape->nr_texts; k++)
			texts[k] = group->texts[k] && group->texts[k][0] ? group->texts[k] : "-";
		add_group_row(r, t, shape, group->amounts, texts);
	}
	if (shown < n) {
		struct amount *rest = arena_calloc(g->arena, TALLY_AMOUNTS, sizeof(*rest));
		for (size_t i = shown; i < n; i++)
			for (size_t k = 0; k < TALLY_AMOUNTS; k++)
				amount_merge(&rest[k], &g->groups.p[i].amounts[k]);
		add_group_row(r, t, shape, rest,
			      (const char *const[TALLY_TEXTS]){"<other>", "", ""});
	}
	t->nr_rows_total = n;
}
