/* Reports: memory, tables, notes; see report.h. */
#include "base/base.h"
#include "analyze/report.h"

#include <math.h>

#include "base/mem.h"
#include "base/text/num.h"

#define TEXTS_MAX 8

static const struct {
	const char *name;
	enum unit unit;
	enum cell_form form;
} kinds[] = {
	[CELL_TEXT] = {"text"},
	[CELL_COUNT] = {"count"},
	[CELL_NS] = {"ns", UNIT_NS},
	[CELL_BYTES] = {"bytes", UNIT_BYTES},
	[CELL_PERCENT] = {"percent"},
	[CELL_FLOAT] = {"float"},
	[CELL_ID] = {"id"},
	[CELL_BYTES_ESTIMATE] = {"bytes", UNIT_BYTES, CELL_ESTIMATE},
	[CELL_COUNT_ESTIMATE] = {"count", UNIT_COUNT, CELL_ESTIMATE},
	[CELL_NS_ESTIMATE] = {"ns", UNIT_NS, CELL_ESTIMATE},
	[CELL_BYTES_CHANGE] = {"bytes", UNIT_BYTES, CELL_CHANGE},
	[CELL_COUNT_CHANGE] = {"count", UNIT_COUNT, CELL_CHANGE},
	[CELL_NS_CHANGE] = {"ns", UNIT_NS, CELL_CHANGE},
};

enum cell_form cell_form(enum cell_kind kind)
{
	return kinds[kind].form;
}

enum unit cell_unit(enum cell_kind kind)
{
	return kinds[kind].unit;
}

const char *cell_name(enum cell_kind kind)
{
	return kinds[kind].name;
}

bool cell_is_known(const struct report_column *c, const union cell *v)
{
	switch (c->kind) {
	case CELL_TEXT:
		return true;
	case CELL_COUNT:
		return v->u != CELL_NO_COUNT;
	case CELL_NS:
		return v->u != CELL_NS_NONE;
	case CELL_BYTES:
		return v->u != CELL_NO_BYTES;
	case CELL_ID:
		return v->u != CELL_NO_ID;
	case CELL_PERCENT:
	case CELL_FLOAT:
		return isfinite(v->d);
	case CELL_BYTES_ESTIMATE:
	case CELL_COUNT_ESTIMATE:
	case CELL_NS_ESTIMATE:
		return v->estimate.value != CELL_NO_ESTIMATE;
	case CELL_BYTES_CHANGE:
	case CELL_COUNT_CHANGE:
	case CELL_NS_CHANGE:
		return v->estimate.change != CELL_NO_CHANGE;
	}
	return false;
}

struct report *report_new(void)
{
	struct report *r = xcalloc(1, sizeof(*r));
	(void)intern_add(&r->names, "", 0); /* id 0 */
	r->title = "";
	return r;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	vec_release(&r->tables);
	vec_release(&r->series);
	vec_release(&r->trees);
	vec_release(&r->notes);
	vec_release(&r->findings);
	vec_release(&r->ranks);
	vec_release(&r->details);
	vec_release(&r->hints);
	vec_release(&r->facts);
	vec_release(&r->further_facts);
	intern_release(&r->names);
	arena_release(&r->arena);
	free(r);
}

void report_free_p(struct report **r)
{
	report_free(*r);
}

struct report_table *report_add_table_of(struct report *r, const char *key, const char *title,
					 const struct report_column *columns, size_t nr_columns,
					 unsigned bits)
{
	struct report_table *t = vec_add(&r->tables);
	t->key = arena_strdup(&r->arena, key);
	t->title = arena_strdup(&r->arena, title);
	t->columns = arena_alloc(&r->arena, nr_columns * sizeof(*columns));
	for (size_t i = 0; i < nr_columns; i++) {
		if (!columns[i].when || columns[i].when & bits)
			t->columns[t->nr_columns++] = columns[i];
		else
			t->hidden |= 1ull << i;
	}
	return t;
}

struct report_table *report_add_table(struct report *r, const char *key, const char *title,
				      const struct report_column *columns, size_t nr_columns)
{
	return report_add_table_of(r, key, title, columns, nr_columns, 0);
}

/* The capacity doubles: cells are moved when the number of rows is a power of two. */
static void grow_rows(struct report *r, struct report_table *t)
{
	size_t n = t->nr_rows;
	if (n & (n - 1) || (n && n < 16))
		return;
	size_t cap = n ? n * 2 : 16;
	union cell *to = arena_alloc(&r->arena, cap * t->nr_columns * sizeof(*to));
	if (n)
		memcpy(to, t->cells, n * t->nr_columns * sizeof(*to));
	t->cells = to;
}

void report_add_row(struct report *r, struct report_table *t, const union cell *cells)
{
	grow_rows(r, t);
	union cell *row = t->cells + t->nr_rows * t->nr_columns;
	uint64_t hidden = t->hidden;
	for (size_t i = 0; i < t->nr_columns; i++, cells++) {
		for (; hidden & 1; hidden >>= 1)
			cells++;
		hidden >>= 1;
		row[i] = *cells;
		if (t->columns[i].kind == CELL_TEXT)
			row[i].text = arena_strdup(&r->arena, cells->text ? cells->text : "");
	}
	t->nr_rows++;
	t->nr_rows_total = MAX(t->nr_rows_total, t->nr_rows);
}

void report_add_texts(struct report *r, struct report_table *t, ...)
{
	union cell cells[TEXTS_MAX];
	va_list ap;
	ASSERT(t->nr_columns <= ARRAY_LEN(cells));
	va_start(ap, t);
	for (size_t i = 0; i < t->nr_columns; i++)
		cells[i].text = va_arg(ap, const char *);
	va_end(ap);
	report_add_row(r, t, cells);
}

void report_add_text_column(struct report *r, struct report_table *t,
			    const struct report_column *column, const char *const *texts)
{
	size_t n = t->nr_columns;
	size_t more = n + 1;
	struct report_column *columns = arena_alloc(&r->arena, more * sizeof(*columns));
	union cell *cells = arena_calloc(&r->arena, t->nr_rows * more, sizeof(*cells));
	memcpy(columns, t->columns, n * sizeof(*columns));
	columns[n] = *column;
	for (size_t i = 0; i < t->nr_rows; i++) {
		memcpy(&cells[i * more], &t->cells[i * n], n * sizeof(*cells));
		cells[i * more + n].text = texts[i];
	}
	t->columns = columns;
	t->cells = cells;
	t->nr_columns = more;
}

void report_note(struct report *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	vec_foreach(note, &r->notes) /* parts of a page may say the same */
		if (!strcmp(*note, text))
			return;
	vec_push(&r->notes, arena_strdup(&r->arena, text));
}

void report_finding(struct report *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	vec_push(&r->notes, arena_strdup(&r->arena, text));
	vec_push(&r->findings, *vec_last(&r->notes));
	vec_push(&r->ranks, RANK_WHOLE);
}

void report_rank(struct report *r, double rank)
{
	size_t at = r->findings.n - 1;
	const char *own = r->findings.p[at];
	for (; at && r->ranks.p[at - 1] < rank; at--) {
		r->findings.p[at] = r->findings.p[at - 1];
		r->ranks.p[at] = r->ranks.p[at - 1];
	}
	r->findings.p[at] = own;
	r->ranks.p[at] = rank;
}

void report_detail(struct report *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	report_note(r, "%s", text);
	vec_push(&r->details, *vec_last(&r->notes));
}

const char *report_unnamed(struct arena *a, const struct report *r)
{
	const struct report_frames *f = &r->frames;
	if (!(f->unnamed > 0))
		return NULL;
	double pct = 100 * f->unnamed / f->all;
	return arena_fmt(a, "unsymbolized frames: %s %% of all frames, by weight%s%s",
			 pct < 0.1 ? "<0.1" : num_pct(pct).s, f->module ? ", most in " : "",
			 f->module ? f->module : "");
}

void report_hint(struct report *r, const struct report_hint *h)
{
	struct report_hint copy = *h;
	if (h->input)
		copy.input = arena_strdup(&r->arena, h->input);
	for (size_t i = 0; i < HINT_OPTIONS_MAX; i++)
		if (h->options[i].value)
			copy.options[i].value = arena_strdup(&r->arena, h->options[i].value);
	vec_push(&r->hints, copy);
}

void report_fact_text(struct report *r, const char *key, const char *value)
{
	str_id k = intern_add_str(&r->names, key);
	str_id v = intern_add_str(&r->names, value);
	vec_foreach(f, &r->facts) {
		if (f->key == k) {
			f->value = v;
			return;
		}
	}
	vec_push(&r->facts, (struct fact){k, v});
}

void report_fact(struct report *r, enum fact_id id, const char *value)
{
	report_fact_text(r, fact_key(id), value);
}

void report_fact_duration(struct report *r, uint64_t ns)
{
	if (ns)
		report_fact(r, FACT_DURATION, num_ns(ns).s);
}

void report_facts(struct report *r, const struct profile *p)
{
	vec_foreach(f, &p->facts)
		report_fact_text(r, profile_text(p, f->key), profile_text(p, f->value));
}

const char *report_get_fact(const struct report *r, enum fact_id id)
{
	vec_foreach(f, &r->facts)
		if (!strcmp(intern_str(&r->names, f->key), fact_key(id)))
			return intern_str(&r->names, f->value);
	return NULL;
}
