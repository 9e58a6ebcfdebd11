/*
 * Makes rows of the BPF programs' maps and records; see waitsource.h and wire/kernel_wait.h.
 *
 *	map 0 ──┐ swapped each second, then read        ┌─ rows of equal second, thread and tag
 *	map 1 ──┘ when no program writes it ──────► rows┤  are added up,
 *	ring ──── long waits one by one, split ───►     └─ delivered in waits_drain
 */
#include "base/base.h"
#include "capture/wait/waitsource.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/bpf/skeleton.h"
#include "host/fdname.h"
#include "kernel_wait.h"
#include "model/tables.h"

#define BATCH 2048
/*
 * Time between the swap of the maps and the reading: BPF programs that still write the old map end in
 * microseconds (unless the machine itself is paused), and the ring has been drained.
 */
#define SWAP_WAIT_NS (150 * NS_PER_MS)
/* The end of the accounting is set this far in the future, so that every program sees it in time. */
#define STOP_AHEAD_NS (1 * NS_PER_MS)

enum row_detail { DETAIL_NONE, DETAIL_WOKEN, DETAIL_PREEMPTED, DETAIL_YIELDED, DETAIL_UNACCOUNTED };

static const char *const details[] = {
	[DETAIL_WOKEN] = "woken",
	[DETAIL_PREEMPTED] = "preempted",
	[DETAIL_YIELDED] = "yielded",
	[DETAIL_UNACCOUNTED] = "unaccounted",
};

/* Identity of a row; hashed and compared as bytes, so it has no padding. */
struct row_key {
	uint64_t user_ref;
	uint64_t other_ref;
	uint64_t object;
	uint32_t second;
	int32_t tgid;
	int32_t tid;
	int32_t other_tid;
	int32_t fd;
	int16_t syscall;
	uint8_t reason;
	uint8_t evidence;
	uint8_t spec;
	uint8_t log2_ns;
	uint8_t object_kind;
	uint8_t detail;
	uint32_t dev;
};

struct row {
	struct row_key key;
	int32_t other_tgid;
	uint64_t kernel_ref;
	int64_t count;
	int64_t ns;
	int64_t longest_ns;
};

struct waits_info {
	uint64_t start_ns; /* all threads are accounted from here ... */
	uint64_t stop_ns;  /* ... to here; 0 = running */
	/* Intervals for which a map was full; their time is in rows of detail "unaccounted". */
	uint64_t nr_unaccounted;
	/* Time of intervals that is in no row at all. */
	uint64_t lost_ns;
};

struct waits {
	struct engine *engine;
	struct assay_bpf *skel;
	struct fdnames *names;
	struct waits_info info;
	uint64_t epoch_ns;
	uint64_t next_swap_ns; /* when to swap the maps */
	uint64_t next_read_ns; /* when to read the map that is not written, 0 = it was read */
	VEC(struct row) rows;
	struct map index; /* hash of the key -> row + 1 */
	struct wait_key *keys;
	struct wait_row *values;
	struct buf text;
};

/* ---- rows -------------------------------------------------------------------------------- */

static struct row *row_of(struct waits *w, const struct row_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key));
	for (;; hash++) {
		bool is_new;
		uint32_t *at = map_put(&w->index, hash, &is_new);
		if (is_new) {
			struct row *r = vec_add(&w->rows);
			r->key = *key;
			*at = (uint32_t)w->rows.n;
			return r;
		}
		if (!memcmp(&w->rows.p[*at - 1].key, key, sizeof(*key)))
			return &w->rows.p[*at - 1];
	}
}

static struct row_key key_of(const struct wait_key *k, uint32_t dev, uint8_t spec)
{
	return (struct row_key){
		.user_ref = k->user_ref,
		.other_ref = k->other_ref,
		.object = k->object,
		.second = k->second,
		.tgid = k->tgid,
		.tid = k->tid,
		.other_tid = k->other_tid,
		.fd = k->fd,
		.syscall = k->syscall,
		.reason = k->reason,
		.evidence = k->evidence,
		.spec = spec,
		.log2_ns = k->log2_ns,
		.object_kind = k->object_kind,
		.detail = DETAIL_NONE,
		.dev = dev,
	};
}

/* Key of run queue time: it has the thread's stack, but no object, waker or descriptor. */
static struct row_key queue_key(const struct wait_key *k, enum row_detail detail, uint8_t log2_ns)
{
	return (struct row_key){
		.user_ref = k->user_ref,
		.second = k->second,
		.tgid = k->tgid,
		.tid = k->tid,
		.fd = WAIT_NO_FD,
		.syscall = k->syscall,
		.reason = WAIT_RUN_QUEUE,
		.evidence = k->evidence & (EVIDENCE_AT_START | EVIDENCE_OPEN),
		.spec = TABLE_OFF_CPU,
		.log2_ns = log2_ns,
		.detail = detail,
	};
}

static void row_add(struct waits *w, const struct row_key *key, const struct wait_row *from,
		    uint64_t count, uint64_t ns, uint64_t longest_ns)
{
	struct row *r = row_of(w, key);
	if (key->other_tid)
		r->other_tgid = from->other_tgid;
	r->kernel_ref = from->kernel_ref;
	r->count += (int64_t)count;
	r->ns += (int64_t)ns;
	r->longest_ns = MAX(r->longest_ns, (int64_t)longest_ns);
}

static enum row_detail detail_of(enum wait_how how)
{
	switch (how) {
	case HOW_BLOCKED:
		return DETAIL_NONE;
	case HOW_PREEMPTED:
		return DETAIL_PREEMPTED;
	case HOW_YIELDED:
		return DETAIL_YIELDED;
	case HOW_NEW_THREAD:
		return DETAIL_WOKEN;
	case HOW_UNACCOUNTED:
		return DETAIL_UNACCOUNTED;
	}
	return DETAIL_NONE;
}

/*
 * The BPF programs keep a histogram of wake-up latencies by log2 and their exact sum: distributes
 * the sum over the histogram's classes. The rows add up to the sum.
 */
static void add_queue_rows(struct waits *w, const struct wait_key *k, const struct wait_row *r)
{
	uint64_t weight[WAIT_QUEUE_CLASSES];
	unsigned __int128 total = 0;
	unsigned last = 0;
	for (unsigned i = 0; i < WAIT_QUEUE_CLASSES; i++) {
		weight[i] = (uint64_t)r->queued[i] << (i + WAIT_QUEUE_LOG2_FIRST);
		total += weight[i];
		if (weight[i])
			last = i;
	}
	uint64_t left_ns = r->queue_ns;
	for (unsigned i = 0; i <= last && total; i++) {
		if (!weight[i])
			continue;
		uint8_t log2_ns = (uint8_t)(i + WAIT_QUEUE_LOG2_FIRST);
		uint64_t ns = (uint64_t)(r->queue_ns * (unsigned __int128)weight[i] / total);
		struct row_key key = queue_key(k, DETAIL_WOKEN, log2_ns);
		if (i == last)
			ns = left_ns;
		left_ns -= ns;
		row_add(w, &key, r, r->queued[i], ns,
			i == last ? r->max_queue_ns : MIN(r->max_queue_ns, (uint64_t)2 << log2_ns));
	}
}

static void add_map_row(struct waits *w, const struct wait_key *k, const struct wait_row *r)
{
	struct row_key key;
	switch ((enum wait_account)k->account) {
	case WAITACCOUNT_ON_CPU:
	case WAITACCOUNT_BLAME:
		key = key_of(k, r->dev,
			     k->account == WAITACCOUNT_ON_CPU ? TABLE_ON_CPU : TABLE_BLAME);
		row_add(w, &key, r, r->count, r->ns, r->max_ns);
		return;
	case WAITACCOUNT_OBJECT:
		return;
	case WAITACCOUNT_OFF_CPU:
		break;
	}
	if (k->reason == WAIT_RUN_QUEUE) {
		key = queue_key(k, detail_of(k->how), k->log2_ns);
		row_add(w, &key, r, r->count, r->ns, r->max_ns);
		return;
	}
	key = key_of(k, r->dev, TABLE_OFF_CPU);
	key.detail = detail_of(k->how);
	row_add(w, &key, r, r->count, r->ns, r->max_ns);
	if (k->how == HOW_BLOCKED && !(k->evidence & EVIDENCE_OPEN && !r->queue_ns))
		add_queue_rows(w, k, r);
}

static uint8_t log2_of(uint64_t ns)
{
	return ns ? (uint8_t)(63 - __builtin_clzll(ns)) : 0;
}

/* Adds an interval that was sent by itself: split at the seconds, counted in the last one. */
static void add_interval(struct waits *w, struct row_key *key, const struct wait_row *from,
			 uint64_t start_ns, uint64_t end_ns)
{
	uint64_t start = start_ns > w->epoch_ns ? start_ns - w->epoch_ns : 0;
	uint64_t end = end_ns > w->epoch_ns ? end_ns - w->epoch_ns : 0;
	/* An interval that ends exactly at the end of a second belongs to that second. */
	uint64_t last = end > start ? (end - 1) / NS_PER_SEC : end / NS_PER_SEC;
	for (uint64_t s = start / NS_PER_SEC; s <= last; s++) {
		uint64_t from_ns = MAX(start, s * NS_PER_SEC);
		uint64_t to_ns = MIN(end, (s + 1) * NS_PER_SEC);
		key->second = (uint32_t)s;
		row_add(w, key, from, s == last, to_ns - from_ns, end_ns - start_ns);
	}
}

/* Adds the sum of intervals for which the maps were full: only their number and time are known. */
static void add_unaccounted(struct waits *w, const struct wait_single *s)
{
	bool is_run = s->key.account == WAITACCOUNT_ON_CPU;
	struct wait_row from = {0};
	struct row_key key = key_of(&s->key, 0, is_run ? TABLE_ON_CPU : TABLE_OFF_CPU);
	key.second = (uint32_t)((s->end_ns - MIN(w->epoch_ns, s->end_ns)) / NS_PER_SEC);
	key.log2_ns = LOG2_NONE;
	key.detail = is_run ? DETAIL_NONE : DETAIL_UNACCOUNTED;
	w->info.nr_unaccounted += s->dev;
	row_add(w, &key, &from, s->dev, s->end_ns - s->start_ns, 0);
}

/* RECORD_WAIT. */
static int on_wait_record(void *ctx, const struct kernel_record *record,
			  const struct event_sink *sink UNUSED, struct err *err UNUSED)
{
	struct waits *w = ctx;
	if (record->nr_bytes < sizeof(struct wait_single))
		return 0;
	struct wait_single s;
	memcpy(&s, record, sizeof(s));
	if (s.key.account == WAITACCOUNT_OBJECT) {
		(void)fdnames_get(w->names, s.key.tgid, s.key.fd, s.key.object, s.dev, "file");
		return 0;
	}
	if (s.start_ns > s.woken_ns || s.woken_ns > s.end_ns)
		return 0;
	if (s.key.how == HOW_UNACCOUNTED) {
		add_unaccounted(w, &s);
		return 0;
	}
	struct wait_row from = {
		.kernel_ref = s.kernel_ref, .other_tgid = s.other_tgid, .dev = s.dev};
	struct row_key key;
	if (s.key.account == WAITACCOUNT_ON_CPU) {
		key = key_of(&s.key, 0, TABLE_ON_CPU);
		key.log2_ns = LOG2_NONE;
		add_interval(w, &key, &from, s.start_ns, s.end_ns);
		return 0;
	}
	if (s.key.reason == WAIT_RUN_QUEUE) {
		key = queue_key(&s.key, detail_of(s.key.how), log2_of(s.end_ns - s.start_ns));
		add_interval(w, &key, &from, s.start_ns, s.end_ns);
		return 0;
	}
	key = key_of(&s.key, s.dev, TABLE_OFF_CPU);
	key.log2_ns = log2_of(s.woken_ns - s.start_ns);
	add_interval(w, &key, &from, s.start_ns, s.woken_ns);
	if (s.key.evidence & EVIDENCE_OPEN && s.woken_ns == s.end_ns)
		return 0;
	key = queue_key(&s.key, DETAIL_WOKEN,
			MAX(log2_of(s.end_ns - s.woken_ns), (uint8_t)WAIT_QUEUE_LOG2_FIRST));
	add_interval(w, &key, &from, s.woken_ns, s.end_ns);
	return 0;
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

static const char *object_text(struct waits *w, const struct row_key *k)
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

static int emit_row(struct waits *w, const struct row *r, const struct event_sink *sink,
		    struct err *err)
{
	const struct row_key *k = &r->key;
	const int64_t values[] = {r->count, r->ns, r->longest_ns};
	struct event ev = event_aggregate(k->spec, k->tgid, k->tid,
					  w->epoch_ns + k->second * NS_PER_SEC, values);
	ev.aggregate.user_ref = k->user_ref;
	ev.aggregate.kernel_ref = r->kernel_ref;
	ev.aggregate.reason = k->reason;
	ev.aggregate.evidence = k->evidence;
	ev.aggregate.log2_ns = k->log2_ns;
	ev.aggregate.syscall = k->syscall;
	ev.aggregate.object = object_text(w, k);
	ev.aggregate.detail = details[k->detail];
	ev.aggregate.other_pid = r->other_tgid;
	ev.aggregate.other_tid = k->other_tid;
	ev.aggregate.other_ref = k->other_ref;
	return sink->event(sink->ctx, &ev, err);
}

static int emit_rows(struct waits *w, const struct event_sink *sink, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; i < w->rows.n && !rc; i++)
		rc = emit_row(w, &w->rows.p[i], sink, err);
	vec_clear(&w->rows);
	map_clear(&w->index);
	return rc;
}

static int read_map(struct waits *w, uint32_t which, struct err *err)
{
	int fd = bpf_map__fd(which & 1 ? w->skel->maps.wait_rows1 : w->skel->maps.wait_rows0);
	uint32_t at = 0;
	bool is_first = true;
	for (;;) {
		uint32_t nr = BATCH;
		int rc = bpf_map_lookup_and_delete_batch(fd, is_first ? NULL : &at, &at, w->keys,
							 w->values, &nr, NULL);
		if (rc && rc != -ENOENT)
			return err_set(err, rc, "cannot read BPF map of waits: %s", strerror(-rc));
		for (uint32_t i = 0; i < nr; i++)
			add_map_row(w, &w->keys[i], &w->values[i]);
		if (rc)
			return 0;
		is_first = false;
	}
}

/* ---- the source -------------------------------------------------------------------------- */

static int waits_open(void **ret_w, const struct source_env *env, struct err *err UNUSED)
{
	struct waits *w = xcalloc(1, sizeof(*w));
	w->engine = env->engine;
	w->skel = engine_skel(env->engine);
	w->names = fdnames_new();
	w->keys = xcalloc(BATCH, sizeof(*w->keys));
	w->values = xcalloc(BATCH, sizeof(*w->values));
	w->skel->rodata->wait_has_stacks = !env->has_no_stacks;
	w->skel->rodata->wait_has_wakers = !env->has_no_stacks && env->tables & TABLE_SET(BLAME);
	engine_on_record(env->engine, RECORD_WAIT, on_wait_record, w);
	*ret_w = w;
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

static int waits_start(void *s, const struct source_env *env, const struct event_sink *sink UNUSED,
		       struct err *err)
{
	struct waits *w = s;
	struct wait_clock *clock = &w->skel->bss->wait_clock;
	uint64_t now = clock_mono_ns();
	w->epoch_ns = MIN(env->start_ns, now);
	w->info.start_ns = now;
	w->next_swap_ns = w->epoch_ns + ((now - w->epoch_ns) / NS_PER_SEC + 1) * NS_PER_SEC;
	clock->epoch_ns = w->epoch_ns;
	__atomic_store_n(&clock->start_ns, now, __ATOMIC_RELEASE);
	return run_thread_iterator(w->skel->progs.wait_sweep_first, err);
}

static int waits_drain(void *s, const struct event_sink *sink, struct err *err)
{
	struct waits *w = s;
	struct wait_clock *clock = &w->skel->bss->wait_clock;
	uint64_t now = clock_mono_ns();
	if (!w->info.start_ns || w->info.stop_ns)
		return 0;
	if (w->next_read_ns) {
		if (now < w->next_read_ns)
			return 0;
		w->next_read_ns = 0;
		TRY(read_map(w, clock->active_map ^ 1, err));
		return emit_rows(w, sink, err);
	}
	if (now < w->next_swap_ns)
		return 0;
	__atomic_store_n(&clock->active_map, clock->active_map ^ 1, __ATOMIC_RELEASE);
	w->next_swap_ns += ((now - w->next_swap_ns) / NS_PER_SEC + 1) * NS_PER_SEC;
	w->next_read_ns = now + SWAP_WAIT_NS;
	return 0;
}

static int waits_stop(void *s, const struct event_sink *sink UNUSED, struct err *err)
{
	struct waits *w = s;
	if (!w->info.start_ns || w->info.stop_ns)
		return 0;
	w->info.stop_ns = clock_mono_ns() + STOP_AHEAD_NS;
	__atomic_store_n(&w->skel->bss->wait_clock.stop_ns, w->info.stop_ns, __ATOMIC_RELEASE);
	struct timespec ts = {.tv_nsec = 2 * STOP_AHEAD_NS};
	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
	return run_thread_iterator(w->skel->progs.wait_sweep_last, err);
}

static int waits_finish(void *s, const struct event_sink *sink, struct err *err)
{
	struct waits *w = s;
	if (!w->info.stop_ns)
		return 0;
	TRY(read_map(w, 0, err));
	TRY(read_map(w, 1, err));
	w->info.lost_ns = w->skel->bss->wait_loss.ns;
	w->info.nr_unaccounted += w->skel->bss->wait_loss.count;
	return emit_rows(w, sink, err);
}

static uint64_t waits_end_ns(const void *s)
{
	return ((const struct waits *)s)->info.stop_ns;
}

static void waits_facts(const void *s, struct profile *p)
{
	const struct waits *w = s;
	profile_lose(p, LOSS_WAITS_NO_REASON, w->info.nr_unaccounted);
	profile_lose(p, LOSS_WAITS_NO_ROW_NS, w->info.lost_ns);
}

static void waits_free(void *s)
{
	struct waits *w = s;
	engine_on_record(w->engine, RECORD_WAIT, NULL, NULL);
	fdnames_free(w->names);
	vec_release(&w->rows);
	map_release(&w->index);
	buf_release(&w->text);
	free(w->keys);
	free(w->values);
	free(w);
}

const struct source waits_source = {
	.name = "waits",
	.fills = WAIT_TABLES,
	.bpf_prefix = "wait_",
	.poll_ms = 50,
	.open = waits_open,
	.start = waits_start,
	.drain = waits_drain,
	.stop = waits_stop,
	.finish = waits_finish,
	.end_ns = waits_end_ns,
	.facts = waits_facts,
	.free = waits_free,
};
