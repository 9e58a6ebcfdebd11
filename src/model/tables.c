/* The table kinds; see tables.h. */
#include "base/base.h"
#include "model/tables.h"

#include "model/heap.h"
#include "model/profile.h"

/* Columns: name, role, unit, flags; omitted ones are 0. */
#define BYTES           "bytes", COLUMN_BYTES, UNIT_BYTES
#define TIME            "time", COLUMN_TIME, UNIT_NS
#define LONGEST         "longest", COLUMN_LONGEST, UNIT_NS, COLUMN_IS_LEVEL
#define MEMORY(name)    name, COLUMN_OTHER, UNIT_BYTES, COLUMN_IS_LEVEL
#define ESTIMATED(name) name, COLUMN_COUNT, UNIT_COUNT, COLUMN_IS_ESTIMATED
#define EST_BYTES       BYTES, COLUMN_IS_ESTIMATED
#define BLOCKS(name)                                 \
	{ESTIMATED(name)}, {EST_BYTES}, {"samples"}, \
	{                                            \
		"variance"                           \
	}

/* Fields of a table with one row per second and tag. */
#define SLICES(the_rank, weight)                                                                 \
	.rank = TABLE_RANK_##the_rank, .time_kind = TABLE_TIME_SLICE, .weight_column = (weight), \
	.has_tags = true
/* The same, for a derived table: its rows count things that another table counts too. */
#define DERIVED(the_rank, weight) SLICES(the_rank, weight), .is_derived = true

static const struct table_kind kinds[TABLE_ID_NR] = {
	[TABLE_SAMPLES] = {.rank = TABLE_RANK_SAMPLES},
	[TABLE_OFF_CPU] = {.key = "off-cpu",
			   SLICES(WAITS, 1),
			   .columns = {{"waits", COLUMN_COUNT}, {TIME}, {LONGEST}}},
	[TABLE_ON_CPU] = {.key = "on-cpu",
			  DERIVED(SIDE, 1),
			  .columns = {{"runs", COLUMN_COUNT}, {TIME}}},
	[TABLE_BLAME] = {.key = "blame",
			 DERIVED(SIDE, 1),
			 .columns = {{"waits", COLUMN_COUNT}, {TIME}}},
	[TABLE_INTERVALS] = {.key = "intervals",
			     .rank = TABLE_RANK_SIDE,
			     .time_kind = TABLE_TIME_INTERVAL,
			     .weight_column = INTERVAL_NS,
			     .has_tags = true,
			     .is_on_request = true,
			     .is_derived = true,
			     .columns = {{"waits", COLUMN_COUNT},
					 {TIME},
					 {"run queue", COLUMN_OTHER, UNIT_NS},
					 {"CPU before", COLUMN_OTHER, UNIT_NS},
					 {"stolen before", COLUMN_OTHER, UNIT_NS}}},
	[TABLE_THREAD_TIME] = {.key = "thread-time"},
	[TABLE_IO] = {.key = "io",
		      SLICES(OTHER, 1),
		      .columns = {{"calls", COLUMN_COUNT}, {BYTES}, {TIME}, {LONGEST}}},
	[TABLE_BLOCK] = {.key = "block",
			 SLICES(OTHER, 1),
			 .columns = {{"requests", COLUMN_COUNT}, {BYTES}, {TIME}, {LONGEST}}},
	[TABLE_FAULTS] = {.key = "faults",
			  SLICES(OTHER, 0),
			  .columns = {{"faults", COLUMN_COUNT}, {TIME}, {LONGEST}}},
	[TABLE_RECLAIM] =
		{.key = "reclaim",
		 SLICES(OTHER, 1),
		 .columns = {{"times", COLUMN_COUNT}, {TIME}, {"pages", COLUMN_PAGES}, {LONGEST}}},
	[TABLE_SPANS] = {.key = "spans",
			 SLICES(OTHER, 1),
			 .columns = {{"calls", COLUMN_COUNT}, {TIME}, {LONGEST}}},
	[TABLE_SPAN_TIME] = {.key = "span-time",
			     DERIVED(OTHER, 1),
			     .columns = {{"calls", COLUMN_COUNT}, {TIME}, {LONGEST}}},
	[TABLE_SLOWEST_SPANS] = {.key = "slowest-spans",
				 DERIVED(OTHER, 1),
				 .columns = {{"calls", COLUMN_COUNT}, {TIME}, {LONGEST}}},
	[TABLE_ALLOCATED] =
		{.key = "allocated",
		 SLICES(OTHER, HEAP_BYTES),
		 .columns = {BLOCKS("allocations"),
			     {"temporary", COLUMN_OTHER, UNIT_COUNT, COLUMN_IS_ESTIMATED},
			     {"temporary bytes", COLUMN_OTHER, UNIT_BYTES, COLUMN_IS_ESTIMATED}}},
	[TABLE_LIVE] = {.key = "live", DERIVED(OTHER, HEAP_BYTES), .columns = {BLOCKS("blocks")}},
	[TABLE_PEAK] = {.key = "peak", DERIVED(OTHER, HEAP_BYTES), .columns = {BLOCKS("blocks")}},
	[TABLE_FREED] = {.key = "freed", DERIVED(OTHER, HEAP_BYTES), .columns = {BLOCKS("frees")}},
	[TABLE_FREED_PREEXISTING] = {.key = "freed-preexisting",
				     .old_key = "freed-older",
				     DERIVED(OTHER, HEAP_BYTES),
				     .columns = {BLOCKS("frees")}},
	[TABLE_GROWTH] = {.key = "growth",
			  SLICES(OTHER, HEAP_BYTES),
			  .columns = {{ESTIMATED("faults")}, {EST_BYTES}}},
	[TABLE_MAPPED] = {.key = "mapped",
			  DERIVED(OTHER, HEAP_BYTES),
			  .columns = {{"calls", COLUMN_COUNT},
				      {BYTES},
				      {"bytes unmapped", COLUMN_OTHER, UNIT_BYTES}}},
	[TABLE_MEMORY] = {.key = "memory",
			  .rank = TABLE_RANK_OTHER,
			  .time_kind = TABLE_TIME_INSTANT,
			  .has_tags = true,
			  .is_derived = true,
			  .columns = {{MEMORY("RSS")},
				      {MEMORY("PSS")},
				      {MEMORY("anonymous")},
				      {MEMORY("file")},
				      {MEMORY("shared")},
				      {MEMORY("swap")},
				      {MEMORY("stacks")},
				      {MEMORY("virtual")},
				      {MEMORY("live")}}},
	[TABLE_HEAP_LEVEL] = {.key = "heap-level",
			      .rank = TABLE_RANK_OTHER,
			      .time_kind = TABLE_TIME_INSTANT,
			      .weight_column = HEAP_BYTES,
			      .has_tags = true,
			      .is_derived = true,
			      .columns = {{"blocks", COLUMN_COUNT}, {BYTES}}},
	[TABLE_SNAPSHOTS] = {.key = "snapshots",
			     .rank = TABLE_RANK_OTHER,
			     .time_kind = TABLE_TIME_INSTANT,
			     .weight_column = HEAP_BYTES,
			     .has_tags = true,
			     .columns = {BLOCKS("blocks")}},
	[TABLE_CGROUP] = {.key = "cgroup",
			  .rank = TABLE_RANK_OTHER,
			  .time_kind = TABLE_TIME_INSTANT,
			  .has_tags = true,
			  .is_derived = true,
			  .columns = {{MEMORY("usage")},
				      {MEMORY("limit")},
				      {MEMORY("anonymous")},
				      {MEMORY("page cache")},
				      {MEMORY("swap")}}},
	[TABLE_ALLOCATOR] = {.key = "allocator",
			     .rank = TABLE_RANK_OTHER,
			     .time_kind = TABLE_TIME_INSTANT,
			     .has_tags = true,
			     .is_derived = true,
			     .columns = {{MEMORY("in use")},
					 {MEMORY("active")},
					 {MEMORY("resident")},
					 {MEMORY("retained")}}},
	[TABLE_UNKNOWN] = {.rank = TABLE_RANK_OTHER, .has_tags = true},
	[TABLE_EVENTS] = {.rank = TABLE_RANK_OTHER,
			  .time_kind = TABLE_TIME_SLICE,
			  .has_tags = true,
			  .columns = {{"events", COLUMN_COUNT}}},
};

_Static_assert(HEAP_MEMORY_NR <= TABLE_KIND_COLUMNS_MAX && HEAP_ALLOCATED_NR == 6,
	       "the columns of the memory tables are those of heap.h");

const struct table_kind *table_kind(enum table_id id)
{
	ASSERT(id < TABLE_ID_NR);
	return &kinds[id];
}

const char *table_key(enum table_id id)
{
	return table_kind(id)->key;
}

enum table_id table_from_key(const char *key)
{
	for (enum table_id id = 0; id < TABLE_ID_NR; id++)
		if ((kinds[id].key && !strcmp(kinds[id].key, key)) ||
		    (kinds[id].old_key && !strcmp(kinds[id].old_key, key)))
			return id;
	return TABLE_ID_NR;
}

static size_t nr_columns_of(const struct table_kind *k)
{
	size_t n = 0;
	while (n < TABLE_KIND_COLUMNS_MAX && k->columns[n].name)
		n++;
	return n;
}

void table_move_row(struct table *t, size_t to, size_t from)
{
	t->time_ns[to] = t->time_ns[from];
	t->stack[to] = t->stack[from];
	t->task[to] = t->task[from];
	t->cpu[to] = t->cpu[from];
	if (t->has_tags)
		t->tag[to] = t->tag[from];
	memmove(&t->values[to * t->nr_columns], &t->values[from * t->nr_columns],
		t->nr_columns * sizeof(*t->values));
}

uint32_t tables_add(struct profile *p, enum table_id id, unsigned flags)
{
	const struct table_kind *k = table_kind(id);
	ASSERT(k->key && k->columns[0].name);
	struct table t = {.event = profile_cstr(p, k->key),
			  .time_kind = k->time_kind,
			  .weight_column = k->weight_column,
			  .has_tags = k->has_tags};
	t.nr_columns = (uint32_t)nr_columns_of(k);
	if (id == TABLE_ALLOCATED && flags & TABLES_NO_TEMPORARY)
		t.nr_columns = HEAP_ALLOCATED_TEMPORARY;
	for (uint32_t i = 0; i < t.nr_columns; i++) {
		const struct table_column *c = &k->columns[i];
		bool is_estimate = c->flags & COLUMN_IS_ESTIMATED && flags & TABLES_ESTIMATE;
		t.columns[i] = (struct column){.name = profile_cstr(p, c->name),
					       .unit = c->unit,
					       .is_level = c->flags & COLUMN_IS_LEVEL,
					       .is_estimate = is_estimate};
	}
	return profile_table(p, &t);
}

/* Whether the table's columns are the first ones of the kind; older files have fewer. */
static bool has_columns_of(const struct profile *p, const struct table *t,
			   const struct table_kind *k)
{
	size_t nr = nr_columns_of(k);
	if (t->nr_columns > nr || t->weight_column >= nr)
		return false;
	for (uint32_t i = 0; i < t->nr_columns; i++)
		if (t->columns[i].unit != (enum unit)k->columns[i].unit ||
		    strcmp(profile_text(p, t->columns[i].name), k->columns[i].name) != 0)
			return false;
	return true;
}

enum table_id tables_identify(const struct profile *p, const struct table *shape)
{
	if (!shape->has_tags)
		return TABLE_SAMPLES;
	enum table_id id = table_from_key(profile_text(p, shape->event));
	if (id < TABLE_ID_NR && has_columns_of(p, shape, &kinds[id]))
		return id;
	const char *counted = profile_text(p, shape->columns[0].name);
	bool is_event = !strcmp(counted, kinds[TABLE_EVENTS].columns[0].name);
	return is_event ? TABLE_EVENTS : TABLE_UNKNOWN;
}

const struct table *tables_find(const struct profile *p, enum table_id id)
{
	vec_foreach(t, &p->tables)
		if (t->id == id)
			return t;
	return NULL;
}

const struct table *tables_find_rows(const struct profile *p, enum table_id id)
{
	vec_foreach(t, &p->tables)
		if (t->id == id && t->n)
			return t;
	return NULL;
}

bool tables_has_rows(const struct profile *p, enum table_id id)
{
	return tables_find_rows(p, id) != NULL;
}

bool tables_are_difference(const struct profile *p)
{
	static const char *const names[] = {TABLES_BEFORE, TABLES_AFTER};
	unsigned found = 0;
	vec_foreach(t, &p->tables)
		for (unsigned i = 0; t->n && i < ARRAY_LEN(names); i++)
			found |= (unsigned)!strcmp(profile_text(p, t->event), names[i]) << i;
	return found == 3;
}

/* Whether the quotients of period and count differ; rows without samples have none. */
static bool has_varying_period(const struct table *t)
{
	const int64_t *first = NULL;
	for (size_t i = 0; i < t->n; i++) {
		const int64_t *row = t->values + i * t->nr_columns;
		if (row[0] <= 0)
			continue;
		first = first ? first : row;
		if ((__int128)row[1] * first[0] != (__int128)first[1] * row[0])
			return true;
	}
	return false;
}

void tables_weigh_by_period(struct profile *p)
{
	vec_foreach(t, &p->tables)
		if (t->id == TABLE_SAMPLES && t->nr_columns >= 2 && !t->weight_column &&
		    has_varying_period(t))
			t->weight_column = 1;
}

/* Equal periods stay equal, so the sum is exact to half a nanosecond a row. */
static void scale_time(struct table *t, double exact_ns)
{
	double sum_ns = 0;
	for (size_t i = 0; i < t->n; i++)
		sum_ns += (double)t->values[i * t->nr_columns + 1];
	for (size_t i = 0; i < t->n && sum_ns > 0; i++) {
		int64_t *ns = &t->values[i * t->nr_columns + 1];
		*ns = (int64_t)((double)*ns / sum_ns * exact_ns + 0.5);
	}
}

void tables_scale_time(struct profile *p)
{
	uint64_t exact_ns = profile_get_fact_nr(p, FACT_CPU_TIME_NS);
	vec_foreach(t, &p->tables)
		if (exact_ns && exact_ns < INT64_MAX && t->id == TABLE_SAMPLES &&
		    t->nr_columns > 1 && t->columns[1].unit == UNIT_NS)
			scale_time(t, (double)exact_ns);
}

int table_column(const struct table *t, enum column_role role)
{
	const struct table_kind *k = table_kind(t->id);
	for (uint32_t i = 0; i < t->nr_columns && i < TABLE_KIND_COLUMNS_MAX; i++)
		if (k->columns[i].name && k->columns[i].role == role)
			return (int)i;
	return -1;
}
