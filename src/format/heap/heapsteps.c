/* Memory tables for writers of heap files; see heapsteps.h. */
#include "base/base.h"
#include "format/heap/heapsteps.h"

#include <errno.h>

#include "base/mem.h"
#include "model/heap.h"
#include "model/tables.h"

struct builder {
	struct heapsteps *r;
	const struct profile *p;
	const struct heapwrite_options *options;
	struct heap_slices slices;
};

uint64_t heapsteps_since(const struct profile *p, uint64_t time_ns)
{
	return time_ns > p->start_ns ? time_ns - p->start_ns : 0;
}

static uint32_t key_of(struct builder *b, const struct table *t, size_t row)
{
	stack_id stack = t->stack[row];
	if (b->options->trim)
		stack = b->options->trim(b->options->trim_ctx, stack);
	uint16_t size_class = t->has_tags ? b->p->tags.p[t->tag[row]].size_class : 0;
	bool is_new;
	uint32_t *idx = map_put(&b->r->by_key, (uint64_t)stack << 16 | size_class, &is_new);
	if (is_new) {
		*idx = (uint32_t)b->r->keys.n;
		vec_push(&b->r->keys, (struct heap_key){stack, size_class});
	}
	return *idx;
}

static int64_t value(const struct table *t, size_t row, uint32_t column)
{
	int64_t v = column < t->nr_columns ? t->values[row * t->nr_columns + column] : 0;
	return MAX(v, 0);
}

/* Rows with bytes but without a number of blocks (massif's trees) count as one block. */
static struct heap_amount amount(const struct table *t, size_t row, uint32_t column)
{
	struct heap_amount a = {value(t, row, column), value(t, row, column + 1)};
	if (!a.nr && a.nr_bytes)
		a.nr = 1;
	return a;
}

static void add(struct heap_amount *to, struct heap_amount a)
{
	if (__builtin_add_overflow(to->nr, a.nr, &to->nr))
		to->nr = INT64_MAX;
	if (__builtin_add_overflow(to->nr_bytes, a.nr_bytes, &to->nr_bytes))
		to->nr_bytes = INT64_MAX;
}

/* A step without amounts in the slice of a row. */
static struct heap_step step_at(const struct builder *b, uint64_t time_ns)
{
	uint64_t at = MAX(time_ns, b->p->start_ns);
	return (struct heap_step){.begin_ns = heapsteps_since(b->p, at),
				  .end_ns = heapsteps_since(b->p, heap_slices_end(&b->slices, at))};
}

static void add_table(struct builder *b, const struct table *t, bool is_freed)
{
	for (size_t i = 0; t && i < t->n; i++) {
		struct heap_step s = step_at(b, t->time_ns[i]);
		s.key = key_of(b, t, i);
		if (is_freed) {
			s.freed = amount(t, i, HEAP_BLOCKS);
		} else {
			s.allocated = amount(t, i, HEAP_ALLOCATED_CALLS);
			if (t->nr_columns > HEAP_ALLOCATED_TEMPORARY_BYTES)
				s.temporary = amount(t, i, HEAP_ALLOCATED_TEMPORARY);
		}
		vec_push(&b->r->steps, s);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct heap_step *x = a;
	const struct heap_step *y = b;
	return COMPARE(x->end_ns, y->end_ns) ?: COMPARE(x->key, y->key);
}

/* Merges rows of several threads: one step per slice and key. */
static void merge_steps(struct heapsteps *r)
{
	if (!r->steps.n)
		return;
	qsort(r->steps.p, r->steps.n, sizeof(*r->steps.p), by_time);
	size_t nr = 0;
	for (size_t i = 0; i < r->steps.n; i++) {
		struct heap_step *s = &r->steps.p[i];
		if (!nr || by_time(&r->steps.p[nr - 1], s) != 0) {
			r->steps.p[nr++] = *s;
			continue;
		}
		struct heap_step *to = &r->steps.p[nr - 1];
		add(&to->allocated, s->allocated);
		add(&to->temporary, s->temporary);
		add(&to->freed, s->freed);
	}
	r->steps.n = nr;
}

static struct heap_amount *by_key_of(struct builder *b, const struct table *t)
{
	/* add the keys of this table first, so that the array is large enough */
	for (size_t i = 0; i < t->n; i++)
		(void)key_of(b, t, i);
	struct heap_amount *sums = xcalloc(MAX(b->r->keys.n, (size_t)1), sizeof(*sums));
	for (size_t i = 0; i < t->n; i++)
		add(&sums[key_of(b, t, i)], amount(t, i, HEAP_BLOCKS));
	return sums;
}

/* Without times of frees: blocks that are not live are freed in the slice of their allocation. */
static void free_not_live(struct builder *b, const struct table *live)
{
	CLEANUP(free_p) struct heap_amount *left = by_key_of(b, live);
	for (size_t i = b->r->steps.n; i--;) {
		struct heap_step *s = &b->r->steps.p[i];
		struct heap_amount *l = &left[s->key];
		struct heap_amount kept = {MIN(l->nr, s->allocated.nr),
					   MIN(l->nr_bytes, s->allocated.nr_bytes)};
		/* blocks and bytes do not match: nothing of this step is live */
		if ((kept.nr == s->allocated.nr && kept.nr_bytes != s->allocated.nr_bytes) ||
		    (!kept.nr && kept.nr_bytes))
			kept = (struct heap_amount){0};
		s->freed.nr = s->allocated.nr - kept.nr;
		s->freed.nr_bytes = s->allocated.nr_bytes - kept.nr_bytes;
		l->nr -= kept.nr;
		l->nr_bytes -= kept.nr_bytes;
	}
	/* live blocks were allocated, even if no allocation was recorded */
	for (size_t i = 0; i < b->r->keys.n; i++)
		if (left[i].nr || left[i].nr_bytes) {
			left[i].nr = MAX(left[i].nr, (int64_t)1);
			struct heap_step s = step_at(b, 0);
			s.key = (uint32_t)i;
			s.allocated = left[i];
			vec_push(&b->r->steps, s);
		}
	merge_steps(b->r);
}

static void take_peak(struct builder *b, const struct table *peak)
{
	b->r->peak = by_key_of(b, peak);
	struct heap_amount sum = {0};
	for (size_t i = 0; i < b->r->keys.n; i++)
		add(&sum, b->r->peak[i]);
	b->r->peak_bytes = sum.nr_bytes;
	b->r->peak_ns = peak->n ? heapsteps_since(b->p, peak->time_ns[0]) : 0;
}

static const struct table *rows_of(const struct profile *p, enum table_id kind)
{
	const struct table *t = tables_find(p, kind);
	return t && t->n && t->nr_columns > HEAP_BYTES ? t : NULL;
}

int heapsteps_init(struct heapsteps *r, const struct profile *p,
		   const struct heapwrite_options *options, const char *hint, struct err *err)
{
	*r = (struct heapsteps){.end_ns = heapsteps_since(p, p->end_ns)};
	struct builder b = {.r = r, .p = p, .options = options, .slices = heap_slices_of(p)};
	const struct table *allocated = rows_of(p, TABLE_ALLOCATED);
	const struct table *freed = rows_of(p, TABLE_FREED);
	const struct table *live = rows_of(p, TABLE_LIVE);
	const struct table *peak = rows_of(p, TABLE_PEAK);
	add_table(&b, allocated ? allocated : live, false);
	if (allocated)
		add_table(&b, freed, true);
	merge_steps(r);
	if (allocated && !freed && live)
		free_not_live(&b, live);
	/* "live" alone has no history that could have a peak */
	if (peak && allocated)
		take_peak(&b, peak);
	if (r->steps.n)
		return 0;
	err_set(err, -ENOENT, "no memory in this profile");
	return err_hint(err, "%s", hint);
}

void heapsteps_release(struct heapsteps *r)
{
	vec_release(&r->keys);
	vec_release(&r->steps);
	map_release(&r->by_key);
	free(r->peak);
}
