/* Units of events in perf's formats; see eventunit.h. */
#include "base/base.h"
#include "model/eventunit.h"

static const struct {
	const char *suffix;
	const char *column;
	enum unit unit;
} units[] = {
	{"-bytes", "bytes", UNIT_BYTES},
	{"-ns", "time", UNIT_NS},
};

static bool is_clock(struct sv event)
{
	return sv_has_prefix(event, SV("cpu-clock")) || sv_has_prefix(event, SV("task-clock"));
}

/* Returns an index into units, or -1. */
static int unit_idx(struct sv event)
{
	for (size_t i = 0; i < ARRAY_LEN(units) && !is_clock(event); i++)
		if (sv_has_suffix(event, sv_from_str(units[i].suffix)))
			return (int)i;
	return -1;
}

bool eventunit_is_amount(struct sv event)
{
	return unit_idx(event) >= 0;
}

enum unit eventunit_of(struct sv event)
{
	int i = unit_idx(event);
	return is_clock(event) ? UNIT_NS : i >= 0 ? units[i].unit : UNIT_COUNT;
}

const char *eventunit_suffix(const struct profile *p, const struct table *t, uint32_t column)
{
	struct sv event = profile_sv(p, t->event);
	bool is_sampled = !t->has_tags && t->weight_column != column;
	for (size_t i = 0; i < ARRAY_LEN(units) && !is_sampled; i++)
		if (units[i].unit == t->columns[column].unit &&
		    units[i].unit != eventunit_of(event))
			return units[i].suffix;
	return "";
}

void eventunit_set_amount(struct profile *p, struct table *shape)
{
	int i = unit_idx(profile_sv(p, shape->event));
	if (i < 0 || shape->nr_columns < 2)
		return;
	shape->weight_column = 1;
	shape->columns[1] =
		(struct column){.name = profile_cstr(p, units[i].column), .unit = units[i].unit};
}

/* Modifiers of hardware and software events: "cycles:ppp", "cpu/cycles/uk", "cpu-clock:u". */
static bool is_modifier(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("ukhGHpPSDeWIbR", s.p[i]) || !s.p[i])
			return false;
	return true;
}

bool eventunit_is_tracepoint(struct sv event)
{
	ssize_t colon = sv_index(event, ':');
	if (colon <= 0 || sv_index(event, '/') >= 0 || sv_has_prefix(event, SV("mem:")))
		return false;
	return !is_modifier(sv_from_idx(event, (size_t)colon + 1));
}
