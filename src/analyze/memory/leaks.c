/* Which blocks count as leaked; see leaks.h. */
#include "base/base.h"
#include "analyze/memory/leaks.h"

#include <errno.h>

#include "analyze/report.h"
#include "analyze/select/window.h"
#include "base/clock.h"
#include "base/map.h"
#include "model/heap.h"

/* True if every process with live blocks has exited, its main thread included. @live: NULL: none. */
static bool has_ended(const struct profile *p, const struct table *live)
{
	const char *attached = profile_get_fact(p, FACT_HEAP_ATTACHED);
	bool knows_ends = false;
	if (profile_get_fact(p, FACT_TARGET_END) || profile_get_fact_nr(p, FACT_HEAP_KILLED))
		return false; /* what was killed could not free any more */
	if (profile_get_fact(p, FACT_HEAP_ENDED))
		return true;
	if (!attached || strncmp(attached, "launch", strlen("launch")) != 0)
		return false;
	for (size_t t = 1; t < p->tasks.n; t++)
		knows_ends |= p->tasks.p[t].end_ns != 0;
	if (!knows_ends) /* files of other tools end at program exit */
		return !p->wall_start_ns;
	CLEANUP(map_release) struct map gone = {0}; /* by pid */
	for (size_t t = 1; t < p->tasks.n; t++)
		if (p->tasks.p[t].end_ns && p->tasks.p[t].tid == p->tasks.p[t].pid)
			(void)map_put(&gone, (uint32_t)p->tasks.p[t].pid, NULL);
	for (size_t i = 0; live && i < live->n; i++)
		if (!map_get(&gone, (uint32_t)p->tasks.p[live->task[i]].pid))
			return false;
	return true;
}

static bool has_times(const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->time_ns[i])
			return true;
	return false;
}

int leaks_check(const char *older_than, uint64_t *ret_ns, struct err *err)
{
	if (clock_parse_duration(sv_from_str(older_than), ret_ns))
		return 0;
	err_set(err, -EINVAL, "--older-than: '%s' is not a duration", older_than);
	return err_hint(err, "write a number with its unit: 500ms, 30s, 5m");
}

int leaks_limit(const struct profile *p, const char *older_than, struct leak_limit *ret_l,
		struct err *err)
{
	const struct table *live = tables_find_rows(p, TABLE_LIVE);
	struct window all = window_of_profile(p);
	struct leak_limit l = {.rule = LEAKS_OLDER,
			       .min_age_ns = (all.to_ns - all.from_ns) / 2,
			       .step_ns = heap_age_step_of(p),
			       .end_ns = all.to_ns};
	if (older_than)
		TRY(leaks_check(older_than, &l.min_age_ns, err));
	if (profile_get_fact(p, FACT_DAMAGED))
		l.why_unknown = "the recording is damaged: what is leaked and what was live at the "
				"peak are known from all its rows only";
	else if (p->is_incomplete)
		l.why_unknown =
			"the recording is incomplete: what is leaked and what was live at the "
			"peak are known at its end only";
	else if (!older_than && has_ended(p, live))
		l.rule = LEAKS_ALL; /* also if nothing is live */
	else if (live && !has_times(live))
		l.why_unknown = "a dump has no block ages: compare two dumps with assay diff";
	else if (live && !older_than && all.to_ns - all.from_ns < l.step_ns + l.min_age_ns)
		l.why_unknown = "the capture was too short for the resolution of allocation times";
	if (l.why_unknown)
		l.rule = LEAKS_UNKNOWN;
	*ret_l = l;
	return 0;
}

bool leaks_has(const struct leak_limit *l, uint64_t time_ns)
{
	if (l->rule != LEAKS_OLDER)
		return l->rule == LEAKS_ALL;
	return time_ns && time_ns + l->step_ns <= l->end_ns &&
	       l->end_ns - time_ns - l->step_ns >= l->min_age_ns;
}

uint64_t leaks_age_ns(const struct leak_limit *l, uint64_t time_ns)
{
	return time_ns && time_ns <= l->end_ns ? l->end_ns - time_ns : CELL_NS_NONE;
}
