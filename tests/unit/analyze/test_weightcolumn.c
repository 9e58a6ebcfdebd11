/* analyze/select/weightcolumn.c: the column that views use as weight. */
#include "base/base.h"

#include <errno.h>
#include <string.h>

#include "analyze/select/weightcolumn.h"
#include "tap.h"

static uint32_t add_table(struct profile *p, const char *event, const char *second, enum unit unit)
{
	struct table t = {.event = profile_cstr(p, event),
			  .time_kind = TABLE_TIME_SLICE,
			  .has_tags = true,
			  .weight_column = 1,
			  .nr_columns = 3};
	t.columns[0] = (struct column){.name = profile_cstr(p, "calls"), .unit = UNIT_COUNT};
	t.columns[1] = (struct column){.name = profile_cstr(p, second), .unit = unit};
	t.columns[2] = (struct column){
		.name = profile_cstr(p, "longest"), .unit = UNIT_NS, .is_level = true};
	return profile_table(p, &t);
}

TEST(weightcolumn_of_one_event_and_of_all)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(err_release) struct err err = {0};
	uint32_t io = add_table(p, "io", "bytes", UNIT_BYTES);
	uint32_t other = add_table(p, "spans", "time", UNIT_NS);
	CHECK(!weightcolumn_set(p, "io", "calls", &err));
	CHECK(p->tables.p[io].weight_column == 0 && p->tables.p[other].weight_column == 1);
	CHECK(!weightcolumn_set(p, NULL, "calls", &err));
	CHECK(p->tables.p[other].weight_column == 0);
	/* only where it is; the rest stays */
	CHECK(!weightcolumn_set(p, NULL, "bytes", &err));
	CHECK(p->tables.p[io].weight_column == 1 && p->tables.p[other].weight_column == 0);
}

TEST(weightcolumn_refuses_what_cannot_be_added_up)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(err_release) struct err err = {0};
	uint32_t io = add_table(p, "io", "bytes", UNIT_BYTES);
	CHECK(weightcolumn_set(p, NULL, "longest", &err) == -EINVAL);
	CHECK(weightcolumn_set(p, "io", "time", &err) == -EINVAL);
	CHECK(strstr(err_msg(&err), "'io'") && strstr(err_msg(&err), "'time'"));
	CHECK(p->tables.p[io].weight_column == 1);
	CHECK(weightcolumn_set(p, "nothing", "calls", &err) == -ENOENT);
}
