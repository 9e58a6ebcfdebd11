/* The registry of tables. */
#include "base/base.h"
#include "model/tables.h"
#include "tap.h"

#include <string.h>

#include "model/profile.h"

TEST(tables_of_each_kind_are_found_by_key_and_made_once)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	size_t nr = 0;
	for (enum table_id id = 0; id < TABLE_ID_NR; id++) {
		const struct table_kind *k = table_kind(id);
		if (!k->key || !k->columns[0].name) /* has no key, or is in no profile */
			continue;
		nr++;
		CHECK_U64(table_from_key(k->key), id);
		uint32_t idx = tables_add(p, id, 0);
		const struct table *t = &p->tables.p[idx];
		CHECK_U64(t->id, id);
		CHECK_STR(profile_text(p, t->event), k->key);
		CHECK(t->weight_column < t->nr_columns);
		CHECK_U64(tables_add(p, id, 0), idx);
		CHECK(tables_find(p, id) == &p->tables.p[idx]);
		CHECK(!tables_has_rows(p, id));
	}
	CHECK_U64(p->tables.n, nr);
	CHECK_U64(table_from_key("cycles"), TABLE_ID_NR);
}

TEST(tables_of_the_same_name_with_other_columns_have_another_kind)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table foreign = {.event = profile_cstr(p, "faults"),
				.nr_columns = 2,
				.columns = {{.name = profile_cstr(p, "samples")},
					    {.name = profile_cstr(p, "period")}}};
	CHECK_U64(tables_identify(p, &foreign), TABLE_SAMPLES); /* perf's event of that name */
	foreign.has_tags = true;
	CHECK_U64(tables_identify(p, &foreign), TABLE_UNKNOWN);
	foreign.columns[0].name = profile_cstr(p, "events");
	CHECK_U64(tables_identify(p, &foreign), TABLE_EVENTS);
	foreign.columns[0].name = profile_cstr(p, "faults");
	foreign.nr_columns = 1; /* tables of older versions have no time */
	CHECK_U64(tables_identify(p, &foreign), TABLE_FAULTS);
	foreign.columns[0].unit = UNIT_NS;
	CHECK_U64(tables_identify(p, &foreign), TABLE_UNKNOWN);
}

TEST(tables_name_their_columns_by_what_they_hold)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	tables_add(p, TABLE_IO, 0);
	const struct table *io = tables_find(p, TABLE_IO);
	CHECK_U64((uint64_t)table_column(io, COLUMN_BYTES), 1);
	CHECK_U64((uint64_t)table_column(io, COLUMN_LONGEST), 3);
	CHECK(table_column(io, COLUMN_PAGES) == -1);
}

/* Adds samples of a count and a sum of periods each; returns the weight column chosen for them. */
static uint32_t weight_of(const int64_t (*rows)[2], size_t nr)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "page-faults"),
			      .nr_columns = 2,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, "period")}}};
	uint32_t t = profile_table(p, &shape);
	for (size_t i = 0; i < nr; i++)
		profile_sample(p, t, 0, 0, 0, -1, rows[i]);
	tables_weigh_by_period(p);
	return p->tables.p[t].weight_column;
}

TEST(samples_of_varying_periods_weigh_by_period)
{
	static const int64_t same[][2] = {{1, 500}, {3, 1500}, {0, 0}, {1, 500}};
	static const int64_t varying[][2] = {{1, 500}, {3, 1500}, {2, 1500}};
	static const int64_t from_nothing[][2] = {{1, 0}, {1, 1}};
	CHECK_U64(weight_of(same, ARRAY_LEN(same)), 0);
	CHECK_U64(weight_of(varying, ARRAY_LEN(varying)), 1);
	CHECK_U64(weight_of(from_nothing, ARRAY_LEN(from_nothing)), 1);
	CHECK_U64(weight_of(same, 0), 0);
}

TEST(tables_times_of_samples_add_up_to_the_cpu_time_that_was_counted)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "cpu-clock"),
			      .nr_columns = 2,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, "time"), .unit = UNIT_NS}}};
	uint32_t table = profile_table(p, &shape);
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "a"), 0);
	for (uint64_t i = 0; i < 1000; i++)
		profile_sample(p, table, i, 0, task, 0, (int64_t[]){1, 1001001});
	tables_scale_time(p);
	CHECK(p->tables.p[table].values[1] == 1001001); /* not counted */
	profile_fact(p, FACT_CPU_TIME_NS, "1100000000");
	for (unsigned times = 0; times < 2; times++) {
		tables_scale_time(p);
		for (size_t i = 0; i < 1000; i++)
			CHECK(p->tables.p[table].values[2 * i + 1] == 1100000);
	}
}
