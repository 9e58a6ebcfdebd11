/*
 * The sampler; see sampler.h. Which thread is sampled by which event:
 *
 *	ring owners   cpu 0: dummy ──ring    cpu 1: dummy ──ring
 *	group 1       thread 10 × cpu 0,1;  thread 11 × cpu 0,1   (+ what they fork, inherited)
 *	group 2       a launched command ...
 *
 * Growing a group opens new events with a larger copy for its live threads, then closes the old
 * ones, which ends the inherited ones with them (kernel/events/core.c, perf_event_release_kernel).
 * Members are known from FORK records, so unread ones in the rings are read ahead before.
 */
#include "base/base.h"
#include "capture/perf/sampler.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/perf/pending.h"
#include "capture/perf/record.h"
#include "capture/perf/ring.h"
#include "capture/perf/synth.h"
#include "host/limits.h"

#define SAMPLER_CPUS_MAX  4096
#define MERGE_DELAY_NS    2000000u /* how long records stay in the rings; see sampler.h */
#define GROW_AFTER        2        /* number of short copies: a single deep stack is not worth it */
#define GROW_FACTOR       4
#define RINGS_TOTAL_BYTES (64u << 20)
#define RING_MAX_BYTES    (16u << 20)
#define RING_MIN_BYTES    (64u << 10)
#define SIDEBAND_BYTES    (1u << 20) /* size of a ring without samples */
#define STOP_TRIES        100        /* each 1 ms: wait for a record that is still being written */
#define SPARE_FDS         256 /* descriptors kept for binaries, recordings and everything else */

struct group {
	VEC(int) fds;
	uint32_t stack_bytes;
	uint32_t nr_short; /* copies that were too short since they were last enlarged */
	bool is_fixed;     /* larger copies failed once: not tried again */
};

struct sampler {
	struct perfopen how;
	struct sampler_spec spec;
	const struct target *target;
	VEC(int32_t) cpus;
	VEC(struct ring) rings;
	VEC(int) ring_fds;
	VEC(uint64_t) next_ns; /* time of each ring's oldest record, UINT64_MAX = none */
	VEC(struct group) groups;
	struct map group_of; /* tid -> group index + 1 */
	struct map wanted;   /* pids, when filtering */
	struct map known;    /* pids whose names and mappings were delivered, in system mode */
	uint64_t nr_events;  /* open descriptors of groups */
	uint64_t max_events; /* limit, by the limit of open files */
	struct sampler_info info;
	uint64_t before_ns; /* CPU time before sampler_begin */
	bool is_started;
	const struct event_sink *outer; /* of sampler_sink() */
	uint64_t nr_lost_counted;       /* by the events */
	uint64_t nr_lost_reported;      /* by the records delivered */
};

/* ---- rings ------------------------------------------------------------------------------- */

static int open_owner(int32_t cpu, uint32_t watermark)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_TIME,
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .watermark = 1,
				       .wakeup_watermark = watermark,
				       .use_clockid = 1,
				       .clockid = CLOCK_MONOTONIC};
	return (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint32_t round_down_pow2(uint32_t v)
{
	return v ? 1u << (31 - __builtin_clz(v)) : 0;
}

static int open_ring(struct sampler *s, int32_t cpu, uint32_t *bytes, struct err *err)
{
	uint32_t page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	int fd = open_owner(cpu, *bytes / 4);
	if (fd < 0)
		return err_sys(err, "cannot open a ring on cpu %d", cpu);
	struct ring ring;
	int rc = ring_open(&ring, fd, *bytes / page_bytes, err);
	/* An ordinary user may lock kernel.perf_event_mlock_kb per CPU: use a smaller ring then. */
	while ((rc == -EPERM || rc == -ENOMEM) && *bytes > RING_MIN_BYTES) {
		*bytes /= 2;
		err_release(err);
		rc = ring_open(&ring, fd, *bytes / page_bytes, err);
	}
	if (rc) {
		close(fd);
		err_wrap(err, "cpu %d", cpu);
		err_hint(err, "raise the locked-memory limit (ulimit -l) or "
			      "kernel.perf_event_mlock_kb");
		return rc;
	}
	vec_push(&s->rings, ring);
	vec_push(&s->ring_fds, fd);
	vec_push(&s->next_ns, UINT64_MAX);
	return 0;
}

static int open_rings(struct sampler *s, struct err *err)
{
	vec_reserve(&s->cpus, SAMPLER_CPUS_MAX);
	s->cpus.n = MIN(host_cpus(s->cpus.p, SAMPLER_CPUS_MAX), (size_t)SAMPLER_CPUS_MAX);
	if (!s->cpus.n)
		return err_set(err, -ENODEV, "cannot tell which CPUs are online");
	uint32_t bytes = s->spec.ring_bytes;
	if (!bytes && s->spec.flags & (PERFOPEN_PROG | PERFOPEN_SIDEBAND) &&
	    !(s->spec.flags & PERFOPEN_SWITCHES))
		bytes = SIDEBAND_BYTES;
	if (!bytes)
		bytes = MIN(RING_MAX_BYTES, RINGS_TOTAL_BYTES / (uint32_t)s->cpus.n);
	bytes = MAX(round_down_pow2(bytes), RING_MIN_BYTES);
	for (size_t i = 0; i < s->cpus.n; i++)
		TRY(open_ring(s, s->cpus.p[i], &bytes, err));
	s->info.nr_rings = (uint32_t)s->rings.n;
	s->info.ring_bytes = bytes;
	return 0;
}

/* ---- events ------------------------------------------------------------------------------ */

/* Redirects an event to the ring of cpus.p[i] and attaches the BPF program, if any. */
static int redirect_event(const struct sampler *s, int fd, size_t i)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->ring_fds.p[i]))
		return -errno;
	if (s->spec.flags & PERFOPEN_PROG && ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->spec.prog_fd))
		return -errno;
	return 0;
}

/* Opens the thread's events on all CPUs and adds them to the group. -ESRCH: it has exited. */
static int open_thread(struct sampler *s, struct group *g, int32_t tid, struct err *err)
{
	for (size_t i = 0; i < s->cpus.n; i++) {
		if (s->nr_events >= s->max_events)
			return err_set(err, -EMFILE,
				       "too many threads for the limit of open files");
		int fd = perfopen_event(&s->how, tid, s->cpus.p[i], g->stack_bytes, err);
		if (fd < 0)
			return fd;
		vec_push(&g->fds, fd);
		s->nr_events++;
		if (redirect_event(s, fd, i))
			return err_sys(err, "cannot direct an event of thread %d into its ring",
				       tid);
		if (s->is_started && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return err_sys(err, "cannot start an event of thread %d", tid);
	}
	return 0;
}

static uint32_t initial_stack_bytes(const struct sampler *s)
{
	return s->spec.flags & PERFOPEN_SWITCHES ? PERFOPEN_STACK_SWITCH : PERFOPEN_STACK_MIN;
}

static struct group *add_group(struct sampler *s)
{
	struct group *g = vec_add(&s->groups);
	g->stack_bytes = initial_stack_bytes(s);
	return g;
}

static int add_thread(struct sampler *s, int32_t tid, struct err *err)
{
	bool is_new;
	uint32_t *of = map_put(&s->group_of, (uint32_t)tid, &is_new);
	if (!is_new)
		return 0;
	struct group *g = add_group(s);
	*of = (uint32_t)s->groups.n;
	int rc = open_thread(s, g, tid, err);
	if (rc == -ESRCH) {
		err_release(err);
		return 0;
	}
	s->info.nr_threads += !rc;
	return rc;
}

/* Threads may be created meanwhile: lists them again until no new one is found. */
static int add_process(struct sampler *s, int32_t pid, struct err *err)
{
	for (size_t before = SIZE_MAX; before != s->group_of.n;) {
		before = s->group_of.n;
		CLEANUP(pid_list_release) struct pid_list tids = {0};
		if (proc_threads(&tids, pid, NULL))
			return 0;
		for (size_t i = 0; i < tids.pids.n; i++)
			TRY(add_thread(s, tids.pids.p[i], err));
	}
	return 0;
}

static int open_cpus(struct sampler *s, struct err *err)
{
	struct group *g = add_group(s);
	for (size_t i = 0; i < s->cpus.n; i++) {
		int fd = perfopen_event(&s->how, -1, s->cpus.p[i], g->stack_bytes, err);
		if (fd < 0)
			return fd;
		vec_push(&g->fds, fd);
		if (redirect_event(s, fd, i))
			return err_sys(err, "cannot direct the event of cpu %d into its ring",
				       s->cpus.p[i]);
	}
	return 0;
}

static size_t count_threads(const struct target *t)
{
	size_t n = (t->child ? 1 : 0) + t->tids.pids.n;
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		CLEANUP(pid_list_release) struct pid_list tids = {0};
		if (!proc_threads(&tids, t->pids.pids.p[i], NULL))
			n += tids.pids.n;
	}
	return n;
}

/*
 * Whether to use one event per CPU instead of one per thread and CPU: if a BPF program takes the
 * samples, as it selects the target's; if there are too many threads for the descriptor limit (then
 * other threads' samples are dropped); or if there are no samples (then the target's context switches
 * need not switch events). An event of a thread is late by a period for each new thread, and its
 * timer is set again at each context switch, so threads of milliseconds lack a third of their
 * samples; that of a CPU lacks none. Records of context switches do need events per thread: they
 * must be the target's alone, and ordinary users may only record those of their own processes.
 */
static bool needs_filter(struct sampler *s)
{
	uint64_t limit = host_raise_nofile();
	s->max_events = limit - MIN(limit / 2, (uint64_t)SPARE_FDS);
	const struct target *t = s->target;
	if (s->spec.flags & PERFOPEN_PROG)
		return !t->is_system && !t->tids.pids.n;
	if (s->spec.flags & PERFOPEN_SIDEBAND && !(s->spec.flags & PERFOPEN_SWITCHES))
		return !t->is_system;
	uint64_t nr_events = (uint64_t)count_threads(t) * host_nr_cpus();
	return !t->is_system && !t->tids.pids.n && nr_events > s->max_events;
}

static int32_t first_pid(const struct target *t)
{
	if (t->is_system || t->child)
		return t->is_system ? -1 : t->child;
	if (t->pids.pids.n)
		return t->pids.pids.p[0];
	return t->tids.pids.n ? t->tids.pids.p[0] : 0;
}

static int choose(struct sampler *s, unsigned flags, struct err *err)
{
	int32_t pid = flags & PERFOPEN_SYSTEM ? -1 : first_pid(s->target);
	int rc = perfopen_choose(&s->how, pid, s->spec.event, s->spec.freq_hz, flags, err);
	if ((rc == -EACCES || rc == -EPERM) && s->info.is_filtering) {
		size_t nr = count_threads(s->target) * host_nr_cpus() + SPARE_FDS;
		err_set(err, -EMFILE,
			"the target has too many threads for the limit of open files");
		err_hint(err,
			 "raise it: ulimit -n %zu (sampling all CPUs instead needs "
			 "kernel.perf_event_paranoid 0 or sudo)",
			 nr);
		return -EMFILE;
	}
	if (rc && (!err || !err->hint)) {
		CLEANUP(buf_release) struct buf hint = {0};
		host_perf_remedy(&hint, rc, pid);
		err_hint(err, "%s", buf_str(&hint));
	}
	return rc;
}

static int open_targets(struct sampler *s, struct err *err)
{
	const struct target *t = s->target;
	if (t->is_system || s->info.is_filtering)
		return open_cpus(s, err);
	int rc = t->child ? add_thread(s, t->child, err) : 0;
	for (size_t i = 0; !rc && i < t->pids.pids.n; i++)
		rc = add_process(s, t->pids.pids.p[i], err);
	for (size_t i = 0; !rc && i < t->tids.pids.n; i++)
		rc = add_thread(s, t->tids.pids.p[i], err);
	if (!rc && !s->info.nr_threads) {
		rc = err_set(err, -ESRCH, "the target has ended");
		err_hint(err, "start the program under assay instead: assay cpu -- CMD");
	}
	if (rc == -EMFILE || rc == -ENFILE)
		err_hint(err, "raise the limit of open files: ulimit -n 65536");
	return rc;
}

static void mark_targets(struct sampler *s)
{
	const struct target *t = s->target;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		(void)map_put(&s->wanted, (uint32_t)t->pids.pids.p[i], NULL);
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(t->tids.pids.p[i], &pid, NULL))
			(void)map_put(&s->wanted, (uint32_t)pid, NULL);
	}
	if (t->child)
		(void)map_put(&s->wanted, (uint32_t)t->child, NULL);
}

int sampler_open(struct sampler **ret_s, const struct sampler_spec *spec, struct err *err)
{
	CLEANUP(sampler_free_p) struct sampler *s = xcalloc(1, sizeof(*s));
	s->spec = *spec;
	s->target = spec->target;
	s->info.is_filtering = needs_filter(s);
	unsigned flags = spec->flags;
	if (s->target->is_system || s->info.is_filtering)
		flags |= PERFOPEN_SYSTEM;
	else if (s->target->child)
		flags |= PERFOPEN_ON_EXEC;
	if (s->info.is_filtering)
		mark_targets(s);
	TRY(choose(s, flags, err));
	TRY(open_rings(s, err));
	TRY(open_targets(s, err));
	s->info.event = s->how.event;
	s->info.is_software = s->how.is_software;
	s->info.is_user_only = s->how.is_user_only;
	s->info.is_refused_kernel = s->how.is_refused_kernel;
	s->info.max_stack_bytes = initial_stack_bytes(s);
	*ret_s = TAKE(s);
	return 0;
}

static int synth_targets(struct sampler *s, const struct event_sink *sink, struct err *err)
{
	uint64_t now = clock_mono_ns();
	const struct target *t = s->target;
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		(void)map_put(&s->known, (uint32_t)t->pids.pids.p[i], NULL);
		TRY(synth_process(t->pids.pids.p[i], now, sink, err));
	}
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		TRY(proc_tgid(t->tids.pids.p[i], &pid, NULL) ? 0
							     : synth_process(pid, now, sink, err));
	}
	return 0;
}

int sampler_start(struct sampler *s, const struct event_sink *sink, struct err *err)
{
	/* Events first: a mapping made in between is then delivered twice, not missed. */
	bool is_at_gate = s->target->child && !s->target->is_system && !s->info.is_filtering;
	vec_foreach(g, &s->groups)
		for (size_t i = 0; !is_at_gate && i < g->fds.n; i++)
			if (ioctl(g->fds.p[i], PERF_EVENT_IOC_ENABLE, 0))
				return err_sys(err, "cannot start sampling");
	s->is_started = true;
	return synth_targets(s, sink, err);
}

int sampler_add(struct sampler *s, int32_t pid, const struct event_sink *sink, struct err *err)
{
	bool is_new;
	(void)map_put(&s->known, (uint32_t)pid, &is_new);
	(void)map_put(&s->wanted, (uint32_t)pid, NULL); /* used if the sampler is filtering */
	TRY(s->info.is_filtering ? 0 : add_process(s, pid, err));
	return is_new ? synth_process(pid, clock_mono_ns(), sink, err) : 0;
}

const int *sampler_fds(const struct sampler *s, size_t *ret_nr)
{
	*ret_nr = s->ring_fds.n;
	return s->ring_fds.p;
}

/* ---- delivery ---------------------------------------------------------------------------- */

static void track_fork(struct sampler *s, const struct event *ev)
{
	uint32_t *parent = map_get(&s->group_of, (uint32_t)ev->fork.ptid);
	if (parent) {
		uint32_t group = *parent; /* map_put may move the table */
		*map_put(&s->group_of, (uint32_t)ev->tid, NULL) = group;
	}
	if (!s->info.is_filtering || ev->pid == ev->fork.ppid)
		return;
	if (map_get(&s->wanted, (uint32_t)ev->fork.ppid))
		(void)map_put(&s->wanted, (uint32_t)ev->pid, NULL);
	else
		(void)map_del(&s->wanted, (uint32_t)ev->pid); /* a recycled pid */
}

/*
 * In system mode the names and mappings of a process are synthesized when they are first needed: at
 * its first sample, or when it forks, since the child starts with the parent's mappings. Other
 * events do not suffice to know the process: the creation of a thread says nothing about mappings.
 * For a process that was created or called exec during the capture, events describe all mappings.
 */
static int synth_if_unknown(struct sampler *s, const struct event *ev,
			    const struct event_sink *sink, struct err *err)
{
	if (!(s->target->is_system || s->info.is_filtering) || ev->pid <= 0)
		return 0;
	bool is_birth = ev->kind == EVENT_FORK && ev->pid != ev->fork.ppid;
	if (is_birth || (ev->kind == EVENT_COMM && ev->comm.is_exec))
		(void)map_put(&s->known, (uint32_t)ev->pid, NULL);
	int32_t pid = is_birth ? ev->fork.ppid : ev->pid;
	bool is_about = is_birth || ev->kind == EVENT_SAMPLE || ev->kind == EVENT_STACK ||
			ev->kind == EVENT_AGGREGATE;
	if (!is_about || pid <= 0)
		return 0;
	bool is_new;
	(void)map_put(&s->known, (uint32_t)pid, &is_new);
	return is_new ? synth_process(pid, ev->time_ns, sink, err) : 0;
}

static bool is_left_out(struct sampler *s, const struct event *ev)
{
	if (s->target->is_system)
		return ev->pid == getpid();
	return s->info.is_filtering && ev->pid > 0 && !map_get(&s->wanted, (uint32_t)ev->pid);
}

static int deliver(struct sampler *s, const struct perf_event_header *h,
		   const struct event_sink *sink, struct err *err)
{
	struct event ev;
	enum record_result r = record_decode(&s->how.attr, h, &ev);
	if (r != RECORD_DECODED) {
		s->info.nr_bad += r == RECORD_BAD;
		return 0;
	}
	if (ev.kind == EVENT_LOST)
		s->nr_lost_reported += ev.lost.nr;
	if (ev.kind == EVENT_FORK)
		track_fork(s, &ev);
	if (is_left_out(s, &ev)) {
		s->info.nr_filtered += ev.kind == EVENT_SAMPLE;
		return 0;
	}
	int rc = synth_if_unknown(s, &ev, sink, err);
	if (!rc)
		rc = sink->event(sink->ctx, &ev, err);
	if (ev.kind == EVENT_EXIT)
		(void)map_del(&s->group_of, (uint32_t)ev.tid);
	return rc;
}

/* The BPF programs have checked that it is a target. */
static int forward_event(void *ctx, const struct event *ev, struct err *err)
{
	struct sampler *s = ctx;
	if (s->target->is_system && ev->pid == getpid())
		return 0;
	TRY(synth_if_unknown(s, ev, s->outer, err));
	return s->outer->event(s->outer->ctx, ev, err);
}

struct event_sink sampler_sink(struct sampler *s, const struct event_sink *sink)
{
	s->outer = sink;
	return (struct event_sink){forward_event, s};
}

static void peek_time(struct sampler *s, size_t i)
{
	bool is_bad;
	const struct perf_event_header *h = ring_peek(&s->rings.p[i], &is_bad);
	s->info.nr_bad += is_bad;
	s->next_ns.p[i] = h ? record_time_ns(&s->how.attr, h) : UINT64_MAX;
}

static int deliver_first(struct sampler *s, size_t first, const struct event_sink *sink,
			 struct err *err)
{
	bool is_bad;
	struct ring *ring = &s->rings.p[first];
	const struct perf_event_header *h = ring_peek(ring, &is_bad);
	uint16_t nr_bytes = h->size;
	int rc = deliver(s, h, sink, err);
	ring_consume(ring, nr_bytes);
	peek_time(s, first);
	return rc;
}

static size_t oldest_ring(const struct sampler *s)
{
	size_t first = 0;
	for (size_t i = 1; i < s->rings.n; i++)
		if (s->next_ns.p[i] < s->next_ns.p[first])
			first = i;
	return first;
}

/*
 * Merges the rings and the side by time up to the horizon. At equal times an mmap record comes
 * before samples. *ret_is_whole: nothing was held back for a record that is still being written.
 */
static int merge_until(struct sampler *s, uint64_t horizon_ns, const struct event_sink *sink,
		       bool *ret_is_whole, struct err *err)
{
	const struct side *side = &s->spec.side;
	const struct event_sink through = sampler_sink(s, sink);
	int rc = 0;
	size_t nr_since_publish = 0;
	*ret_is_whole = true;
	while (!rc) {
		size_t first = oldest_ring(s);
		uint64_t ring_ns = s->next_ns.p[first];
		uint64_t side_ns = side->peek_ns ? side->peek_ns(side->ctx) : UINT64_MAX;
		uint64_t next_ns = MIN(ring_ns, side_ns);
		if (next_ns > horizon_ns || next_ns == UINT64_MAX)
			break;
		*ret_is_whole = side_ns != 0;
		if (!side_ns)
			break;
		if (side_ns < ring_ns) {
			rc = side->deliver(side->ctx, &through, err);
			continue;
		}
		rc = deliver_first(s, first, sink, err);
		if (++nr_since_publish % 64 == 0)
			ring_publish(&s->rings.p[first]);
	}
	return rc;
}

/*
 * Returns 0; -EAGAIN without a message: held back for a record being written; or the sink's error.
 */
static int drain_until(struct sampler *s, uint64_t horizon_ns, const struct event_sink *sink,
		       struct err *err)
{
	for (size_t i = 0; i < s->rings.n; i++) {
		ring_refresh(&s->rings.p[i]);
		peek_time(s, i);
	}
	bool is_whole;
	int rc = merge_until(s, horizon_ns, sink, &is_whole, err);
	for (size_t i = 0; i < s->rings.n; i++)
		ring_publish(&s->rings.p[i]);
	if (rc)
		return rc;
	if (!is_whole)
		return -EAGAIN;
	if (s->spec.side.applied)
		s->spec.side.applied(s->spec.side.ctx, horizon_ns);
	return 0;
}

int sampler_drain(struct sampler *s, const struct event_sink *sink, struct err *err)
{
	int rc = drain_until(s, clock_mono_ns() - MERGE_DELAY_NS, sink, err);
	return rc == -EAGAIN ? 0 : rc;
}

static bool counts_time(const struct sampler *s)
{
	bool is_clock = s->how.attr.type == PERF_TYPE_SOFTWARE;
	return is_clock && !s->target->is_system && !s->info.is_filtering;
}

/*
 * Reads the values of all events: CPU time including that of inherited threads, and losses; losses
 * after the last record of a ring are in no PERF_RECORD_LOST.
 */
static void read_counts(struct sampler *s, const struct group *g, size_t nr)
{
	bool is_time = counts_time(s);
	for (size_t i = 0; i < nr; i++) {
		struct perfopen_counts c = perfopen_read(g->fds.p[i]);
		if (is_time)
			s->info.cpu_ns += c.value;
		s->nr_lost_counted += c.nr_lost;
	}
}

void sampler_begin(struct sampler *s)
{
	s->before_ns = 0;
	if (!counts_time(s))
		return;
	vec_foreach(g, &s->groups)
		for (size_t i = 0; i < g->fds.n; i++)
			s->before_ns += perfopen_read(g->fds.p[i]).value;
}

int sampler_stop(struct sampler *s, const struct event_sink *sink, struct err *err)
{
	vec_foreach(g, &s->groups)
		for (size_t i = 0; i < g->fds.n; i++)
			(void)ioctl(g->fds.p[i], PERF_EVENT_IOC_DISABLE,
				    0); /* fails for threads that have exited */
	vec_foreach(g, &s->groups)
		read_counts(s, g, g->fds.n);
	s->info.cpu_ns -= MIN(s->before_ns, s->info.cpu_ns);
	s->is_started = false;
	int rc = -EAGAIN;
	for (unsigned i = 0; i < STOP_TRIES && rc == -EAGAIN; i++) {
		if (i)
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		rc = drain_until(s, UINT64_MAX - 1, sink, err);
	}
	rc = rc == -EAGAIN ? 0 : rc;
	if (rc || s->nr_lost_counted <= s->nr_lost_reported)
		return rc;
	struct event ev = {.kind = EVENT_LOST,
			   .time_ns = clock_mono_ns(),
			   .cpu = -1,
			   .lost = {.nr = s->nr_lost_counted - s->nr_lost_reported}};
	return sink->event(sink->ctx, &ev, err);
}

/* ---- growing ----------------------------------------------------------------------------- */

static void close_events(struct sampler *s, struct group *g, size_t from, size_t nr)
{
	for (size_t i = from; i < from + nr; i++)
		close(g->fds.p[i]);
	memmove(g->fds.p + from, g->fds.p + from + nr, (g->fds.n - from - nr) * sizeof(*g->fds.p));
	g->fds.n -= nr;
	s->nr_events -= MIN((uint64_t)nr, s->nr_events);
}

/* Only a lack of resources is a failure; a thread that has exited needs no events. */
static int reopen_thread(struct sampler *s, struct group *g, int32_t tid)
{
	int rc = open_thread(s, g, tid, NULL);
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ? rc : 0;
}

struct growth {
	struct sampler *s;
	uint32_t group; /* index + 1 */
	uint64_t start_ns;
	struct map opened_us; /* tid -> when its new events were open, since start_ns */
};

static int reopen_member(struct growth *w, int32_t tid)
{
	int rc = reopen_thread(w->s, &w->s->groups.p[w->group - 1], tid);
	uint64_t now_us = (clock_mono_ns() - w->start_ns) / 1000;
	*map_put(&w->opened_us, (uint32_t)tid, NULL) = (uint32_t)MIN(now_us, (uint64_t)UINT32_MAX);
	return rc;
}

/*
 * Opens new events for children that were created before their parent got the new events: they only
 * inherited the old ones, which will be closed. Their FORK records may still be unread in a ring.
 * Returns the number of such children, or an error.
 */
static int open_pending_children(struct growth *w)
{
	CLEANUP(pending_forks_release) struct pending_forks forks = {0};
	for (size_t i = 0; i < w->s->rings.n; i++)
		pending_forks_add(&forks, &w->s->rings.p[i], &w->s->how.attr);
	int nr = 0;
	vec_foreach(f, &forks.list) {
		const uint32_t *parent = map_get(&w->opened_us, (uint32_t)f->ptid);
		if (!parent || map_get(&w->opened_us, (uint32_t)f->tid))
			continue;
		uint32_t parent_us = *parent; /* map_put may move the table */
		*map_put(&w->s->group_of, (uint32_t)f->tid, NULL) = w->group;
		if (f->time_ns >= w->start_ns + (uint64_t)parent_us * 1000)
			*map_put(&w->opened_us, (uint32_t)f->tid, NULL) = parent_us;
		else if (reopen_member(w, f->tid))
			return -EMFILE;
		nr++;
	}
	return nr;
}

#define PENDING_ROUNDS 16 /* depth of descendants: a child is found once its parent is */

static int reopen_threads(struct sampler *s, uint32_t group)
{
	struct growth w = {.s = s, .group = group, .start_ns = clock_mono_ns()};
	int rc = 0;
	uint64_t tid;
	uint32_t its_group;
	for (size_t it = 0; !rc && map_next(&s->group_of, &it, &tid, &its_group);)
		if (its_group == group)
			rc = reopen_member(&w, (int32_t)tid);
	int nr = 1;
	for (unsigned round = 0; !rc && nr > 0 && round < PENDING_ROUNDS; round++)
		nr = open_pending_children(&w);
	map_release(&w.opened_us);
	return rc ? rc : MIN(nr, 0);
}

static int reopen_cpus(struct sampler *s, struct group *g)
{
	for (size_t i = 0; i < s->cpus.n; i++) {
		int fd = perfopen_event(&s->how, -1, s->cpus.p[i], g->stack_bytes, NULL);
		if (fd < 0)
			return fd;
		vec_push(&g->fds, fd);
		s->nr_events++;
		if (redirect_event(s, fd, i) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
	}
	return 0;
}

void sampler_grow(struct sampler *s, int32_t tid, uint64_t nr_bytes)
{
	bool is_per_cpu = s->target->is_system || s->info.is_filtering;
	uint32_t *of = map_get(&s->group_of, (uint32_t)tid);
	if (!s->is_started || (!of && !is_per_cpu) ||
	    !(s->how.attr.sample_type & PERF_SAMPLE_STACK_USER))
		return;
	uint32_t group = is_per_cpu ? 1 : *of;
	struct group *g = &s->groups.p[group - 1];
	/* Records that were written before the copies were last enlarged are ignored. */
	if (g->is_fixed || g->stack_bytes >= PERFOPEN_STACK_MAX || nr_bytes < g->stack_bytes ||
	    ++g->nr_short < GROW_AFTER)
		return;
	g->nr_short = 0;
	uint32_t old_bytes = g->stack_bytes;
	size_t nr_old = g->fds.n;
	g->stack_bytes = MIN(g->stack_bytes * GROW_FACTOR, PERFOPEN_STACK_MAX);
	int rc = is_per_cpu ? reopen_cpus(s, g) : reopen_threads(s, group);
	if (rc) { /* not all could be opened: the old events stay, and some stacks are cut short */
		close_events(s, g, nr_old, g->fds.n - nr_old);
		g->stack_bytes = old_bytes;
		g->is_fixed = true;
		return;
	}
	if (g->fds.n > nr_old) {
		read_counts(s, g, nr_old);
		close_events(s, g, 0, nr_old);
	}
	s->info.nr_grown++;
	s->info.max_stack_bytes = MAX(s->info.max_stack_bytes, g->stack_bytes);
}

struct sampler_info sampler_info(const struct sampler *s)
{
	struct sampler_info info = s->info;
	if (s->spec.flags & (PERFOPEN_SIDEBAND | PERFOPEN_PROG))
		info.is_filtering = false; /* no samples of other threads are delivered */
	return info;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	vec_foreach(g, &s->groups) {
		close_events(s, g, 0, g->fds.n);
		vec_release(&g->fds);
	}
	for (size_t i = 0; i < s->rings.n; i++) {
		ring_release(&s->rings.p[i]);
		close(s->ring_fds.p[i]);
	}
	vec_release(&s->groups);
	vec_release(&s->rings);
	vec_release(&s->ring_fds);
	vec_release(&s->next_ns);
	vec_release(&s->cpus);
	map_release(&s->group_of);
	map_release(&s->wanted);
	map_release(&s->known);
	free(s);
}

void sampler_free_p(struct sampler **s)
{
	sampler_free(*s);
}
