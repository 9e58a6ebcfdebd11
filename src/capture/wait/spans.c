/*
 * Spans as uprobes. The kernel writes a breakpoint only into the memory of the given processes; one
 * BPF program runs at the entry, one at the return (bpf/spans.bpf.h). Rows are double-buffered as in
 * io.c.
 *
 * The slowest calls: each call that takes longer than its probe's threshold is sent by itself in a
 * ring buffer. The threshold is 0 at first and is raised at each drain to the shortest of the
 * slowest calls so far.
 */
#include "base/base.h"
#include "capture/bpf/deferclose.h"
#include "capture/wait/spans.h"
#include "capture/wait/waitsource.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/bpf/bpfring.h"
#include "capture/bpf/skeleton.h"
#include "kernel_span.h"
#include "model/tables.h"

#define SECOND_NS 1000000000ull
/* A BPF program that ran when the maps were swapped has finished this much later. */
#define SWAP_WAIT_NS (5 * 1000000ull)
#define UNCALLED_MAX 5 /* names of never called spans in FACT_NEVER_CALLED */

struct slowest {
	struct kernel_span *calls; /* not sorted: there are few */
	size_t n;
};

struct spans {
	struct engine *engine;
	struct assay_bpf *skel;
	const struct spans_spec *spec;
	struct bpf_links links;
	struct bpfring ring;     /* of slow calls */
	struct slowest *slowest; /* by probe */
	uint64_t epoch_ns;
	uint64_t next_swap_ns;
	uint64_t swapped_ns; /* 0 = the other map has been read */
	uint64_t reach_ns;   /* rows of what ended before were delivered */
	struct span_key *keys;
	struct span_sum *sums;
	struct span_wait_key *wait_keys;
	struct span_wait_sum *wait_sums;
	size_t nr_room; /* of each map */
	bool has_waits; /* without, it is not known what the time of the calls went to */
	bool is_stopped;
};

static uint64_t span_ns(const struct kernel_span *r)
{
	return r->head.time_ns - r->start_ns;
}

static size_t shortest_of(const struct slowest *w)
{
	size_t at = 0;
	for (size_t i = 1; i < w->n; i++)
		if (span_ns(&w->calls[i]) < span_ns(&w->calls[at]))
			at = i;
	return at;
}

static void keep_slow(struct spans *s, const struct kernel_span *r)
{
	struct slowest *w = &s->slowest[r->span];
	size_t at = w->n < s->spec->nr_slowest ? w->n++ : shortest_of(w);
	if (at == w->n || (w->calls[at].head.time_ns && span_ns(r) <= span_ns(&w->calls[at])))
		return;
	w->calls[at] = *r;
	engine_add_span(s->engine, r->head.pid, r->start_ns, r->head.time_ns);
}

static void drain_slow(struct spans *s)
{
	const void *record;
	uint32_t nr_bytes;
	while (bpfring_peek(&s->ring, &record, &nr_bytes) == BPFRING_RECORD) {
		const struct kernel_span *r = record;
		if (nr_bytes >= sizeof(*r) && r->head.kind == RECORD_SPAN &&
		    r->span < s->spec->nr_probes)
			keep_slow(s, r);
		bpfring_consume(&s->ring);
	}
	bpfring_publish(&s->ring);
}

static int spans_open(void **ret_s, const struct source_env *env, struct err *err)
{
	const struct spans_spec *spec = env->spans;
	if (!spec || !spec->nr_probes || spec->nr_probes > SPANS_MAX)
		return err_set(err, -EINVAL, "spans of %zu functions: 1 to %d can be measured",
			       spec ? spec->nr_probes : 0, SPANS_MAX);
	struct spans *s = xcalloc(1, sizeof(*s));
	s->engine = env->engine;
	s->skel = engine_skel(env->engine);
	s->spec = spec;
	s->has_waits = env->tables & WAIT_TABLES;
	s->skel->rodata->walk_has_probes = true;
	s->slowest = xcalloc(spec->nr_probes, sizeof(*s->slowest));
	for (size_t i = 0; i < spec->nr_probes; i++)
		s->slowest[i].calls = xcalloc(spec->nr_slowest + 1, sizeof(*s->slowest[i].calls));
	*ret_s = s;
	return 0;
}

static int attach_one(struct spans *s, struct bpf_program *p, const struct span_point *at,
		      int32_t pid, size_t cookie, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fd/%d", at->fd);
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookie,
		    .ref_ctr_offset = at->semaphore_offset,
		    .retprobe = p == s->skel->progs.span_leave);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(p, pid, path, at->offset, &opts);
	if (!link) {
		int rc = -errno;
		const char *name = s->spec->probes[cookie].name;
		err_set(err, rc, "cannot put a probe on '%s': %s", name, strerror(-rc));
		if (rc == -EACCES || rc == -EPERM)
			err_hint(err, "probes on functions need CAP_SYS_ADMIN: run with sudo; in "
				      "a container --cap-add SYS_ADMIN");
		return rc;
	}
	vec_push(&s->links.list, link);
	return 0;
}

/* Attaches the return first: an entry whose return is not probed would leave a span open. */
static int attach_probe(struct spans *s, size_t i, int32_t pid, struct err *err)
{
	const struct span_probe *p = &s->spec->probes[i];
	bool is_pair = p->nr_to > 0;
	struct bpf_program *end = is_pair ? s->skel->progs.span_to : s->skel->progs.span_leave;
	struct bpf_program *begin = is_pair ? s->skel->progs.span_from : s->skel->progs.span_enter;
	const struct span_point *ends = is_pair ? p->to : p->from;
	for (size_t k = 0; k < (is_pair ? p->nr_to : p->nr_from); k++)
		TRY(attach_one(s, end, &ends[k], pid, i, err));
	for (size_t k = 0; k < p->nr_from; k++)
		TRY(attach_one(s, begin, &p->from[k], pid, i, err));
	return 0;
}

static int spans_load(void *self, struct err *err)
{
	struct spans *s = self;
	s->nr_room = bpf_map__max_entries(s->skel->maps.span_rows_a);
	s->keys = xcalloc(s->nr_room, sizeof(*s->keys));
	s->sums = xcalloc(s->nr_room, sizeof(*s->sums));
	s->wait_keys = xcalloc(s->nr_room, sizeof(*s->wait_keys));
	s->wait_sums = xcalloc(s->nr_room, sizeof(*s->wait_sums));
	TRY(bpfring_open(&s->ring, bpf_map__fd(s->skel->maps.span_ring),
			 bpf_map__max_entries(s->skel->maps.span_ring), err));
	for (size_t i = 0; i < s->spec->nr_probes; i++) {
		for (size_t k = 0; k < s->spec->nr_pids; k++) {
			int rc = attach_probe(s, i, s->spec->pids[k], err);
			if (rc && rc != -ESRCH) /* the process may have exited */
				return rc;
		}
		TRY(s->spec->nr_pids ? 0 : attach_probe(s, i, -1, err));
	}
	return 0;
}

static int spans_start(void *self, const struct source_env *env,
		       const struct event_sink *sink UNUSED, struct err *err UNUSED)
{
	struct spans *s = self;
	s->epoch_ns = env->start_ns;
	s->next_swap_ns = env->start_ns + SOURCE_ROWS_NS + 10000000;
	s->skel->bss->span_epoch_ns = env->start_ns;
	return 0;
}

/* ---- rows --------------------------------------------------------------------------------- */

static int emit(const struct event_sink *sink, struct event *ev, uint32_t spec, int64_t nr,
		uint64_t ns, uint64_t longest_ns, struct err *err)
{
	int64_t values[3] = {nr, (int64_t)ns, (int64_t)longest_ns};
	ev->aggregate.spec = spec;
	ev->aggregate.values = values;
	return sink->event(sink->ctx, ev, err);
}

static struct event row_of(const struct spans *s, uint64_t time_ns, int32_t tgid, int32_t pid,
			   uint64_t stack, unsigned span)
{
	struct event ev = event_aggregate(TABLE_SPANS, tgid, pid, time_ns, NULL);
	ev.aggregate.user_ref = stack;
	ev.aggregate.object = span < s->spec->nr_probes ? s->spec->probes[span].name : NULL;
	return ev;
}

/* Delivers the times of a call, or of the calls of a row, that have no stack of their own. */
static int deliver_parts(const struct spans *s, const struct event_sink *sink, struct event *ev,
			 uint32_t spec, uint64_t on_cpu_ns, const uint64_t *rest_ns,
			 struct err *err)
{
	for (unsigned i = 0; i < WAIT_NR && s->has_waits; i++) {
		uint64_t ns = i == WAIT_ON_CPU ? on_cpu_ns : rest_ns[i];
		ev->aggregate.reason = (uint8_t)i;
		TRY(ns ? emit(sink, ev, spec, 0, ns, 0, err) : 0);
	}
	ev->aggregate.reason = WAIT_NONE;
	return 0;
}

static int deliver_row(const struct spans *s, const struct span_key *k, const struct span_sum *v,
		       const struct event_sink *sink, struct err *err)
{
	uint64_t time_ns = s->epoch_ns + k->second_idx * SECOND_NS;
	struct event ev = row_of(s, time_ns, k->tgid, k->pid, k->stack, k->span);
	ev.aggregate.log2_ns = k->log2_ns;
	TRY(emit(sink, &ev, TABLE_SPANS, (int64_t)v->nr, v->ns, v->longest_ns, err));
	ev.aggregate.log2_ns = LOG2_NONE;
	return deliver_parts(s, sink, &ev, TABLE_SPAN_TIME, v->on_cpu_ns, v->rest_ns, err);
}

static int deliver_wait(const struct spans *s, const struct span_wait_key *k,
			const struct span_wait_sum *v, const struct event_sink *sink,
			struct err *err)
{
	uint64_t time_ns = s->epoch_ns + k->second_idx * SECOND_NS;
	struct event ev = row_of(s, time_ns, k->tgid, k->pid, k->user_ref, k->span);
	ev.aggregate.kernel_ref = k->kernel_ref;
	ev.aggregate.reason = k->reason;
	ev.aggregate.evidence = k->evidence;
	ev.aggregate.syscall = k->syscall;
	return emit(sink, &ev, TABLE_SPAN_TIME, (int64_t)v->nr, v->ns, v->longest_ns, err);
}

/* Reads and empties a map; returns the number of rows, or a negative error. */
static int read_map(const struct spans *s, const struct bpf_map *map, void *keys, void *values,
		    struct err *err)
{
	uint32_t cursor = 0;
	uint32_t n = (uint32_t)s->nr_room;
	if (bpf_map_lookup_and_delete_batch(bpf_map__fd(map), NULL, &cursor, keys, values, &n,
					    NULL) &&
	    errno != ENOENT)
		return err_sys(err, "cannot read BPF map of spans");
	return (int)n;
}

static int drain_maps(struct spans *s, unsigned which, const struct event_sink *sink,
		      struct err *err)
{
	int n = read_map(s, which ? s->skel->maps.span_rows_b : s->skel->maps.span_rows_a, s->keys,
			 s->sums, err);
	for (int i = 0; i < n; i++)
		TRY(deliver_row(s, &s->keys[i], &s->sums[i], sink, err));
	if (n < 0)
		return n;
	n = read_map(s, which ? s->skel->maps.span_waits_b : s->skel->maps.span_waits_a,
		     s->wait_keys, s->wait_sums, err);
	for (int i = 0; i < n; i++)
		TRY(deliver_wait(s, &s->wait_keys[i], &s->wait_sums[i], sink, err));
	return MIN(n, 0);
}

static void raise_thresholds(struct spans *s)
{
	for (uint32_t i = 0; i < s->spec->nr_probes; i++) {
		const struct slowest *w = &s->slowest[i];
		if (w->n < s->spec->nr_slowest || !w->n)
			continue;
		s->skel->bss->span_min_ns[i] = span_ns(&w->calls[shortest_of(w)]);
	}
}

static int spans_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct spans *s = self;
	uint64_t now = clock_mono_ns();
	drain_slow(s);
	raise_thresholds(s);
	if (s->swapped_ns && now >= s->swapped_ns + SWAP_WAIT_NS) {
		s->reach_ns = s->swapped_ns;
		s->swapped_ns = 0;
		return drain_maps(s, !s->skel->bss->span_active_map, sink, err);
	}
	if (s->epoch_ns && !s->swapped_ns && now >= s->next_swap_ns) {
		s->skel->bss->span_active_map ^= 1;
		s->swapped_ns = now;
		s->next_swap_ns = MAX(s->next_swap_ns, now - SOURCE_ROWS_NS) + SOURCE_ROWS_NS;
	}
	return 0;
}

static int deliver_longest(const struct span_longest *l, struct event *ev,
			   const struct event_sink *sink, struct err *err)
{
	if (!l->ns)
		return 0;
	ev->aggregate.detail = "longest wait";
	ev->aggregate.user_ref = l->user_ref;
	ev->aggregate.kernel_ref = l->kernel_ref;
	ev->aggregate.reason = l->reason;
	ev->aggregate.evidence = l->evidence;
	ev->aggregate.syscall = l->syscall;
	ev->aggregate.other_pid = l->waker_tgid;
	ev->aggregate.other_tid = l->waker_tid;
	ev->aggregate.other_ref = l->waker_ref;
	return emit(sink, ev, TABLE_SLOWEST_SPANS, 0, l->ns, l->ns - l->queue_ns, err);
}

static int deliver_slow(const struct spans *s, const struct kernel_span *r,
			const struct event_sink *sink, struct err *err)
{
	struct event ev = row_of(s, r->start_ns, r->head.tgid, r->head.pid, r->stack, r->span);
	TRY(emit(sink, &ev, TABLE_SLOWEST_SPANS, 1, span_ns(r), span_ns(r), err));
	TRY(deliver_parts(s, sink, &ev, TABLE_SLOWEST_SPANS, r->on_cpu_ns, r->rest_ns, err));
	for (size_t i = 0; i < SPAN_WAITS && r->waits[i].ns; i++) {
		const struct span_wait *w = &r->waits[i];
		ev.aggregate.user_ref = w->user_ref;
		ev.aggregate.kernel_ref = w->kernel_ref;
		ev.aggregate.reason = w->reason;
		ev.aggregate.evidence = w->evidence;
		ev.aggregate.syscall = w->syscall;
		TRY(emit(sink, &ev, TABLE_SLOWEST_SPANS, 0, w->ns, 0, err));
	}
	return deliver_longest(&r->longest, &ev, sink, err);
}

static void detach(struct spans *s)
{
	s->skel->bss->span_epoch_ns = 0;
	bpf_links_detach(&s->links);
}

static int spans_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct spans *s = self;
	if (!s->epoch_ns || s->is_stopped)
		return 0;
	s->is_stopped = true;
	s->skel->bss->span_stop_ns = clock_mono_ns();
	detach(s);
	drain_slow(s);
	TRY(drain_maps(s, 0, sink, err));
	TRY(drain_maps(s, 1, sink, err));
	for (size_t i = 0; i < s->spec->nr_probes; i++)
		for (size_t k = 0; k < s->slowest[i].n; k++)
			TRY(deliver_slow(s, &s->slowest[i].calls[k], sink, err));
	return 0;
}

static uint64_t spans_reach_ns(const void *self)
{
	return ((const struct spans *)self)->reach_ns;
}

static void spans_facts(const void *self, struct profile *p)
{
	const struct spans *s = self;
	struct span_slot sum = {0};
	CLEANUP(buf_release) struct buf uncalled = {0};
	size_t nr_uncalled = 0;
	for (uint32_t i = 0; i < s->spec->nr_probes; i++) {
		struct span_slot one = {0};
		(void)bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.span_slots), &i, &one);
		if (!one.nr_started && !one.nr_inside && nr_uncalled++ < UNCALLED_MAX)
			buf_addf(&uncalled, "%s%s", uncalled.n ? ", " : "",
				 s->spec->probes[i].name);
		sum.nr_started += one.nr_started;
		sum.nr_ended += one.nr_ended;
		sum.nr_inside += one.nr_inside;
		sum.nr_lost += one.nr_lost;
		sum.nr_unsent += one.nr_unsent;
	}
	if (nr_uncalled > UNCALLED_MAX)
		buf_addf(&uncalled, " and %zu more", nr_uncalled - UNCALLED_MAX);
	if (nr_uncalled)
		profile_fact(p, FACT_NEVER_CALLED, buf_str(&uncalled));
	profile_lose(p, LOSS_SPANS_UNFINISHED, sum.nr_started - MIN(sum.nr_ended, sum.nr_started));
	profile_lose(p, LOSS_SPANS_INSIDE, sum.nr_inside);
	profile_lose(p, LOSS_SPANS_NO_ROW, sum.nr_lost);
	profile_lose(p, LOSS_SPANS_NO_DETAILS, sum.nr_unsent);
}

static void spans_free(void *self)
{
	struct spans *s = self;
	if (s->links.list.n)
		detach(s);
	if (s->ring.data)
		bpfring_release(&s->ring);
	for (size_t i = 0; i < s->spec->nr_probes; i++)
		free_p(&s->slowest[i].calls);
	free_p(&s->slowest);
	free_p(&s->keys);
	free_p(&s->sums);
	free_p(&s->wait_keys);
	free_p(&s->wait_sums);
	free_p(&s);
}

const struct source spans_source = {
	.name = "spans",
	.fills = SPAN_TABLES,
	.bpf_prefix = "span_",
	.probed = "calls",
	.poll_ms = 100,
	.open = spans_open,
	.load = spans_load,
	.start = spans_start,
	.drain = spans_drain,
	.stop = spans_stop,
	.facts = spans_facts,
	.reach_ns = spans_reach_ns,
	.free = spans_free,
};
