/* Scaling of heap samples to exact counts; see heapcalibrate.h. */
#include "base/base.h"
#include "model/heapcalibrate.h"

#include <math.h>

#include "base/sv.h"
#include "heap_count.h"
#include "model/heap.h"
#include "model/profile.h"
#include "model/tables.h"

#define NR_MAX ((double)(INT64_MAX / 2))

/* The sums of a class, and what its sampled rows are multiplied by. */
struct size_class {
	double nr; /* exact */
	double nr_bytes;
	double recorded_nr; /* in rows of blocks that were all recorded */
	double recorded_bytes;
	double sampled_nr; /* in the other rows: estimates */
	double sampled_bytes;
	double scale_nr;
	double scale_bytes;
};

bool heapcalibrate_is_exact(const struct profile *p)
{
	return profile_get_fact(p, FACT_HEAP_SIZES) != NULL;
}

bool heap_is_not_sampled(const struct profile *p, stack_id stack)
{
	const struct location *l = &p->locations.p[p->stacks.p[stack].loc];
	return stack && p->modules.p[l->module].kind == MODULE_PSEUDO && l->nr_frames &&
	       !strcmp(profile_frame_name(p, &p->frames.p[l->first_frame]), HEAP_NOT_SAMPLED);
}

/* ---- exact counts ---------------------------------------------------------------------------- */

/* The counts are from the target's memory: the bytes must fit the class. */
static void set_exact(struct size_class *c, unsigned i, uint64_t nr, uint64_t nr_bytes)
{
	double lowest = i ? ldexp(1, (int)i + 3) : 0;
	double highest = i + 1 < HEAP_COUNT_CLASSES ? ldexp(1, (int)i + 4) : NR_MAX;
	c->nr = MIN((double)nr, NR_MAX);
	c->nr_bytes = MIN(MAX((double)nr_bytes, lowest * c->nr), highest * c->nr);
	c->nr_bytes = MIN(c->nr_bytes, NR_MAX);
}

static bool parse(struct size_class *to, const struct profile *p)
{
	const char *text = profile_get_fact(p, FACT_HEAP_SIZES);
	struct sv rest = sv_from_str(text ? text : "");
	uint64_t v[3];
	if (!rest.n)
		return false;
	while (rest.n) {
		struct sv word = sv_split(&rest, ' ');
		for (unsigned i = 0; i < ARRAY_LEN(v); i++)
			if (!sv_to_u64(sv_split(&word, ':'), &v[i]))
				return false;
		if (v[0] >= HEAP_COUNT_CLASSES)
			return false;
		set_exact(&to[v[0]], (unsigned)v[0], v[1], v[2]);
	}
	return true;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static struct size_class *class_of(struct size_class *classes, const struct profile *p,
				   const struct table *t, size_t row)
{
	uint16_t size = p->tags.p[t->tag[row]].size_class;
	return size ? &classes[heap_count_class(heap_class_min(size))] : NULL;
}

static void sum_rows(struct size_class *classes, const struct profile *p, const struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const int64_t *v = &t->values[i * t->nr_columns];
		struct size_class *c = class_of(classes, p, t, i);
		if (!c)
			continue;
		bool is_sampled = v[HEAP_ALLOCATED_VARIANCE] > 0;
		*(is_sampled ? &c->sampled_nr : &c->recorded_nr) += (double)v[HEAP_ALLOCATED_CALLS];
		*(is_sampled ? &c->sampled_bytes : &c->recorded_bytes) +=
			(double)v[HEAP_ALLOCATED_BYTES];
	}
}

static void set_scales(struct size_class *classes)
{
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		struct size_class *c = &classes[i];
		double nr = MAX(c->nr - c->recorded_nr, 0);
		double nr_bytes = MAX(c->nr_bytes - c->recorded_bytes, 0);
		c->scale_nr = c->sampled_nr > 0 ? nr / c->sampled_nr : 1;
		c->scale_bytes = c->sampled_bytes > 0 ? nr_bytes / c->sampled_bytes : 1;
	}
}

/* Rounds, and carries the rest to the next row, so that sums stay exact. */
static int64_t scaled(int64_t v, double scale, double *carry)
{
	double exact = (double)v * scale + *carry;
	double whole = MIN(MAX(rint(exact), -NR_MAX), NR_MAX);
	*carry = exact - whole;
	return (int64_t)whole;
}

static void scale_rows(struct size_class *classes, const struct profile *p, struct table *t)
{
	double carry[HEAP_COUNT_CLASSES][2] = {0};
	double none = 0;
	if (t->nr_columns <= HEAP_VARIANCE)
		return;
	for (size_t i = 0; i < t->n; i++) {
		int64_t *v = &t->values[i * t->nr_columns];
		const struct size_class *c = class_of(classes, p, t, i);
		if (!c || v[HEAP_VARIANCE] <= 0)
			continue;
		double *rest = carry[c - classes];
		v[HEAP_BLOCKS] = scaled(v[HEAP_BLOCKS], c->scale_nr, &rest[0]);
		v[HEAP_BYTES] = scaled(v[HEAP_BYTES], c->scale_bytes, &rest[1]);
		v[HEAP_VARIANCE] =
			MAX(scaled(v[HEAP_VARIANCE], c->scale_bytes * c->scale_bytes, &none), 1);
		none = 0;
	}
}

/* A process of the capture. */
static task_id any_task(const struct profile *p)
{
	static const enum table_id tables[] = {TABLE_ALLOCATED, TABLE_MEMORY};
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		const struct table *t = tables_find_rows(p, tables[i]);
		if (t)
			return t->task[0];
	}
	return p->tasks.n > 1 ? 1 : 0;
}

/* Adds what no sample was taken of. */
static void add_not_sampled(struct profile *p, uint32_t table, const struct size_class *classes)
{
	stack_id stack = 0;
	task_id task = any_task(p);
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		const struct size_class *c = &classes[i];
		double nr = c->nr - c->recorded_nr;
		if (nr < 1 || c->sampled_nr > 0)
			continue;
		int64_t values[HEAP_ALLOCATED_NR] = {[HEAP_ALLOCATED_CALLS] = (int64_t)rint(nr),
						     [HEAP_ALLOCATED_BYTES] = (int64_t)rint(MAX(
							     c->nr_bytes - c->recorded_bytes, 0))};
		if (!stack)
			stack = profile_stack(p, 0, profile_pseudo_location(p, HEAP_NOT_SAMPLED));
		uint64_t min_bytes = i ? (uint64_t)1 << (i + 3) : 0;
		uint32_t tag =
			profile_tag(p, &(struct tag){.size_class = heap_size_class(min_bytes)});
		profile_tagged_sample(p, table, p->start_ns, stack, task, -1, tag, values);
	}
}

/* Counts of events are those of table "allocated". */
static void correct_losses(struct profile *p, const struct size_class *classes)
{
	double more = 0;
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++)
		if (classes[i].nr > 0)
			more += MAX(classes[i].nr - classes[i].recorded_nr, 0) -
				classes[i].sampled_nr;
	for (enum loss_kind k = LOSS_SEEN; k <= LOSS_WRITTEN; k++)
		p->losses.nr[k] = (uint64_t)MAX(rint((double)p->losses.nr[k] + more), 0);
}

void heapcalibrate(struct profile *p)
{
	static const enum table_id tables[] = {TABLE_ALLOCATED, TABLE_FREED, TABLE_LIVE,
					       TABLE_PEAK};
	struct size_class classes[HEAP_COUNT_CLASSES] = {0};
	if (!parse(classes, p))
		return;
	const struct table *known = tables_find(p, TABLE_ALLOCATED);
	uint32_t allocated = known ? (uint32_t)(known - p->tables.p)
				   : tables_add(p, TABLE_ALLOCATED, TABLES_ESTIMATE);
	sum_rows(classes, p, &p->tables.p[allocated]);
	set_scales(classes);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		vec_foreach(t, &p->tables)
			if (t->id == tables[i])
				scale_rows(classes, p, t);
	correct_losses(p, classes);
	add_not_sampled(p, allocated, classes);
}
