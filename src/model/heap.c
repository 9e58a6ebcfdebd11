/* Size classes and slices of time; see heap.h. */
#include "base/base.h"
#include "model/heap.h"

#include "model/facts.h"
#include "model/profile.h"
#include "model/tables.h"

#define LINEAR      64 /* one class per byte below this size */
#define LINEAR_LOG2 6
#define PARTS_LOG2  3 /* log2 of the number of classes per power of two */

uint16_t heap_size_class(uint64_t nr_bytes)
{
	if (nr_bytes < LINEAR)
		return (uint16_t)(nr_bytes + 1);
	unsigned log2 = 63 - (unsigned)__builtin_clzll(nr_bytes);
	unsigned part = (unsigned)(nr_bytes >> (log2 - PARTS_LOG2)) & ((1u << PARTS_LOG2) - 1);
	return (uint16_t)(LINEAR + 1 + ((log2 - LINEAR_LOG2) << PARTS_LOG2) + part);
}

uint64_t heap_class_min(uint16_t size_class)
{
	if (size_class <= LINEAR)
		return size_class ? size_class - 1u : 0;
	unsigned i = size_class - (LINEAR + 1u);
	unsigned log2 = LINEAR_LOG2 + (i >> PARTS_LOG2);
	uint64_t part = i & ((1u << PARTS_LOG2) - 1);
	return log2 > 63 ? 0 : ((uint64_t)1 << log2) + (part << (log2 - PARTS_LOG2));
}

/* ---- slices ------------------------------------------------------------------------------- */

#define SLICE_FIRST_LOG2 20 /* about 1 ms */
#define SLICE_LONG_NS    500000000u
#define SLICES_LONG_FROM 4000000000u
#define SECOND_NS        1000000000u
#define AGES_MAX         1000 /* rows of a site */

static uint64_t slice_width(uint64_t ns)
{
	if (ns >= SLICES_LONG_FROM)
		return SLICE_LONG_NS;
	unsigned log2 = 63 - (unsigned)__builtin_clzll(ns | 1);
	return (uint64_t)1 << MAX(log2, SLICE_FIRST_LOG2 + PARTS_LOG2) >> PARTS_LOG2;
}

uint64_t heap_slice_start(uint64_t ns)
{
	return ns - ns % slice_width(ns);
}

uint64_t heap_slice_end(uint64_t ns)
{
	uint64_t end = heap_slice_start(ns) + slice_width(ns);
	return ns < SLICES_LONG_FROM ? MIN(end, (uint64_t)SLICES_LONG_FROM) : end;
}

struct heap_slices heap_slices_of(const struct profile *p)
{
	if (!profile_get_fact(p, FACT_HEAP_SLICES))
		return (struct heap_slices){0};
	return (struct heap_slices){p->start_ns + profile_get_fact_nr(p, FACT_HEAP_SLICES)};
}

uint64_t heap_slices_end(const struct heap_slices *s, uint64_t time_ns)
{
	if (!s->first_ns)
		return time_ns + SECOND_NS;
	return time_ns < s->first_ns ? s->first_ns
				     : s->first_ns + heap_slice_end(time_ns - s->first_ns);
}

void heap_slices_set(struct profile *p, uint64_t first_ns)
{
	profile_factf(p, FACT_HEAP_SLICES, "%" PRIu64, first_ns - MIN(p->start_ns, first_ns));
	profile_fact_nr(p, FACT_HEAP_TICK, HEAP_TICK_NS);
}

const char *heap_time_unit(const struct profile *p)
{
	const char *unit = profile_get_fact(p, FACT_MASSIF_UNIT);
	if (!unit || !strcmp(unit, "ms"))
		return NULL;
	return !strcmp(unit, "i")   ? "instructions"
	       : !strcmp(unit, "B") ? "allocated bytes"
				    : "ticks";
}

struct num_text heap_time_text(const struct profile *p, uint64_t ns)
{
	const char *unit = heap_time_unit(p);
	return unit ? num_noun(ns, unit) : num_ns(ns);
}

/* ---- ages --------------------------------------------------------------------------------- */

static uint64_t step_of(uint64_t passed_ns, uint64_t tick_ns)
{
	return (passed_ns / tick_ns / AGES_MAX + 1) * tick_ns;
}

uint64_t heap_age_step(uint64_t passed_ns)
{
	return step_of(passed_ns, HEAP_TICK_NS);
}

uint64_t heap_age_step_of(const struct profile *p)
{
	uint64_t passed_ns = p->end_ns > p->start_ns ? p->end_ns - p->start_ns : 0;
	uint64_t tick_ns = profile_get_fact_nr(p, FACT_HEAP_TICK);
	return step_of(passed_ns, tick_ns ? tick_ns : SECOND_NS);
}

static bool has_detail(const struct profile *p, const struct table *t, size_t row,
		       const char *detail)
{
	const struct tag *tag = t->has_tags ? &p->tags.p[t->tag[row]] : NULL;
	return tag && tag->detail && !strcmp(profile_text(p, tag->detail), detail);
}

bool heap_is_freed_by_end(const struct profile *p, const struct table *freed, size_t row)
{
	return has_detail(p, freed, row, HEAP_FREED_BY_END) || heap_is_freed_by_kill(p, freed, row);
}

bool heap_is_freed_by_kill(const struct profile *p, const struct table *freed, size_t row)
{
	return has_detail(p, freed, row, HEAP_FREED_BY_KILL);
}

/* ---- levels ------------------------------------------------------------------------------- */

const struct table *heap_levels_of(const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_HEAP_LEVEL);
	if (!t || t->nr_columns <= HEAP_BYTES || profile_get_fact_nr(p, FACT_HEAP_SAMPLING))
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		if (p->tasks.p[t->task[i]].pid != p->tasks.p[t->task[0]].pid)
			return NULL;
	return t;
}
