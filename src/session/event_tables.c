/* Tables of events by name; see event_tables.h. */
#include "base/base.h"
#include "session/event_tables.h"

static struct table shape_of(struct profile *p, const struct named_event *e, bool keeps_singles)
{
	struct table t = {.event = profile_cstr(p, e->name),
			  .time_kind = keeps_singles ? TABLE_TIME_INSTANT : TABLE_TIME_SLICE,
			  .nr_columns = 1,
			  .columns = {{.name = profile_cstr(p, "events"), .unit = UNIT_COUNT}},
			  .has_tags = true};
	if (!e->amount)
		return t;
	bool is_bytes = !strcmp(e->amount, "bytes");
	t.columns[1] = (struct column){.name = profile_cstr(p, e->amount),
				       .unit = is_bytes ? UNIT_BYTES : UNIT_COUNT};
	t.nr_columns = 2;
	return t;
}

void event_tables_add(struct profile *p, struct builder *b, const struct counts_spec *spec)
{
	for (uint32_t i = 0; i < spec->set->events.n; i++) {
		struct table t = shape_of(p, &spec->set->events.p[i], spec->keeps_singles);
		builder_set_table(b, spec->first_spec + i, profile_table(p, &t));
	}
}
