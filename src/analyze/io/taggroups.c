/* Rows aggregated by texts; see taggroups.h. */
#include "base/base.h"

#include "analyze/io/taggroups.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

int tag_rows_open(struct tag_rows *ret_r, struct arena *a, const struct profile *p,
		  enum table_id id, const struct select_spec *spec, struct err *err)
{
	const struct table *t = tables_find_rows(p, id);
	if (!t)
		return -ENOENT;
	struct tag_rows r = {.p = p,
			     .t = t,
			     .bytes_col = table_column(t, COLUMN_BYTES),
			     .ns_col = table_column(t, COLUMN_TIME),
			     .longest_col = table_column(t, COLUMN_LONGEST),
			     .pages_col = table_column(t, COLUMN_PAGES)};
	int rc = select_compile(a, p, (uint32_t)(t - p->tables.p), spec, &r.row_filter, err);
	if (rc) /* a filter on what the table has not: as if there were none */
		return rc == -ENODATA ? -ENOENT : rc;
	*ret_r = r;
	return 0;
}

static uint64_t value(const struct tag_rows *r, size_t i, int col)
{
	if (col < 0)
		return 0;
	int64_t v = r->t->values[i * r->t->nr_columns + (size_t)col];
	return v > 0 ? (uint64_t)v : 0;
}

bool tag_rows_next(struct tag_rows *r, struct tag_row *ret_row)
{
	while (r->next < r->t->n && !select_has(r->row_filter, r->next))
		r->next++;
	if (r->next >= r->t->n)
		return false;
	size_t i = r->next++;
	const struct tag *tag = &r->p->tags.p[r->t->tag[i]];
	*ret_row = (struct tag_row){
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

void tag_groups_release(struct tag_groups *g)
{
	intern_release(&g->keys);
	vec_release(&g->groups);
	buf_release(&g->key);
}

struct tag_group *tag_groups_at(struct tag_groups *g, const char *const *texts, size_t n)
{
	buf_clear(&g->key);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(&g->key, texts[i] ? texts[i] : "");
		buf_add_ch(&g->key, '\x01');
	}
	size_t idx = intern_add(&g->keys, g->key.p, g->key.n) - 1u;
	if (idx < g->groups.n)
		return &g->groups.p[idx];
	size_t nr_amounts = g->nr_amounts ? g->nr_amounts : TAG_AMOUNTS;
	struct tag_group group = {
		.amounts = arena_calloc(g->arena, nr_amounts, sizeof(*group.amounts))};
	for (size_t i = 0; i < n; i++)
		group.texts[i] = arena_strdup(g->arena, texts[i] ? texts[i] : "");
	vec_push(&g->groups, group);
	return vec_last(&g->groups);
}

void amount_add(struct amount *a, const struct tag_row *row)
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
	struct tag_group group;
};

static int by_weight(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	int c = COMPARE(b->weight, a->weight);
	for (size_t i = 0; !c && i < TAG_TEXTS && a->group.texts[i] && b->group.texts[i]; i++)
		c = strcmp(a->group.texts[i], b->group.texts[i]);
	return c;
}

void tag_groups_sort(struct tag_groups *g, uint64_t (*weight)(const struct tag_group *g))
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

static uint64_t per_s(uint64_t v, double seconds)
{
	return seconds > 0 ? (uint64_t)((double)v / seconds) : 0;
}

/* Of calls that succeeded: none of rows whose calls all failed. */
static union cell quantile_cell(const struct quantile *q, double share)
{
	return (union cell){.u = q->nr_all ? quantile_at(q, share) : CELL_NS_NONE};
}

static union cell cell_of(enum tag_measure m, const struct amount *a, double seconds)
{
	uint64_t nr_good = a->nr > a->nr_failed ? a->nr - a->nr_failed : a->nr;
	switch (m) {
	case TAG_TEXT:
		break;
	case TAG_NR:
		return (union cell){.u = a->nr};
	case TAG_NR_PER_S:
		return (union cell){.d = seconds > 0 ? (double)a->nr / seconds : 0};
	case TAG_FAILED:
		return (union cell){.u = a->nr_failed};
	case TAG_BYTES:
		return (union cell){.u = a->bytes};
	case TAG_BYTES_PER_S:
		return (union cell){.u = per_s(a->bytes, seconds)};
	case TAG_MEAN_BYTES:
		return (union cell){.u = nr_good ? a->bytes / nr_good : 0};
	case TAG_NS:
		return (union cell){.u = a->ns};
	case TAG_MEAN_NS:
		return (union cell){.u = a->nr ? a->ns / a->nr : 0};
	case TAG_P50_NS:
		return quantile_cell(&a->q, 0.5);
	case TAG_P90_NS:
		return quantile_cell(&a->q, 0.9);
	case TAG_P99_NS:
		return quantile_cell(&a->q, 0.99);
	case TAG_LONGEST_NS:
		return (union cell){.u = a->q.nr_all ? a->q.longest_ns : CELL_NS_NONE};
	case TAG_PAGES:
		return (union cell){.u = a->pages};
	}
	return (union cell){.u = 0};
}

static void add_group_row(struct report *r, struct report_table *t, const struct tag_table *table,
			  const struct amount *amounts, const char *const *texts, double seconds)
{
	union cell cells[TAG_COLUMNS_MAX];
	struct amount all = {0};
	for (size_t i = 0; i < TAG_AMOUNTS; i++)
		amount_merge(&all, &amounts[i]);
	for (size_t i = 0; i < table->nr_columns; i++) {
		const struct tag_column *c = &table->columns[i];
		if (c->measure == TAG_TEXT)
			cells[i].text = texts[c->of];
		else
			cells[i] = cell_of(c->measure,
					   c->of == TAG_AMOUNTS ? &all : &amounts[c->of], seconds);
	}
	report_add_row(r, t, cells);
}

static const char *const hide_first[] = {"bytes_per_s",      "per_s",   "mean_read_bytes",
					 "mean_write_bytes", "p50_ns",  "p90_ns",
					 "failed",           "mean_ns", "mean_bytes",
					 "longest_ns",       NULL};

void tag_report(struct tag_groups *g, struct report *r, const struct tag_table *table,
		uint64_t max_rows, double seconds)
{
	struct report_column columns[TAG_COLUMNS_MAX];
	ASSERT(table->nr_columns <= TAG_COLUMNS_MAX);
	for (size_t i = 0; i < table->nr_columns; i++)
		columns[i] = table->columns[i].column;
	struct report_table *t =
		report_add_table(r, table->key, table->title, columns, table->nr_columns);
	struct amount *rest = arena_calloc(g->arena, TAG_AMOUNTS, sizeof(*rest));
	size_t n = g->groups.n;
	size_t shown = max_rows && !(table->flags & TAG_WHOLE) ? MIN(max_rows, n) : n;
	t->note = table->note;
	t->hide_first = hide_first;
	tag_groups_sort(g, table->weight);
	for (size_t i = 0; i < n; i++) {
		const struct tag_group *group = &g->groups.p[i];
		const char *texts[TAG_TEXTS];
		for (size_t k = 0; k < TAG_TEXTS; k++)
			texts[k] = group->texts[k] && group->texts[k][0] ? group->texts[k] : "-";
		if (i < shown)
			add_group_row(r, t, table, group->amounts, texts, seconds);
		for (size_t k = 0; i >= shown && k < TAG_AMOUNTS; k++)
			amount_merge(&rest[k], &group->amounts[k]);
	}
	t->has_other = shown < n && !(table->flags & TAG_NO_OTHER);
	if (t->has_other)
		add_group_row(r, t, table, rest, (const char *const[]){"<other>", "", ""}, seconds);
	t->nr_rows_total = n;
}
