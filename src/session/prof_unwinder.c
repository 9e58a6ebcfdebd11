/* assay's unwinder for jemalloc's profiling; see prof_unwinder.h. */
#include "base/base.h"
#include "session/prof_unwinder.h"

#include "base/clock.h"
#include "base/mem.h"
#include "capture/heap/process.h"
#include "capture/heap/queue.h"
#include "capture/perf/synth.h"
#include "ingest/builder.h"
#include "model/profile.h"
#include "session/module_files.h"

#define UPDATE_NS NS_PER_SEC /* between two reads of the mappings */

struct prof_unwinder {
	int32_t pid;
	struct profile *p; /* needed by the builder; its content is not used */
	struct live_files files;
	struct builder *builder;
	const struct space *space;
	struct heapqueue queue; /* stays empty: this method sends no events */
	struct heapprocess *process;
	uint64_t updated_ns;
};

bool prof_unwinder_is_possible(const struct heap_plan *plan)
{
	const uint32_t *v = plan->version;
	return plan->mallctl && (v[0] > 5 || (v[0] == 5 && v[1] >= 3));
}

static void space_changed(void *ctx, int32_t pid, const struct space *sp)
{
	struct prof_unwinder *w = ctx;
	if (pid != w->pid)
		return;
	w->space = sp;
	if (w->process)
		heapprocess_space(w->process, sp);
}

static int emit(struct prof_unwinder *w, struct err *err)
{
	struct event_sink sink = builder_sink(w->builder);
	w->updated_ns = clock_mono_ns();
	int rc = synth_process(w->pid, w->updated_ns, &sink, err);
	builder_emit_spaces(w->builder);
	return rc;
}

static void walk_free(struct prof_unwinder *w)
{
	heapprocess_free(w->process);
	builder_free(w->builder);
	live_files_release(&w->files);
	heapqueue_release(&w->queue);
	profile_free(w->p);
	free(w);
}

int prof_unwinder_begin(struct prof_unwinder **ret_w, const struct target *target, int32_t pid,
			struct heap_plan *plan, const char *cache_dir, struct err *err)
{
	struct prof_unwinder *w = xcalloc(1, sizeof(*w));
	w->pid = pid;
	w->p = profile_new();
	live_files_init(&w->files);
	heapqueue_init(&w->queue);
	w->builder = builder_new(w->p, &(struct builder_options){.files = &w->files.access,
								 .cache_dir = cache_dir,
								 .space_changed = space_changed,
								 .ctx = w});
	int rc = emit(w, err);
	struct heapprocess_spec spec = {.pid = pid,
					.target = target,
					.start_ns = w->updated_ns,
					.is_full_trace = true,
					.space = w->space,
					.queue = &w->queue};
	if (!rc)
		rc = heapprocess_attach(&w->process, &spec, plan, err);
	if (!rc)
		rc = heapprocess_start(w->process, err);
	if (rc) {
		if (w->process)
			(void)prof_unwinder_end(w);
		else
			walk_free(w);
		return rc;
	}
	*ret_w = w;
	return 0;
}

void prof_unwinder_tick(struct prof_unwinder *w)
{
	(void)heapprocess_drain(w->process);
	heapprocess_retire(w->process);
	/* If the process has exited, the builder gets no mappings for it. */
	if (clock_mono_ns() - w->updated_ns > UPDATE_NS)
		(void)emit(w, NULL);
}

uint64_t prof_unwinder_end(struct prof_unwinder *w)
{
	heapprocess_stop(w->process);
	heapprocess_end(w->process, 0);
	uint64_t ns = heapprocess_inject_info(w->process).stopped_ns;
	walk_free(w);
	return ns;
}
