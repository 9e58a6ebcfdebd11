/* The sources of a tier; see heap_way.h. */
#include "base/base.h"
#include "cmd/heap_way.h"

#include "base/mem.h"
#include "capture/io.h"
#include "capture/perfopen.h"
#include "host/bpfrights.h"

#define FAULTS_HZ 4999

void heap_way_release(struct heap_way *w)
{
	free_p(&w->reason);
	*w = (struct heap_way){0};
}

/* Growth goes on without programs in the kernel, by samples of faults; told why, and what it costs.
 */
static void look_for_programs(struct heap_way *w)
{
	CLEANUP(err_release) struct err refused = {0};
	if (w->tier != HEAP_TIER_GROWTH || !host_bpf_rights(HOST_BTF_PATH, &refused))
		return;
	w->has_no_programs = true;
	char *reason = xasprintf("%s; sampled, for programs in the kernel are refused (%s)",
				 w->reason, err_msg(&refused));
	free_p(&w->reason);
	w->reason = reason;
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
		*ret_w = (struct heap_way){.tier = forced, .reason = xstrdup("as asked by --tier")};
		look_for_programs(ret_w);
		return;
	}
	if (forced != HEAP_TIER_NONE || !t->has_target || !t->target.pids.pids.n)
		return;
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	/* what is wrong with a process is told when it is attached to */
	if (planner->plan(planner->ctx, t->target.pids.pids.p[0], forced, &plan, NULL) ||
	    plan.is_loading || !is_outside(plan.tier))
		return;
	*ret_w = (struct heap_way){.tier = plan.tier,
				   .reason = xstrdup(plan.reason ? plan.reason : "")};
	look_for_programs(ret_w);
}

void heap_way_apply(const struct heap_way *w, struct capture_options *o,
		    struct heapsource_spec *spec)
{
	o->programs = ENGINE_HEAP | ENGINE_MEMORY;
	/* for what is executed later and can be recorded in no other way */
	o->io_parts = IO_PART_GROWTH;
	spec->why = w->reason;
	if (w->tier == HEAP_TIER_UPROBES) {
		o->programs = ENGINE_PROBES | ENGINE_MEMORY;
	} else if (w->tier == HEAP_TIER_GROWTH && w->has_no_programs) {
		o->programs = ENGINE_CPU | ENGINE_MEMORY;
		o->flags |= CAPTURE_NO_BPF | CAPTURE_GROWTH;
		o->sampler_flags |= PERFOPEN_FAULTS;
		o->freq_hz = FAULTS_HZ;
	} else if (w->tier == HEAP_TIER_GROWTH) {
		o->programs = ENGINE_IO | ENGINE_MEMORY;
		o->io_parts = IO_PART_GROWTH;
	}
}
