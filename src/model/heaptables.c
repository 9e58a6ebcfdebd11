/* Shapes of the tables of memory; see heaptables.h. */
#include "base/base.h"
#include "model/heaptables.h"

#include "model/heap.h"

struct shape_column {
	const char *name;
	uint8_t unit;      /* enum unit */
	bool is_estimated; /* scaled up where the source samples */
};

struct shape {
	const char *event;
	uint8_t time_kind; /* enum table_time */
	bool is_level;     /* rows are not added up: their greatest counts */
	struct shape_column columns[HEAP_MEMORY_NR];
};

#define BLOCK_COLUMNS(count)                                                             \
	{                                                                                \
		{count, UNIT_COUNT, true}, {"bytes", UNIT_BYTES, true},                  \
			{"samples", UNIT_COUNT, false}, {"variance", UNIT_COUNT, false}, \
	}

static const struct shape shapes[HEAP_KIND_NR] = {
	[HEAP_KIND_ALLOCATED] = {HEAP_TABLE_ALLOCATED,
				 TABLE_SLICE,
				 false,
				 {{"allocations", UNIT_COUNT, true},
				  {"bytes", UNIT_BYTES, true},
				  {"samples", UNIT_COUNT, false},
				  {"variance", UNIT_COUNT, false},
				  {"temporary", UNIT_COUNT, true},
				  {"temporary bytes", UNIT_BYTES, true}}},
	[HEAP_KIND_FREED] = {HEAP_TABLE_FREED, TABLE_SLICE, false, BLOCK_COLUMNS("frees")},
	[HEAP_KIND_OLDER] = {HEAP_TABLE_OLDER, TABLE_SLICE, false, BLOCK_COLUMNS("frees")},
	[HEAP_KIND_LIVE] = {HEAP_TABLE_LIVE, TABLE_SLICE, false, BLOCK_COLUMNS("blocks")},
	[HEAP_KIND_PEAK] = {HEAP_TABLE_PEAK, TABLE_SLICE, false, BLOCK_COLUMNS("blocks")},
	[HEAP_KIND_SNAPSHOTS] = {HEAP_TABLE_SNAPSHOTS, TABLE_INSTANT, false,
				 BLOCK_COLUMNS("blocks")},
	[HEAP_KIND_MAPPED] = {HEAP_TABLE_MAPPED,
			      TABLE_SLICE,
			      false,
			      {{"calls", UNIT_COUNT, false},
			       {"bytes", UNIT_BYTES, false},
			       {"bytes unmapped", UNIT_BYTES, false}}},
	[HEAP_KIND_GROWTH] = {HEAP_TABLE_GROWTH,
			      TABLE_SLICE,
			      false,
			      {{"faults", UNIT_COUNT, true}, {"bytes", UNIT_BYTES, true}}},
	[HEAP_KIND_MEMORY] = {HEAP_TABLE_MEMORY,
			      TABLE_INSTANT,
			      true,
			      {{"RSS", UNIT_BYTES, false},
			       {"PSS", UNIT_BYTES, false},
			       {"anonymous", UNIT_BYTES, false},
			       {"file", UNIT_BYTES, false},
			       {"shared", UNIT_BYTES, false},
			       {"swap", UNIT_BYTES, false},
			       {"stacks", UNIT_BYTES, false},
			       {"virtual", UNIT_BYTES, false},
			       {"live", UNIT_BYTES, false}}},
};

const char *heap_table_name(enum heap_table_kind kind)
{
	return shapes[kind].event;
}

uint32_t heap_table(struct profile *p, enum heap_table_kind kind, unsigned flags)
{
	const struct shape *s = &shapes[kind];
	struct table t = {.event = profile_cstr(p, s->event),
			  .time_kind = s->time_kind,
			  .weight_column = kind == HEAP_KIND_MEMORY ? 0 : HEAP_BYTES,
			  .has_tags = true};
	bool is_short = kind == HEAP_KIND_ALLOCATED && (flags & HEAP_TABLE_SHORT);
	size_t nr_max = is_short ? HEAP_ALLOCATED_TEMPORARY : HEAP_MEMORY_NR;
	for (size_t i = 0; i < nr_max && s->columns[i].name; i++) {
		const struct shape_column *c = &s->columns[i];
		bool is_estimate = c->is_estimated && (flags & HEAP_TABLE_ESTIMATE);
		t.columns[t.nr_columns++] = (struct column){.name = profile_cstr(p, c->name),
							    .unit = c->unit,
							    .is_level = s->is_level,
							    .is_estimate = is_estimate};
	}
	return profile_table(p, &t);
}

const struct table *heap_table_find(const struct profile *p, enum heap_table_kind kind)
{
	vec_foreach(t, &p->tables)
		if (!strcmp(profile_text(p, t->event), shapes[kind].event))
			return t;
	return NULL;
}
