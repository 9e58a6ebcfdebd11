/* The heap part of a capture; see heap_capture.h. */
#include "base/base.h"
#include "cmd/capture/heap_capture.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "capture/heap/planner.h"
#include "capture/io/io.h"
#include "capture/perf/open.h"
#include "plan/heapplan.h"

#define FAULTS_HZ 4999

static const struct opt_choice method_choices[] = {
	{"prof", HEAP_METHOD_PROF, "jemalloc's own profiler"},
	{"hooks", HEAP_METHOD_HOOKS, "allocation hooks of jemalloc 5.2 to 5.3.1"},
	{"patch", HEAP_METHOD_PATCH, "patches the allocator's functions in memory"},
	{"uprobes", HEAP_METHOD_UPROBES, "BPF programs on uprobes, no code in the process"},
	{"growth", HEAP_METHOD_GROWTH, "page faults: growth of memory, not allocations"},
	{0},
};

/* --every without a time was once the name of --all-allocations: the error names that. */
static int set_every(void *to, const char *arg, struct err *err)
{
	struct heap_capture *heap = to;
	if (!opt_to_duration(&heap->every_ns, arg, NULL))
		return 0;
	err_set(err, -EINVAL, "'%s' is not a time", arg);
	return err_hint(err, "to record every allocation: --all-allocations");
}

static const struct opt table[] = {
	OPT_FLAG(0, "all-allocations", struct heap_capture, is_all,
		 "record every allocation instead of a sample: exact, also peak and temporary "
		 "blocks"),
	OPT_SIZE_FROM(
		0, "sample", struct heap_capture, interval_bytes, 1, "SIZE",
		"mean number of allocated bytes between samples (default 512K, in assay limit at "
		"most 1/4096 of the limit); blocks of SIZE and more are all recorded"),
	OPT_ENUM(0, "method", struct heap_capture, method, method_choices, "NAME",
		 "how allocations are recorded (default: the best that works, which is printed)"),
	OPT_CALL(0, "every", set_every, "TIME",
		 "time between readings of RSS and its parts (default 1s, in assay limit 100ms)"),
	OPT_END,
};
const struct opt_group heap_capture_group = {"Allocations", table};

void heap_capture_release(struct heap_capture *heap)
{
	heap_method_choice_release(&heap->choice);
	heaptargets_free(heap->targets);
	free(heap->last_reason);
}

/* ---- messages ----------------------------------------------------------------------------- */

static void print_plan(void *ctx, int32_t pid, const struct heap_plan *plan)
{
	struct heap_capture *o = ctx;
	const char *reason = plan->reason ? plan->reason : "";
	if (o->last_reason &&
	    !strcmp(o->last_reason, reason)) { /* mostly children that run the same program */
		log_info("pid %d: %s", pid, reason);
		return;
	}
	free_p(&o->last_reason);
	o->last_reason = xstrdup(reason);
	if (o->is_many)
		log_note("pid %d: %s", pid, reason);
	else
		log_note("%s", reason);
}

static void warn_of_refused(void *ctx, int32_t pid, const struct err *why)
{
	(void)ctx;
	log_warn("pid %d is not recorded: %s", pid, err_msg(why));
	if (why->hint)
		log_hint("%s", why->hint);
}

void heap_capture_print_losses(const struct capture_job *job, const struct capture_result *r)
{
	const struct profile *p = r->profile;
	(void)job;
	const uint64_t *lost = p->losses.nr;
	if (lost[LOSS_HEAP_DROPPED]) {
		log_warn("%" PRIu64
			 " allocation events were dropped: ring buffers full, or too many threads",
			 lost[LOSS_HEAP_DROPPED]);
		log_hint("record fewer events: omit --all-allocations, or use a larger --sample");
	}
	const char *ignored = profile_get_fact(p, FACT_LOSSES_IGNORED);
	if (ignored)
		log_warn("%s", ignored);
	const char *unpatched = profile_get_fact(p, FACT_HEAP_UNPATCHED_NAME);
	if (unpatched)
		log_warn("some allocator functions are not recorded: %s", unpatched);
	const char *late = profile_get_fact(p, FACT_HEAP_LOADED_LATER);
	if (late)
		log_warn(
			"'%s' has its own allocator and was loaded after the start: its allocations are not recorded",
			late);
	if (lost[LOSS_HEAP_NOT_FOLLOWED])
		log_note("not recorded: %s; to record children: --children",
			 num_noun(lost[LOSS_HEAP_NOT_FOLLOWED], "child processes").s);
	if (lost[LOSS_HEAP_TOO_SHORT])
		log_note("%s ended before assay could attach",
			 num_noun(lost[LOSS_HEAP_TOO_SHORT], "child processes").s);
	if (profile_get_fact(p, FACT_HEAP_RECORDED_UNTIL))
		log_warn("recorded only until %s", profile_get_fact(p, FACT_HEAP_RECORDED_UNTIL));
	if (profile_get_fact(p, FACT_HEAP_RECORDER_STOPPED))
		log_warn("the recorder in the process stopped: assay got no CPU for 2 s");
}

void heap_capture_add_reason(struct buf *to, const struct capture_job *job,
			     const struct capture_result *r)
{
	const struct profile *p = r->profile;
	const char *method = profile_get_fact(p, FACT_HEAP_METHOD);
	uint64_t nr_frees = profile_get_fact_nr(p, FACT_HEAP_FREES);
	uint64_t elapsed_ns = p->end_ns > p->start_ns ? p->end_ns - p->start_ns : 0;
	(void)job;
	if (p->losses.nr[LOSS_HEAP_DROPPED])
		buf_addf(to, "all %s of allocations and frees were dropped",
			 num_noun(p->losses.nr[LOSS_HEAP_DROPPED], "records").s);
	else if (profile_get_fact_nr(p, FACT_HEAP_PROCESSES))
		buf_addf(to, "the recorder in the target counted 0 allocations and %s in %s",
			 num_noun(nr_frees, "frees").s, num_ns(elapsed_ns).s);
	else if (method && !strncmp(method, "jemalloc-prof", 13))
		buf_add_str(to, "none of the blocks that jemalloc sampled was live at its dump");
	else if (profile_get_fact(p, FACT_GROWTH))
		buf_addf(to, "the target touched no new anonymous memory in %s",
			 num_ns(elapsed_ns).s);
	else if (profile_get_fact(p, FACT_HEAP_PROBES))
		buf_addf(to, "%s", profile_get_fact(p, FACT_HEAP_PROBES));
	else
		buf_add_str(to, "the target ended before the recorder was in it");
}

/* ---- the capture -------------------------------------------------------------------------- */

int heap_capture_check(const struct heap_capture *heap, const struct capture_job *job,
		       struct err *err)
{
	if (heap->method == HEAP_METHOD_PROF && heap->is_all)
		return err_set(err, -EINVAL,
			       "--all-allocations excludes --method prof, which samples");
	if (heap->method == HEAP_METHOD_UPROBES && job->common.has_no_bpf)
		return err_set(err, -EINVAL,
			       "--no-bpf excludes --method uprobes, which needs BPF programs");
	return 0;
}

/* Chooses the method by the plan for the first process of a running target. */
static int choose_method(struct heap_capture *heap, const struct capture_job *job, struct err *err)
{
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	struct heap_method_choice *choice = &heap->choice;
	enum heap_method forced = (enum heap_method)heap->method;
	const struct target *t = job->options.target;
	/* errors of a process are printed when assay attaches to it */
	bool has_plan = forced == HEAP_METHOD_NONE && t && t->pids.pids.n &&
			!heapplanner_plan(heap->targets, t->pids.pids.p[0], forced, &plan, NULL);
	heapchoice_method(choice, forced, has_plan ? &plan : NULL);
	if (!job->common.has_no_bpf)
		return 0;
	choice->has_no_bpf = true;
	if (choice->method == HEAP_METHOD_UPROBES)
		return err_set(err, -ENOTSUP, "cannot record this heap without BPF programs: %s",
			       choice->reason);
	return 0;
}

static void apply_method(const struct heap_method_choice *w, struct capture_options *o,
			 struct heapsource_spec *spec)
{
	o->tables = HEAP_TABLES | TABLE_SET(MEMORY);
	spec->why = w->reason;
	if (w->method == HEAP_METHOD_UPROBES) {
		spec->by_probes = true;
	} else if (w->method == HEAP_METHOD_GROWTH && w->has_no_bpf) {
		o->tables = TABLE_SET(SAMPLES) | TABLE_SET(MEMORY);
		o->flags |= CAPTURE_NO_BPF | CAPTURE_GROWTH;
		o->sampler_flags |= PERFOPEN_FAULTS;
		o->freq_hz = FAULTS_HZ;
	} else if (w->method == HEAP_METHOD_GROWTH) {
		o->tables = GROWTH_TABLES | TABLE_SET(MEMORY);
	}
}

int heap_capture_prepare(struct heap_capture *heap, struct capture_job *job, struct err *err)
{
	const struct chosen_target *t = &job->target;
	heap->targets = heapplanner_new();
	heap->is_many = t->has_target && t->target.pids.pids.n > 1;
	bool takes_children = job->common.target.takes_children || t->target.groups.n;
	heap->spec = (struct heapsource_spec){.targets = heap->targets,
					      .forced = (enum heap_method)heap->method,
					      .is_full_trace = heap->is_all,
					      .starts_full = !heap->is_all && !heap->interval_bytes,
					      .interval_bytes = heap->interval_bytes
									? heap->interval_bytes
									: HEAP_CAPTURE_INTERVAL,
					      .follows_children = takes_children,
					      .on_plan = print_plan,
					      .on_refused = warn_of_refused,
					      .ctx = heap};
	job->options.heap = &heap->spec;
	job->options.takes_children = job->common.target.takes_children;
	job->options.memory_spacing_ns = heap->every_ns;
	TRY(choose_method(heap, job, err));
	apply_method(&heap->choice, &job->options, &heap->spec);
	if (heap->spec.follows_children && t->has_target)
		log_note("children that the target forks are recorded from about 0.1 s after their "
			 "fork on: what they allocate before is missing");
	if (heap->choice.method == HEAP_METHOD_GROWTH)
		log_note("recording growth of memory by call stack: %s", heap->choice.reason);
	return 0;
}
