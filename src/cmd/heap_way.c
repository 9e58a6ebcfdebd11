/* The sources of a tier; see heap_way.h. */
#include "base/base.h"
#include "cmd/heap_way.h"

#include "base/mem.h"
#include "capture/io.h"

void heap_way_release(struct heap_way *w)
{
	free_p(&w->reason);
	*w = (struct heap_way){0};
}

static bool is_outside(enum heap_tier tier)
{
	return tier == HEAP_TIER_UPROBES || tier == HEAP_TIER_GROWTH;
}

void heap_way_choose(struct heap_way *ret_w, const struct heap_planner *planner,
		     enum heap_tier forced, const struct chosen_target *t)
{
	*ret_w = (struct heap_way){.tier = HEAP_TIER_NONE};
	if (is_outside(forced)) {
		*ret_w = (struct heap_way){forced, xstrdup("as asked by --tier")};
		return;
	}
	if (forced != HEAP_TIER_NONE || !t->has_target || !t->target.pids.pids.n)
		return;
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	/* what is wrong with a process is told when it is attached to */
	if (planner->plan(planner->ctx, t->target.pids.pids.p[0], forced, &plan, NULL) ||
	    !is_outside(plan.tier))
		return;
	*ret_w = (struct heap_way){plan.tier, xstrdup(plan.reason ? plan.reason : "")};
}

void heap_way_apply(const struct heap_way *w, struct capture_options *o,
		    struct heapsource_spec *spec)
{
	o->programs = ENGINE_HEAP | ENGINE_MEMORY;
	spec->why = w->reason;
	if (w->tier == HEAP_TIER_UPROBES) {
		o->programs = ENGINE_PROBES | ENGINE_MEMORY;
	} else if (w->tier == HEAP_TIER_GROWTH) {
		o->programs = ENGINE_IO | ENGINE_MEMORY;
		o->io_parts = IO_PART_GROWTH;
	}
}
