/* jemalloc's own profiling as a capture; see heap_prof.h. */
#include "base/base.h"
#include "cmd/heap_prof.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/recording.h"
#include "session/prof_capture.h"

static void say_begin(const struct prof_capture *p)
{
	CLEANUP(buf_release) struct buf walk = {0};
	prof_capture_add_walk(p, &walk);
	log_note("%s; %s%s", p->plan.allocator_text,
		 p->is_reset     ? "its profiling runs at the rate that was asked for; what it had "
				   "sampled before is forgotten"
		 : p->is_changed ? "its profiling was off and runs now"
				 : "its profiling runs already",
		 buf_str(&walk));
}

static void wait_for_end(struct prof_capture *p, uint64_t end_ns)
{
	struct progress bar;
	progress_init(&bar, "sampling");
	while (prof_capture_wait(p, end_ns))
		if (progress_due(&bar))
			progress_text(&bar, "%" PRIu64 " s left",
				      (uint64_t)((end_ns - MIN(clock_mono_ns(), end_ns) +
						  NS_PER_SEC - 1) /
						 NS_PER_SEC));
	progress_release(&bar);
}

/* An exit status, or an error. */
static int run(struct prof_capture *p, struct outputs *o, const struct heap_prof_spec *spec,
	       uint64_t duration_ns, struct err *err)
{
	CLEANUP(capture_result_release) struct capture_result r = {0};
	TRY(prof_capture_begin(p, err));
	say_begin(p);
	wait_for_end(p, p->start_ns + duration_ns);
	int rc = prof_capture_end(p, &o->place, o->recording_fd, &r, err);
	if (p->stays_on)
		log_warn("sampling could not be switched off again");
	if (rc)
		return rc;
	o->flags |= spec->skips_pictures || stop_count() > 1 ? OUTPUTS_SKIP_PICTURES : 0;
	return heap_outputs_finish(o, &r, &spec->outputs);
}

int heap_prof_run(const struct heap_prof_spec *spec, const struct chosen_target *t)
{
	CLEANUP(err_release) struct err err = {0};
	if (!t->has_target || t->target.pids.pids.n != 1)
		return cmd_usage("heap", "--tier prof is of one running process; to launch one "
					 "with profiling: assay env --jemalloc-prof -- CMD");
	struct outputs o;
	if (stop_install(&err) || outputs_open(&o, spec->output, t->target.name, "heap", &err))
		return cmd_fail(&err);
	struct prof_capture p = {.target = &t->target,
				 .interval_bytes = spec->has_interval ? spec->interval_bytes : 0};
	uint64_t duration_ns =
		t->duration_ns ? t->duration_ns : RECORDING_SECONDS_DEFAULT * NS_PER_SEC;
	int status = run(&p, &o, spec, duration_ns, &err);
	if (status < 0) {
		outputs_abandon(&o);
		status = cmd_fail(&err);
	}
	prof_capture_release(&p);
	outputs_release(&o);
	return status;
}
