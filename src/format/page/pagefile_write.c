/* Writes the blocks that make a page a recording; see pagefile.h. */
#include "base/base.h"
#include "format/page/pagefile.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/numcolumn.h"
#include "format/assay/assayfile.h"
#include "format/page/pagerow.h"

#define NS_PER_MS 1000000ull

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
	CLEANUP(numcolumn_release) struct numcolumn codes = {0};
	CLEANUP(numcolumn_release) struct numcolumn fresh = {0};
	uint32_t last = 0;
	EACH_ROW(part, i)
	{
		bool is_new;
		uint32_t value = column[part->s->source[i]];
		numcolumn_add(&codes, guess_code(&g, keys[i], value, &is_new));
		if (!is_new)
			continue;
		numcolumn_add_signed(&fresh, (int64_t)value - last);
		last = value;
	}
	numcolumn_end(to, &codes);
	numcolumn_end(to, &fresh);
	guess_release(&g);
}

/* Keys of tags are numbered, so that they fit a column. */
static void add_tags(struct buf *to, const struct part *part)
{
	struct guess g = {0};
	struct pagerow_keys keys = {0};
	CLEANUP(numcolumn_release) struct numcolumn codes = {0};
	CLEANUP(numcolumn_release) struct numcolumn fresh = {0};
	uint32_t last = 0;
	EACH_ROW(part, i)
	{
		bool is_new;
		uint32_t value = part->t->tag[part->s->source[i]];
		uint64_t key = pagerow_tag_key(&keys, part->s, i);
		numcolumn_add(&codes, guess_code(&g, key, value, &is_new));
		if (!is_new)
			continue;
		numcolumn_add_signed(&fresh, (int64_t)value - last);
		last = value;
	}
	numcolumn_end(to, &codes);
	numcolumn_end(to, &fresh);
	guess_release(&g);
	pagerow_keys_release(&keys);
}

/* What is left of the time after whole milliseconds: of slices exactly, of instants dropped. */
static void add_times(struct buf *to, const struct part *part)
{
	CLEANUP(numcolumn_release) struct numcolumn c = {0};
	bool is_exact = part->t->time_kind == TABLE_TIME_SLICE;
	EACH_ROW(part, i)
	{
		uint64_t ms_ns = part->start_ns + part->s->time_ms[i] * NS_PER_MS;
		numcolumn_add_signed(
			&c, is_exact ? (int64_t)(part->t->time_ns[part->s->source[i]] - ms_ns) : 0);
	}
	numcolumn_end(to, &c);
}

/* The values less what the stream says about them. */
static void add_rests(struct numcolumn *to, const struct part *part, uint32_t column)
{
	EACH_ROW(part, i)
	{
		int64_t v = part->t->values[part->s->source[i] * part->t->nr_columns + column];
		int64_t predicted = pagerow_predicted(part->t, column, part->s, i);
		numcolumn_add_signed(to, (int64_t)((uint64_t)v - (uint64_t)predicted));
	}
}

static void add_deltas(struct numcolumn *to, const struct part *part, uint32_t column)
{
	int64_t last = 0;
	EACH_ROW(part, i)
	{
		int64_t v = part->t->values[part->s->source[i] * part->t->nr_columns + column];
		numcolumn_add_signed(to, (int64_t)((uint64_t)v - (uint64_t)last));
		last = v;
	}
}

/* In the mode that takes less room. */
static void add_values(struct buf *to, const struct part *part, uint32_t column)
{
	CLEANUP(numcolumn_release) struct numcolumn rests = {0};
	CLEANUP(numcolumn_release) struct numcolumn deltas = {0};
	add_rests(&rests, part, column);
	if (rests.is_varied)
		add_deltas(&deltas, part, column);
	bool is_better = !rests.is_varied || (deltas.is_varied && rests.b.n < deltas.b.n);
	buf_add_uleb(to, is_better ? PAGEROW_PREDICTED : PAGEROW_DELTA);
	numcolumn_end(to, is_better ? &rests : &deltas);
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
	CLEANUP(numcolumn_release) struct numcolumn c = {0};
	uint8_t has[UINT8_MAX + 1] = {0};
	buf_add_uleb(to, s->n);
	buf_add_uleb(to, (s->time_ms ? PAGEROW_TIMES : 0u) | (s->state ? PAGEROW_STATES : 0u));
	for (size_t i = 0; i < s->n; i++) {
		numcolumn_add(&c, s->table[i]);
		has[s->table[i]] = 1;
	}
	numcolumn_end(to, &c);
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
