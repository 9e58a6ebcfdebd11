/*
 * Makes rows of the BPF programs' records; see waitsource.h and wire/kernel_wait.h.
 *
 *	rings of the CPUs ──┐ merged by time     ┌─► waitsums: rows, delivered twice a second
 *	RECORD_WAIT ────────┴────────────────────┤
 *	RECORD_THREAD ──► owners of locks        ├─► blamechain: rows of TABLE_BLAME
 *	                                         └─► keptwaits: rows of TABLE_INTERVALS
 */
#include "base/base.h"
#include "capture/wait/waitsource.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "capture/bpf/btfhas.h"
#include "capture/bpf/skeleton.h"
#include "capture/wait/blamechain.h"
#include "capture/wait/keptwaits.h"
#include "capture/wait/waitrings.h"
#include "capture/wait/waitsums.h"
#include "host/fdname.h"
#include "host/limits.h"
#include "kernel_wait.h"
#include "model/blametag.h"
#include "model/tables.h"
#include "wait_reason.h"

/*
 * How far the horizon is behind the clock: a BPF program that has read the clock has written its
 * record by then (unless the machine itself is paused), and what it sent through the common ring was
 * delivered.
 */
#define HORIZON_NS (10 * NS_PER_MS)
/* The end of the accounting is set this far in the future, so that every program sees it in time. */
#define STOP_AHEAD_NS (1 * NS_PER_MS)
/*
 * Milliseconds between two drains, and while the target does nothing: BPF programs wake the capture
 * when a ring is a quarter full, and it is drained at once.
 */
#define POLL_MS      50
#define POLL_IDLE_MS 500
#define BATCH        256 /* intervals that are passed on at once */

struct waits {
	struct engine *engine;
	struct assay_bpf *skel;
	struct fdnames *names;
	uint64_t start_ns; /* all threads are accounted from here ... */
	uint64_t stop_ns;  /* ... to here; 0 = running */
	uint64_t epoch_ns;
	uint64_t next_rows_ns; /* rows of what ends until then are delivered next */
	unsigned nr_rings;
	uint32_t nr_records; /* of each */
	void *memory;        /* the rings, mapped */
	size_t memory_bytes;
	struct waitrings *rings;
	struct waitsums *sums;
	struct blamechain *blame; /* NULL: TABLE_BLAME is not wanted */
	struct keptwaits *kept;   /* NULL: TABLE_INTERVALS is not wanted */
	struct wait_interval batch[BATCH];
	size_t nr_batch;
	bool is_idle;                  /* the last drain found nothing */
	struct map threads;            /* hash of process and TID in its PID namespace -> TID */
	const struct event_sink *sink; /* these two: during an emission */
	struct err *err;
	struct buf text;
	struct buf detail;
	/* Intervals for which a ring was full; their time is in rows of detail "unaccounted". */
	uint64_t nr_unaccounted;
	uint64_t steal_ns; /* host_steal_ns at the start; after the end: of the capture */
	/* Time of intervals that is in no row at all. */
	uint64_t lost_ns;
};

/* ---- records ------------------------------------------------------------------------------ */

static uint64_t thread_hash(int32_t tgid, int32_t ns_tid)
{
	return (uint64_t)(uint32_t)tgid << 32 | (uint32_t)ns_tid;
}

/* RECORD_THREAD. */
static int on_thread_record(void *ctx, const struct kernel_record *record,
			    const struct event_sink *sink UNUSED, struct err *err UNUSED)
{
	struct waits *w = ctx;
	struct wait_thread t;
	if (record->nr_bytes < sizeof(t))
		return 0;
	memcpy(&t, record, sizeof(t));
	*map_put(&w->threads, thread_hash(t.head.tgid, t.ns_tid), NULL) = (uint32_t)t.head.pid;
	return 0;
}

/* RECORD_WAIT. */
static int on_wait_record(void *ctx, const struct kernel_record *record,
			  const struct event_sink *sink UNUSED, struct err *err UNUSED)
{
	struct waits *w = ctx;
	struct wait_single s;
	if (record->nr_bytes < sizeof(s))
		return 0;
	memcpy(&s, record, sizeof(s));
	const struct wait_record *r = &s.record;
	if (r->how == HOW_OBJECT) {
		(void)fdnames_get(w->names, r->tgid, r->fd, r->object, r->dev, "file");
	} else if (r->how == HOW_UNACCOUNTED) {
		w->nr_unaccounted += s.nr_intervals + s.nr_runs;
		waitsums_add_unaccounted(w->sums, &s);
		if (w->blame)
			blamechain_lose(w->blame, r->tid, s.head.time_ns);
	} else {
		waitrings_add(w->rings, &s);
	}
	return 0;
}

/*
 * Replaces the owner that the lock word named, a TID in the PID namespace of the process, by that of
 * the root namespace. If the process has no such thread, the word was not that of a lock. Neither is
 * it for a wait that an interrupt ended: a timeout.
 */
static void verify_owner(const struct waits *w, struct wait_interval *i)
{
	if (!i->owner_tid)
		return;
	const uint32_t *tid = map_get(&w->threads, thread_hash(i->tgid, i->owner_tid));
	i->owner_tid = tid && !(i->evidence & EVIDENCE_BY_IRQ) ? (int32_t)*tid : 0;
	if (!i->owner_tid)
		i->evidence &= (uint8_t)~EVIDENCE_LOCK_WORD;
}

/* Passes single intervals on; those up to @horizon_ns are complete. */
static void deliver_batch(struct waits *w, uint64_t horizon_ns)
{
	blamechain_add(w->blame, w->batch, w->nr_batch, horizon_ns);
	w->nr_batch = 0;
}

static void deliver_interval(struct waits *w, const struct wait_interval *i)
{
	if (w->nr_batch == BATCH)
		deliver_batch(w, w->batch[BATCH - 1].on_ns);
	w->batch[w->nr_batch++] = *i;
}

/* Sums what ended up to @horizon_ns. */
static void merge(struct waits *w, uint64_t horizon_ns)
{
	struct wait_run run;
	waitrings_begin(w->rings, horizon_ns);
	while (waitrings_next(w->rings, &run)) {
		w->is_idle = false;
		verify_owner(w, &run.interval);
		waitsums_add(w->sums, &run);
		if (run.interval.how == HOW_ENDED)
			continue;
		if (w->blame)
			deliver_interval(w, &run.interval);
		if (w->kept)
			keptwaits_add(w->kept, &run.interval, run.ran_ns);
	}
	waitrings_end(w->rings);
	if (w->blame)
		deliver_batch(w, MIN(horizon_ns, clock_mono_ns()));
}

/* ---- delivery ---------------------------------------------------------------------------- */

/* Name of a descriptor that was closed before its file could be looked up. */
static const char *fd_kind(enum wait_object_kind kind)
{
	switch (kind) {
	case OBJECT_NONE:
	case OBJECT_FUTEX:
	case OBJECT_FILE:
		break;
	case OBJECT_SOCKET:
		return "socket";
	case OBJECT_PIPE:
		return "pipe";
	case OBJECT_OTHER:
		return "device";
	}
	return "file";
}

static const char *object_text(struct waits *w, const struct waitsums_key *k)
{
	switch ((enum wait_object_kind)k->object_kind) {
	case OBJECT_NONE:
		return NULL;
	case OBJECT_FUTEX:
		buf_clear(&w->text);
		buf_addf(&w->text, "lock 0x%" PRIx64, k->object);
		return buf_str(&w->text);
	case OBJECT_FILE:
	case OBJECT_SOCKET:
	case OBJECT_PIPE:
	case OBJECT_OTHER:
		return fdnames_get(w->names, k->tgid, k->fd, k->object, k->dev,
				   fd_kind(k->object_kind));
	}
	return NULL;
}

static int emit(struct waits *w, const struct waitsums_row *r, const char *detail, struct err *err)
{
	const struct waitsums_key *k = &r->key;
	const int64_t values[] = {r->count, r->ns, r->longest_ns};
	struct event ev = event_aggregate(k->table, k->tgid, k->tid,
					  w->epoch_ns + k->second * NS_PER_SEC, values);
	ev.aggregate.user_ref = k->user_ref;
	ev.aggregate.kernel_ref = r->kernel_ref;
	ev.aggregate.reason = k->reason;
	ev.aggregate.evidence = k->evidence;
	ev.aggregate.log2_ns = k->log2_ns;
	ev.aggregate.syscall = k->syscall;
	ev.aggregate.object = object_text(w, k);
	ev.aggregate.detail = detail;
	ev.aggregate.other_pid = r->other_tgid;
	ev.aggregate.other_tid = k->other_tid;
	ev.aggregate.other_ref = k->other_ref;
	ev.aggregate.direct_pid = r->direct_tgid;
	ev.aggregate.direct_tid = r->direct_tid;
	ev.aggregate.direct_ref = r->direct_ref;
	return w->sink->event(w->sink->ctx, &ev, err);
}

static int emit_row(void *ctx, const struct waitsums_row *r, struct err *err)
{
	return emit(ctx, r, waitsums_detail_text(r->key.detail), err);
}

static int emit_blame_row(void *ctx, const struct blamechain_row *b)
{
	struct waits *w = ctx;
	const struct blametag tag = {(enum wait_reason)b->doing, b->nr_steps, b->is_convoy};
	const struct waitsums_row row = {
		.key = {.user_ref = b->user_ref,
			.other_ref = b->culprit_ref,
			.object = b->object,
			.second = b->second,
			.tgid = b->tgid,
			.tid = b->tid,
			.other_tid = b->culprit_tid,
			.fd = b->fd,
			.syscall = b->syscall,
			.reason = b->reason,
			.evidence = b->evidence,
			.table = TABLE_BLAME,
			.log2_ns = b->log2_ns,
			.object_kind = b->object_kind,
			.dev = b->dev},
		.other_tgid = b->culprit_tgid,
		.direct_tgid = b->direct_tgid,
		.direct_tid = b->direct_tid,
		.direct_ref = b->direct_ref,
		.kernel_ref = b->kernel_ref,
		.count = b->count,
		.ns = b->ns,
		.longest_ns = b->longest_ns,
	};
	buf_clear(&w->detail);
	blametag_add_text(&w->detail, &tag);
	return emit(w, &row, buf_str(&w->detail), w->err);
}

static int emit_kept(void *ctx, const struct wait_interval *i, uint64_t ran_ns, struct err *err)
{
	struct waits *w = ctx;
	const struct waitsums_key named = {.object = i->object,
					   .tgid = i->tgid,
					   .fd = i->fd,
					   .object_kind = i->object_kind,
					   .dev = i->dev};
	/* Of a run of 4.3 s or more it is not known. */
	uint64_t cpu_ns = i->run_ns == UINT32_MAX ? ran_ns : MIN(i->run_ns, ran_ns);
	const int64_t values[INTERVAL_COLUMNS] = {
		[INTERVAL_NR] = 1,
		[INTERVAL_NS] = (int64_t)(i->on_ns - i->off_ns),
		[INTERVAL_QUEUE_NS] = (int64_t)(i->on_ns - i->woken_ns),
		[INTERVAL_CPU_NS] = (int64_t)cpu_ns,
		[INTERVAL_STOLEN_NS] = (int64_t)(ran_ns - cpu_ns),
	};
	struct event ev = event_aggregate(TABLE_INTERVALS, i->tgid, i->tid, i->off_ns, values);
	ev.cpu = i->cpu;
	ev.aggregate.user_ref = i->user_ref;
	ev.aggregate.kernel_ref = i->kernel_ref;
	ev.aggregate.reason = i->reason;
	ev.aggregate.evidence = i->evidence;
	ev.aggregate.syscall = i->syscall;
	ev.aggregate.object = object_text(w, &named);
	ev.aggregate.other_pid = i->waker_tgid;
	ev.aggregate.other_tid = i->waker_tid;
	ev.aggregate.other_ref = i->waker_ref;
	return w->sink->event(w->sink->ctx, &ev, err);
}

static int emit_rows(struct waits *w, const struct event_sink *sink, struct err *err)
{
	w->sink = sink;
	w->err = err;
	TRY(waitsums_emit(w->sums, emit_row, w, err));
	return w->blame ? blamechain_take_rows(w->blame, emit_blame_row, w) : 0;
}

/* ---- the source -------------------------------------------------------------------------- */

/* Sets the number and size of the rings, before the programs are loaded. */
static int size_rings(struct waits *w, struct err *err)
{
	int nr_cpus = libbpf_num_possible_cpus();
	if (nr_cpus < 0)
		return err_set(err, nr_cpus, "cannot read the number of CPUs: %s",
			       strerror(-nr_cpus));
	w->nr_rings = (unsigned)nr_cpus;
	w->nr_records = waitrings_choose(w->nr_rings);
	w->memory_bytes = w->nr_rings * waitrings_bytes(w->nr_records);
	w->skel->rodata->wait_ring_mask = w->nr_records - 1;
	struct bpf_map *map = w->skel->maps.wait_rings;
	int rc = bpf_map__set_value_size(map, (uint32_t)waitrings_bytes(w->nr_records));
	rc = rc ? rc : bpf_map__set_max_entries(map, w->nr_rings);
	return rc ? err_set(err, rc, "cannot set the size of a BPF map: %s", strerror(-rc)) : 0;
}

/* Without these tracepoints of io_uring its waits are polls. */
static void choose_programs(struct assay_bpf *skel, const struct btf *types)
{
	if (btf_has_tracepoint_with_args(types, "io_uring_submit_req", 1) &&
	    btf_has_tracepoint_with_args(types, "io_uring_complete", 3))
		return;
	(void)bpf_program__set_autoload(skel->progs.wait_uring_begin, false);
	(void)bpf_program__set_autoload(skel->progs.wait_uring_end, false);
}

static int waits_open(void **ret_w, const struct source_env *env, struct err *err)
{
	struct waits *w = xcalloc(1, sizeof(*w));
	*ret_w = w;
	w->engine = env->engine;
	w->skel = engine_skel(env->engine);
	w->names = fdnames_new();
	choose_programs(w->skel, engine_kernel_types(env->engine));
	w->skel->rodata->wait_has_stacks = !env->has_no_stacks;
	w->skel->rodata->wait_has_wakers = !env->has_no_stacks && env->tables & TABLE_SET(BLAME);
	TRY(size_rings(w, err));
	return 0;
}

static int waits_load(void *s, struct err *err)
{
	struct waits *w = s;
	void *p = mmap(NULL, w->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(w->skel->maps.wait_rings), 0);
	if (p == MAP_FAILED)
		return err_sys(err, "cannot map the BPF map of waits");
	w->memory = p;
	w->rings = waitrings_new(p, w->nr_rings, w->nr_records);
	return 0;
}

/* Runs a BPF iterator over all threads. It outputs nothing; reading it makes it run. */
static int run_thread_iterator(struct bpf_program *prog, struct err *err)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	if (!link)
		return err_sys(err, "looking at all threads");
	int rc = 0;
	int fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		rc = err_sys(err, "looking at all threads");
	char none[64];
	ssize_t n = 0;
	while (!rc && ((n = read(fd, none, sizeof(none))) > 0 || (n < 0 && errno == EINTR)))
		;
	if (!rc && n < 0)
		rc = err_sys(err, "looking at all threads");
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return rc;
}

static void hold_records(void *rings)
{
	waitrings_hold(rings);
}

static void keep_span(void *kept, int32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	keptwaits_add_span(kept, tid, from_ns, to_ns);
}

static int waits_start(void *s, const struct source_env *env, const struct event_sink *sink UNUSED,
		       struct err *err)
{
	struct waits *w = s;
	uint64_t now = clock_mono_ns();
	w->epoch_ns = MIN(env->start_ns, now);
	w->start_ns = now;
	w->steal_ns = host_steal_ns();
	w->next_rows_ns = w->epoch_ns + ((now - w->epoch_ns) / SOURCE_ROWS_NS + 1) * SOURCE_ROWS_NS;
	w->sums = waitsums_new(w->epoch_ns);
	if (w->skel->rodata->wait_has_wakers)
		w->blame = blamechain_new(&(struct blamechain_options){.epoch_ns = w->epoch_ns});
	if (env->tables & TABLE_SET(INTERVALS) && !env->has_no_stacks) {
		w->kept = keptwaits_new(&(struct keptwaits_options){0});
		engine_on_span(w->engine, keep_span, w->kept);
	}
	engine_on_record(w->engine, RECORD_WAIT, on_wait_record, w);
	engine_on_record(w->engine, RECORD_THREAD, on_thread_record, w);
	engine_on_poll(w->engine, hold_records, w->rings);
	__atomic_store_n(&w->skel->bss->wait_clock.start_ns, now, __ATOMIC_RELEASE);
	return run_thread_iterator(w->skel->progs.wait_sweep_first, err);
}

static unsigned waits_poll_timeout(const void *s)
{
	return ((const struct waits *)s)->is_idle ? POLL_IDLE_MS : POLL_MS;
}

static int waits_drain(void *s, const struct event_sink *sink, struct err *err)
{
	struct waits *w = s;
	if (!w->start_ns || w->stop_ns)
		return 0;
	w->is_idle = true;
	uint64_t horizon_ns = clock_mono_ns() - HORIZON_NS;
	while (horizon_ns >= w->next_rows_ns) {
		merge(w, w->next_rows_ns);
		TRY(emit_rows(w, sink, err));
		w->next_rows_ns += SOURCE_ROWS_NS;
	}
	merge(w, horizon_ns);
	return 0;
}

static int waits_stop(void *s, const struct event_sink *sink UNUSED, struct err *err)
{
	struct waits *w = s;
	if (!w->start_ns || w->stop_ns)
		return 0;
	w->stop_ns = clock_mono_ns() + STOP_AHEAD_NS;
	w->steal_ns = host_steal_ns() - w->steal_ns;
	__atomic_store_n(&w->skel->bss->wait_clock.stop_ns, w->stop_ns, __ATOMIC_RELEASE);
	struct timespec ts = {.tv_nsec = 2 * STOP_AHEAD_NS};
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
	return run_thread_iterator(w->skel->progs.wait_sweep_last, err);
}

static int waits_finish(void *s, const struct event_sink *sink, struct err *err)
{
	struct waits *w = s;
	if (!w->stop_ns)
		return 0;
	merge(w, UINT64_MAX - 1); /* UINT64_MAX: an empty ring */
	if (w->blame)
		blamechain_finish(w->blame);
	w->lost_ns = w->skel->bss->wait_loss.ns;
	w->nr_unaccounted += w->skel->bss->wait_loss.count;
	TRY(emit_rows(w, sink, err));
	return w->kept ? keptwaits_emit(w->kept, emit_kept, w, err) : 0;
}

static uint64_t waits_end_ns(const void *s)
{
	return ((const struct waits *)s)->stop_ns;
}

static uint64_t waits_reach_ns(const void *s)
{
	const struct waits *w = s;
	return w->next_rows_ns ? w->next_rows_ns - SOURCE_ROWS_NS : 0;
}

static void waits_facts(const void *s, struct profile *p)
{
	const struct waits *w = s;
	profile_lose(p, LOSS_WAITS_NO_REASON, w->nr_unaccounted);
	profile_lose(p, LOSS_WAITS_NO_ROW_NS, w->lost_ns);
	if (w->stop_ns && w->steal_ns)
		profile_fact_nr(p, FACT_STEAL, w->steal_ns);
	if (!w->kept)
		return;
	struct keptwaits_counts kept = keptwaits_counts(w->kept);
	uint64_t since_ns = w->stop_ns - MIN(kept.complete_from_ns, w->stop_ns);
	if (kept.nr_dropped && w->stop_ns)
		profile_factf(p, FACT_INTERVALS,
			      "%" PRIu64 " of %" PRIu64
			      ": those of the last %.1f s, and of long waits and slow spans%s",
			      kept.nr - kept.nr_dropped, kept.nr, (double)since_ns / NS_PER_SEC,
			      kept.nr_cut ? " (not all: no room)" : "");
}

static void waits_free(void *s)
{
	struct waits *w = s;
	engine_on_record(w->engine, RECORD_WAIT, NULL, NULL);
	engine_on_record(w->engine, RECORD_THREAD, NULL, NULL);
	engine_on_poll(w->engine, NULL, NULL);
	engine_on_span(w->engine, NULL, NULL);
	waitrings_free(w->rings);
	if (w->memory)
		munmap(w->memory, w->memory_bytes);
	waitsums_free(w->sums);
	blamechain_free(w->blame);
	keptwaits_free(w->kept);
	map_release(&w->threads);
	fdnames_free(w->names);
	buf_release(&w->text);
	buf_release(&w->detail);
	free(w);
}

const struct source waits_source = {
	.name = "waits",
	.fills = WAIT_TABLES,
	.bpf_prefix = "wait_",
	.poll_timeout = waits_poll_timeout,
	.open = waits_open,
	.load = waits_load,
	.start = waits_start,
	.drain = waits_drain,
	.stop = waits_stop,
	.finish = waits_finish,
	.end_ns = waits_end_ns,
	.facts = waits_facts,
	.reach_ns = waits_reach_ns,
	.free = waits_free,
};
