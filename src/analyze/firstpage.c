/* The first page of any profile; see firstpage.h. */
#include "base/base.h"
#include "analyze/firstpage.h"

#include <errno.h>

#include "analyze/eventsum.h"
#include "analyze/faultsum.h"
#include "analyze/heapsum.h"
#include "analyze/heapweights.h"
#include "analyze/hotcold.h"
#include "analyze/iosum.h"
#include "analyze/memtime.h"
#include "analyze/overview.h"
#include "analyze/selecttags.h"
#include "analyze/spansum.h"
#include "analyze/waittables.h"
#include "model/heap.h"

enum profile_kind profile_kind_of(const struct profile *p)
{
	bool has_samples = false;
	for (uint32_t i = 0; i < p->tables.n; i++)
		has_samples |=
			p->tables.p[i].n && !p->tables.p[i].has_tags && !eventsum_is_event(p, i);
	bool has_waits = waits_are_there(p);
	if (spansum_is_there(p))
		return PROFILE_SPANS;
	if (has_samples && hotcold_is_there(p))
		return PROFILE_HOT_COLD;
	if (has_samples)
		return PROFILE_SAMPLES;
	if (has_waits)
		return PROFILE_WAITS;
	if (heapweights_are_there(p))
		return PROFILE_HEAP;
	if (iosum_is_there(p))
		return PROFILE_IO;
	if (faultsum_is_there(p))
		return PROFILE_FAULTS;
	if (eventsum_is_there(p))
		return PROFILE_EVENTS;
	return memtime_is_there(p) ? PROFILE_MEMORY : PROFILE_SAMPLES;
}

bool firstpage_is_of_heap(const struct profile *p, const struct select_spec *spec)
{
	enum heap_weight w;
	bool is_asked = spec->heap.weight ? heap_weight_from_key(spec->heap.weight, &w)
					  : spec->heap.at != NULL;
	if (!heapweights_are_there(p))
		return false;
	if (spec->event)
		return !spec->heap.weight && (heap_weight_from_key(spec->event, &w) ||
					      !strcmp(spec->event, table_key(TABLE_OLDER)));
	return is_asked || profile_kind_of(p) == PROFILE_HEAP;
}

int firstpage_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		     struct selection *ret_sel, struct err *err)
{
	/* Levels added up over time would be a number of nothing. */
	if (!spec->event && profile_kind_of(p) == PROFILE_MEMORY) {
		err_set(err, -ENODATA, "this recording has memory over time, and no stacks");
		return err_hint(err, "assay report --over-time --chart FILE shows and draws it");
	}
	if (spec->event && !strcmp(spec->event, THREAD_TIME))
		return hotcold_run(a, p, spec, ret_sel, err);
	if (firstpage_is_of_heap(p, spec))
		return heapweights_select(a, p, spec, ret_sel, err);
	return select_run(a, p, spec, ret_sel, err);
}

static int samples_page(struct report *r, const struct profile *p, const struct select_spec *spec,
			const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(firstpage_select(&a, p, spec, &sel, err));
	overview_begin(r, &sel);
	overview_report(r, &sel, input, limits);
	return 0;
}

/* The samples' page, the ledger and the waits below it. */
static int hot_cold_page(struct report *r, const struct profile *p, const struct select_spec *spec,
			 const char *input, const struct view_limits *limits, struct err *err)
{
	TRY(samples_page(r, p, spec, input, limits, err));
	return waits_page(r, p, spec, limits, err);
}

static bool is_page_of(const struct select_spec *spec, enum table_id id)
{
	return spec->event && !strcmp(spec->event, table_key(id));
}

int firstpage_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		     const char *input, const struct view_limits *limits, struct err *err)
{
	enum profile_kind kind = profile_kind_of(p);
	bool is_waits = is_page_of(spec, TABLE_OFF_CPU);
	bool is_of_both = !spec->event && kind == PROFILE_HOT_COLD;
	if (is_waits || (!spec->event && kind == PROFILE_WAITS) ||
	    (is_of_both && selecttags_is_asked(spec)))
		return waits_overview(r, p, spec, input, limits, err);
	if (is_of_both)
		return hot_cold_page(r, p, spec, input, limits, err);
	if (is_page_of(spec, TABLE_SPANS) || (!spec->event && kind == PROFILE_SPANS))
		return spansum_report(r, p, spec, input, limits, err);
	if (is_page_of(spec, TABLE_IO) || is_page_of(spec, TABLE_BLOCK) ||
	    (!spec->event && kind == PROFILE_IO))
		return iosum_report(r, p, spec, input, limits, err);
	if (is_page_of(spec, TABLE_FAULTS) || is_page_of(spec, TABLE_RECLAIM) ||
	    (!spec->event && kind == PROFILE_FAULTS))
		return faultsum_report(r, p, spec, input, limits, err);
	if (!spec->event && kind == PROFILE_HEAP)
		return heapsum_report(r, p, spec, input, limits, err);
	if (is_page_of(spec, TABLE_MEMORY) || (!spec->event && kind == PROFILE_MEMORY))
		return memtime_report(r, p, limits, MEMTIME_TREE_PCT, err);
	if (kind == PROFILE_EVENTS)
		return eventsum_report(r, p, spec, input, limits, EVENTSUM_STACKS, err);
	return samples_page(r, p, spec, input, limits, err);
}
