/* A capture of heaps; see heap_run.h. */
#include "base/base.h"
#include "cmd/heap_run.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "capture/heapsource.h"
#include "cmd/cmd.h"
#include "cmd/heap_outputs.h"
#include "cmd/heap_prof.h"
#include "cmd/heap_way.h"
#include "capture/heapplanner.h"
#include "cmd/recording.h"
#include "model/heap.h"
#include "remote/tracee.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#define SUPPRESS_MAX ((size_t)1 << 20)

struct heap_run {
	const struct heap_run_opts *o;
	struct buf suppress; /* text of the file */
	bool is_many;        /* processes: each is told with its number */
	size_t nr_refused;
	char *said; /* the last reason */
};

static void heap_run_release(struct heap_run *r)
{
	buf_release(&r->suppress);
	free_p(&r->said);
}

/* ---- what is told while it runs ------------------------------------------------------------- */

static void say_plan(void *ctx, int32_t pid, const struct heap_plan *plan)
{
	struct heap_run *r = ctx;
	const char *reason = plan->reason ? plan->reason : "";
	if (r->said && !strcmp(r->said, reason)) { /* children of one program, mostly */
		log_info("pid %d: %s", pid, reason);
		return;
	}
	free_p(&r->said);
	r->said = xstrdup(reason);
	if (r->is_many)
		log_note("pid %d: %s", pid, reason);
	else
		log_note("%s", reason);
}

static void say_refused(void *ctx, int32_t pid, const struct err *why)
{
	struct heap_run *r = ctx;
	r->nr_refused++;
	log_warn("pid %d is not recorded: %s", pid, err_msg(why));
	if (why->hint)
		log_hint("%s", why->hint);
}

/* What the numbers lack. */
static void say_gaps(const struct profile *p)
{
	const char *dropped = profile_get_fact(p, HEAP_FACT_DROPPED);
	if (dropped) {
		log_warn("%s events are missing: the rings were full, or the threads too many",
			 dropped);
		log_hint("a sample (without --every, or with a larger --sample) needs less room");
	}
	const char *unpatched = profile_get_fact(p, "heap function not patched");
	if (unpatched)
		log_warn("not all of the allocator is seen: %s", unpatched);
	const char *late = profile_get_fact(p, "heap allocator loaded later");
	if (late)
		log_warn("'%s' with an allocator of its own was loaded after the start: its blocks "
			 "are not seen",
			 late);
	const char *children = profile_get_fact(p, "heap children not followed");
	if (children)
		log_note("%s processes that it started were not recorded (--children does)",
			 children);
	const char *brief = profile_get_fact(p, "heap children too short-lived");
	if (brief)
		log_note("%s processes that it started ended before they could be attached to",
			 brief);
	if (profile_get_fact(p, "heap recorded until"))
		log_warn("recorded only until %s", profile_get_fact(p, "heap recorded until"));
	if (profile_get_fact(p, "heap recorder fell silent"))
		log_warn("the recorder fell silent before the end: assay was kept from running");
}

static struct heap_outputs_options outputs_options(const struct heap_run *run)
{
	const struct heap_run_opts *o = run->o;
	return (struct heap_outputs_options){
		.heap = {.older_than = o->older_than,
			 .suppress = o->suppress ? buf_str(&run->suppress) : NULL},
		.flags = o->has_all_pictures ? HEAP_OUTPUTS_ALL : 0,
	};
}

static int finish(void *ctx, struct outputs *out, const struct capture_result *r)
{
	const struct heap_run *run = ctx;
	struct heap_outputs_options options = outputs_options(run);
	say_gaps(r->profile);
	out->flags |= run->o->is_json ? OUTPUTS_JSON : 0;
	return heap_outputs_finish(out, r, &options);
}

/* One that stands still is recorded all the same: it may be let go on meanwhile. */
static void say_stopped(const struct chosen_target *t)
{
	struct tracee_facts f;
	for (size_t i = 0; t->has_target && i < t->target.pids.pids.n; i++) {
		int32_t pid = t->target.pids.pids.p[i];
		if (tracee_facts(pid, pid, &f) || (f.state != 'T' && f.state != 't'))
			continue;
		log_warn("process %d is stopped: it allocates nothing until it goes on", pid);
		log_hint("kill -CONT %d", pid);
	}
}

/* ---- the capture -------------------------------------------------------------------------- */

int heap_run(const struct heap_run_opts *o, const struct chosen_target *t,
	     const struct opt_args *args)
{
	CLEANUP(heaptargets_free_p) struct heaptargets *targets = heapplanner_new();
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(heap_run_release) struct heap_run run = {.o = o};
	if (o->suppress && file_read(&run.suppress, o->suppress, SUPPRESS_MAX, &err)) {
		log_err(&err);
		return EXIT_USAGE;
	}
	if (o->tier == HEAP_TIER_PROF) {
		const struct heap_prof_spec prof = {.output = o->output,
						    .interval_bytes = o->interval_bytes,
						    .has_interval =
							    o->interval_bytes != HEAP_RUN_INTERVAL,
						    .skips_pictures = o->has_no_pictures,
						    .outputs = outputs_options(&run)};
		return o->is_every ? cmd_usage("heap", "--tier prof samples: no --every with it")
				   : heap_prof_run(&prof, t);
	}
	run.is_many = t->has_target && t->target.pids.pids.n > 1;
	struct heapsource_spec spec = {.targets = targets,
				       .forced = (enum heap_tier)o->tier,
				       .is_every = o->is_every,
				       .interval_bytes = o->interval_bytes,
				       .follows_children = o->target.takes_children,
				       .on_plan = say_plan,
				       .on_refused = say_refused,
				       .ctx = &run};
	struct recording rec = {
		.options = {.kind = "heap",
			    .heap = &spec,
			    .memory_spacing_ns = o->spacing_ns,
			    .delay_ns = o->delay_ns,
			    .debug_dirs = o->debug_dirs.p,
			    .nr_debug_dirs = o->debug_dirs.n,
			    .recording_fd = -1,
			    .symbolizer_flags = o->has_no_inlines ? SYMBOLIZER_NO_INLINES : 0,
			    .demangle_flags = o->has_hashes ? DEMANGLE_HASHES : 0},
		.count_name = "allocations",
		.skips_pictures = o->has_no_pictures,
		.finish = finish,
		.ctx = &run,
	};
	recording_target(&rec, t, args);
	say_stopped(t);
	CLEANUP(heap_way_release) struct heap_way way = {0};
	heap_way_choose(&way, targets, (enum heap_tier)o->tier, t->has_target ? &t->target : NULL);
	heap_way_apply(&way, &rec.options, &spec);
	if (way.tier == HEAP_TIER_GROWTH)
		log_note("growth of memory by stack: %s", way.reason);
	return recording_run(&rec, o->output, recording_target_name(t, args));
}
