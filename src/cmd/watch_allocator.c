/* What an allocator says of itself; see watch_allocator.h. */
#include "base/base.h"
#include "cmd/watch_allocator.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "remote/jemalloc.h"
#include "capture/heapplanner.h"
#include "plan/heapchoice.h"

#define STOP_SHARE 250

char *watch_allocator_name(int32_t pid, bool *ret_maps_itself)
{
	CLEANUP(heaptargets_free_p) struct heaptargets *targets = heapplanner_new();
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	if (heaptargets_look(targets, pid, &h, NULL))
		return NULL;
	enum heap_allocator kind = heaptarget_allocator(&h);
	*ret_maps_itself = kind == HEAP_ALLOCATOR_JEMALLOC || kind == HEAP_ALLOCATOR_TCMALLOC ||
			   kind == HEAP_ALLOCATOR_MIMALLOC;
	return heaptarget_describe(&h);
}

int watch_asker_open(struct watch_asker *a, int32_t pid, struct err *err)
{
	CLEANUP(heaptargets_free_p) struct heaptargets *targets = heapplanner_new();
	*a = (struct watch_asker){.pid = pid};
	TRY(heapplanner_plan(targets, pid, HEAP_TIER_NONE, &a->plan, err));
	a->has_plan = true;
	if (a->plan.allocator != HEAP_ALLOCATOR_JEMALLOC || !a->plan.mallctl) {
		err_set(err, -ENOTSUP, "--allocator: %s does not say what it has in use",
			a->plan.allocator_text ? a->plan.allocator_text : "the allocator");
		return err_hint(err, "it is asked of jemalloc; assay heap tells what is live under "
				     "any allocator");
	}
	struct jemalloc_stats s;
	int rc = jemalloc_stats_totals(&s, pid, &a->plan, err);
	if (rc)
		return err_wrap(err, "--allocator");
	bool has_stats = s.has_stats;
	jemalloc_stats_release(&s);
	if (!has_stats)
		return err_set(err, -ENOTSUP,
			       "--allocator: this jemalloc was built without statistics");
	return 0;
}

void watch_asker_release(struct watch_asker *a)
{
	if (a->has_plan)
		heap_plan_release(&a->plan);
}

const struct watch_allocator *watch_asker_ask(struct watch_asker *a, uint64_t now_ns)
{
	if (!a->pid || now_ns < a->next_ns)
		return a->last.is_known ? &a->last : NULL;
	struct jemalloc_stats s;
	CLEANUP(err_release) struct err err = {0};
	a->next_ns = now_ns + NS_PER_SEC;
	if (jemalloc_stats_totals(&s, a->pid, &a->plan, &err)) {
		/* A thread within the allocator is not disturbed: the next second, then. */
		log_debug(LOG_SESSION, 1, "%s", err_msg(&err));
		return a->last.is_known ? &a->last : NULL;
	}
	a->last = (struct watch_allocator){.is_known = s.has_stats,
					   .asked_ns = now_ns,
					   .in_use_bytes = s.allocated_bytes,
					   .active_bytes = s.active_bytes,
					   .resident_bytes = s.resident_bytes,
					   .retained_bytes = s.retained_bytes};
	uint64_t stopped_ns = s.stopped_ns * MAX(s.nr_sessions, 1u);
	a->nr_asked++;
	a->stopped_ns += stopped_ns;
	a->longest_ns = MAX(a->longest_ns, s.stopped_ns);
	a->next_ns = now_ns + MAX(NS_PER_SEC, stopped_ns * STOP_SHARE);
	jemalloc_stats_release(&s);
	return a->last.is_known ? &a->last : NULL;
}
