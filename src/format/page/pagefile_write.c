/* Writes the blocks that make a page a recording; see pagefile.h. */
#include "base/base.h"
#include "format/page/pagefile.h"

#include <stdlib.h>

#include "base/mem.h"
#include "format/assay/assayfile.h"
#include "format/page/pagerow.h"

#define NS_PER_MS 1000000ull

/* A column: one number a row, or a single one if all are equal. */
struct column_buf {
	struct buf b;
	uint64_t first;
	size_t n;
	bool is_equal;
};

static void add_value(struct column_buf *c, uint64_t v)
{
	if (!c->n++) {
		c->first = v;
		c->is_equal = true;
	}
	c->is_equal &= v == c->first;
	buf_add_uleb(&c->b, v);
}

static void add_signed(struct column_buf *c, int64_t v)
{
	add_value(c, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void end_column(struct buf *to, struct column_buf *c)
{
	if (c->n && c->is_equal) {
		buf_clear(&c->b);
		buf_add_uleb(&c->b, c->first);
	}
	buf_add_uleb(to, c->b.n);
	buf_add_sv(to, buf_sv(&c->b));
	buf_release(&c->b);
	*c = (struct column_buf){0};
}

/* The rows of one stream that are one table's, in the stream's order. */
struct part {
	const struct pagefile_stream *s;
	struct table *t;
	uint8_t table;
	uint64_t start_ns;
};

#define EACH_ROW(part, i)                         \
	for (size_t i = 0; i < (part)->s->n; i++) \
		if ((part)->s->table[i] == (part)->table)

/* Codes of values by the keys of their rows, and the values that are new. */
static void add_guessed(struct buf *to, const struct part *part, const uint32_t *column,
			const uint32_t *keys)
{
	struct guess g = {0};
	struct column_buf codes = {0};
	struct column_buf fresh = {0};
	uint32_t last = 0;
	EACH_ROW(part, i)
	{
		bool is_new;
		uint32_t value = column[part->s->source[i]];
		add_value(&codes, guess_code(&g, keys[i], value, &is_new));
		if (!is_new)
			continue;
		add_signed(&fresh, (int64_t)value - last);
		last = value;
	}
	end_column(to, &codes);
	end_column(to, &fresh);
	guess_release(&g);
}

/* Keys of tags are numbered, so that they fit a column. */
static void add_tags(struct buf *to, const struct part *part)
{
	struct guess g = {0};
	struct pagerow_keys keys = {0};
	struct column_buf codes = {0};
	struct column_buf fresh = {0};
	uint32_t last = 0;
	EACH_ROW(part, i)
	{
		bool is_new;
		uint32_t value = part->t->tag[part->s->source[i]];
		uint64_t key = pagerow_tag_key(&keys, part->s, i);
		add_value(&codes, guess_code(&g, key, value, &is_new));
		if (!is_new)
			continue;
		add_signed(&fresh, (int64_t)value - last);
		last = value;
	}
	end_column(to, &codes);
	end_column(to, &fresh);
	guess_release(&g);
	pagerow_keys_release(&keys);
}

/* What is left of the time after whole milliseconds: of slices exactly, of instants dropped. */
static void add_times(struct buf *to, const struct part *part)
{
	struct column_buf c = {0};
	bool is_exact = part->t->time_kind == TABLE_TIME_SLICE;
	EACH_ROW(part, i)
	{
		uint64_t ms_ns = part->start_ns + part->s->time_ms[i] * NS_PER_MS;
		add_signed(&c,
			   is_exact ? (int64_t)(part->t->time_ns[part->s->source[i]] - ms_ns) : 0);
	}
	end_column(to, &c);
}

/* In the mode that takes less room. */
static void add_values(struct buf *to, const struct part *part, uint32_t column)
{
	struct column_buf deltas = {0};
	struct column_buf rests = {0};
	int64_t last = 0;
	EACH_ROW(part, i)
	{
		int64_t v = part->t->values[part->s->source[i] * part->t->nr_columns + column];
		uint64_t by_last = (uint64_t)v - (uint64_t)last;
		int64_t predicted = pagerow_predicted(part->t, column, part->s, i);
		add_signed(&deltas, (int64_t)by_last);
		add_signed(&rests, (int64_t)((uint64_t)v - (uint64_t)predicted));
		last = v;
	}
	bool is_better = rests.is_equal || (!deltas.is_equal && rests.b.n < deltas.b.n);
	buf_add_uleb(to, is_better ? PAGEROW_PREDICTED : PAGEROW_DELTA);
	end_column(to, is_better ? &rests : &deltas);
	buf_release(is_better ? &deltas.b : &rests.b);
}

static void add_part(struct buf *to, const struct part *part)
{
	add_guessed(to, part, part->t->stack, part->s->node);
	add_guessed(to, part, part->t->task, part->s->thread);
	if (part->t->has_tags)
		add_tags(to, part);
	if (part->s->time_ms)
		add_times(to, part);
	for (uint32_t c = 0; c < part->t->nr_columns; c++)
		add_values(to, part, c);
}

/* A row is taken from the first stream that has it: by row of each table, 1: taken. */
static void take_rows(struct pagefile_stream *own, uint8_t **taken, const struct profile *p,
		      const struct pagefile_stream *s)
{
	uint8_t *table = xcalloc(s->n, 1);
	*own = *s;
	own->table = table;
	for (size_t i = 0; i < s->n; i++) {
		size_t t = s->table[i];
		if (!t || t > p->tables.n || s->source[i] >= p->tables.p[t - 1].n ||
		    taken[t - 1][s->source[i]])
			continue;
		taken[t - 1][s->source[i]] = 1;
		table[i] = (uint8_t)t;
	}
}

static void add_stream(struct buf *to, struct profile *p, const struct pagefile_stream *s,
		       uint64_t start_ns)
{
	struct column_buf c = {0};
	uint8_t has[UINT8_MAX + 1] = {0};
	buf_add_uleb(to, s->n);
	buf_add_uleb(to, (s->time_ms ? PAGEROW_TIMES : 0u) | (s->state ? PAGEROW_STATES : 0u));
	for (size_t i = 0; i < s->n; i++) {
		add_value(&c, s->table[i]);
		has[s->table[i]] = 1;
	}
	end_column(to, &c);
	for (unsigned t = 1; t <= UINT8_MAX; t++) {
		const struct part part = {.s = s,
					  .t = has[t] ? &p->tables.p[t - 1] : NULL,
					  .table = (uint8_t)t,
					  .start_ns = start_ns};
		if (has[t])
			add_part(to, &part);
	}
}

/* Leaves the rows that no stream has. */
static void remove_rows(struct table *t, const uint8_t *taken)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (taken[i])
			continue;
		t->time_ns[n] = t->time_ns[i];
		t->stack[n] = t->stack[i];
		t->task[n] = t->task[i];
		memmove(t->values + n * t->nr_columns, t->values + i * t->nr_columns,
			t->nr_columns * sizeof(*t->values));
		if (t->has_tags)
			t->tag[n] = t->tag[i];
		n++;
	}
	t->n = n;
}

static void forget_cpus(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->cpu[i] = -1;
}

/* Only the chains of slow calls need the single waits. */
static void drop_intervals(struct profile *p)
{
	bool has_spans = tables_has_rows(p, TABLE_SLOWEST_SPANS);
	vec_foreach(t, &p->tables)
		if (t->id == TABLE_INTERVALS && !has_spans)
			t->n = 0;
}

int pagefile_make(struct buf *recording, struct buf *rows, const struct profile *from,
		  const struct pagefile_stream *streams, size_t nr, uint64_t start_ns,
		  const char *name, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = profile_copy(from, PROFILE_COPY_NAMES);
	if (!profile_get_fact(p, FACT_PAGE_OF)) /* else a page is made from a page */
		profile_fact(p, FACT_PAGE_OF, name ? name : "");
	drop_intervals(p);
	uint8_t **taken = xcalloc(p->tables.n, sizeof(*taken));
	for (size_t t = 0; t < p->tables.n; t++)
		taken[t] = xcalloc(p->tables.p[t].n, 1);
	buf_add_str(rows, PAGEROW_MAGIC);
	buf_add_uleb(rows, start_ns);
	buf_add_uleb(rows, nr);
	for (size_t i = 0; i < nr; i++) {
		struct pagefile_stream own;
		take_rows(&own, taken, p, &streams[i]);
		add_stream(rows, p, &own, start_ns);
		free((void *)own.table);
	}
	for (size_t t = 0; t < p->tables.n; t++) {
		remove_rows(&p->tables.p[t], taken[t]);
		forget_cpus(&p->tables.p[t]);
		free(taken[t]);
	}
	free(taken);
	const char *kind = profile_get_fact(p, FACT_KIND);
	return assayfile_write(recording, p, kind ? kind : "cpu", err);
}
