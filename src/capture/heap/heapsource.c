/*
 * Event source for heaps; see heapsource.h. Two threads:
 *
 *	capture thread  plans, ptrace, mappings, process starts and ends; calls the sink
 *	drain thread    drains the rings of all processes (heapdrain.h)
 *
 * Rows and stacks pass from the drain thread to the capture thread through the queue.
 */
#include "base/base.h"
#include "capture/heap/heapsource.h"

#include <errno.h>

#include "base/clock.h"
#include "capture/heap/heapdrain.h"
#include "capture/heap/heapfacts.h"
#include "capture/heap/heappeaks.h"
#include "capture/heap/latelibs.h"
#include "capture/heap/planner.h"
#include "capture/heap/process.h"
#include "capture/heap/queue.h"
#include "capture/perf/synth.h"
#include "host/privileges.h"
#include "model/heap.h"
#include "remote/patch/follow.h"

/*
 * A program just executed waits for the event of its exec, after which its mappings are no longer those
 * of the one before, for MAPPINGS_WAIT_NS at most, then for its own mappings.
 */
#define MAPPINGS_WAIT_NS     6000000u
#define MAPPINGS_WAIT_MAX_NS 200000000u
#define EXEC_DELAY_NS        10000000u /* mmap events arrive late, from another ring */
#define FORK_DELAY_NS        100000000u
#define POLL_MS              10
#define POLL_HELD_MS         1
#define POLL_SAMPLED_MS      100
#define EMIT_NS              1000000000u
#define RETRIES              5
/* After an exec: wait for libraries, and interval of the checks. */
#define LOADING_NS      (10 * NS_PER_SEC)
#define LOADING_LOOK_NS 2000000u

/* A process with known mappings. */
struct known_space {
	int32_t pid;
	const struct space *space;
	struct latelibs late;
};

struct pending_attach {
	int32_t pid;
	uint64_t due_ns;
	uint64_t load_deadline_ns;     /* deadline for its libraries to be loaded */
	uint64_t mappings_deadline_ns; /* deadline for their mmap events; 0 = not loaded yet */
	unsigned nr_tries;
	bool is_late; /* it has run unrecorded since its fork or exec */
};

struct heapsource {
	struct source_env env;
	struct heapsource_spec spec;
	uint64_t start_ns;
	uint64_t slices_ns;            /* start of the slices of rows: of the first attach */
	const struct event_sink *sink; /* of the current call */
	bool emits_mappings;           /* no perf events: this source emits mmap events */
	uint64_t reported_ns;
	struct heapfollow *launch; /* the command and, with follows_children, its descendants */
	VEC(struct known_space) spaces;
	struct map space_of; /* pid -> index into spaces + 1 */
	struct map executed; /* pids of which an exec event came since the last attach */
	struct map recorded; /* pids of processes that are or were recorded */
	VEC(struct pending_attach) attaches;
	uint32_t generation;
	struct heapdrain drain;
	struct heapqueue queue;
	struct heappeaks peaks;
	struct heapsource_info info;
	int32_t facts_pid; /* process whose plan is in `info` */
};

/* ---- life --------------------------------------------------------------------------------- */

/* Not for growth alone, which another source records (capture/io). */
static bool heap_is_wanted(const struct source_env *env)
{
	return env->tables & TABLE_SET(LIVE) && !env->heap->by_probes;
}

static unsigned heap_table_flags(const void *self)
{
	return ((const struct heapsource *)self)->spec.is_full_trace ? 0 : TABLES_ESTIMATE;
}

static int heap_open(void **ret_h, const struct source_env *env, struct err *err UNUSED)
{
	struct heapsource *h = xcalloc(1, sizeof(*h));
	h->env = *env;
	h->spec = *env->heap;
	heapqueue_init(&h->queue);
	heapdrain_init(&h->drain);
	*ret_h = h;
	return 0;
}

static void heap_free(void *self)
{
	struct heapsource *h = self;
	heapdrain_stop(&h->drain);
	for (size_t i = 0; i < h->drain.list.n; i++) { /* the capture failed to start */
		heapprocess_stop(h->drain.list.p[i]);
		heapprocess_end(h->drain.list.p[i], 0);
		heapprocess_free(h->drain.list.p[i]);
	}
	heapdrain_release(&h->drain);
	heappeaks_release(&h->peaks);
	vec_release(&h->spaces);
	vec_release(&h->attaches);
	map_release(&h->space_of);
	map_release(&h->executed);
	map_release(&h->recorded);
	heapqueue_release(&h->queue);
	heapfollow_free(h->launch);
	free(h->info.allocator);
	free(h->info.reason);
	free(h->info.unpatched);
	free(h->info.late);
	free(h);
}

/* ---- processes ---------------------------------------------------------------------------- */

static struct heapprocess *process_of(const struct heapsource *h, int32_t pid)
{
	return heapdrain_process(&h->drain, pid);
}

static const struct space *space_of(const struct heapsource *h, int32_t pid)
{
	const uint32_t *idx = map_get(&h->space_of, (uint32_t)pid);
	return idx ? h->spaces.p[*idx - 1].space : NULL;
}

static void heap_space(void *self, int32_t pid, const struct space *sp)
{
	struct heapsource *h = self;
	uint32_t *idx = map_put(&h->space_of, (uint32_t)pid, NULL);
	if (!*idx) {
		vec_push(&h->spaces, (struct known_space){.pid = pid});
		*idx = (uint32_t)h->spaces.n;
	}
	h->spaces.p[*idx - 1].space = sp;
	struct heapprocess *p = process_of(h, pid);
	if (!p)
		return;
	latelibs_on_event(&h->spaces.p[*idx - 1].late, sp);
	heapdrain_lock(&h->drain);
	heapprocess_space(p, sp);
	heapdrain_unlock(&h->drain);
}

static void note_plan(struct heapsource *h, int32_t pid, const struct heap_plan *plan)
{
	/* of the first process's last program, not of shells that executed it */
	if (h->info.reason && pid != h->facts_pid)
		return;
	h->facts_pid = pid;
	free_p(&h->info.reason);
	free_p(&h->info.allocator);
	h->info.reason = xstrdup(plan->reason ? plan->reason : "");
	h->info.allocator = xstrdup(plan->allocator_text ? plan->allocator_text : "");
	h->info.method = plan->method;
}

static void emit_plan(struct heapsource *h, int32_t pid, const struct heap_plan *plan)
{
	if (h->spec.on_plan)
		h->spec.on_plan(h->spec.ctx, pid, plan);
}

/* Corrects the reason: functions that could not be patched are known only after the attach. */
static void emit_attached(struct heapsource *h, const struct heapprocess *p)
{
	const struct heap_plan *plan = heapprocess_plan(p);
	size_t nr_without = heapprocess_inject_info(p).nr_unpatched_heap;
	size_t nr = 0;
	vec_foreach(s, &plan->functions)
		nr += s->shape < HEAP_MMAP;
	bool is_counted = plan->reason && plan->reason[0] >= '0' && plan->reason[0] <= '9';
	if (!nr_without || !is_counted || nr_without > nr) {
		emit_plan(h, heapprocess_pid(p), plan);
		return;
	}
	struct heap_plan reported = *plan;
	CLEANUP(free_p) char *reason = xasprintf("%zu of %s", nr - nr_without, plan->reason);
	reported.reason = reason;
	note_plan(h, heapprocess_pid(p), &reported);
	emit_plan(h, heapprocess_pid(p), &reported);
}

/* @held: NULL if it runs. */
static int attach_planned(struct heapsource *h, int32_t pid, struct heap_plan *plan,
			  const struct heapfollow_held *held, struct err *err)
{
	if (!h->slices_ns) /* they are short at first, so they begin with a launched program */
		h->slices_ns = held ? clock_mono_ns() : h->start_ns;
	struct heapprocess_spec spec = {.pid = pid,
					.target = h->env.target,
					.generation = ++h->generation,
					.start_ns = h->start_ns,
					.slices_ns = h->slices_ns,
					.is_full_trace = h->spec.is_full_trace,
					.interval_bytes = h->spec.interval_bytes,
					.starts_full = h->spec.starts_full && held,
					.is_held = held != NULL,
					.has_started =
						held && (held->is_forked || plan->is_at_main),
					.space = space_of(h, pid),
					.queue = &h->queue,
					.peaks = &h->peaks};
	CLEANUP(heapprocess_free_p) struct heapprocess *p = NULL;
	TRY(heapprocess_attach(&p, &spec, plan, err));
	heapdrain_add(&h->drain, p);
	struct heapprocess *started = TAKE(p);
	uint32_t *idx = map_get(&h->space_of, (uint32_t)pid);
	if (idx)
		latelibs_begin(&h->spaces.p[*idx - 1].late, spec.space);
	emit_attached(h, started);
	int rc = heapprocess_start(started, err);
	bool is_new = false;
	if (!rc)
		*map_put(&h->recorded, (uint32_t)pid, &is_new) = 1;
	h->info.nr_processes += !rc;
	h->info.nr_pids += is_new;
	return rc; /* a process that ended meanwhile stays in the list until the end */
}

/* Emits the mmap events of the process; the switch event ends the series. */
static int emit_mappings(struct heapsource *h, int32_t pid, struct err *err)
{
	uint64_t now = clock_mono_ns();
	struct event end = {
		.kind = EVENT_SWITCH, .time_ns = now, .pid = pid, .tid = pid, .cpu = -1};
	TRY(synth_process(pid, now, h->sink, err));
	return h->sink->event(h->sink->ctx, &end, err);
}

static int grow(struct heapsource *h, int32_t pid, struct err *err)
{
	int rc = h->env.record_growth(h->env.record_growth_ctx, pid, space_of(h, pid), err);
	if (rc)
		return err_wrap(err, "growth of memory");
	h->info.nr_growth_only++;
	return 0;
}

/* Attaches by patching; if is_all_or_none and that fails, by hooks. */
static int attach_all_or_hooks(struct heapsource *h, int32_t pid, struct heap_plan *plan,
			       struct err *err)
{
	CLEANUP(err_release) struct err why = {0};
	int rc = attach_planned(h, pid, plan, NULL, &why);
	const struct heapprocess *p = process_of(h, pid);
	if (!rc && p)
		note_plan(h, pid, heapprocess_plan(p));
	if (rc != -ENOTSUP)
		return rc ? err_move(err, &why) : 0;
	CLEANUP(heap_plan_release) struct heap_plan hooks = {0};
	TRY(heapplanner_plan(h->spec.targets, pid, HEAP_METHOD_HOOKS, &hooks, err));
	free_p(&hooks.reason);
	hooks.reason = xasprintf("%s, so jemalloc's hooks tell", err_msg(&why));
	note_plan(h, pid, &hooks);
	return attach_planned(h, pid, &hooks, NULL, err);
}

/*
 * Whether to wait after an exec: the libraries must be loaded, and their mmap events read from
 * another ring, or stacks through them would be truncated.
 */
static bool is_ready(const struct heapsource *h, struct pending_attach *w,
		     const struct heap_plan *plan)
{
	uint64_t now = clock_mono_ns();
	if (plan->is_loading)
		return now > w->load_deadline_ns;
	if (!w->mappings_deadline_ns)
		w->mappings_deadline_ns = now + MAPPINGS_WAIT_MAX_NS;
	return h->emits_mappings || now > w->mappings_deadline_ns ||
	       latelibs_is_complete(space_of(h, w->pid), w->pid);
}

/* RLIMIT_AS leaves no room for the recorder: use another method. */
static int grow_instead(struct heapsource *h, int32_t pid, const char *why, struct err *err)
{
	CLEANUP(free_p) char *reason = xasprintf("%s: growth by page faults and mappings", why);
	struct heap_plan plan = {.method = HEAP_METHOD_GROWTH, .reason = reason};
	note_plan(h, pid, &plan);
	TRY(grow(h, pid, err));
	emit_plan(h, pid, &plan);
	return 0;
}

static struct pending_attach new_attach(int32_t pid, uint64_t in_ns)
{
	uint64_t due_ns = clock_mono_ns() + in_ns;
	return (struct pending_attach){pid, due_ns, .load_deadline_ns = due_ns + LOADING_NS};
}

static struct pending_attach *pending_attach_of(const struct heapsource *h, int32_t pid)
{
	vec_foreach(w, &h->attaches)
		if (w->pid == pid)
			return w;
	return NULL;
}

static void schedule_attach(struct heapsource *h, int32_t pid, uint64_t in_ns)
{
	struct pending_attach *w = pending_attach_of(h, pid);
	w = w ? w : vec_add(&h->attaches);
	*w = new_attach(pid, in_ns);
	w->is_late = true;
}

/* A child just forked holds the allocator's locks: it is attached when it runs. */
static int run_to_main(struct heapsource *h, const struct heapfollow_held *held, uint64_t main)
{
	if (held->is_forked)
		schedule_attach(h, held->pid, FORK_DELAY_NS);
	else
		heapfollow_run_to_main(h->launch, held->pid, main);
	return 0;
}

/* @w: of a running process; -EINPROGRESS: try later. Else @held: it is stopped, ready. */
static int attach(struct heapsource *h, int32_t pid, struct pending_attach *w,
		  const struct heapfollow_held *held, struct err *err)
{
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	TRY(h->emits_mappings ? emit_mappings(h, pid, err) : 0);
	TRY(heapplanner_plan(h->spec.targets, pid, h->spec.forced, &plan, err));
	if (w && !is_ready(h, w, &plan))
		return err_set(err, -EINPROGRESS, "process %d is still being loaded", pid);
	if (plan.main && held)
		return run_to_main(h, held, plan.main);
	if (plan.is_all_or_none)
		return attach_all_or_hooks(h, pid, &plan, err);
	note_plan(h, pid, &plan);
	bool grows = plan.method == HEAP_METHOD_GROWTH && h->env.record_growth;
	TRY(grows ? grow(h, pid, err) : 0);
	if (plan.method != HEAP_METHOD_PATCH && plan.method != HEAP_METHOD_HOOKS) {
		emit_plan(h, pid, &plan); /* the plan of method GROWTH, when it is active */
		return grows ? 0
			     : err_set(err, -ENOTSUP, "nothing to record with: %s",
				       plan.reason ? plan.reason : "no allocator was found");
	}
	CLEANUP(err_release) struct err why = {0};
	int rc = attach_planned(h, pid, &plan, held, &why);
	if (rc == -ENOMEM && h->spec.forced == HEAP_METHOD_NONE && h->env.record_growth)
		return grow_instead(h, pid, err_msg(&why), err);
	return rc ? err_move(err, &why) : 0;
}

static bool is_gone(int rc)
{
	return rc == -ESRCH || rc == -ENOENT;
}

static void refuse(struct heapsource *h, int32_t pid, int rc, const struct err *why)
{
	h->info.nr_too_short += is_gone(rc) && !target_has_pid(h->env.target, pid);
	h->info.nr_refused += !is_gone(rc);
	if (h->spec.on_refused && !is_gone(rc))
		h->spec.on_refused(h->spec.ctx, pid, why);
}

/*
 * Ends the recording of a process. @flags: HEAPPROCESS_FREED at its end or exec, while others are
 * recorded.
 */
static void finish(struct heapsource *h, struct heapprocess *p, unsigned flags)
{
	heapdrain_lock(&h->drain);
	heapprocess_stop(p);
	(void)heapprocess_drain(p);
	heapdrain_remove(&h->drain, p);
	heapdrain_unlock(&h->drain);
	heapprocess_end(p, flags);
	h->info.nr_ended += (flags & HEAPPROCESS_FREED) != 0;
	heapfacts_count(&h->info, p);
	heapprocess_free(p);
}

/* ---- fork, exec, exit ------------------------------------------------------------------------ */

/* -EINPROGRESS: an exec is in progress; the pending attach is due again soon. */
static int try_attach(struct heapsource *h, struct pending_attach *w, struct err *err)
{
	if (process_of(h, w->pid))
		return 0;
	CLEANUP(err_release) struct err why = {0};
	uint64_t image = proc_exec_id(w->pid);
	int rc = attach(h, w->pid, w, NULL, &why);
	uint64_t now = clock_mono_ns();
	/* it may have executed another program meanwhile */
	if (rc && image && proc_exec_id(w->pid) != image && now < w->load_deadline_ns)
		rc = -EINPROGRESS;
	w->due_ns = now + LOADING_LOOK_NS;
	return rc == -EINPROGRESS ? rc : rc ? err_move(err, &why) : 0;
}

static int on_exec(struct heapsource *h, int32_t pid, const struct event_sink *sink,
		   struct err *err)
{
	struct heapprocess *p = process_of(h, pid);
	bool is_launched = h->launch && heapfollow_has(h->launch, pid); /* it is stopped again */
	if (is_launched)
		*map_put(&h->executed, (uint32_t)pid, NULL) = 1;
	if (p && heapprocess_plan(p)->image && heapprocess_plan(p)->image == proc_exec_id(pid))
		return 0; /* attached meanwhile */
	if (p)
		finish(h, p, HEAPPROCESS_FREED);
	if (!is_launched && (p || pending_attach_of(h, pid)))
		schedule_attach(h, pid, EXEC_DELAY_NS);
	return p ? heapqueue_deliver(&h->queue, sink, err) : 0;
}

static void on_fork(struct heapsource *h, const struct event *ev)
{
	if (ev->pid == ev->fork.ppid || ev->fork.is_synthesized ||
	    (!process_of(h, ev->fork.ppid) && !pending_attach_of(h, ev->fork.ppid)))
		return;
	bool is_launched = h->launch && (heapfollow_has(h->launch, ev->pid) ||
					 heapfollow_has(h->launch, ev->fork.ppid));
	if (!h->spec.follows_children)
		h->info.nr_not_followed++;
	else if (!is_launched) /* else it is stopped for that */
		schedule_attach(h, ev->pid, FORK_DELAY_NS);
}

/* Not a descendant. */
static bool is_target(const struct heapsource *h, const struct heapprocess *p)
{
	return target_has_pid(h->env.target, heapprocess_pid(p));
}

static bool has_running(const struct heapsource *h)
{
	for (size_t i = 0; i < h->drain.list.n; i++)
		if (!proc_has_ended(heapprocess_pid(h->drain.list.p[i])))
			return true;
	return false;
}

/* Drains before the mappings go with the last thread, so that stacks can be resolved. */
static int on_exit_of(struct heapsource *h, const struct event *ev, const struct event_sink *sink,
		      struct err *err)
{
	struct heapprocess *p = process_of(h, ev->pid);
	if (!p && proc_has_ended(ev->pid)) /* its last program was not recorded */
		heappeaks_put(&h->peaks, ev->pid, &h->queue);
	if (!p)
		return 0;
	heapdrain_lock(&h->drain);
	(void)heapprocess_drain(p);
	heapprocess_thread_ended(p, ev->tid);
	heapdrain_unlock(&h->drain);
	/* each of thousands of processes (make) would keep its memory mapped to the end */
	if (proc_has_ended(ev->pid) && (!is_target(h, p) || has_running(h))) {
		finish(h, p, HEAPPROCESS_FREED);
		heappeaks_put(&h->peaks, ev->pid, &h->queue);
	}
	return heapqueue_deliver(&h->queue, sink, err);
}

/* Drains first, so that earlier stacks are resolved with the old mappings. */
static int heap_on_task(void *self, const struct event *ev, const struct event_sink *sink,
			struct err *err)
{
	struct heapsource *h = self;
	if (ev->kind == EVENT_COMM && ev->comm.is_exec)
		return on_exec(h, ev->pid, sink, err);
	if (ev->kind == EVENT_EXIT)
		return on_exit_of(h, ev, sink, err);
	if (ev->kind == EVENT_FORK)
		on_fork(h, ev);
	return 0;
}

/* A process that was forked by one that is recorded follows by on_fork. */
static void heap_add_process(void *self, int32_t pid)
{
	struct heapsource *h = self;
	if (!process_of(h, pid) && !pending_attach_of(h, pid))
		schedule_attach(h, pid, FORK_DELAY_NS);
}

/* ---- the capture -------------------------------------------------------------------------- */

static int start_pids(struct heapsource *h, struct err *err)
{
	const struct pid_list *pids = &h->env.target->pids;
	size_t nr = pids->pids.n;
	for (size_t i = 0; i < nr; i++) {
		CLEANUP(err_release) struct err why = {0};
		int32_t pid = pids->pids.p[i];
		struct pending_attach w = new_attach(pid, 0);
		if (!target_is_same(h->env.target, pid)) /* its id is another's now */
			continue;
		int rc = try_attach(h, &w, &why);
		if (rc == -EINPROGRESS)
			vec_push(&h->attaches, w);
		if (!rc || rc == -EINPROGRESS)
			continue;
		if (nr == 1)
			return err_move(err, &why);
		refuse(h, pid, rc, &why);
	}
	if (nr && !h->drain.list.n && !h->attaches.n && !h->info.nr_growth_only)
		return err_set(err, -ENOTSUP, "none of the %zu processes could be recorded", nr);
	return 0;
}

static int heap_start(void *self, const struct source_env *env, const struct event_sink *sink,
		      struct err *err)
{
	struct heapsource *h = self;
	h->emits_mappings = !env->has_sampler;
	h->start_ns = env->start_ns;
	h->sink = sink;
	TRY(heapdrain_start(&h->drain, err));
	int32_t child = env->target->child;
	unsigned flags = h->spec.follows_children ? HEAPFOLLOW_CHILDREN : 0;
	return child ? heapfollow_open(&h->launch, child, flags, err) : start_pids(h, err);
}

/* Stopped before its first instruction, or at its fork, and its mappings are known: attach. */
static void attach_held(struct heapsource *h, const struct heapfollow_held *held)
{
	CLEANUP(err_release) struct err why = {0};
	struct heapprocess *old = process_of(h, held->pid);
	if (old)
		finish(h, old, HEAPPROCESS_FREED);
	(void)map_del(&h->executed, (uint32_t)held->pid);
	int rc = attach(h, held->pid, NULL, held, &why);
	if (rc)
		refuse(h, held->pid, rc, &why);
	heapfollow_continue(h->launch, held->pid);
}

/* Waits for the mmap events of stopped processes, which arrive late on a busy machine. */
static void follow_launch(struct heapsource *h)
{
	struct heapfollow_held held;
	if (h->launch && heapfollow_poll(h->launch)) /* ended */
		heapfollow_free(TAKE(h->launch));
	for (size_t i = 0; h->launch && heapfollow_held(h->launch, i, &held);) {
		uint64_t for_ns = clock_mono_ns() - held.since_ns;
		bool is_replaced = held.is_forked || for_ns > MAPPINGS_WAIT_NS ||
				   map_get(&h->executed, (uint32_t)held.pid);
		bool is_known =
			h->emits_mappings || latelibs_is_complete(space_of(h, held.pid), held.pid);
		if (for_ns > MAPPINGS_WAIT_MAX_NS || (is_replaced && is_known))
			attach_held(h, &held); /* then one less is held */
		else
			i++;
	}
}

/* Retries a little later: its libraries may not be mapped yet, or it is in its allocator. */
static void run_attach(struct heapsource *h, size_t i)
{
	struct pending_attach w = h->attaches.p[i];
	CLEANUP(err_release) struct err why = {0};
	int rc = try_attach(h, &w, &why);
	if (rc == -EINPROGRESS) {
		h->attaches.p[i] = w;
		return;
	}
	if (rc && !is_gone(rc) && rc != -EPERM && ++w.nr_tries < RETRIES) {
		w.due_ns = clock_mono_ns() + (EXEC_DELAY_NS << w.nr_tries);
		h->attaches.p[i] = w;
		return;
	}
	if (rc)
		refuse(h, w.pid, rc, &why);
	h->info.nr_late += !rc && w.is_late;
	h->attaches.p[i] = h->attaches.p[--h->attaches.n];
}

/* Checks for libraries loaded since. */
static int emit_all(struct heapsource *h, uint64_t now, struct err *err)
{
	h->reported_ns = now;
	for (size_t i = 0; i < h->drain.list.n; i++)
		TRY(emit_mappings(h, heapprocess_pid(h->drain.list.p[i]), err));
	return 0;
}

/* Records the functions of new libraries; permanent failures are reported at the end. */
static void add_late(struct heapsource *h, struct known_space *known)
{
	CLEANUP(free_p) char *text = NULL;
	CLEANUP(free_p) char *lost = NULL;
	struct heapprocess *p = process_of(h, known->pid);
	bool has_more =
		p && latelibs_add(&known->late, p, h->spec.targets, h->start_ns, &text, &lost);
	if (!h->info.late)
		h->info.late = TAKE(lost);
	if (!has_more)
		return;
	struct heap_plan reported = *heapprocess_plan(p);
	reported.reason = text;
	emit_plan(h, known->pid, &reported);
	if (known->pid != h->facts_pid || strstr(h->info.reason, text))
		return;
	char *reason = xasprintf("%s; %s", h->info.reason, text);
	free(h->info.reason);
	h->info.reason = reason;
}

static int heap_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct heapsource *h = self;
	h->sink = sink;
	follow_launch(h);
	uint64_t now = clock_mono_ns();
	TRY(h->emits_mappings && now > h->reported_ns + EMIT_NS ? emit_all(h, now, err) : 0);
	for (size_t i = h->attaches.n; i-- > 0;)
		if (h->attaches.p[i].due_ns <= now)
			run_attach(h, i);
	vec_foreach(known, &h->spaces)
		if (latelibs_is_due(&known->late, now))
			add_late(h, known);
	return heapqueue_deliver(&h->queue, sink, err);
}

static int heap_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct heapsource *h = self;
	vec_clear(&h->attaches);
	heapfollow_free(TAKE(h->launch));
	heapdrain_lock(&h->drain);
	vec_foreach(p, &h->drain.list) /* stop all at about the same time */
		heapprocess_stop(*p);
	heapdrain_unlock(&h->drain);
	for (size_t i = 0; i < h->drain.list.n && !h->info.late; i++)
		h->info.late = latelibs_find_unrecorded(h->drain.list.p[i], h->spec.targets);
	/* What a program holds when it exits is live at the end, unless others still run. */
	bool has_any = has_running(h);
	while (h->drain.list.n) {
		struct heapprocess *p = h->drain.list.p[0];
		bool has_ended = proc_has_ended(heapprocess_pid(p));
		finish(h, p, has_ended && (has_any || !is_target(h, p)) ? HEAPPROCESS_FREED : 0);
	}
	heappeaks_put(&h->peaks, 0, &h->queue);
	return heapqueue_deliver(&h->queue, sink, err);
}

static void heap_early_facts(const void *self, struct profile *p)
{
	struct heapsource *h = (struct heapsource *)(uintptr_t)self;
	if (!h->info.reason) /* nothing is recorded yet */
		return;
	heapdrain_lock(&h->drain);
	struct heapsource_info now = h->info;
	for (size_t i = 0; i < h->drain.list.n; i++) /* not counted there yet */
		now.nr_sampled += heapprocess_full_ns(h->drain.list.p[i]) != UINT64_MAX;
	heapfacts_add_method(p, &now, &h->spec, h->env.target->child != 0);
	if (h->slices_ns)
		heap_slices_set(p, h->slices_ns);
	profile_lose(p, LOSS_HEAP_DROPPED, h->info.nr_dropped);
	for (size_t i = 0; i < h->drain.list.n; i++)
		profile_lose(p, LOSS_HEAP_DROPPED,
			     heapprocess_counts(h->drain.list.p[i]).nr_dropped);
	heapdrain_unlock(&h->drain);
}

static uint64_t heap_reach_ns(const void *self)
{
	struct heapsource *h = (struct heapsource *)(uintptr_t)self;
	uint64_t reach_ns = UINT64_MAX;
	heapdrain_lock(&h->drain);
	for (size_t i = 0; i < h->drain.list.n; i++)
		reach_ns = MIN(reach_ns, heapprocess_reach_ns(h->drain.list.p[i]));
	heapdrain_unlock(&h->drain);
	return reach_ns;
}

static void heap_facts(const void *self, struct profile *p)
{
	struct heapsource *h = (struct heapsource *)(uintptr_t)self;
	heapdrain_lock(&h->drain); /* the drain thread writes its times */
	h->info.drain_ns = h->drain.drain_ns;
	h->info.longest_gap_ns = h->drain.longest_gap_ns;
	heapfacts_add(p, &h->info, &h->spec, h->env.target->child != 0);
	if (h->slices_ns)
		heap_slices_set(p, h->slices_ns);
	heapdrain_unlock(&h->drain);
}

static bool heap_suspends_filters(const void *self)
{
	return target_has_filter(((const struct heapsource *)self)->env.target);
}

static unsigned heap_poll_timeout(const void *self)
{
	const struct heapsource *h = self;
	struct heapfollow_held held;
	bool is_held = h->launch && (heapfollow_held(h->launch, 0, &held) || !h->drain.list.n);
	if (is_held || h->attaches.n)
		return POLL_HELD_MS;
	/* a launched command stops at its next exec */
	return h->launch || h->spec.is_full_trace ? POLL_MS : POLL_SAMPLED_MS;
}

const struct source heap_source = {
	.name = "heap",
	.fills = HEAP_TABLES,
	.late_caps = HOST_CAPS_TRACE, /* new processes and libraries, the detach */
	.suspends_filters = heap_suspends_filters,
	.is_wanted = heap_is_wanted,
	.table_flags = heap_table_flags,
	.open = heap_open,
	.start = heap_start,
	.drain = heap_drain,
	.stop = heap_stop,
	.facts = heap_facts,
	.early_facts = heap_early_facts,
	.reach_ns = heap_reach_ns,
	.poll_timeout = heap_poll_timeout,
	.space_changed = heap_space,
	.add_process = heap_add_process,
	.on_task = heap_on_task,
	.free = heap_free,
};
