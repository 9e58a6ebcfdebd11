/* Sums runs and intervals off the CPU; see waitsums.h. */
#include "base/base.h"
#include "capture/wait/waitsums.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/tables.h"
#include "wait_reason.h"

/* By so much the two clocks can differ for one run, and for one that is not corrected at once. */
#define OVER_MAX_NS  1000000u
#define CARRY_MAX_NS 2000u

/* A row that has no other key than the thread, the table and the reason. */
struct thread_row {
	uint32_t row; /* + 1, of s->rows; 0: none since the last waitsums_emit */
	uint32_t second;
};

/* The rows to which each run of a thread adds: they need no look-up by key. */
struct thread_sums {
	int32_t tid;
	int32_t tgid;
	uint32_t over_ns; /* CPU time that counts for the thread's next run */
	struct thread_row on_cpu;
	struct thread_row stolen;
};

struct waitsums {
	uint64_t epoch_ns;
	VEC(struct waitsums_row) rows;
	struct map index;     /* hash of the key -> row + 1 */
	struct map thread_of; /* tid -> index */
	VEC(struct thread_sums) threads;
	VEC(uint32_t) free_threads;
};

const char *waitsums_detail_text(enum waitsums_detail detail)
{
	switch (detail) {
	case DETAIL_NONE:
		break;
	case DETAIL_WOKEN:
		return "woken";
	case DETAIL_PREEMPTED:
		return "preempted";
	case DETAIL_YIELDED:
		return "yielded";
	case DETAIL_UNACCOUNTED:
		return "unaccounted";
	}
	return NULL;
}

struct waitsums *waitsums_new(uint64_t epoch_ns)
{
	struct waitsums *s = xcalloc(1, sizeof(*s));
	s->epoch_ns = epoch_ns;
	return s;
}

void waitsums_free(struct waitsums *s)
{
	if (!s)
		return;
	vec_release(&s->rows);
	map_release(&s->index);
	map_release(&s->thread_of);
	vec_release(&s->threads);
	vec_release(&s->free_threads);
	free(s);
}

/* ---- rows --------------------------------------------------------------------------------- */

#define KEY_WORDS (sizeof(struct waitsums_key) / sizeof(uint64_t))
_Static_assert(sizeof(struct waitsums_key) == 56, "key without padding");

static uint64_t hash_key(const struct waitsums_key *key)
{
	uint64_t w[KEY_WORDS];
	memcpy(w, key, sizeof(w));
	/* Products that do not depend on each other. */
	uint64_t a = hash_mix(w[0], w[1]);
	uint64_t b = hash_mix(w[2], w[3]);
	uint64_t c = hash_mix(w[4], w[5]);
	return hash_mix(a ^ w[6], b + (c << 1 | c >> 63));
}

static struct waitsums_row *row_of(struct waitsums *s, const struct waitsums_key *key)
{
	for (uint64_t hash = hash_key(key);; hash++) {
		bool is_new;
		uint32_t *at = map_put(&s->index, hash, &is_new);
		if (is_new) {
			struct waitsums_row *r = vec_add(&s->rows);
			r->key = *key;
			*at = (uint32_t)s->rows.n;
			return r;
		}
		if (!memcmp(&s->rows.p[*at - 1].key, key, sizeof(*key)))
			return &s->rows.p[*at - 1];
	}
}

/* What a row has besides its key, for one interval. */
struct addition {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t ns; /* time to distribute over the seconds of [start_ns, end_ns) */
	uint32_t count;
	int32_t other_tgid;
	uint64_t kernel_ref;
};

static void add_to(struct waitsums_row *r, const struct addition *a, uint64_t ns, uint32_t count)
{
	r->other_tgid = a->other_tgid;
	r->kernel_ref = a->kernel_ref;
	r->count += count;
	r->ns += (int64_t)ns;
	r->longest_ns = MAX(r->longest_ns, (int64_t)a->ns);
}

static uint64_t first_second(const struct waitsums *s, const struct addition *a)
{
	return a->start_ns > s->epoch_ns ? (a->start_ns - s->epoch_ns) / NS_PER_SEC : 0;
}

/* An interval that ends exactly at the end of a second belongs to that second. */
static uint64_t last_second(const struct waitsums *s, const struct addition *a)
{
	uint64_t end = a->end_ns > s->epoch_ns ? a->end_ns - s->epoch_ns : 0;
	return (end - (end && a->end_ns > a->start_ns)) / NS_PER_SEC;
}

/* Splits the time at the ends of seconds; it is counted in the last one. */
static void add(struct waitsums *s, struct waitsums_key *key, const struct addition *a)
{
	uint64_t start = a->start_ns > s->epoch_ns ? a->start_ns - s->epoch_ns : 0;
	uint64_t end = a->end_ns > s->epoch_ns ? a->end_ns - s->epoch_ns : 0;
	uint64_t last = last_second(s, a);
	uint64_t left_ns = a->ns;
	for (uint64_t second = first_second(s, a); second < last; second++) {
		uint64_t part_ns = (second + 1) * NS_PER_SEC - MAX(start, second * NS_PER_SEC);
		if (a->ns != end - start)
			part_ns = (uint64_t)((unsigned __int128)a->ns * part_ns / (end - start));
		key->second = (uint32_t)second;
		add_to(row_of(s, key), a, part_ns, 0);
		left_ns -= part_ns;
	}
	key->second = (uint32_t)last;
	add_to(row_of(s, key), a, left_ns, a->count);
}

/* ---- threads ------------------------------------------------------------------------------ */

static struct thread_sums *thread_of(struct waitsums *s, const struct wait_interval *i)
{
	bool is_new;
	uint32_t *at = map_put(&s->thread_of, (uint32_t)i->tid, &is_new);
	if (is_new && s->free_threads.n) {
		*at = s->free_threads.p[--s->free_threads.n];
	} else if (is_new) {
		*at = (uint32_t)s->threads.n;
		(void)vec_add(&s->threads);
	}
	struct thread_sums *t = &s->threads.p[*at];
	if (is_new || t->tgid != i->tgid)
		*t = (struct thread_sums){.tid = i->tid, .tgid = i->tgid};
	return t;
}

static void thread_forget(struct waitsums *s, const struct thread_sums *t)
{
	(void)map_del(&s->thread_of, (uint32_t)t->tid);
	vec_push(&s->free_threads, (uint32_t)(t - s->threads.p));
}

/* As add; @at finds the row if the time is in one second. */
static void add_of_thread(struct waitsums *s, struct thread_row *at, struct waitsums_key *key,
			  const struct addition *a)
{
	uint32_t second = (uint32_t)last_second(s, a);
	if (first_second(s, a) < second) {
		add(s, key, a);
		return;
	}
	if (!at->row || at->second != second) {
		key->second = second;
		at->row = (uint32_t)(row_of(s, key) - s->rows.p) + 1;
		at->second = second;
	}
	add_to(&s->rows.p[at->row - 1], a, a->ns, a->count);
}

/* ---- runs --------------------------------------------------------------------------------- */

static struct waitsums_key thread_key(const struct wait_interval *i, enum table_id table,
				      enum wait_reason reason)
{
	return (struct waitsums_key){
		.tgid = i->tgid,
		.tid = i->tid,
		.fd = WAIT_NO_FD,
		.syscall = -1,
		.reason = (uint8_t)reason,
		.table = (uint8_t)table,
		.log2_ns = LOG2_NONE,
	};
}

/*
 * A run's CPU time is the scheduler's. Its clock is not read at the moment of the switch, but up to
 * about 10 us before: at the wake-up that preempts. So the CPU time of a run can be above its elapsed
 * time. Differences in both directions alternate, so a small one counts for the thread's next run.
 */
struct cpu_time {
	uint64_t on_ns;
	uint64_t stolen_ns; /* part of the run that was not CPU time */
	uint64_t moved_ns;  /* part of on_ns that is taken from the interval after the run */
};

static struct cpu_time cpu_time_of(struct thread_sums *t, const struct wait_run *run)
{
	const struct wait_interval *i = &run->interval;
	bool has_exited = i->how == HOW_ENDED && !(i->evidence & EVIDENCE_OPEN);
	uint64_t run_ns = run->run_ns + t->over_ns;
	struct cpu_time c = {.on_ns = MIN(run_ns, run->ran_ns)};
	c.stolen_ns = run->ran_ns - c.on_ns;
	uint64_t left_ns = MIN(run_ns - c.on_ns, OVER_MAX_NS);
	if (i->how == HOW_ENDED) {
		/* No interval follows. The life of a thread that has exited includes its CPU time. */
		c.on_ns += has_exited ? left_ns : 0;
		t->over_ns = 0;
		return c;
	}
	if (left_ns > CARRY_MAX_NS || i->evidence & EVIDENCE_OPEN)
		c.moved_ns =
			MIN(left_ns, (i->how == HOW_BLOCKED ? i->woken_ns : i->on_ns) - i->off_ns);
	c.on_ns += c.moved_ns;
	t->over_ns = (uint32_t)(left_ns - c.moved_ns);
	return c;
}

/* Returns by how much the run lasts into the interval after it. */
static uint64_t add_run(struct waitsums *s, const struct wait_run *run)
{
	const struct wait_interval *i = &run->interval;
	if (!run->ran_ns)
		return 0;
	struct thread_sums *t = thread_of(s, i);
	struct cpu_time c = cpu_time_of(t, run);
	struct addition a = {.start_ns = i->off_ns - MIN(run->ran_ns, i->off_ns),
			     .end_ns = i->off_ns + c.moved_ns,
			     .ns = c.on_ns,
			     .count = 1};
	struct waitsums_key key = thread_key(i, TABLE_ON_CPU, WAIT_ON_CPU);
	add_of_thread(s, &t->on_cpu, &key, &a);
	if (c.stolen_ns) {
		a.ns = c.stolen_ns;
		a.count = 0;
		key = thread_key(i, TABLE_OFF_CPU, WAIT_STOLEN);
		add_of_thread(s, &t->stolen, &key, &a);
	}
	if (i->how == HOW_ENDED)
		thread_forget(s, t);
	return c.moved_ns;
}

/* ---- intervals off the CPU ---------------------------------------------------------------- */

static enum waitsums_detail queue_detail(enum wait_how how)
{
	return how == HOW_PREEMPTED ? DETAIL_PREEMPTED
	       : how == HOW_YIELDED ? DETAIL_YIELDED
				    : DETAIL_WOKEN;
}

/* Key of run queue time: it has the thread's stack, but no object, waker or descriptor. */
static struct waitsums_key queue_key(const struct wait_interval *i)
{
	struct waitsums_key key = thread_key(i, TABLE_OFF_CPU, WAIT_RUN_QUEUE);
	key.user_ref = i->user_ref;
	key.syscall = i->syscall;
	key.evidence = i->evidence & (EVIDENCE_AT_START | EVIDENCE_OPEN);
	key.detail = (uint8_t)queue_detail(i->how);
	key.log2_ns = interval_log2_of(i->on_ns - i->woken_ns);
	return key;
}

static struct waitsums_key wait_key_of(const struct wait_interval *i)
{
	return (struct waitsums_key){
		.user_ref = i->user_ref,
		.other_ref = i->waker_ref,
		.object = i->object,
		.tgid = i->tgid,
		.tid = i->tid,
		.other_tid = i->waker_tid,
		.fd = i->fd,
		.syscall = i->syscall,
		.reason = i->reason,
		.evidence = i->evidence,
		.table = TABLE_OFF_CPU,
		.log2_ns = interval_log2_of(i->woken_ns - i->off_ns),
		.object_kind = i->object_kind,
		.dev = i->dev,
	};
}

static void add_off(struct waitsums *s, const struct wait_interval *i)
{
	struct addition a = {.start_ns = i->off_ns,
			     .end_ns = i->woken_ns,
			     .ns = i->woken_ns - i->off_ns,
			     .count = 1,
			     .kernel_ref = i->kernel_ref};
	struct waitsums_key key;
	if (i->how == HOW_BLOCKED) {
		key = wait_key_of(i);
		a.other_tgid = i->waker_tgid;
		add(s, &key, &a);
		if (i->evidence & EVIDENCE_OPEN && i->on_ns == i->woken_ns)
			return;
	}
	a.start_ns = i->woken_ns;
	a.end_ns = i->on_ns;
	a.ns = i->on_ns - i->woken_ns;
	a.other_tgid = 0;
	key = queue_key(i);
	add(s, &key, &a);
}

void waitsums_add(struct waitsums *s, const struct wait_run *run)
{
	struct wait_interval i = run->interval;
	i.off_ns += add_run(s, run);
	i.woken_ns = MAX(i.woken_ns, i.off_ns);
	if (i.how != HOW_ENDED)
		add_off(s, &i);
}

void waitsums_add_unaccounted(struct waitsums *s, const struct wait_single *r)
{
	struct wait_interval i = {.tgid = r->record.tgid, .tid = r->record.tid};
	uint64_t end_ns = r->record.off_ns;
	uint64_t stolen = r->ran_ns - MIN(r->run_ns, r->ran_ns);
	struct waitsums_key key = thread_key(&i, TABLE_ON_CPU, WAIT_ON_CPU);
	struct addition a = {.start_ns = end_ns, .end_ns = end_ns};
	key.detail = DETAIL_NONE;
	a.ns = r->ran_ns - stolen;
	a.count = r->nr_runs;
	if (a.ns || a.count)
		add(s, &key, &a);
	key = thread_key(&i, TABLE_OFF_CPU, WAIT_STOLEN);
	a.ns = stolen;
	a.count = 0;
	if (a.ns)
		add(s, &key, &a);
	key = thread_key(&i, TABLE_OFF_CPU, WAIT_UNKNOWN);
	key.detail = DETAIL_UNACCOUNTED;
	a.ns = r->blocked_ns;
	a.count = r->nr_intervals;
	if (a.ns || a.count)
		add(s, &key, &a);
}

int waitsums_emit(struct waitsums *s,
		  int (*fn)(void *ctx, const struct waitsums_row *row, struct err *err), void *ctx,
		  struct err *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->rows.n && !rc; i++)
		rc = fn(ctx, &s->rows.p[i], err);
	vec_clear(&s->rows);
	map_clear(&s->index);
	vec_foreach(t, &s->threads)
		t->on_cpu.row = t->stolen.row = 0;
	return rc;
}
