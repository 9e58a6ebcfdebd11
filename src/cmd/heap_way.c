/* The sources of a tier; see heap_way.h. */
#include "base/base.h"
#include "cmd/heap_way.h"

#include "capture/heapplanner.h"
#include "capture/io.h"
#include "capture/perfopen.h"

#define FAULTS_HZ 4999

void heap_way_choose(struct heap_way *ret_w, struct heaptargets *targets, enum heap_tier forced,
		     const struct target *t)
{
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	/* what is wrong with a process is told when it is attached to */
	bool has_plan = forced == HEAP_TIER_NONE && t && t->pids.pids.n &&
			!heapplanner_plan(targets, t->pids.pids.p[0], forced, &plan, NULL);
	heapchoice_way(ret_w, forced, has_plan ? &plan : NULL);
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
