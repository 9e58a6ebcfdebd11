/* Comparisons that are shown together; see diffparts.h. */
#include "base/base.h"
#include "analyze/diff/diffparts.h"

#include "analyze/diff/diffblocks.h"
#include "analyze/select/tags.h"
#include "analyze/views.h"
#include "base/intern.h"
#include "base/map.h"

static size_t nr_of_runs(const struct diff_spec *s)
{
	return s->nr_runs[DIFF_BEFORE] + s->nr_runs[DIFF_AFTER];
}

/* ---- parts --------------------------------------------------------------------------------- */

static bool are_mixed(const struct diff_spec *s, const struct select_spec *spec)
{
	for (size_t i = 0; i < nr_of_runs(s); i++)
		if (!views_find(diff_part(s, i)->p, spec)->is_mixed)
			return false;
	return !spec->event;
}

static bool are_of(const struct diff_spec *s, enum table_id id)
{
	for (size_t i = 0; i < nr_of_runs(s); i++) {
		const struct selection *sel = diff_part(s, i);
		if (sel->id != id || sel->unit != UNIT_NS)
			return false;
	}
	return true;
}

static int add_part(struct diff *ret_d, struct arena *a, const struct diff_spec *of,
		    const struct select_spec *spec, unsigned by, struct err *err)
{
	struct diff_spec s = {.by = by, .how = of->how};
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		size_t n = of->nr_runs[side];
		struct selection *sels = arena_calloc(a, n, sizeof(*sels));
		for (size_t i = 0; i < n; i++)
			TRY(views_select(a, of->runs[side][i].p, spec, &sels[i], err));
		s.runs[side] = sels;
		s.nr_runs[side] = n;
		s.names[side] = of->names[side];
	}
	if (of->has_default_how)
		s.how = diff_how_of(&s.runs[DIFF_BEFORE][0], &s.runs[DIFF_AFTER][0]);
	TRY(blocks_select(a, &s, spec, err));
	diff_make(ret_d, a, &s);
	return 0;
}

int diffparts_add(struct diff *ret_parts, size_t *ret_nr, struct arena *a,
		  const struct select_spec *spec, struct err *err)
{
	const struct diff_spec *of = &ret_parts[0].spec;
	struct select_spec reasons = *spec;
	struct select_spec waits = *spec;
	bool is_mixed = are_mixed(of, spec);
	*ret_nr = 1;
	if (!is_mixed && !are_of(of, TABLE_OFF_CPU) && !are_of(of, TABLE_THREAD_TIME))
		return 0;
	waits.event = table_key(TABLE_OFF_CPU);
	reasons.event = are_of(of, TABLE_OFF_CPU) ? waits.event : table_key(TABLE_THREAD_TIME);
	TRY(add_part(&ret_parts[1], a, of, &reasons, DIFF_BY_REASON, err));
	TRY(add_part(&ret_parts[2], a, of, &waits, DIFF_BY_WAIT, err));
	*ret_nr = DIFF_PARTS_MAX;
	return 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Adds the names of the processes with rows, which are those of their main threads. */
static void add_programs(struct intern *to, const struct selection *sel)
{
	const struct profile *p = sel->p;
	CLEANUP(map_release) struct map pids = {0};
	for (size_t i = 0; i < sel->nr_rows; i++)
		(void)map_put(&pids, (uint32_t)p->tasks.p[sel->rows[i].task].pid, NULL);
	vec_foreach(t, &p->tasks) {
		bool is_main = t->pid > 0 && t->pid == t->tid;
		if (is_main && map_get(&pids, (uint32_t)t->pid))
			(void)intern_add_str(to, profile_text(p, t->comm));
	}
}

/* What the user launched or attached to; else the first process that has rows. */
static const char *program_of(const struct diff_spec *d, int side, const char *first)
{
	const struct profile *p = d->runs[side][0].p;
	const char *target = profile_get_fact(p, FACT_TARGET);
	const char *command = profile_get_fact(p, FACT_COMMAND);
	return target ? target : command ? command : first;
}

/* Names of the processes of both sides; ids from 1. */
struct programs {
	struct intern names[2];
};

static void programs_release(struct programs *s)
{
	intern_release(&s->names[DIFF_BEFORE]);
	intern_release(&s->names[DIFF_AFTER]);
}

static struct programs programs_of(const struct diff_spec *d)
{
	struct programs s = {0};
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < d->nr_runs[side]; i++)
			add_programs(&s.names[side], &d->runs[side][i]);
	return s;
}

/* Both sides have names, and none is the same. */
static bool are_different(struct programs *s)
{
	struct intern *before = &s->names[DIFF_BEFORE];
	const struct intern *after = &s->names[DIFF_AFTER];
	size_t nr_before = intern_count(before);
	size_t nr_after = intern_count(after);
	/* each has the empty name */
	for (uint32_t id = 1; id < nr_after; id++)
		(void)intern_add_str(before, intern_str(after, id));
	return nr_before > 1 && nr_after > 1 && intern_count(before) == nr_before + nr_after - 1;
}

bool diffparts_are_different_programs(const struct diff_spec *d)
{
	CLEANUP(programs_release) struct programs s = programs_of(d);
	return are_different(&s);
}

void diffparts_note_programs(struct report *r, const struct diff_spec *d)
{
	CLEANUP(programs_release) struct programs s = programs_of(d);
	if (!are_different(&s))
		return;
	const char *before = program_of(d, DIFF_BEFORE, intern_str(&s.names[DIFF_BEFORE], 1));
	const char *after = program_of(d, DIFF_AFTER, intern_str(&s.names[DIFF_AFTER], 1));
	if (strcmp(before, after) != 0)
		report_finding(r,
			       "warning: recordings of different programs: '%s' before, '%s' "
			       "after, no process name in common",
			       before, after);
}
