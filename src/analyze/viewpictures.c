/* The flame graphs of views; see viewpictures.h. */
#include "base/base.h"
#include "analyze/viewpictures.h"

#include "analyze/stacks/calltree.h"
#include "analyze/memory/heapweights.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/wait/waittables.h"

/* Upper limit of tables and reasons, weights of memory, or events. */
static struct view_pictures room_for(struct arena *a, size_t nr)
{
	return (struct view_pictures){.p = arena_calloc(a, nr, sizeof(struct view_picture))};
}

static struct view_picture *add(struct view_pictures *to, const struct select_spec *spec,
				const char *suffix)
{
	struct view_picture *one = &to->p[to->n++];
	*one = (struct view_picture){
		.suffix = suffix, .spec = *spec, .tree_flags = CALLTREE_ROOT_GROUP};
	return one;
}

/* An empty selection is not an error: an idle program has no picture. */
static uint64_t weight_of(const struct profile *p, const struct select_spec *spec)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	return views_select(&a, p, spec, &sel, NULL) ? 0 : sel.weight;
}

/* ".sched.sched_switch.svg" */
static const char *suffix_of_event(struct arena *a, const char *event)
{
	char *suffix = arena_fmt(a, ".%s.svg", event);
	for (char *c = suffix; *c; c++)
		*c = *c == ':' || *c == '/' ? '.' : *c;
	return suffix;
}

/* The default event has no suffix, further sampled ones their name. */
VIEWPICTURES(samples)
{
	(void)v;
	(void)flags;
	struct view_pictures to = room_for(a, p->tables.n + 1);
	add(&to, spec, ".svg");
	struct selection first;
	if (spec->event || tables_are_difference(p) || views_select(a, p, spec, &first, NULL))
		return to;
	struct select_spec own = *spec;
	for (uint32_t i = 0; i < p->tables.n; i++) {
		const struct table *t = &p->tables.p[i];
		if (t->id != TABLE_SAMPLES || i == first.table || !t->n)
			continue;
		own.event = profile_text(p, t->event);
		add(&to, &own, suffix_of_event(a, own.event));
	}
	return to;
}

static uint32_t reasons_of(const struct profile *p, const struct select_spec *spec)
{
	struct select_spec own = *spec;
	uint32_t bits = 0;
	own.flags |=
		SELECT_IDLE; /* a picture of a single reason includes it if it is an idle one */
	return waits_reasons_shown(p, &own, &bits, NULL) ? 0 : bits;
}

VIEWPICTURES(waits)
{
	(void)v;
	struct view_pictures to = room_for(a, 1 + WAIT_NR);
	struct select_spec own = *spec;
	own.event = table_key(hotcold_exists(p) ? TABLE_THREAD_TIME : TABLE_OFF_CPU);
	if (weight_of(p, &own))
		add(&to, &own, ".svg");
	uint32_t reasons = flags & VIEW_PICTURES_BY_REASON ? reasons_of(p, &own) : 0;
	for (enum wait_reason r = WAIT_RUN_QUEUE; r < WAIT_NR; r++) {
		own.reason = wait_key(r);
		if (reasons >> r & 1)
			add(&to, &own, arena_fmt(a, "-%s.svg", own.reason));
	}
	for (size_t i = 0; i < to.n; i++)
		to.p[i].tree_flags |= CALLTREE_MARK_KERNEL;
	return to;
}

/*
 * Weights drawn by default: where memory is allocated, what is live, what was live at the peak.
 * Leaked memory is part of live and listed on the first page.
 */
static const enum heap_weight usual[] = {HEAP_WEIGHT_ALLOCATED, HEAP_WEIGHT_PEAK, HEAP_WEIGHT_LIVE,
					 HEAP_WEIGHT_LEAKED, HEAP_WEIGHT_GROWTH};
static const enum heap_weight rest[] = {HEAP_WEIGHT_CALLS, HEAP_WEIGHT_TEMPORARY,
					HEAP_WEIGHT_MAPPED};

/* Without page faults, growth is allocated - freed, which live shows already. */
static bool is_worth(const struct profile *p, enum heap_weight w)
{
	return w != HEAP_WEIGHT_GROWTH || tables_has_rows(p, heap_weight_table(w));
}

VIEWPICTURES(heap)
{
	(void)v;
	struct view_pictures to = room_for(a, HEAP_WEIGHT_NR);
	size_t nr = ARRAY_LEN(usual) + (flags & VIEW_PICTURES_ALL ? ARRAY_LEN(rest) : 0);
	struct select_spec own = *spec;
	uint64_t live = 0; /* all live memory is leaked: one picture is enough */
	for (size_t i = 0; i < nr; i++) {
		bool is_usual = i < ARRAY_LEN(usual);
		enum heap_weight w = is_usual ? usual[i] : rest[i - ARRAY_LEN(usual)];
		own.heap.weight = heap_weight_key(w);
		uint64_t weight = is_worth(p, w) ? weight_of(p, &own) : 0;
		if (!weight || (w == HEAP_WEIGHT_LEAKED && weight == live))
			continue;
		live = w == HEAP_WEIGHT_LIVE ? weight : live;
		const char *suffix = arena_fmt(a, "-%s.svg", own.heap.weight);
		add(&to, &own, suffix)->title = heap_weight_title(p, w);
	}
	return to;
}

/* The first table has no suffix, the others their name: ".block.svg". */
VIEWPICTURES(tables)
{
	struct view_pictures to = room_for(a, TABLE_ID_NR);
	struct select_spec own = *spec;
	bool is_first = true;
	for (enum table_id id = 0; id < TABLE_ID_NR; id++) {
		if (!(v->drawn >> id & 1))
			continue;
		own.event = table_key(id);
		/* rows without weight (calls that moved no bytes) are not drawn by it */
		if (flags & VIEW_PICTURES_ROWS ? tables_has_rows(p, id) : weight_of(p, &own) > 0)
			add(&to, &own, is_first ? ".svg" : arena_fmt(a, ".%s.svg", own.event));
		is_first = false;
	}
	return to;
}

static bool has_stacks(const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->stack[i])
			return true;
	return false;
}

VIEWPICTURES(events)
{
	(void)v;
	(void)flags;
	struct view_pictures to = room_for(a, p->tables.n + 1);
	struct select_spec own = *spec;
	vec_foreach(t, &p->tables) {
		if (t->id != TABLE_EVENTS || !has_stacks(t))
			continue;
		own.event = profile_text(p, t->event);
		add(&to, &own, suffix_of_event(a, own.event));
	}
	return to;
}
