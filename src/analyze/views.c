/* The views; see views.h. */
#include "base/base.h"
#include "analyze/views.h"

#include <errno.h>

#include "analyze/io/eventsum.h"
#include "analyze/io/faultsum.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/io/iosum.h"
#include "analyze/memory/timeline.h"
#include "analyze/overview.h"
#include "analyze/select/tags.h"
#include "analyze/stacks/top.h"
#include "analyze/wait/spansum.h"
#include "analyze/viewpictures.h"
#include "analyze/whole.h"
#include "analyze/wait/waittables.h"

#define BIT(id) (1u << (id))

/* ---- CPU samples, and stacks of any event -------------------------------------------------- */

/* The functions of each further event that was sampled, as perf report shows one after another. */
static int add_other_events(struct report *r, const struct profile *p,
			    const struct select_spec *spec, const struct selection *shown,
			    const struct view_limits *limits, struct err *err)
{
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, OVERVIEW_ROWS) : 0;
	if (shown->id != TABLE_SAMPLES || tables_are_difference(p))
		return 0;
	for (uint32_t i = 0; i < p->tables.n; i++) {
		const struct table *t = &p->tables.p[i];
		if (i == shown->table || t->id != TABLE_SAMPLES || !t->n)
			continue;
		CLEANUP(arena_release) struct arena a = {0};
		struct select_spec of_event = *spec;
		struct selection sel;
		of_event.event = profile_text(p, t->event);
		TRY(select_run(&a, p, &of_event, &sel, err));
		top_report_other(r, &sel, &few);
	}
	return 0;
}

static int samples_page(struct report *r, const struct profile *p, const struct select_spec *spec,
			const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(views_select(&a, p, spec, &sel, err));
	overview_begin(r, &sel);
	overview_report(r, &sel, spec, input, limits);
	return spec->event ? 0 : add_other_events(r, p, spec, &sel, limits, err);
}

/* ---- CPU samples and waits ----------------------------------------------------------------- */

/* Tables use CPU samples only; both together only if the event is named. */
static int thread_time_select(struct arena *a, const struct profile *p,
			      const struct select_spec *spec, struct selection *ret_sel,
			      struct err *err)
{
	return (spec->event ? hotcold_run : select_run)(a, p, spec, ret_sel, err);
}

/* The page of CPU samples, followed by the thread time breakdown and the waits. */
static int thread_time_page(struct report *r, const struct profile *p,
			    const struct select_spec *spec, const char *input,
			    const struct view_limits *limits, struct err *err)
{
	if (!spec->event && selecttags_is_needed(spec))
		return waits_overview(r, p, spec, input, limits, err);
	struct select_spec whole = *spec; /* one window for samples and waits */
	whole.flags |= SELECT_WHOLE_SECONDS;
	TRY(samples_page(r, p, &whole, input, limits, err));
	return spec->event ? 0 : waits_page(r, p, &whole, limits, err);
}

/* Wait time, as in the thread time breakdown; not the number of waits. */
static bool is_of_waits(const struct selection *sel)
{
	return sel->tagged && sel->id == TABLE_OFF_CPU && sel->unit == UNIT_NS;
}

/* ---- events -------------------------------------------------------------------------------- */

static bool has_events(const struct profile *p)
{
	return tables_find(p, TABLE_EVENTS) != NULL;
}

static int events_page(struct report *r, const struct profile *p, const struct select_spec *spec,
		       const char *input, const struct view_limits *limits, struct err *err)
{
	return eventsum_report(r, p, spec, input, limits, EVENTSUM_STACKS, err);
}

/* ---- memory -------------------------------------------------------------------------------- */

static bool is_heap_selected(const struct profile *p, const struct select_spec *spec)
{
	enum heap_weight w;
	if (!heapweights_exist(p))
		return false;
	if (spec->event)
		return !spec->heap.weight &&
		       (heap_weight_from_key(spec->event, &w) ||
			table_from_key(spec->event) == TABLE_FREED_PREEXISTING);
	return spec->heap.weight ? heap_weight_from_key(spec->heap.weight, &w)
				 : spec->heap.at != NULL;
}

static int heap_page(struct report *r, const struct profile *p, const struct select_spec *spec,
		     const char *input, const struct view_limits *limits, struct err *err)
{
	return (spec->event ? samples_page : heapsum_report)(r, p, spec, input, limits, err);
}

/* A sum of levels over time has no meaning. */
static int memory_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
			 struct selection *ret_sel, struct err *err)
{
	if (spec->event)
		return select_run(a, p, spec, ret_sel, err);
	err_set(err, -ENODATA, "this recording has memory readings over time, but no call stacks");
	return err_hint(err, "to show and draw them: assay report --over-time --chart FILE");
}

static int memory_page(struct report *r, const struct profile *p, const struct select_spec *spec,
		       const char *input, const struct view_limits *limits, struct err *err)
{
	(void)spec;
	(void)input;
	return memtime_report(r, p, limits, MEMTIME_TREE_PCT, err);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct view views[VIEW_NR] = {
	[VIEW_ALL] = {.key = "all",
		      .title = "CPU time, waiting, memory, I/O",
		      .is_mixed = true,
		      .has = whole_exists,
		      .select = thread_time_select,
		      .page = whole_page,
		      .pictures = viewpictures_of_waits},
	[VIEW_SPANS] = {.key = "spans",
			.title = "latency of calls and spans",
			.tables = BIT(TABLE_SPANS),
			.recorded = BIT(TABLE_SPANS),
			.drawn = BIT(TABLE_SPAN_TIME),
			.select = select_run,
			.page = spansum_report,
			.pictures = viewpictures_of_tables},
	[VIEW_THREAD_TIME] = {.key = "thread-time",
			      .title = "thread time, on-CPU and off-CPU",
			      .tables = BIT(TABLE_THREAD_TIME),
			      .is_mixed = true,
			      .has = hotcold_exists,
			      .recorded = BIT(TABLE_ON_CPU) | BIT(TABLE_OFF_CPU),
			      .select = thread_time_select,
			      .page = thread_time_page,
			      .pictures = viewpictures_of_waits},
	[VIEW_CPU] = {.key = "cpu",
		      .title = "CPU time", /* of other events: view_title */
		      .tables = BIT(TABLE_SAMPLES),
		      .select = select_run,
		      .page = samples_page,
		      .pictures = viewpictures_of_samples},
	[VIEW_WAITS] = {.key = "waits",
			.title = "off-CPU time",
			.rows = "waits",
			.record = "assay offcpu, assay cpu --offcpu",
			.is_of = is_of_waits,
			.tables = BIT(TABLE_OFF_CPU),
			.recorded = BIT(TABLE_ON_CPU) | BIT(TABLE_OFF_CPU),
			.select = select_run,
			.page = waits_overview,
			.pictures = viewpictures_of_waits},
	[VIEW_HEAP] = {.key = "heap",
		       .title = "memory",
		       .palette = "mem",
		       .has_weights = true,
		       .rows = "memory",
		       .record = "assay heap",
		       .is_of = heapweights_is_memory,
		       .has = heapweights_exist,
		       .is_selected = is_heap_selected,
		       .select = heapweights_select,
		       .page = heap_page,
		       .pictures = viewpictures_of_heap},
	[VIEW_IO] = {.key = "io",
		     .title = "input and output",
		     .tables = BIT(TABLE_IO) | BIT(TABLE_BLOCK),
		     .recorded = BIT(TABLE_IO), /* block requests are those of the whole machine */
		     .drawn = BIT(TABLE_IO) | BIT(TABLE_BLOCK),
		     .select = select_run,
		     .page = iosum_report,
		     .pictures = viewpictures_of_tables},
	[VIEW_FAULTS] = {.key = "faults",
			 .title = "page faults",
			 .tables = BIT(TABLE_FAULTS) | BIT(TABLE_RECLAIM),
			 .recorded = BIT(TABLE_FAULTS),
			 .drawn = BIT(TABLE_FAULTS) | BIT(TABLE_RECLAIM),
			 .select = select_run,
			 .page = faultsum_report,
			 .pictures = viewpictures_of_tables},
	[VIEW_EVENTS] = {.key = "events",
			 .title = "events",
			 .has = has_events,
			 .recorded = BIT(TABLE_EVENTS),
			 .select = select_run,
			 .page = events_page,
			 .pictures = viewpictures_of_events},
	[VIEW_MEMORY] = {.key = "memory",
			 .title = "memory over time",
			 .tables = BIT(TABLE_MEMORY),
			 .select = memory_select,
			 .page = memory_page},
};

const struct view *views_at(enum view_id id)
{
	ASSERT(id < VIEW_NR);
	return &views[id];
}

static bool has_any_of(const struct profile *p, uint32_t tables)
{
	vec_foreach(t, &p->tables)
		if (t->n && tables & BIT(t->id))
			return true;
	return false;
}

bool views_has(const struct view *v, const struct profile *p)
{
	return v->has ? v->has(p) : has_any_of(p, v->tables);
}

bool views_is_recorded(const struct view *v, const struct profile *p)
{
	return v->recorded ? has_any_of(p, v->recorded) : views_has(v, p);
}

static enum view_id default_of(const struct profile *p)
{
	for (enum view_id id = 0; id < VIEW_NR; id++)
		if (views_has(&views[id], p))
			return id;
	return VIEW_CPU;
}

const struct view *views_default(const struct profile *p)
{
	return &views[default_of(p)];
}

const struct view *views_find(const struct profile *p, const struct select_spec *spec)
{
	enum table_id table = spec->event ? table_from_key(spec->event) : TABLE_ID_NR;
	for (enum view_id id = 0; id < VIEW_NR; id++)
		if ((table < TABLE_ID_NR && views[id].tables & BIT(table)) ||
		    (views[id].is_selected && views[id].is_selected(p, spec)))
			return &views[id];
	/* Stacks of any event are shown like those of CPU samples. */
	enum view_id id = default_of(p);
	return &views[spec->event && id != VIEW_EVENTS ? VIEW_CPU : id];
}

const struct view *views_of_rows(const struct selection *sel)
{
	for (enum view_id id = 0; id < VIEW_NR; id++)
		if (views[id].is_of && views[id].is_of(sel))
			return &views[id];
	return &views[VIEW_CPU];
}

const char *views_tree_event(const struct profile *p)
{
	return views_default(p)->is_mixed ? table_key(TABLE_THREAD_TIME) : NULL;
}

int views_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		 struct selection *ret_sel, struct err *err)
{
	return views_find(p, spec)->select(a, p, spec, ret_sel, err);
}

int views_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const char *input, const struct view_limits *limits, struct err *err)
{
	return views_find(p, spec)->page(r, p, spec, input, limits, err);
}
