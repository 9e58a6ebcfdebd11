/* A CPU capture; see cpu_capture.h. */
#include "base/base.h"
#include "session/cpu_capture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/spawn.h"
#include "base/stop.h"
#include "format/assayfile.h"
#include "host/caps.h"
#include "host/limits.h"
#include "host/watch.h"
#include "ingest/builder.h"
#include "ingest/naming.h"
#include "session/markbox.h"
#include "session/openers.h"

/* The first seconds are for learning how much stack to copy: looked at sooner. */
#define POLL_MS       50
#define POLL_EARLY_MS 10
#define EARLY_NS      2000000000u
#define FLUSH_NS      1000000000u
#define NAME_NS       500000000u

struct capture {
	const struct cpu_options *options;
	struct profile *p;
	struct live_files files;
	struct builder *builder;
	struct namer *namer;
	struct sampler *sampler;
	struct event_sink sink;
	struct watch watch;
	struct spawn child;
	bool has_child;
	VEC(struct pollfd) fds; /* [0] is stop_fd */
	uint64_t start_ns;
	uint64_t deadline_ns; /* UINT64_MAX = none */
	uint64_t next_name_ns;
	unsigned nr_stops_passed_on;
	struct assayfile_writer *writer; /* NULL = no recording */
	uint64_t next_flush_ns;
	struct markbox *marks; /* NULL = `assay mark` does not reach us */
};

static uint64_t process_cpu_ns(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* cannot fail here */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void keep_naming_caps(void)
{
	host_lower_priority();
	host_keep_caps(HOST_NAMING);
}

static void wants_more_stack(void *ctx, int32_t tid, uint64_t nr_bytes)
{
	struct capture *c = ctx;
	if (c->sampler)
		sampler_grow(c->sampler, tid, nr_bytes);
}

static void capture_release(struct capture *c)
{
	markbox_free(c->marks);
	sampler_free(c->sampler);
	watch_release(&c->watch);
	namer_free(c->namer);
	builder_free(c->builder);
	live_files_release(&c->files);
	if (c->has_child)
		spawn_release(&c->child);
	assayfile_writer_free(c->writer);
	vec_release(&c->fds);
	profile_free(c->p);
}

static void add_facts(struct capture *c)
{
	const struct cpu_options *o = c->options;
	struct sampler_info info = sampler_info(c->sampler);
	profile_fact(c->p, "recorder", "assay");
	profile_fact(c->p, "kind", "cpu");
	profile_fact(c->p, "event", info.event);
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%u", o->freq_hz);
	profile_fact(c->p, "frequency_hz", buf_str(&text));
	struct utsname u;
	if (!uname(&u)) {
		profile_fact(c->p, "host", u.nodename);
		profile_fact(c->p, "kernel", u.release);
	}
	buf_clear(&text);
	host_describe_cpu(&text);
	profile_fact(c->p, "cpu", buf_str(&text));
	buf_clear(&text);
	buf_addf(&text, "%u", host_nr_cpus());
	profile_fact(c->p, "cpus", buf_str(&text));
	if (o->target)
		profile_fact(c->p, "target", o->target->name);
	if (o->command) {
		/* Arguments after the first may hold secrets: only the program's name is kept. */
		profile_fact(c->p, "command", o->command[0]);
		if (!o->target)
			profile_fact(c->p, "target", path_base(o->command[0]));
	}
	profile_fact(c->p, "mode", info.is_user_only ? "user only" : "user and kernel");
}

static int open_sampler(struct capture *c, struct err *err)
{
	const struct cpu_options *o = c->options;
	struct sampler_spec spec = {
		.event = o->event, .freq_hz = o->freq_hz, .flags = o->sampler_flags};
	if (o->target) {
		spec.pids = &o->target->pids;
		spec.tids = &o->target->tids;
		spec.is_system = o->target->is_system;
	} else {
		spec.child = c->child.pid;
	}
	return sampler_open(&c->sampler, &spec, err);
}

static void set_fds(struct capture *c)
{
	size_t nr;
	const int *fds = sampler_fds(c->sampler, &nr);
	vec_push(&c->fds, (struct pollfd){.fd = stop_fd(), .events = POLLIN});
	for (size_t i = 0; i < nr; i++)
		vec_push(&c->fds, (struct pollfd){.fd = fds[i], .events = POLLIN});
}

static int prepare(struct capture *c, struct err *err)
{
	const struct cpu_options *o = c->options;
	c->p = profile_new();
	if (o->recording_fd >= 0) {
		/* Whoever reads the file meanwhile sees that it is being written (load.c). */
		(void)flock(o->recording_fd, LOCK_EX | LOCK_NB);
		c->writer = assayfile_writer_new(o->recording_fd, "cpu");
	}
	live_files_init(&c->files);
	c->builder =
		builder_new(c->p, &(struct builder_options){.opener = &c->files.opener,
							    .cache_dir = o->cache_dir,
							    .wants_more_stack = wants_more_stack,
							    .ctx = c});
	c->sink = builder_sink(c->builder);
	c->namer = namer_new(c->p, builder_modules(c->builder), &c->files.opener,
			     &(struct namer_options){.debug_dirs = o->debug_dirs,
						     .nr_debug_dirs = o->nr_debug_dirs,
						     .symbolizer_flags = o->symbolizer_flags,
						     .demangle_flags = o->demangle_flags,
						     .on_thread_start = keep_naming_caps});
	if (o->command) {
		int rc = spawn_open(&c->child, o->command, err);
		if (rc)
			return rc;
		c->has_child = true;
	}
	int rc = open_sampler(c, err);
	if (rc)
		return rc;
	host_raise_priority();          /* the command was forked before and keeps its own */
	host_keep_caps(HOST_CAPTURING); /* the events are open; growing them needs PERFMON */
	struct sampler_info info = sampler_info(c->sampler);
	struct table shape = builder_table_shape(c->p, info.event, o->freq_hz);
	builder_set_table(c->builder, 0, profile_table(c->p, &shape));
	add_facts(c);
	if (c->writer) /* a file that opens from the first moment on */
		(void)assayfile_flush(c->writer, c->p, NULL);
	set_fds(c);
	return 0;
}

/* Waits for @ns or until somebody stops us. */
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

/* Whether a process is captured: asked for, launched, or seen as a descendant. */
static bool has_pid(void *ctx, int32_t pid)
{
	const struct capture *c = ctx;
	const struct target *t = c->options->target;
	if (!t && pid == c->child.pid)
		return true;
	if (t && t->is_system)
		return true;
	int32_t tgid;
	for (size_t i = 0; t && i < t->pids.pids.n; i++)
		if (t->pids.pids.p[i] == pid)
			return true;
	for (size_t i = 0; t && i < t->tids.pids.n; i++)
		if (!proc_tgid(t->tids.pids.p[i], &tgid, NULL) && tgid == pid)
			return true;
	for (task_id i = 1; i < c->p->tasks.n; i++)
		if (c->p->tasks.p[i].pid == pid)
			return true;
	return false;
}

/* A capture without marks is still a capture. */
static void open_marks(struct capture *c)
{
	CLEANUP(err_release) struct err err = {0};
	if (markbox_open(&c->marks, &err))
		log_debug(LOG_SESSION, 1, "%s", err_msg(&err));
	else
		vec_push(&c->fds, (struct pollfd){.fd = markbox_fd(c->marks), .events = POLLIN});
}

static int take_marks(struct capture *c, struct err *err)
{
	return c->marks ? markbox_drain(c->marks, c->start_ns, has_pid, c, &c->sink, err) : 0;
}

static int start(struct capture *c, struct err *err)
{
	const struct cpu_options *o = c->options;
	if (o->delay_ns)
		wait_delay(o->delay_ns);
	/* Starting the events of a thousand threads takes a while in which the first ones count. */
	c->start_ns = clock_mono_ns();
	c->p->start_ns = c->start_ns;
	c->p->wall_start_ns = (int64_t)clock_real_ns();
	int rc = sampler_start(c->sampler, &c->sink, err);
	if (rc)
		return rc;
	uint64_t now = clock_mono_ns();
	c->deadline_ns = o->duration_ns ? now + o->duration_ns : UINT64_MAX;
	c->next_name_ns = now + NAME_NS;
	c->next_flush_ns = now + FLUSH_NS;
	open_marks(c);
	return c->has_child ? spawn_release_gate(&c->child, o->command[0], err) : 0;
}

/*
 * A launched command gets SIGTERM and SIGHUP from us (SIGINT reaches it through the terminal, so
 * the first one only waits for it to end). The second request ends the capture, not the command.
 */
static bool should_stop(struct capture *c)
{
	unsigned nr = stop_count();
	if (!nr)
		return false;
	if (!c->has_child || nr > 1)
		return true;
	if (!c->nr_stops_passed_on && stop_signal() != SIGINT) {
		c->nr_stops_passed_on = nr;
		(void)kill(c->child.pid, stop_signal());
	}
	return false;
}

static bool has_ended(struct capture *c, uint64_t now, enum cpu_end *ret_end)
{
	if (c->has_child && spawn_has_ended(&c->child))
		*ret_end = CPU_END_COMMAND;
	else if (should_stop(c))
		*ret_end = CPU_END_STOPPED;
	else if (now >= c->deadline_ns)
		*ret_end = CPU_END_TIME;
	else if (watch_has_ended(&c->watch))
		*ret_end = CPU_END_TARGET;
	else
		return false;
	return true;
}

static void tell(struct capture *c, uint64_t now, bool is_naming)
{
	const struct cpu_options *o = c->options;
	if (!o->status)
		return;
	struct cpu_status s = {.elapsed_ns = now - c->start_ns,
			       .left_ns = c->deadline_ns == UINT64_MAX ? UINT64_MAX
					  : c->deadline_ns > now       ? c->deadline_ns - now
								       : 0,
			       .losses = &c->p->losses,
			       .is_naming = is_naming};
	namer_progress(c->namer, &s.nr_named, &s.nr_to_name);
	o->status(o->ctx, &s);
}

static int pump(struct capture *c, enum cpu_end *ret_end, struct err *err)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		if (has_ended(c, now, ret_end))
			return 0;
		uint64_t left_ms = (c->deadline_ns - now) / 1000000 + 1;
		uint64_t wait_ms = now - c->start_ns < EARLY_NS ? POLL_EARLY_MS : POLL_MS;
		(void)poll(c->fds.p, (nfds_t)c->fds.n, (int)MIN(left_ms, wait_ms));
		stop_drain();
		int rc = sampler_drain(c->sampler, &c->sink, err);
		rc = rc ? rc : take_marks(c, err);
		if (rc)
			return rc;
		now = clock_mono_ns();
		if (now >= c->next_name_ns) {
			namer_submit(c->namer);
			namer_collect(c->namer, 0);
			c->next_name_ns = now + NAME_NS;
		}
		if (c->writer && now >= c->next_flush_ns) {
			/* A full disk is told at the end; each flush tries everything again. */
			(void)assayfile_flush(c->writer, c->p, NULL);
			c->next_flush_ns = now + FLUSH_NS;
		}
		tell(c, now, false);
	}
}

static void name_the_rest(struct capture *c)
{
	namer_submit(c->namer);
	namer_submit_jit(c->namer);
	uint64_t done = 0;
	uint64_t total = 1;
	while (done < total) { /* not one long wait: progress wants to be told */
		struct timespec ts = {.tv_nsec = 2000000};
		tell(c, clock_mono_ns(), true);
		namer_collect(c->namer, 0);
		namer_progress(c->namer, &done, &total);
		if (done < total)
			(void)nanosleep(&ts, NULL);
	}
	namer_collect(c->namer, NAMER_WAIT);
}

static void finish_child(struct capture *c, struct cpu_result *r)
{
	if (!c->has_child)
		return;
	while (!c->child.is_reaped && stop_count() < 2)
		(void)spawn_wait(&c->child); /* interrupted by signals: then asks again */
	if (c->child.is_reaped) {
		r->has_exit_code = true;
		r->exit_code = spawn_exit_code(&c->child);
	}
}

void cpu_result_release(struct cpu_result *r)
{
	profile_free(r->profile);
	err_release(&r->disk);
	*r = (struct cpu_result){0};
}

static int run(struct capture *c, struct cpu_result *r, struct err *err)
{
	uint64_t cpu_before = process_cpu_ns();
	int rc = start(c, err);
	if (rc) {
		if (c->has_child && c->child.is_reaped) {
			r->has_exit_code = true;
			r->exit_code = spawn_exit_code(&c->child);
		}
		return rc;
	}
	rc = pump(c, &r->end, err);
	c->p->end_ns = clock_mono_ns();
	rc = rc ? rc : take_marks(c, err);
	markbox_free(TAKE(c->marks));
	if (!rc)
		rc = sampler_stop(c->sampler, &c->sink, err);
	c->p->end_ns = MAX(c->p->end_ns, builder_last_ns(c->builder)); /* stopping takes a while */
	r->duration_ns = c->p->end_ns - c->start_ns;
	r->own_cpu_ns = process_cpu_ns() - cpu_before;
	uint64_t naming_during = namer_cpu_ns(c->namer);
	r->own_cpu_ns -= MIN(naming_during, r->own_cpu_ns);
	r->info = sampler_info(c->sampler);
	c->p->losses.nr[LOSS_UNPARSED] += r->info.nr_bad;
	if (r->info.cpu_ns) {
		CLEANUP(buf_release) struct buf text = {0};
		num_add_ns(&text, r->info.cpu_ns);
		profile_fact(c->p, "CPU time", buf_str(&text));
	}
	sampler_free(TAKE(c->sampler)); /* the target is left alone from here on */
	keep_naming_caps();
	name_the_rest(c);
	r->naming_cpu_ns = namer_cpu_ns(c->namer);
	host_keep_caps(HOST_WRITING);
	finish_child(c, r);
	if (c->writer) {
		(void)assayfile_finish(c->writer, c->p, &r->disk); /* told by the caller */
		r->nr_bytes = assayfile_bytes(c->writer);
		r->nr_unsaved = assayfile_unsaved(c->writer, c->p);
	}
	return rc;
}

int cpu_capture(struct cpu_result *ret_r, const struct cpu_options *options, struct err *err)
{
	CLEANUP(capture_release)
	struct capture c = {.options = options,
			    .watch = WATCH_INIT(options->target),
			    .child = {.gate_fd = -1, .status_fd = -1}};
	struct cpu_result r = {0};
	int rc = prepare(&c, err);
	if (!rc)
		rc = run(&c, &r, err);
	if (!rc) {
		profile_seal(c.p);
		r.profile = TAKE(c.p);
	}
	*ret_r = r;
	return rc;
}
