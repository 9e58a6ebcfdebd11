/* jemalloc's own profiling as a capture; see heap_prof.h. */
#include "base/base.h"
#include "cmd/heap_prof.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/progress.h"
#include "base/stop.h"
#include "remote/jemalloc.h"
#include "cmd/cmd.h"
#include "capture/heapplanner.h"
#include "cmd/recording.h"
#include "format/assayfile.h"
#include "host/cachedir.h"
#include "host/caps.h"
#include "host/watch.h"
#include "model/heap.h"
#include "session/load.h"
#include "session/prof_walk.h"

#define DUMP_SUFFIX    ".heap"
#define DUMP_BYTES_MAX ((size_t)1 << 30)
#define TICK_MS        200
#define OPEN_TRIES     20 /* every thread was in the allocator: again a little later */

struct prof_run {
	const struct heap_prof_spec *spec;
	int32_t pid;
	struct heap_plan plan;
	struct jemalloc_prof before;
	bool is_changed; /* sampling was switched on by us */
	bool is_reset;
	struct prof_walk *walk; /* NULL: jemalloc's own unwinder is left in place */
	char *no_walk;          /* why; owned */
	uint64_t stopped_ns;
	uint64_t start_ns;
};

static int open_again(struct prof_run *p, struct jemalloc **ret_j, struct err *err)
{
	for (int i = 0;; i++) {
		int rc = jemalloc_open(ret_j, p->pid, &p->plan, err);
		if (rc != -EAGAIN || i == OPEN_TRIES)
			return rc;
		err_clear(err);
	}
}

static void close_session(struct prof_run *p, struct jemalloc *j)
{
	if (j)
		p->stopped_ns = MAX(p->stopped_ns, jemalloc_stopped_ns(j));
	jemalloc_close(j);
}

/* The variable that this binary reads, for advice; owned by the caller, may be NULL. */
static char *variable_of(struct heaptargets *t, int32_t pid)
{
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	if (heaptargets_look(t, pid, &h, NULL))
		return NULL;
	const struct heaptarget_image *m = heaptarget_jemalloc(&h);
	return m && m->found->jemalloc.variable ? xstrdup(m->found->jemalloc.variable) : NULL;
}

static unsigned lg_of(uint64_t bytes)
{
	return bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

static int check(struct prof_run *p, struct jemalloc *j, const char *variable, struct err *err)
{
	TRY(jemalloc_prof_state(j, &p->before, err));
	return jemalloc_prof_check(&p->before, variable, err);
}

static int switch_on(struct prof_run *p, struct jemalloc *j, struct err *err)
{
	int rc = 0;
	uint64_t lg = lg_of(p->spec->interval_bytes);
	if (p->spec->has_interval && lg != p->before.lg_sample) {
		rc = jemalloc_write(j, "prof.reset", &lg, sizeof(lg), err);
		p->is_reset = !rc;
	}
	if (!rc && !p->before.is_active) {
		rc = jemalloc_write_bool(j, "prof.active", true, err);
		p->is_changed = !rc;
	}
	return rc;
}

/* Without it jemalloc's own unwinder takes the stacks, which costs the process more. */
static void lend_walk(struct prof_run *p, struct heaptargets *t)
{
	CLEANUP(err_release) struct err why = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0}; /* one more: it is taken over */
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	if (!prof_walk_is_possible(&p->plan)) {
		p->no_walk = xstrdup("before 5.3.0 it cannot be replaced");
		return;
	}
	if (heapplanner_plan(t, p->pid, HEAP_TIER_PROF, &plan, &why) ||
	    prof_walk_begin(&p->walk, p->pid, &plan, cache_dir, &why))
		p->no_walk = xstrdup(err_msg(&why));
}

static void take_walk_back(struct prof_run *p)
{
	uint64_t ns = p->walk ? prof_walk_end(TAKE(p->walk)) : 0;
	p->stopped_ns = MAX(p->stopped_ns, ns);
}

static int begin(struct prof_run *p, struct heaptargets *t, struct err *err)
{
	struct jemalloc *j = NULL;
	char *variable CLEANUP(free_p) = variable_of(t, p->pid);
	int rc = heapplanner_plan(t, p->pid, HEAP_TIER_PROF, &p->plan, err);
	if (!rc)
		rc = open_again(p, &j, err);
	if (!rc)
		rc = check(p, j, variable, err);
	close_session(p, TAKE(j));
	if (rc)
		return rc;
	lend_walk(p, t);
	rc = open_again(p, &j, err);
	if (!rc)
		rc = switch_on(p, j, err);
	close_session(p, j);
	p->start_ns = clock_mono_ns();
	return rc;
}

/* The dump; what was changed is as before. */
static int end(struct prof_run *p, int *ret_fd, struct err *err)
{
	struct jemalloc *j = NULL;
	int rc = open_again(p, &j, err);
	if (!rc)
		rc = jemalloc_dump(j, ret_fd, err);
	if (j && p->is_changed && jemalloc_write_bool(j, "prof.active", false, NULL))
		log_warn("sampling could not be switched off again");
	close_session(p, j);
	take_walk_back(p);
	return rc;
}

static enum capture_end wait_for_end(const struct prof_run *p, const struct target *t,
				     uint64_t end_ns)
{
	struct watch watch = WATCH_INIT(t);
	enum capture_end why = CAPTURE_END_TIME;
	struct progress bar;
	progress_init(&bar, "sampling");
	for (;;) {
		uint64_t now = clock_mono_ns();
		if (now >= end_ns)
			break;
		if (stop_count() || watch_has_ended(&watch)) {
			why = stop_count() ? CAPTURE_END_STOPPED : CAPTURE_END_TARGET;
			break;
		}
		struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
		(void)poll(&fd, 1, (int)MIN((end_ns - now) / NS_PER_MS + 1, TICK_MS));
		stop_drain();
		if (p->walk)
			prof_walk_tick(p->walk);
		if (progress_due(&bar))
			progress_text(&bar, "%" PRIu64 " s left",
				      (uint64_t)((end_ns - now + NS_PER_SEC - 1) / NS_PER_SEC));
	}
	progress_release(&bar);
	watch_release(&watch);
	return why;
}

/* ---- the result ---------------------------------------------------------------------------- */

static int save_dump(const struct outputs *o, int from, char **ret_path, struct err *err)
{
	CLEANUP(buf_release) struct buf bytes = {0};
	int to CLEANUP(close_p) = -1;
	int rc = file_read_fd(&bytes, from, DUMP_BYTES_MAX, err);
	if (!rc)
		rc = store_create(&o->place, DUMP_SUFFIX, &to, err);
	if (!rc)
		rc = file_write_all(to, bytes.p, bytes.n, err);
	if (!rc)
		*ret_path = store_path(&o->place, DUMP_SUFFIX);
	return rc;
}

static void add_walk(const struct prof_run *p, struct buf *to)
{
	if (p->no_walk)
		buf_addf(to, "; stacks by jemalloc's own unwinder (%s)", p->no_walk);
	else
		buf_add_str(to, "; stacks by assay's unwinder");
}

static void add_facts(const struct prof_run *p, const char *name, struct profile *profile)
{
	CLEANUP(buf_release) struct buf held = {0};
	CLEANUP(buf_release) struct buf tier = {0};
	num_add_ns(&held, p->stopped_ns);
	buf_add_str(&tier, p->is_reset ? "jemalloc-prof: what was sampled in the capture"
			   : p->is_changed
				   ? "jemalloc-prof: sampled in the capture, and before when it "
				     "was on"
				   : "jemalloc-prof: sampled since the process began");
	add_walk(p, &tier);
	profile_fact(profile, "target", name);
	profile_fact(profile, HEAP_FACT_ALLOCATOR, p->plan.allocator_text);
	profile_fact(profile, HEAP_FACT_ATTACHED, "attach");
	profile_fact(profile, HEAP_FACT_TIER, buf_str(&tier));
	profile_fact(profile, "heap longest stop", buf_str(&held));
}

static int finish(const struct prof_run *p, struct outputs *o, struct capture_result *r, int dump,
		  const char *name, struct err *err)
{
	char *path CLEANUP(free_p) = NULL;
	TRY(save_dump(o, dump, &path, err));
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct load_options options = {.cache_dir = cache_dir};
	uint64_t cpu_ns = r->own_cpu_ns;
	int rc = load_profile(&r->profile, path, &options, err);
	if (rc)
		return err_wrap(err, "reading the dump back");
	add_facts(p, name, r->profile);
	r->own_cpu_ns = cpu_ns;
	CLEANUP(buf_release) struct buf bytes = {0};
	rc = assayfile_write(&bytes, r->profile, "heap", err);
	if (!rc && file_write_all(o->recording_fd, bytes.p, bytes.n, &r->disk))
		r->nr_unsaved = capture_nr_rows(r);
	r->nr_bytes = r->disk.code ? 0 : bytes.n;
	return rc;
}

static uint64_t own_cpu_ns(void)
{
	struct rusage u;
	if (getrusage(RUSAGE_SELF, &u))
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static int run(struct prof_run *p, struct outputs *o, const struct chosen_target *t,
	       struct err *err)
{
	CLEANUP(capture_result_release) struct capture_result r = {0};
	struct heaptargets *targets CLEANUP(heaptargets_free_p) = heapplanner_new();
	uint64_t cpu_ns = own_cpu_ns();
	TRY(begin(p, targets, err));
	CLEANUP(buf_release) struct buf walk = {0};
	add_walk(p, &walk);
	log_note("%s; %s%s", p->plan.allocator_text,
		 p->is_reset     ? "its profiling runs at the rate that was asked for; what it had "
				   "sampled before is forgotten"
		 : p->is_changed ? "its profiling was off and runs now"
				 : "its profiling runs already",
		 buf_str(&walk));
	uint64_t duration_ns =
		t->duration_ns ? t->duration_ns : RECORDING_SECONDS_DEFAULT * NS_PER_SEC;
	r.end = wait_for_end(p, &t->target, p->start_ns + duration_ns);
	r.duration_ns = clock_mono_ns() - p->start_ns;
	int dump CLEANUP(close_p) = -1;
	/* A zombie has no thread to ask, which only shows by waiting for one. */
	int rc = r.end == CAPTURE_END_TARGET ? -ESRCH : end(p, &dump, err);
	if (rc == -ESRCH)
		return err_set(err, rc, "the process ended before its profile could be dumped");
	r.own_cpu_ns = own_cpu_ns() - cpu_ns;
	host_keep_caps(HOST_NAMING);
	if (!rc)
		rc = finish(p, o, &r, dump, t->target.name, err);
	if (rc)
		return rc;
	o->flags |= p->spec->skips_pictures || stop_count() > 1 ? OUTPUTS_SKIP_PICTURES : 0;
	return heap_outputs_finish(o, &r, &p->spec->outputs);
}

int heap_prof_run(const struct heap_prof_spec *spec, const struct chosen_target *t)
{
	CLEANUP(err_release) struct err err = {0};
	if (!t->has_target || t->target.pids.pids.n != 1)
		return cmd_usage("heap", "--tier prof is of one running process; to launch one "
					 "with profiling: assay env --jemalloc-prof -- CMD");
	if (stop_install(&err))
		return cmd_fail(&err);
	struct prof_run p = {.spec = spec, .pid = t->target.pids.pids.p[0]};
	struct outputs o;
	if (outputs_open(&o, spec->output, t->target.name, "heap", &err))
		return cmd_fail(&err);
	int status = run(&p, &o, t, &err);
	if (status < 0) {
		outputs_abandon(&o);
		status = cmd_fail(&err);
	}
	take_walk_back(&p); /* where it failed half-way */
	outputs_release(&o);
	heap_plan_release(&p.plan);
	free(p.no_walk);
	return status;
}
