/* Counts named events by BPF programs; see counts.h and bpf/counts.bpf.h. */
#include "base/base.h"
#include "capture/events/counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "capture/bpf/deferclose.h"
#include "capture/bpf/skeleton.h"
#include "host/limits.h"

#define SUMS_MAX   65536
#define SPILLS_MAX 8192
#define BATCH      4096
#define WINDOW_NS  100000000ull /* as in bpf/counts.bpf.h */
#define GRACE_NS   200000000ull /* after the end of a slice: all of its hits are counted by then */
#define CPUS_MAX   4096

struct counts_total {
	uint64_t nr;        /* hits */
	uint64_t nr_stacks; /* of them: with a stack */
	uint64_t nr_no_room;
};

struct counts {
	struct counts_spec spec;
	struct engine *engine;
	struct assay_bpf *skel;
	struct bpf_links links;
	uint64_t start_ns;
	uint32_t nr_done; /* number of slices that were delivered */
	bool is_attached;
	struct counts_total *totals; /* by event, once stopped */
	/* Hits of all processes that were missed: another BPF program ran on that CPU. */
	uint64_t nr_missed;
	uint64_t single_bytes;
	uint64_t singles_end_ns; /* when the limit of single rows was reached; 0 = not reached */
	struct count_key *keys;  /* one batch */
	struct count_value *values;
	struct buf text;
};

static int counts_open(void **ret_c, const struct source_env *env, struct err *err)
{
	struct assay_bpf *skel = engine_skel(env->engine);
	const struct counts_spec *spec = env->counts;
	uint32_t nr = (uint32_t)spec->set->events.n;
	ASSERT(nr > 0 && nr <= COUNTS_EVENTS_MAX);
	if (bpf_map__set_max_entries(skel->maps.count_configs, nr) ||
	    bpf_map__set_max_entries(skel->maps.count_totals, nr) ||
	    bpf_map__set_max_entries(skel->maps.count_sums, SUMS_MAX) ||
	    bpf_map__set_max_entries(skel->maps.count_spills, SPILLS_MAX))
		return err_set(err, -EINVAL, "cannot set up the counts of %u events", nr);
	skel->rodata->count_stack_budget_ns = WINDOW_NS * spec->stack_budget_pct / 100;
	struct counts *c = xcalloc(1, sizeof(*c));
	c->spec = *spec;
	c->engine = env->engine;
	c->skel = skel;
	c->totals = xcalloc(nr, sizeof(*c->totals));
	c->keys = xcalloc(BATCH, sizeof(*c->keys));
	c->values = xcalloc(BATCH, sizeof(*c->values));
	*ret_c = c;
	return 0;
}

static void detach(struct counts *c)
{
	bpf_links_detach(&c->links);
	c->is_attached = false;
}

static void counts_free(void *s)
{
	struct counts *c = s;
	detach(c);
	free(c->totals);
	free(c->keys);
	free(c->values);
	buf_release(&c->text);
	free(c);
}

/* ---- attaching ---------------------------------------------------------------------------- */

static int open_event(const struct named_event *e, int32_t cpu, struct err *err)
{
	/*
	 * The programs attached to an event of a tracepoint run on every hit, even if the event is
	 * disabled. So it is opened on this thread and stays disabled.
	 */
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->software ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT,
		.config = e->config,
		.sample_period = 1,
		.disabled = !e->software,
	};
	int32_t pid = e->software ? -1 : 0;
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		return fd;
	int rc = -errno;
	CLEANUP(buf_release) struct buf remedy = {0};
	host_perf_remedy(&remedy, rc, -1);
	err_set(err, rc, "cannot open event '%s': %s", e->name, strerror(-rc));
	return err_hint(err, "%s", buf_str(&remedy));
}

static int attach_one(struct counts *c, uint32_t idx, int32_t cpu, struct err *err)
{
	const struct named_event *e = &c->spec.set->events.p[idx];
	struct bpf_program *prog =
		e->software ? c->skel->progs.count_software : c->skel->progs.count_tracepoint;
	CLEANUP(close_p) int fd = open_event(e, cpu, err);
	if (fd < 0)
		return fd;
	struct bpf_perf_event_opts opts = {.sz = sizeof(opts), .bpf_cookie = idx};
	struct bpf_link *link = bpf_program__attach_perf_event_opts(prog, fd, &opts);
	if (!link)
		return err_sys(err, "cannot count event '%s'", e->name);
	(void)take_fd(&fd); /* owned by the link */
	vec_push(&c->links.list, link);
	return 0;
}

static int attach_event(struct counts *c, uint32_t idx, struct err *err)
{
	if (!c->spec.set->events.p[idx].software)
		return attach_one(c, idx, -1, err);
	int32_t cpus[CPUS_MAX];
	size_t nr = MIN(host_cpus(cpus, CPUS_MAX), (size_t)CPUS_MAX);
	for (size_t i = 0; i < nr; i++) {
		int rc = attach_one(c, idx, cpus[i], err);
		if (rc && rc != -ENODEV) /* the CPU has just gone offline */
			return rc;
	}
	return 0;
}

static int configure(struct counts *c, uint32_t idx, struct err *err)
{
	struct count_config config = c->spec.set->events.p[idx].count;
	if (c->spec.keeps_singles)
		config.flags |= COUNT_SINGLY;
	if (c->spec.has_no_stacks)
		config.flags |= COUNT_NO_STACK;
	int fd = bpf_map__fd(c->skel->maps.count_configs);
	if (bpf_map_update_elem(fd, &idx, &config, BPF_ANY))
		return err_sys(err, "cannot set up the count of '%s'",
			       c->spec.set->events.p[idx].name);
	return 0;
}

/* ---- delivering --------------------------------------------------------------------------- */

static void set_outcome(struct counts *c, struct event *ev, const struct named_event *e,
			int32_t outcome)
{
	buf_clear(&c->text);
	event_outcome_text(&c->text, e, outcome);
	if (c->text.n)
		ev->aggregate.detail = buf_str(&c->text);
	if (e->count.outcome == OUTCOME_CALL)
		ev->aggregate.syscall = (int16_t)outcome;
}

static int deliver_sum(struct counts *c, const struct count_key *k, const struct count_value *v,
		       const struct event_sink *sink, struct err *err)
{
	if (k->event >= c->spec.set->events.n)
		return 0;
	int64_t values[] = {(int64_t)v->nr, (int64_t)v->amount};
	struct event ev =
		event_aggregate(c->spec.first_spec + k->event, k->tgid, k->tid,
				c->start_ns + k->slice_idx * (uint64_t)COUNT_SLICE_NS, values);
	ev.aggregate.user_ref = k->user_ref;
	ev.aggregate.kernel_ref = k->kernel_ref;
	set_outcome(c, &ev, &c->spec.set->events.p[k->event], k->outcome);
	return sink->event(sink->ctx, &ev, err);
}

#define SINGLE_BYTES 64 /* a row and its tag */

static void limit_singles(struct counts *c, uint64_t now_ns, size_t nr_text)
{
	c->single_bytes += SINGLE_BYTES + nr_text;
	if (!c->spec.single_bytes_max || c->singles_end_ns ||
	    c->single_bytes < c->spec.single_bytes_max)
		return;
	c->singles_end_ns = now_ns;
	c->skel->bss->count_no_singles = 1; /* records in the ring are still delivered */
}

static int on_single(void *ctx, const struct kernel_record *r, const struct event_sink *sink,
		     struct err *err)
{
	struct counts *c = ctx;
	const struct kernel_event *s = (const struct kernel_event *)(const void *)r;
	if (r->nr_bytes < sizeof(*s) || s->event >= c->spec.set->events.n ||
	    s->nr_raw > r->nr_bytes - sizeof(*s))
		return 0;
	const struct named_event *e = &c->spec.set->events.p[s->event];
	int64_t values[] = {1, (int64_t)s->amount};
	struct event ev =
		event_aggregate(c->spec.first_spec + s->event, r->tgid, r->pid, r->time_ns, values);
	CLEANUP(buf_release) struct buf args = {0};
	if (!e->software)
		trace_format_print(&args, &e->format, s->raw, s->nr_raw);
	ev.cpu = s->cpu;
	ev.aggregate.user_ref = s->user_ref;
	ev.aggregate.kernel_ref = s->kernel_ref;
	ev.aggregate.object = args.n ? buf_str(&args) : NULL;
	limit_singles(c, r->time_ns, args.n);
	set_outcome(c, &ev, e, s->outcome);
	return sink->event(sink->ctx, &ev, err);
}

/* Delivers the sums of all seconds before @until, and removes them from the BPF map. */
static int collect_map(struct counts *c, int fd, uint32_t until, const struct event_sink *sink,
		       struct err *err)
{
	uint32_t cursor = 0;
	bool is_first = true;
	bool is_last = false;
	VEC(struct count_key) done = {0};
	int rc = 0;
	while (!rc && !is_last) {
		uint32_t nr = BATCH;
		uint32_t next = 0;
		if (bpf_map_lookup_batch(fd, is_first ? NULL : &cursor, &next, c->keys, c->values,
					 &nr, NULL)) {
			if (errno != ENOENT) {
				rc = err_sys(err, "reading the counts of events");
				break;
			}
			is_last = true;
		}
		is_first = false;
		cursor = next;
		for (uint32_t i = 0; i < nr && !rc; i++) {
			if (c->keys[i].slice_idx >= until)
				continue;
			rc = deliver_sum(c, &c->keys[i], &c->values[i], sink, err);
			vec_push(&done, c->keys[i]);
		}
	}
	/* Not during the iteration, whose cursor is the number of a bucket. */
	for (size_t i = 0; i < done.n && !rc;) {
		uint32_t nr = (uint32_t)MIN(done.n - i, (size_t)BATCH);
		if (bpf_map_delete_batch(fd, &done.p[i], &nr, NULL) && errno != ENOENT)
			rc = err_sys(err, "clearing the counts of events");
		i += MAX(nr, 1u);
	}
	vec_release(&done);
	return rc;
}

static int collect(struct counts *c, uint32_t until, const struct event_sink *sink, struct err *err)
{
	TRY(collect_map(c, bpf_map__fd(c->skel->maps.count_sums), until, sink, err));
	return collect_map(c, bpf_map__fd(c->skel->maps.count_spills), until, sink, err);
}

static int counts_drain(void *s, const struct event_sink *sink, struct err *err)
{
	struct counts *c = s;
	uint64_t now_ns = clock_mono_ns();
	if (now_ns < c->start_ns + GRACE_NS)
		return 0;
	uint32_t until = (uint32_t)((now_ns - GRACE_NS - c->start_ns) / COUNT_SLICE_NS);
	if (until <= c->nr_done)
		return 0;
	c->nr_done = until;
	return collect(c, until, sink, err);
}

/* ---- totals ------------------------------------------------------------------------------- */

static struct count_total sum_of_cpus(const struct counts *c, uint32_t idx)
{
	int nr = libbpf_num_possible_cpus();
	struct count_total sum = {0};
	if (nr <= 0)
		return sum;
	struct count_total *each = xcalloc((size_t)nr, sizeof(*each));
	if (!bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.count_totals), &idx, each)) {
		for (int i = 0; i < nr; i++) {
			sum.nr += each[i].nr;
			sum.nr_stacks += each[i].nr_stacks;
			sum.nr_full += each[i].nr_full;
			sum.full_amount += each[i].full_amount;
		}
	}
	free(each);
	return sum;
}

static uint64_t missed_by(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};
	uint32_t nr_bytes = sizeof(info);
	int fd = bpf_program__fd(prog);
	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &nr_bytes) ? 0 : info.recursion_misses;
}

/* Hits for which the maps had no room, as one row for each event at the end. */
static int deliver_overflow(struct counts *c, uint32_t idx, const struct event_sink *sink,
			    struct err *err)
{
	struct count_total t = sum_of_cpus(c, idx);
	c->totals[idx] = (struct counts_total){t.nr, t.nr_stacks, t.nr_full};
	if (!t.nr_full)
		return 0;
	int64_t values[] = {(int64_t)t.nr_full, (int64_t)t.full_amount};
	struct event ev = event_aggregate(c->spec.first_spec + idx, COUNTS_ELSEWHERE,
					  COUNTS_ELSEWHERE, c->start_ns, values);
	ev.aggregate.detail = COUNTS_NO_ROOM;
	return sink->event(sink->ctx, &ev, err);
}

/* ---- life --------------------------------------------------------------------------------- */

/* Counting does not start yet. */
static int counts_load(void *s, struct err *err)
{
	struct counts *c = s;
	engine_on_record(c->engine, RECORD_EVENT, on_single, c);
	for (uint32_t i = 0; i < c->spec.set->events.n; i++)
		TRY(configure(c, i, err));
	c->is_attached = true;
	for (uint32_t i = 0; i < c->spec.set->events.n; i++)
		TRY(attach_event(c, i, err));
	return 0;
}

static int counts_start(void *s, const struct source_env *env, const struct event_sink *sink,
			struct err *err)
{
	struct counts *c = s;
	struct event name = event_comm(COUNTS_ELSEWHERE, COUNTS_ELSEWHERE, env->start_ns,
				       COUNTS_ELSEWHERE_NAME);
	c->start_ns = env->start_ns;
	c->skel->bss->count_start_ns = env->start_ns;
	return sink->event(sink->ctx, &name, err);
}

static int counts_stop(void *s, const struct event_sink *sink, struct err *err)
{
	struct counts *c = s;
	if (!c->is_attached)
		return 0;
	c->skel->bss->count_start_ns = 0; /* stops counting at once; detaching takes a while */
	detach(c);
	c->nr_missed = missed_by(c->skel->progs.count_tracepoint) +
		       missed_by(c->skel->progs.count_software);
	TRY(collect(c, UINT32_MAX, sink, err));
	for (uint32_t i = 0; i < c->spec.set->events.n; i++)
		TRY(deliver_overflow(c, i, sink, err));
	return 0;
}

static uint64_t counts_reach_ns(const void *s)
{
	const struct counts *c = s;
	return c->start_ns + c->nr_done * (uint64_t)COUNT_SLICE_NS;
}

static void counts_facts(const void *s, struct profile *p)
{
	const struct counts *c = s;
	CLEANUP(buf_release) struct buf shares = {0};
	CLEANUP(buf_release) struct buf machine = {0};
	uint64_t nr_no_room = 0;
	for (size_t i = 0; i < c->spec.set->events.n; i++) {
		const struct named_event *e = &c->spec.set->events.p[i];
		const struct counts_total *t = &c->totals[i];
		bool is_machine = e->count.flags & COUNT_MACHINE;
		nr_no_room += t->nr_no_room;
		if (is_machine && t->nr)
			buf_addf(&machine, "%s%s", machine.n ? ", " : "", e->name);
		else if (!is_machine && t->nr_stacks < t->nr && !c->spec.has_no_stacks)
			buf_addf(&shares, "%s%s %s %%", shares.n ? ", " : "", e->name,
				 num_pct(100.0 * (double)t->nr_stacks / (double)t->nr).s);
	}
	if (shares.n)
		profile_fact(p, FACT_EVENTS_WITH_STACKS, buf_str(&shares));
	if (machine.n)
		profile_fact(p, FACT_EVENTS_OF_MACHINE, buf_str(&machine));
	profile_lose(p, LOSS_EVENTS_NO_ROW, nr_no_room);
	if (c->singles_end_ns)
		profile_fact_ns(p, FACT_EVENTS_SINGLE_FOR,
				c->singles_end_ns - MIN(c->singles_end_ns, c->start_ns));
	profile_lose(p, LOSS_EVENTS_MISSED, c->nr_missed);
}

const struct source counts_source = {
	.name = "counts",
	.fills = TABLE_SET(EVENTS),
	.bpf_prefix = "count_",
	.open = counts_open,
	.load = counts_load,
	.start = counts_start,
	.poll_ms = 100,
	.drain = counts_drain,
	.stop = counts_stop,
	.facts = counts_facts,
	.reach_ns = counts_reach_ns,
	.free = counts_free,
};
