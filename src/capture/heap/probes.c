/* Uprobes on allocators and the accounting of their records; see probes.h. */
#include "base/base.h"
#include "capture/heap/probes.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "capture/bpf/bpfring.h"
#include "capture/bpf/deferclose.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapfacts.h"
#include "capture/heap/planner.h"
#include "capture/bpf/skeleton.h"
#include "host/privileges.h"
#include "host/reader/hostfile.h"
#include "kernel_heap.h"
#include "model/heap.h"

#define SLOTS_MAX   4096 /* threads distinguished per process */
#define CODE_BYTES  192
#define LATE_NS     20000000u /* delay until records in progress are in the ring */
#define AT_ONCE     256
#define POLL_MS     10  /* the ring holds 170,000 records */
#define CHILD_TRIES 400 /* polls until a launched command must have mapped its allocator */

/* Constants missing in older kernel headers (uapi/linux/bpf.h). */
#define UPROBE_SESSION 57
/* The argument of BPF_LINK_CREATE for uprobe sessions. */
struct uprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
};

struct process {
	struct heapprobes *owner;
	int32_t pid;
	struct heapaccount *account;
	struct map slot_of; /* tid -> slot */
	uint16_t nr_slots;
};

struct heapprobes {
	struct assay_bpf *skel;
	struct heapsource_spec spec;
	struct bpf_links links;
	VEC(int) link_fds; /* of uprobe sessions, not created by libbpf */
	VEC(struct process *) processes;
	struct bpfring ring;
	struct map stack_of; /* reference -> stack id */
	VEC(uint64_t) stacks;
	uint64_t epoch_ns;
	const struct target *target;
	int32_t child; /* launched command, not inspected yet, or 0 */
	unsigned nr_tries;
	size_t nr_sites_before;
	char *allocator;
	size_t nr_probes;              /* probed functions of all processes */
	size_t nr_stepped;             /* of these: single-stepped instructions */
	bool has_sessions;             /* uprobe sessions: unsampled calls have no return probe */
	const struct event_sink *sink; /* while rows are emitted */
	struct err *err;
	int rc;
	bool is_stopped;
};

/* ---- life --------------------------------------------------------------------------------- */

static bool has_sessions(const struct btf *types)
{
	int id = types ? btf__find_by_name_kind(types, "bpf_attach_type", BTF_KIND_ENUM) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(types, (unsigned)id) : NULL;
	bool has = false;
	for (unsigned i = 0; t && i < btf_vlen(t) && !has; i++) {
		const struct btf_enum *e = &btf_enum(t)[i];
		const char *name = btf__name_by_offset(types, e->name_off);
		has = e->val == UPROBE_SESSION && name && !strcmp(name, "BPF_TRACE_UPROBE_SESSION");
	}
	return has;
}

static bool heapprobes_is_wanted(const struct source_env *env)
{
	return env->tables & TABLE_SET(LIVE) && env->heap->by_probes;
}

static unsigned heapprobes_table_flags(const void *self)
{
	return ((const struct heapprobes *)self)->spec.is_full_trace ? 0 : TABLES_ESTIMATE;
}

static int probes_open(void **ret_h UNUSED, const struct source_env *env UNUSED,
		       struct err *err UNUSED)
{
#ifndef __x86_64__
	return err_set(err, -ENOTSUP, "probes on allocators are for x86-64 only");
#else
	struct heapprobes *h = xcalloc(1, sizeof(*h));
	h->skel = engine_skel(env->engine);
	h->spec = *env->heap;
	h->target = env->target;
	h->child = env->target->child;
	h->has_sessions = has_sessions(engine_kernel_types(env->engine));
	if (h->has_sessions)
		(void)bpf_program__set_expected_attach_type(h->skel->progs.heap_probe,
							    (enum bpf_attach_type)UPROBE_SESSION);
	vec_push(&h->stacks, 0); /* stack id 0: unknown */
	*ret_h = h;
	return 0;
#endif
}

static void process_free(struct process *p)
{
	heapaccount_free(p->account);
	map_release(&p->slot_of);
	free_p(&p);
}

static void detach(struct heapprobes *h)
{
	h->skel->bss->heap_epoch_ns = 0;
	bpf_links_detach(&h->links);
	deferclose(h->link_fds.p, h->link_fds.n);
	vec_foreach(fd, &h->link_fds)
		close_p(fd);
	h->link_fds.n = 0;
}

static void probes_free(void *self)
{
	struct heapprobes *h = self;
	detach(h);
	vec_release(&h->link_fds);
	for (size_t i = 0; i < h->processes.n; i++)
		process_free(h->processes.p[i]);
	vec_release(&h->processes);
	if (h->ring.data)
		bpfring_release(&h->ring);
	map_release(&h->stack_of);
	vec_release(&h->stacks);
	free_p(&h->allocator);
	free_p(&h);
}

/* ---- probes ------------------------------------------------------------------------------- */

/* Probes of one process in one binary. */
struct probe_set {
	struct byte_source binary;
	int fd; /* names the binary (O_PATH) */
	VEC(unsigned long) offsets;
	VEC(uint64_t) cookies;
};

static void probe_set_release(struct probe_set *set)
{
	vec_release(&set->offsets);
	vec_release(&set->cookies);
	source_close(&set->binary);
	close_p(&set->fd);
}

static bool is_probed(enum heap_shape shape)
{
	return shape > HEAP_SHAPE_NONE && shape <= HEAP_FREE_0;
}

static void add_site(struct heapprobes *h, struct probe_set *set, const struct heap_function *s,
		     size_t idx)
{
	uint8_t code[CODE_BYTES];
	bool is_emulated = false;
	uint64_t nr_bytes = (uint64_t)set->binary.st.st_size;
	size_t n = (size_t)MIN(nr_bytes - MIN(nr_bytes, s->file_offset), sizeof(code));
	if (s->end > s->addr)
		n = (size_t)MIN((uint64_t)n, s->end - s->addr);
	if (!n || set->binary.ops->read(set->binary.ctx, code, n, s->file_offset, NULL))
		return;
	size_t at = heapprobes_point(code, n, s->shape, &is_emulated);
	for (size_t i = 0; i < set->offsets.n; i++)
		if (set->offsets.p[i] == s->file_offset + at)
			return; /* same function under another name */
	vec_push(&set->offsets, (unsigned long)(s->file_offset + at));
	vec_push(&set->cookies, HEAP_COOKIE(s->shape, idx));
	h->nr_probes++;
	h->nr_stepped += !is_emulated;
}

static int refused(struct err *err, int rc, const char *path)
{
	err_set(err, rc, "cannot put probes on the allocator in '%s': %s", path, strerror(-rc));
	if (rc == -EACCES || rc == -EPERM)
		err_hint(err, "probes on functions need CAP_SYS_ADMIN: run with sudo; in a "
			      "container --cap-add SYS_ADMIN");
	return rc;
}

static int attach_session(struct heapprobes *h, const struct probe_set *set, int32_t pid,
			  const char *file)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)bpf_program__fd(h->skel->progs.heap_probe),
		.attach_type = UPROBE_SESSION,
		.path = (uintptr_t)file,
		.offsets = (uintptr_t)set->offsets.p,
		.cookies = (uintptr_t)set->cookies.p,
		.cnt = (uint32_t)set->offsets.n,
		.pid = (uint32_t)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	vec_push(&h->link_fds, fd);
	return 0;
}

static int attach_single(struct heapprobes *h, const struct probe_set *set, size_t i, int32_t pid,
			 const char *file)
{
	struct bpf_program *p = h->skel->progs.heap_probe;
	bool is_free = HEAP_COOKIE_SHAPE(set->cookies.p[i]) == HEAP_FREE_0;
	/* the return first: a call with an entry but no return record would stay pending */
	for (int is_return = !is_free; is_return >= 0; is_return--) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = set->cookies.p[i],
			    .retprobe = is_return);
		struct bpf_link *link =
			bpf_program__attach_uprobe_opts(p, pid, file, set->offsets.p[i], &opts);
		if (!link)
			return -errno;
		vec_push(&h->links.list, link);
	}
	return 0;
}

static int attach_set(struct heapprobes *h, const struct probe_set *set, int32_t pid,
		      const char *path, struct err *err)
{
	CLEANUP(free_p) char *file = xasprintf("/proc/self/fd/%d", set->fd);
	int rc = h->has_sessions && set->offsets.n ? attach_session(h, set, pid, file) : 0;
	for (size_t i = 0; !h->has_sessions && !rc && i < set->offsets.n; i++)
		rc = attach_single(h, set, i, pid, file);
	return rc ? refused(err, rc, path) : 0;
}

/* Handles each binary once; functions are not sorted by binary. */
static int attach_binary(struct heapprobes *h, const struct heap_plan *plan, size_t first,
			 int32_t pid, int root_fd, struct err *err)
{
	const char *path = plan->functions.p[first].path;
	CLEANUP(probe_set_release) struct probe_set set = {.fd = -1};
	int rc = hostfile_open_path(&set.binary, root_fd, path);
	if (rc)
		return err_set(err, rc, "cannot open '%s' of process %d: %s", path, pid,
			       strerror(-rc));
	set.fd = hostfile_name(&set.binary);
	for (size_t i = first; i < plan->functions.n; i++) {
		const struct heap_function *s = &plan->functions.p[i];
		if (is_probed(s->shape) && !strcmp(s->path, path))
			add_site(h, &set, s, i);
	}
	return attach_set(h, &set, pid, path, err);
}

static int attach_plan(struct heapprobes *h, const struct heap_plan *plan, int32_t pid,
		       struct err *err)
{
	CLEANUP(close_p) int root_fd = hostfile_open_root(pid);
	if (root_fd < 0)
		return err_set(err, root_fd, "cannot look into process %d: %s", pid,
			       strerror(-root_fd));
	for (size_t i = 0; i < plan->functions.n; i++) {
		bool is_seen = !is_probed(plan->functions.p[i].shape) || !plan->functions.p[i].path;
		for (size_t k = 0; k < i && !is_seen; k++)
			is_seen = is_probed(plan->functions.p[k].shape) &&
				  !strcmp(plan->functions.p[k].path, plan->functions.p[i].path);
		if (!is_seen)
			TRY(attach_binary(h, plan, i, pid, root_fd, err));
	}
	return 0;
}

/* ---- processes ---------------------------------------------------------------------------- */

static void take_row(void *ctx, const struct heapaccount_row *row)
{
	struct process *p = ctx;
	struct heapprobes *h = p->owner;
	if (h->rc || !h->sink)
		return;
	uint64_t ref = row->stack < h->stacks.n ? h->stacks.p[row->stack] : 0;
	struct event ev = heapaccount_event(row, p->pid, ref);
	h->rc = h->sink->event(h->sink->ctx, &ev, h->err);
}

static void open_account(struct heapprobes *h, struct process *p)
{
	p->account = heapaccount_new(&(struct heapaccount_spec){
		.start_ns = h->epoch_ns,
		.interval_bytes = h->spec.is_full_trace ? 0 : h->spec.interval_bytes,
		.nr_slots = SLOTS_MAX,
		.on_row = take_row,
		.ctx = p});
	uint64_t ns = h->epoch_ns;
	heapaccount_clock(p->account, &(struct heapclock){.tsc = ns, .ns = ns, .ns_per_tick = 1});
}

static void add_process(struct heapprobes *h, int32_t pid)
{
	struct process *p = xcalloc(1, sizeof(*p));
	p->owner = h;
	p->pid = pid;
	if (h->epoch_ns)
		open_account(h, p);
	vec_push(&h->processes, p);
}

/* @is_late: may be retried; returns -EAGAIN then. */
static int plan_process(struct heapprobes *h, int32_t pid, bool is_late, struct err *err)
{
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	int rc = heapplanner_plan(h->spec.targets, pid, HEAP_METHOD_UPROBES, &plan, err);
	if (!rc && !plan.functions.n)
		rc = err_set(err, -ENOENT, "no allocator was found in process %d", pid);
	if (!rc &&
	    h->spec.why) { /* assay chose the method before: the plan only provides the functions */
		free_p(&plan.reason);
		plan.reason = xstrdup(h->spec.why);
	}
	bool is_unchanged = !rc && plan.functions.n == h->nr_sites_before;
	h->nr_sites_before = rc ? 0 : plan.functions.n;
	if (is_late && !is_unchanged)
		return -EAGAIN;
	TRY(rc);
	TRY(attach_plan(h, &plan, pid, err));
	add_process(h, pid);
	if (!h->allocator && plan.allocator_text)
		h->allocator = xstrdup(plan.allocator_text);
	if (h->spec.on_plan)
		h->spec.on_plan(h->spec.ctx, pid, &plan);
	return 0;
}

/* Whether the launched command has done its exec. */
static bool has_executed(int32_t pid)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/exe", pid);
	struct stat own;
	struct stat its;
	return !stat("/proc/self/exe", &own) && !stat(path, &its) &&
	       (own.st_ino != its.st_ino || own.st_dev != its.st_dev);
}

static void look_at_child(struct heapprobes *h)
{
	CLEANUP(err_release) struct err err = {0};
	if (!h->child || !has_executed(h->child))
		return;
	int rc = plan_process(h, h->child, h->nr_tries < CHILD_TRIES, &err);
	h->nr_tries++;
	if (rc == -EAGAIN)
		return;
	if (rc && h->spec.on_refused)
		h->spec.on_refused(h->spec.ctx, h->child, &err);
	h->child = 0;
}

static int probes_load(void *self, struct err *err)
{
	struct heapprobes *h = self;
	TRY(bpfring_open(&h->ring, bpf_map__fd(h->skel->maps.heap_ring),
			 bpf_map__max_entries(h->skel->maps.heap_ring), err));
	h->skel->bss->heap_interval_bytes = h->spec.is_full_trace ? 0 : h->spec.interval_bytes;
	const struct pid_list *pids = &h->target->pids;
	size_t nr_refused = 0;
	for (size_t i = 0; i < pids->pids.n; i++) {
		CLEANUP(err_release) struct err why = {0};
		int32_t pid = pids->pids.p[i];
		if (!plan_process(h, pid, false, &why))
			continue;
		if (h->spec.on_refused)
			h->spec.on_refused(h->spec.ctx, pid, &why);
		if (++nr_refused == pids->pids.n)
			return err_move(err, &why);
	}
	return 0;
}

static int probes_start(void *self, const struct source_env *env,
			const struct event_sink *sink UNUSED, struct err *err UNUSED)
{
	struct heapprobes *h = self;
	h->epoch_ns = env->start_ns;
	for (size_t i = 0; i < h->processes.n; i++)
		open_account(h, h->processes.p[i]);
	h->skel->bss->heap_epoch_ns = env->start_ns;
	return 0;
}

/* ---- records ------------------------------------------------------------------------------ */

static struct process *process_of(const struct heapprobes *h, int32_t pid)
{
	for (size_t i = 0; i < h->processes.n; i++)
		if (h->processes.p[i]->pid == pid)
			return h->processes.p[i];
	return NULL;
}

static uint32_t stack_number(struct heapprobes *h, uint64_t ref)
{
	if (!ref)
		return 0;
	bool is_new;
	uint32_t *nr = map_put(&h->stack_of, ref, &is_new);
	if (is_new) {
		*nr = (uint32_t)h->stacks.n;
		vec_push(&h->stacks, ref);
	}
	return *nr;
}

/* Threads beyond SLOTS_MAX share the last slot. */
static uint16_t slot_of(struct process *p, int32_t tid)
{
	bool is_new;
	uint32_t *slot = map_put(&p->slot_of, (uint32_t)tid, &is_new);
	if (is_new) {
		bool is_last = p->nr_slots >= SLOTS_MAX - 1;
		*slot = is_last ? SLOTS_MAX - 1 : p->nr_slots++;
		heapaccount_thread(p->account, (uint16_t)*slot, is_last ? 0 : tid);
	}
	return (uint16_t)*slot;
}

static struct heapring_event event_of(struct heapprobes *h, struct process *p,
				      const struct kernel_heap *r)
{
	bool is_alloc = r->head.kind == RECORD_ALLOC;
	return (struct heapring_event){.tsc = r->head.time_ns,
				       .addr = r->block,
				       .nr_bytes = r->nr_bytes,
				       .stack = is_alloc ? stack_number(h, r->stack) : 0,
				       .slot = slot_of(p, r->head.pid),
				       .kind = is_alloc ? HEAP_RECORD_ALLOC : HEAP_RECORD_FREE,
				       .site = HEAP_SITE_NONE};
}

static void take_records(struct heapprobes *h)
{
	struct heapring_event batch[AT_ONCE];
	struct process *whose = NULL;
	const void *record;
	uint32_t nr_bytes;
	size_t n = 0;
	while (bpfring_peek(&h->ring, &record, &nr_bytes) == BPFRING_RECORD) {
		struct kernel_heap r;
		bool is_whole = nr_bytes >= sizeof(r);
		if (is_whole)
			memcpy(&r, record, sizeof(r));
		bpfring_consume(&h->ring);
		struct process *p = is_whole ? process_of(h, r.head.tgid) : NULL;
		if (!p || !p->account)
			continue;
		if (n == AT_ONCE || (n && p != whose)) {
			heapaccount_add(whose->account, batch, n);
			bpfring_publish(&h->ring);
			n = 0;
		}
		whose = p;
		batch[n++] = event_of(h, p, &r);
	}
	if (n)
		heapaccount_add(whose->account, batch, n);
	bpfring_publish(&h->ring);
}

static int probes_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct heapprobes *h = self;
	uint64_t passed_ns = clock_mono_ns() - LATE_NS;
	h->sink = sink;
	h->err = err;
	look_at_child(h);
	take_records(h);
	for (size_t i = 0; i < h->processes.n; i++)
		if (passed_ns > h->epoch_ns)
			heapaccount_advance(h->processes.p[i]->account, passed_ns);
	h->sink = NULL;
	return h->rc;
}

static int probes_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct heapprobes *h = self;
	if (!h->epoch_ns || h->is_stopped)
		return 0;
	h->is_stopped = true;
	detach(h);
	h->sink = sink;
	h->err = err;
	take_records(h);
	bool has_any = false;
	for (size_t i = 0; i < h->processes.n; i++)
		has_any |= !proc_has_ended(h->processes.p[i]->pid);
	for (size_t i = 0; i < h->processes.n; i++) {
		struct process *p = h->processes.p[i];
		if (has_any && proc_has_ended(p->pid))
			heapaccount_end_freed(p->account, 0);
		else
			heapaccount_end(p->account);
	}
	h->sink = NULL;
	return h->rc;
}

static void probes_early_facts(const void *self, struct profile *p)
{
	const struct heapprobes *h = self;
	const struct kernel_heap_counts *c = (const void *)&h->skel->bss->heap_counts;
	const char *why = h->spec.why ? h->spec.why : "";
	profile_factf(p, FACT_HEAP_METHOD, "uprobes%s%s", why[0] ? ": " : "", why);
	heapfacts_add_sampling(p, h->spec.is_full_trace ? 0 : h->spec.interval_bytes,
			       h->target->child != 0);
	if (h->allocator && h->allocator[0])
		profile_fact(p, FACT_HEAP_ALLOCATOR, h->allocator);
	heap_slices_set(p, h->epoch_ns);
	profile_lose(p, LOSS_HEAP_DROPPED, c->nr_dropped);
}

static uint64_t probes_reach_ns(const void *self)
{
	const struct heapprobes *h = self;
	uint64_t reach_ns = UINT64_MAX;
	for (size_t i = 0; i < h->processes.n; i++)
		if (h->processes.p[i]->account)
			reach_ns = MIN(reach_ns, heapaccount_reach_ns(h->processes.p[i]->account));
	return reach_ns;
}

static void probes_facts(const void *self, struct profile *p)
{
	const struct heapprobes *h = self;
	const struct kernel_heap_counts *c = (const void *)&h->skel->bss->heap_counts;
	probes_early_facts(self, p);
	heapfacts_add_counts(p, c->classes, c->nr_frees, !h->spec.is_full_trace);
	profile_lose(p, LOSS_HEAP_NO_FREE, c->nr_no_room);
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%s trapped, of %s; %s", num_noun(c->nr_hits, "calls").s,
		 num_noun(h->nr_probes, "functions").s,
		 h->has_sessions ? "a second trap at the return only for recorded blocks"
				 : "allocations a second time at their return");
	if (h->nr_stepped)
		buf_addf(&b, "; %zu of the functions are stepped over, which is many times as slow",
			 h->nr_stepped);
	profile_fact(p, FACT_HEAP_PROBES, buf_str(&b));
}

const struct source heapprobes_source = {
	.name = "heap probes",
	.fills = HEAP_TABLES,
	.bpf_prefix = "heap_",
	.probed = "allocations",
	/* probes of new processes */
	.late_caps = HOST_CAP_BIT(HOST_CAP_BPF) | HOST_CAP_BIT(HOST_CAP_PERFMON) |
		     HOST_CAP_BIT(CAP_SYS_ADMIN),
	.is_wanted = heapprobes_is_wanted,
	.table_flags = heapprobes_table_flags,
	.poll_ms = POLL_MS,
	.open = probes_open,
	.load = probes_load,
	.start = probes_start,
	.drain = probes_drain,
	.stop = probes_stop,
	.facts = probes_facts,
	.early_facts = probes_early_facts,
	.reach_ns = probes_reach_ns,
	.free = probes_free,
};
