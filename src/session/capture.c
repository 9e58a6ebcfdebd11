/* Runs a capture; see capture.h. */
#include "base/base.h"
#include "session/capture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/spawn.h"
#include "base/process/stop.h"
#include "base/text/num.h"
#include "capture/perf/synth.h"
#include "format/assay/assayfile.h"
#include "host/cpuquota.h"
#include "host/othercpu.h"
#include "host/heldfiles.h"
#include "host/limits.h"
#include "host/memory/memstat.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "host/syscallfilter.h"
#include "host/tracefs.h"
#include "host/watch.h"
#include "ingest/builder.h"
#include "ingest/symbolworker.h"
#include "ingest/tailframes.h"
#include "model/heapcalibrate.h"
#include "session/jitmaps.h"
#include "session/kernelsyms.h"
#include "session/marksocket.h"
#include "session/module_files.h"
#include "session/sources.h"
#include "session/targetfacts.h"

/* In the first seconds rings are drained more often: the needed size of stack copies is learned. */
#define POLL_MS        50
#define POLL_EARLY_MS  10
#define POLL_IDLE_MS   500 /* while no event comes; rings that fill up end the wait */
#define EARLY_NS       2000000000u
#define FLUSH_NS       SOURCE_ROWS_NS
#define FLUSH_FIRST_NS 125000000u /* then after twice the time, up to FLUSH_NS */
/* Sources deliver the rows of a slice a little after its end: flushes are later by this. */
#define FLUSH_LATE_NS 250000000u
#define SYMBOLIZE_NS  500000000u
#define JOIN_NS       100000000u
/* How long a live page waits for names: rings are not drained meanwhile. */
#define LIVE_SYMBOLS_NS 50000000u

/* How long a file may take to answer while rings are to be drained; then it is asked again. */
#define DRAINING_MS 100

struct capture {
	const struct capture_options *options;
	struct profile *p;
	struct live_files files;
	struct builder *builder;
	struct symbolworker *symbolizer;
	uint64_t tailframes_cpu_ns;
	struct sources sources;
	struct event_sink builder_sink;
	struct event_sink
		sink; /* before the builder: synthesizes comm events of unknown processes */
	struct watch watch;
	struct target launched; /* the launched command */
	struct spawn child;
	bool has_child;
	uint64_t child_before_bytes; /* its peak RSS before its execve; 0 = not known */
	VEC(struct pollfd) fds; /* [0] is stop_fd; the last one the target's, see poll_events */
	int child_fd;           /* pidfd of the launched command, -1 = none */
	uint64_t nr_events;     /* delivered so far */
	uint64_t nr_events_polled;
	unsigned wait_ms; /* of the last poll */
	uint64_t start_ns;
	uint64_t deadline_ns; /* UINT64_MAX = none */
	uint64_t next_symbolize_ns;
	unsigned nr_stops_forwarded;
	struct assayfile_writer *writer; /* NULL = no recording */
	uint64_t next_flush_ns;
	uint64_t next_join_ns; /* when processes that joined the target are looked for */
	uint64_t shown_ns;     /* when a live capture was shown last */
	struct targetfacts_joined joined;
	struct cpuquota quota;
	struct othercpu other_cpu;
	struct jitmaps *jitmaps;  /* NULL = none to be written */
	struct marksocket *marks; /* NULL = marks cannot be received */
};

/* At the end of the capture, and at the start of the symbolization thread. */
static void drop_all(void)
{
	host_lower_priority();
	host_drop_all();
}

static void wants_more_stack(void *ctx, int32_t tid, uint64_t nr_bytes)
{
	struct capture *c = ctx;
	sources_grow_copy(&c->sources, tid, nr_bytes);
}

static void space_changed(void *ctx, int32_t pid, const struct space *sp)
{
	struct capture *c = ctx;
	sources_space_changed(&c->sources, pid, sp);
}

/* ---- setup -------------------------------------------------------------------------------- */

static void capture_release(struct capture *c)
{
	jitmaps_free(c->jitmaps);
	marksocket_free(c->marks);
	cpuquota_release(&c->quota);
	othercpu_release(&c->other_cpu);
	sources_release(&c->sources);
	watch_release(&c->watch);
	symbolworker_free(c->symbolizer);
	builder_free(c->builder);
	live_files_release(&c->files);
	close_p(&c->child_fd);
	if (c->has_child)
		spawn_release(&c->child);
	assayfile_writer_free(c->writer);
	vec_release(&c->fds);
	profile_free(c->p);
}

/* Arguments may hold secrets: only the program's name is kept unless the user asked for them. */
static void add_command(struct profile *p, const struct capture_options *o)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_add_str(&text, o->command[0]);
	for (char **arg = o->command + 1; o->flags & CAPTURE_WITH_ARGS && *arg; arg++)
		buf_addf(&text, " %s", *arg);
	profile_fact(p, FACT_COMMAND, buf_str(&text));
}

static void add_facts(struct capture *c)
{
	const struct capture_options *o = c->options;
	sources_first_facts(&c->sources);
	struct utsname u;
	if (!uname(&u)) {
		profile_fact(c->p, FACT_HOST, u.nodename);
		profile_fact(c->p, FACT_KERNEL, u.release);
	}
	CLEANUP(buf_release) struct buf text = {0};
	host_describe_cpu(&text);
	profile_fact(c->p, FACT_CPU, buf_str(&text));
	if (o->started_when)
		profile_fact(c->p, FACT_STARTED_WHEN, o->started_when);
	profile_factf(c->p, FACT_CPUS, "%u", host_nr_cpus());
	if (o->target) {
		profile_fact(c->p, FACT_TARGET, o->target->name);
		targetfacts_containers(c->p, o->target);
	}
	if (o->command) {
		add_command(c->p, o);
		if (!o->target)
			profile_fact(c->p, FACT_TARGET, path_base(o->command[0]));
	}
}

static void add_fd(void *ctx, int fd)
{
	struct capture *c = ctx;
	vec_push(&c->fds, (struct pollfd){.fd = fd, .events = POLLIN});
}

static void set_fds(struct capture *c)
{
	add_fd(c, stop_fd());
	sources_fds(&c->sources, add_fd, c);
	if (c->options->hooks && c->options->hooks->fd >= 0)
		add_fd(c, c->options->hooks->fd);
	if (c->options->live)
		add_fd(c, c->options->live->fd);
	add_fd(c, -1);
}

/* Delivers the name of a waker outside the target, for which the sampler gets no comm event. */
static int synthesize_comm(struct capture *c, const struct event *ev, struct err *err)
{
	const struct event_aggregate *t = &ev->aggregate;
	if (t->other_tid <= 0 || builder_knows_thread(c->builder, t->other_pid, t->other_tid))
		return 0;
	return synth_name(t->other_pid, t->other_tid, ev->time_ns, &c->builder_sink, err);
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	struct capture *c = ctx;
	c->nr_events++;
	/* Samples taken while sources were being started: the capture begins after that. */
	if (ev->kind == EVENT_SAMPLE && ev->time_ns < c->start_ns)
		return 0;
	TRY(ev->kind == EVENT_AGGREGATE ? synthesize_comm(c, ev, err)
					: sources_on_task(&c->sources, ev, &c->builder_sink, err));
	return c->builder_sink.event(c->builder_sink.ctx, ev, err);
}

static void set_up_profile(struct capture *c)
{
	const struct capture_options *o = c->options;
	c->p = profile_new();
	profile_fact(c->p, FACT_RECORDER, "assay");
	profile_fact(c->p, FACT_KIND, o->kind);
	if (o->recording_fd >= 0) {
		/* The lock signals to readers that the file is being written (load.c). */
		(void)flock(o->recording_fd, LOCK_EX | LOCK_NB);
		c->writer = assayfile_writer_new(o->recording_fd, o->kind);
		/* At once, so that the file opens whenever assay is killed. */
		(void)assayfile_flush(c->writer, c->p, NULL);
	}
	live_files_init(&c->files);
	c->builder =
		builder_new(c->p, &(struct builder_options){.files = &c->files.access,
							    .cache_dir = o->cache_dir,
							    .wants_more_stack = wants_more_stack,
							    .space_changed = space_changed,
							    .ctx = c});
	c->builder_sink = builder_sink(c->builder);
	c->sink = (struct event_sink){on_event, c};
	c->symbolizer = symbolworker_new(
		c->p, builder_modules(c->builder), &c->files.access,
		&(struct symbolworker_options){.debug_dirs = o->debug_dirs,
					       .nr_debug_dirs = o->nr_debug_dirs,
					       .cache_dir = o->cache_dir,
					       .symbolizer_flags = o->symbolizer_flags,
					       .demangle_flags = o->demangle_flags,
					       .on_thread_start = drop_all});
}

/* Everything is open: from here on bytes of the targets are parsed. */
static void drop_for_capture(const struct capture *c)
{
	host_hold_file(KERNELSYMS_PATH);
	hostfile_start(0, NULL); /* a forked run of several has none yet */
	if (sources_late_calls(&c->sources) & HOST_CALLS_LOAD)
		tracefs_hold();
	host_drop(sources_late_caps(&c->sources));
	if (!sources_suspend_filters(&c->sources))
		host_limit_calls(HOST_CALLS_CAPTURE | sources_late_calls(&c->sources));
}

/* While assay has its rights and one thread, and before it forks the command. */
static void prepare_jit_maps(struct capture *c)
{
	if (!(c->options->flags & CAPTURE_JIT_MAP))
		return;
	if (c->options->command)
		jitmaps_set_environment();
	if (c->options->target)
		c->jitmaps = jitmaps_new(c->options->target);
}

static void write_jit_maps(struct capture *c)
{
	if (c->jitmaps)
		jitmaps_write(c->jitmaps, c->p);
	else if (c->options->flags & CAPTURE_JIT_MAP)
		profile_fact(c->p, FACT_JIT_MAP,
			     c->options->target ? "no running java among the targets"
						: "options for java and node in the environment");
	jitmaps_free(TAKE(c->jitmaps));
}

static int prepare(struct capture *c, struct capture_result *r, struct err *err)
{
	const struct capture_options *o = c->options;
	if (o->target && target_drop_ended(o->target) && !o->target->pids.pids.n &&
	    !o->target->tids.pids.n)
		return err_set(err, -ESRCH, "the target has ended");
	prepare_jit_maps(c);
	set_up_profile(c);
	(void)watch_has_ended(&c->watch); /* opens its descriptor: opening the sources takes time */
	if (o->command) {
		TRY(spawn_open(&c->child, o->command, host_become_command_user, err));
		c->has_child = true;
		c->child_fd = (int)syscall(SYS_pidfd_open, c->child.pid, 0);
		c->launched.child = c->child.pid;
		c->launched.takes_children = o->takes_children;
		TRY(o->hooks ? o->hooks->before_exec(o->hooks->ctx, c->child.pid, err) : 0);
	}
	TRY(host_need_files(err)); /* the command keeps its own limit as well */
	host_raise_priority();     /* the command was forked before and keeps its own */
	c->sources = (struct sources){.options = o,
				      .target = o->target ? o->target : &c->launched,
				      .profile = c->p,
				      .builder = c->builder,
				      .sink = c->sink};
	TRY(sources_open(&c->sources, &r->no_engine, err));
	add_facts(c);
	set_fds(c);
	drop_for_capture(c);
	return 0;
}

/* Waits for @ns, or until a stop signal. */
static void wait_delay(uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns;
	while (!stop_count()) {
		uint64_t now = clock_mono_ns();
		if (now >= until)
			return;
		struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
		(void)poll(&fd, 1, (int)MIN((until - now) / 1000000 + 1, (uint64_t)1000));
		stop_drain();
	}
}

/* Returns whether a process is captured: a target, the launched command, or a descendant. */
static bool has_pid(void *ctx, int32_t pid)
{
	const struct capture *c = ctx;
	const struct target *t = c->sources.target;
	if (t->is_system || pid == t->child)
		return true;
	int32_t tgid;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		if (t->pids.pids.p[i] == pid)
			return true;
	for (size_t i = 0; i < t->tids.pids.n; i++)
		if (!proc_tgid(t->tids.pids.p[i], &tgid, NULL) && tgid == pid)
			return true;
	for (task_id i = 1; i < c->p->tasks.n; i++)
		if (c->p->tasks.p[i].pid == pid)
			return true;
	return false;
}

/* A failure is not an error: the capture then has no marks, and says so. */
static void open_marks(struct capture *c)
{
	CLEANUP(err_release) struct err err = {0};
	if (marksocket_open(&c->marks, &err))
		profile_factf(c->p, FACT_MARKS, "none can be set: %s", err_msg(&err));
	if (!c->marks)
		return;
	vec_last(&c->fds)->fd = marksocket_fd(c->marks); /* the target's stays the last */
	add_fd(c, -1);
}

static int drain_marks(struct capture *c, struct err *err)
{
	return c->marks ? marksocket_drain(c->marks, c->start_ns, has_pid, c, &c->sink, err) : 0;
}

static void set_start(struct capture *c)
{
	const struct capture_options *o = c->options;
	bool has_waits = o->tables & (TABLE_SET(ON_CPU) | TABLE_SET(OFF_CPU));
	if (has_waits && !o->live && !c->sources.target->is_system)
		othercpu_begin(&c->other_cpu, "/proc");
	c->start_ns = clock_mono_ns();
	c->p->start_ns = c->start_ns;
	c->p->wall_start_ns = (int64_t)clock_real_ns();
}

static int release_command(struct capture *c, struct err *err)
{
	const struct capture_options *o = c->options;
	if (!c->has_child)
		return 0;
	c->child_before_bytes = memstat_peak(c->child.pid);
	return spawn_exec(&c->child, o->command[0], err);
}

static void poll_hooks(const struct capture *c)
{
	if (c->options->hooks)
		c->options->hooks->poll(c->options->hooks->ctx);
}

static int start(struct capture *c, struct err *err)
{
	const struct capture_options *o = c->options;
	if (o->delay_ns)
		wait_delay(o->delay_ns);
	/* Enabling the events of many threads takes time, during which the first ones sample. */
	set_start(c);
	if (!c->sources.list.n)
		hostfile_set_deadline(DRAINING_MS);
	TRY(sources_attach(&c->sources, err));
	if (c->sources.list.n) /* sources that add up by seconds need a common start */
		set_start(c);
	TRY(sources_start(&c->sources, c->start_ns, err));
	hostfile_set_deadline(DRAINING_MS);
	uint64_t now = clock_mono_ns();
	c->deadline_ns = o->duration_ns ? now + o->duration_ns : UINT64_MAX;
	c->next_symbolize_ns = now + SYMBOLIZE_NS;
	c->next_flush_ns = now + FLUSH_FIRST_NS;
	c->shown_ns = now;
	open_marks(c);
	return release_command(c, err);
}

/*
 * Forwards SIGTERM and SIGHUP to a launched command (SIGINT reaches it through the terminal); the
 * first signal only waits for the command to exit. A second one ends the capture, not the command.
 */
static bool should_stop(struct capture *c)
{
	unsigned nr = stop_count();
	if (!nr)
		return false;
	if (!c->has_child || nr > 1)
		return true;
	if (!c->nr_stops_forwarded && stop_signal() != SIGINT) {
		c->nr_stops_forwarded = nr;
		(void)kill(c->child.pid, stop_signal());
	}
	return false;
}

static bool has_ended(struct capture *c, uint64_t now, enum capture_end *ret_end)
{
	if (c->has_child && spawn_has_ended(&c->child))
		*ret_end = CAPTURE_END_COMMAND;
	else if (should_stop(c))
		*ret_end = CAPTURE_END_STOPPED;
	else if (now >= c->deadline_ns)
		*ret_end = CAPTURE_END_TIME;
	else if (watch_has_ended(&c->watch))
		*ret_end = CAPTURE_END_TARGET;
	else
		return false;
	return true;
}

static void report_status(struct capture *c, uint64_t now, bool is_symbolizing)
{
	const struct capture_options *o = c->options;
	if (!o->status)
		return;
	struct capture_status s = {.elapsed_ns = now - c->start_ns,
				   .left_ns = c->deadline_ns == UINT64_MAX ? UINT64_MAX
					      : c->deadline_ns > now       ? c->deadline_ns - now
									   : 0,
				   .losses = &c->p->losses,
				   .is_symbolizing = is_symbolizing};
	symbolworker_progress(c->symbolizer, &s.nr_symbolized, &s.nr_to_symbolize);
	o->status(o->ctx, &s);
}

/* Delivers events since the last call, and each second the rows of the sources. */
static int drain(struct capture *c, uint64_t now, struct err *err)
{
	TRY(sources_drain(&c->sources, now, err));
	return drain_marks(c, err);
}

/* One process stands for all of the target: they are mostly in one container. */
static void update_quota(struct capture *c)
{
	const struct target *t = c->sources.target;
	int32_t pid = c->has_child ? c->child.pid : t->pids.pids.n ? t->pids.pids.p[0] : 0;
	if (!pid)
		return;
	cpuquota_update(&c->quota, "/", pid);
	if (c->quota.total_ns)
		profile_factf(c->p, FACT_THROTTLED_NS, "%" PRIu64, c->quota.total_ns);
}

/* Writes what there is so far, so that the recording can be read if assay is killed. */
static int flush(struct capture *c, uint64_t drained_ns, struct err *err)
{
	builder_resolve_pending(c->builder);
	update_quota(c);
	TRY(sources_losses(&c->sources, err));
	if (!c->writer)
		return 0;
	struct losses before = c->p->losses;
	sources_early_facts(&c->sources);
	c->p->end_ns = sources_reach_ns(&c->sources, drained_ns);
	/* Errors are reported at the end; each flush retries what was not written. */
	(void)assayfile_flush(c->writer, c->p, NULL);
	c->p->losses = before;
	return 0;
}

static void set_next_flush(struct capture *c, uint64_t now)
{
	uint64_t elapsed = now - c->start_ns;
	if (elapsed < FLUSH_NS / 2)
		c->next_flush_ns = now + elapsed;
	else if (elapsed < FLUSH_NS)
		c->next_flush_ns = c->start_ns + FLUSH_NS + (c->sources.list.n ? FLUSH_LATE_NS : 0);
	else
		c->next_flush_ns = MAX(c->next_flush_ns, now - FLUSH_NS / 2) + FLUSH_NS;
}

/* Milliseconds until the rings are drained again: longer and longer while no event comes. */
static unsigned choose_wait_ms(struct capture *c, uint64_t now)
{
	unsigned busy_ms = now - c->start_ns < EARLY_NS ? POLL_EARLY_MS : POLL_MS;
	bool is_idle = c->nr_events == c->nr_events_polled;
	bool can_be_long = !c->has_child || c->child_fd >= 0;
	c->nr_events_polled = c->nr_events;
	c->wait_ms = is_idle && can_be_long ? MIN(2 * c->wait_ms, (unsigned)POLL_IDLE_MS) : busy_ms;
	c->wait_ms = MAX(c->wait_ms, busy_ms);
	return sources_poll_ms(&c->sources, c->wait_ms);
}

static unsigned ms_until(uint64_t then_ns, uint64_t now)
{
	uint64_t left_ns = then_ns > now ? then_ns - now : 0;
	return (unsigned)MIN(left_ns / NS_PER_MS + 1, (uint64_t)POLL_IDLE_MS);
}

/* Waits until there is something to do, or the target has ended. */
static void poll_events(struct capture *c, uint64_t now)
{
	uint64_t left_ms = (c->deadline_ns - now) / 1000000 + 1;
	unsigned wait_ms = choose_wait_ms(c, now);
	if (c->writer)
		wait_ms = MIN(wait_ms, ms_until(c->next_flush_ns, now));
	if (c->options->live)
		wait_ms = MIN(wait_ms, ms_until(c->shown_ns + c->options->live->every_ns, now));
	if (c->marks && marksocket_has_senders(c->marks))
		wait_ms = MIN(wait_ms, (unsigned)POLL_EARLY_MS);
	vec_last(&c->fds)->fd = c->has_child ? c->child_fd : c->watch.pid_fd;
	sources_rest(&c->sources, true);
	(void)poll(c->fds.p, (nfds_t)c->fds.n, (int)MIN(left_ms, (uint64_t)wait_ms));
	sources_rest(&c->sources, false);
	stop_drain();
}

static bool is_started_by_target(const struct target *t, int32_t pid)
{
	int32_t parent;
	return !proc_parent(pid, &parent, NULL) && target_has_pid(t, parent);
}

/* Takes the processes that have joined the container, cgroup or user, such as by podman exec. */
static int add_joined(struct capture *c, uint64_t now, struct err *err)
{
	struct target *t = c->options->target;
	if (!t || !t->groups.n || now < c->next_join_ns)
		return 0;
	c->next_join_ns = now + JOIN_NS;
	for (size_t i = target_list_joined(t); i < t->pids.pids.n; i++) {
		int32_t pid = t->pids.pids.p[i];
		bool is_missed;
		c->joined.nr_new++;
		if (is_started_by_target(t, pid)) /* followed by its fork */
			continue;
		TRY(sources_add_process(&c->sources, pid, &is_missed, err));
		c->joined.nr_from_outside++;
		c->joined.nr_missed += is_missed;
	}
	return 0;
}

/* Waits until all locations that were submitted are symbolized, at most until @until_ns. */
static void collect_symbols(struct capture *c, uint64_t until_ns)
{
	uint64_t done = 0;
	uint64_t total = 1;
	while (done < total && clock_mono_ns() < until_ns) { /* short waits, to report progress */
		struct timespec ts = {.tv_nsec = 2000000};
		if (until_ns == UINT64_MAX)
			report_status(c, clock_mono_ns(), true);
		symbolworker_collect(c->symbolizer, 0);
		symbolworker_progress(c->symbolizer, &done, &total);
		if (done < total)
			(void)nanosleep(&ts, NULL);
	}
}

/* Returns whether the capture is to end. */
static bool show_live(struct capture *c, uint64_t now)
{
	struct capture_live *l = c->options->live;
	struct profile view;
	bool is_asked = l->input && l->input(l->ctx);
	if (!is_asked && now < c->shown_ns + l->every_ns)
		return false;
	CLEANUP(err_release) struct err err = {0};
	struct losses before = c->p->losses;
	builder_resolve_pending(c->builder);
	symbolworker_submit(c->symbolizer);
	collect_symbols(c, now + LIVE_SYMBOLS_NS);
	(void)sources_losses(&c->sources, &err); /* an error comes again at the end */
	profile_peek_init(&view, c->p, c->shown_ns, now);
	bool is_over = l->show(l->ctx, &view);
	profile_peek_release(&view);
	profile_clear_rows(c->p);
	c->p->losses = before;
	c->shown_ns = now;
	return is_over;
}

static int run_loop(struct capture *c, enum capture_end *ret_end, struct err *err)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		poll_hooks(c);
		if (has_ended(c, now, ret_end))
			return 0;
		poll_events(c, now);
		uint64_t drained_ns = clock_mono_ns();
		TRY(drain(c, drained_ns, err));
		TRY(add_joined(c, drained_ns, err));
		builder_retry_modules(c->builder);
		now = clock_mono_ns();
		if (now >= c->next_symbolize_ns) {
			symbolworker_submit(c->symbolizer);
			symbolworker_collect(c->symbolizer, 0);
			c->next_symbolize_ns = now + SYMBOLIZE_NS;
		}
		if (now >= c->next_flush_ns) {
			TRY(flush(c, drained_ns, err));
			set_next_flush(c, now);
		}
		report_status(c, now, false);
		*ret_end = CAPTURE_END_STOPPED;
		if (c->options->live && show_live(c, now))
			return 0;
	}
}

static void symbolize_rest(struct capture *c)
{
	hostfile_set_deadline(HOSTFILE_DEADLINE_MS);
	builder_retry_modules(c->builder);
	symbolworker_submit(c->symbolizer);
	symbolworker_submit_jit(c->symbolizer); /* of the locations submitted so far */
	collect_symbols(c, UINT64_MAX);
	uint64_t cpu_before = clock_thread_cpu_ns();
	tailframes_add(c->p, builder_modules(c->builder), c->symbolizer);
	c->tailframes_cpu_ns = clock_thread_cpu_ns() - cpu_before;
	CLEANUP(buf_release) struct buf silent = {0};
	hostfile_add_silent(&silent);
	if (silent.n)
		profile_fact(c->p, FACT_NO_ANSWER, buf_str(&silent));
}

static void add_peak(struct capture *c)
{
	uint64_t bytes = memstat_command_peak(c->child.peak_rss_bytes, c->child_before_bytes);
	bool is_recorded = c->child.peak_is_own || c->options->takes_children;
	if (c->options->tables & TABLE_SET(MEMORY) && is_recorded &&
	    bytes > profile_get_fact_nr(c->p, FACT_MEMORY_PEAK_RSS))
		profile_fact_nr(c->p, FACT_MEMORY_PEAK_RSS, bytes);
}

static void finish_child(struct capture *c, struct capture_result *r)
{
	if (!c->has_child)
		return;
	while (!c->child.is_reaped && stop_count() < 2)
		(void)spawn_wait(&c->child); /* repeated when interrupted by a signal */
	if (c->child.is_reaped) {
		add_peak(c);
		r->has_exit_code = true;
		r->exit_code = spawn_exit_code(&c->child);
		if (!procend_from_status(c->child.wait_status).signal)
			profile_fact_nr(c->p, FACT_EXIT_STATUS, (uint64_t)r->exit_code);
	} else {
		r->left_pid = c->child.pid;
	}
}

void capture_result_release(struct capture_result *r)
{
	profile_free(r->profile);
	err_release(&r->disk);
	err_release(&r->no_engine);
	*r = (struct capture_result){0};
}

uint64_t capture_nr_rows(const struct capture_result *r)
{
	uint64_t nr = 0;
	vec_foreach(t, &r->profile->tables)
		nr += t->n;
	return nr;
}

static void add_end(struct capture *c, enum capture_end how)
{
	struct procend end = {0};
	if (how == CAPTURE_END_COMMAND)
		end = procend_from_status(c->child.wait_status);
	else if (how == CAPTURE_END_TARGET)
		end = watch_end(&c->watch);
	CLEANUP(buf_release) struct buf text = {0};
	procend_add(&text, &end);
	if (text.n)
		profile_fact(c->p, FACT_TARGET_END, buf_str(&text));
	else if (c->options->heap && end.is_known) /* blocks live at exit are leaks */
		profile_fact(c->p, FACT_HEAP_ENDED, "yes");
}

/* Stops the sources and delivers what they still have. */
static int stop(struct capture *c, struct err *err)
{
	CLEANUP(buf_release) struct buf others = {0};
	othercpu_end(&c->other_cpu, &others, "/proc", c->sources.target, c->p->end_ns);
	if (others.n)
		profile_fact(c->p, FACT_OTHER_CPU, buf_str(&others));
	int rc = drain_marks(c, err);
	update_quota(c);
	marksocket_free(TAKE(c->marks));
	rc = rc ? rc : sources_stop(&c->sources, err);
	builder_resolve_all(c->builder);
	return rc;
}

static void finish_writing(struct capture *c, struct capture_result *r)
{
	if (!c->writer)
		return;
	(void)assayfile_finish(c->writer, c->p, &r->disk); /* the caller reports the error */
	r->nr_bytes = assayfile_bytes(c->writer);
	r->nr_unsaved = assayfile_unsaved(c->writer, c->p);
}

static int run(struct capture *c, struct capture_result *r, struct err *err)
{
	uint64_t cpu_before = clock_process_cpu_ns() + hostfile_cpu_ns();
	int rc = start(c, err);
	if (rc) {
		if (c->has_child && c->child.is_reaped) {
			r->has_exit_code = true;
			r->exit_code = spawn_exit_code(&c->child);
		}
		return rc;
	}
	rc = run_loop(c, &r->end, err);
	c->p->end_ns = clock_mono_ns();
	rc = rc ? rc : stop(c, err);
	uint64_t exact_ns = sources_end_ns(&c->sources);
	c->p->end_ns = exact_ns ? exact_ns /* excludes the time that stopping takes */
				: MAX(c->p->end_ns, builder_last_ns(c->builder));
	r->duration_ns = c->p->end_ns - c->start_ns;
	uint64_t reading_ns = hostfile_cpu_ns();
	r->own_cpu_ns = clock_process_cpu_ns() + reading_ns - cpu_before;
	uint64_t symbolizing_ns = symbolworker_cpu_ns(c->symbolizer);
	r->own_cpu_ns -= MIN(symbolizing_ns, r->own_cpu_ns);
	r->command_cpu_ns = c->child.cpu_ns;
	sources_result(&c->sources, r);
	targetfacts_python(c->p, builder_modules(c->builder), r->has_engine ? &r->engine : NULL);
	add_end(c, r->end);
	targetfacts_add_joined(c->p, &c->joined, sources_unprobed(&c->sources));
	if (c->options->hooks)
		c->options->hooks->facts(c->options->hooks->ctx, c->p);
	write_jit_maps(c);
	sources_release(&c->sources); /* the target is not touched after this */
	drop_all();
	host_limit_calls(HOST_CALLS_READING);
	if (!c->options->live)
		symbolize_rest(c);
	r->symbolize_cpu_ns = symbolworker_cpu_ns(c->symbolizer) + c->tailframes_cpu_ns +
			      hostfile_cpu_ns() - reading_ns;
	finish_child(c, r);
	finish_writing(c, r);
	return rc;
}

int capture_run(struct capture_result *ret_r, const struct capture_options *options,
		struct err *err)
{
	CLEANUP(capture_release)
	struct capture c = {.options = options,
			    .watch = WATCH_INIT(options->target),
			    .child = {.start_fd = -1, .status_fd = -1},
			    .child_fd = -1};
	struct capture_result r = {0};
	int rc = prepare(&c, &r, err);
	if (!rc)
		rc = run(&c, &r, err);
	if (!rc) {
		heapcalibrate(c.p);
		tables_scale_time(c.p);
		profile_seal(c.p);
		r.profile = TAKE(c.p);
	}
	*ret_r = r;
	return rc;
}
