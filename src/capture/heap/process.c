/* The heap recording of one process; see process.h. */
#include "base/base.h"
#include "capture/heap/process.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapring.h"
#include "capture/bpf/kerneltables.h"
#include "capture/heap/thin.h"
#include "host/memory/memstat.h"
#include "host/proc.h"
#include "host/procend.h"
#include "kernel_python.h"
#include "model/tables.h"

#define BATCH 256
/* Many more slots than threads, so that most threads use their home slot. */
#define SLOTS_MANY 4096u
#define SLOTS_MIN  64u
/* Maximum address space per slot: ring and states of the thread. */
#define SLOT_BYTES ((1u << 20) + HEAP_THREAD_STATE_BYTES + HEAP_PYTHON_STATE_BYTES)
/*
 * Full trace: how long a thread waits for room in its ring when assay gets no CPU to drain it. Long
 * for a launched command, whose trace should be complete; shorter for a running service.
 */
#define WAIT_NS            50000000u
#define WAIT_HELD_NS       1000000000u
#define SECCOMP_POLL_NS    10000000u   /* interval of the check for seccomp */
#define STARTUP_NS         5000000000u /* after the attach: programs enable seccomp early */
#define TID_SEARCH_FREE_NS 1000000000u /* at first all threads are new */
#define CLOCK_FAR          2000000000u /* ns between the two points of the clock conversion */

struct heapprocess {
	struct heapprocess_spec spec;
	int pid_fd; /* -1: kernels before 5.3 */
	uint64_t seed;
	struct heap_plan plan;
	struct heapinject *inject;
	struct kerneltables tables;
	bool has_tables;
	bool is_stopped;
	uint64_t seccomp_checked_ns;
	bool has_pid_namespace; /* in another PID namespace than assay */
	struct map tid_of;      /* tid in its namespace -> our tid */
	uint64_t attached_ns;   /* time of the attach */
	bool is_full;           /* of starts_full: not sampled yet */
	uint64_t full_ns;       /* how long it was */
	uint64_t tid_search_ns; /* time spent on translating tids */
	const uint8_t **rings;
	uint32_t ring_bytes;
	struct heapring ring;
	struct heapaccount *account;
	struct clock_moment before;  /* first point of the clock conversion */
	struct clock_moment between; /* becomes `before` later */
	struct heapprocess_pythons pythons;
	struct heapqueue_batch batch;
	struct heapqueue_batch peak; /* rows of TABLE_PEAK, which come at the end */
	struct heapring_event events[BATCH];
};

/* ---- time --------------------------------------------------------------------------------- */

static void set_clock(struct heapprocess *p)
{
	struct clock_moment now = clock_moment_now();
	if (now.ns - p->between.ns > CLOCK_FAR) {
		p->before = p->between;
		p->between = now;
	}
	if (now.ticks <= p->before.ticks)
		return;
	heapaccount_clock(p->account,
			  &(struct heapclock){.tsc = now.ticks,
					      .ns = now.ns,
					      .ns_per_tick =
						      (double)(now.ns - p->before.ns) /
						      (double)(now.ticks - p->before.ticks)});
}

/* ---- events from the rings ------------------------------------------------------------------- */

/* Translates a tid of the process's own PID namespace to ours. */
static void learn_tids(struct heapprocess *p)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	if (proc_threads(&tids, p->spec.pid, NULL))
		return;
	for (size_t i = 0; i < tids.pids.n; i++) {
		int32_t inner = 0;
		if (!proc_nspid(tids.pids.p[i], &inner, NULL) && inner > 0)
			*map_put(&p->tid_of, (uint32_t)inner, NULL) = (uint32_t)tids.pids.p[i];
	}
}

static int32_t outer_tid(const struct heapprocess *p, int32_t tid)
{
	const uint32_t *outer = p->has_pid_namespace ? map_get(&p->tid_of, (uint32_t)tid) : NULL;
	return outer ? (int32_t)*outer : p->has_pid_namespace ? 0 : tid;
}

static void on_thread(void *ctx, uint16_t slot, int32_t tid)
{
	struct heapprocess *p = ctx;
	/* tids from slots are not trusted: searching takes at most a tenth of the time. */
	uint64_t now = clock_mono_ns();
	if (p->has_pid_namespace &&
	    p->tid_search_ns * 10 <= now - p->attached_ns + TID_SEARCH_FREE_NS) {
		learn_tids(p);
		p->tid_search_ns += clock_mono_ns() - now;
	}
	heapaccount_thread(p->account, slot, outer_tid(p, tid));
}

static void on_stack(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
		     enum walk_end end)
{
	struct heapprocess *p = ctx;
	if (end == WALK_UNREADABLE) /* beyond the known part of the stack */
		end = WALK_BAD_FRAME;
	vec_push(&p->batch.stacks, (struct heapqueue_stack){.pid = p->spec.pid,
							    .ref = heapqueue_ref(p->seed, stack),
							    .loss = loss_from_walk_end(end),
							    .nr_frames = nr});
	for (uint32_t i = 0; i < nr; i++)
		vec_push(&p->batch.frames, frames[i]);
}

static void on_python(void *ctx, struct kernel_record *r)
{
	struct heapprocess *p = ctx;
	r->tgid = r->pid = p->spec.pid;
	r->time_ns = clock_mono_ns();
	if (r->kind == RECORD_PYCODE) {
		struct kernel_pycode *code = (void *)r;
		code->key = hash_mix(p->seed, code->key);
	} else {
		struct kernel_pystack *s = (void *)r;
		s->ref = heapqueue_ref(p->seed, (uint32_t)s->ref);
		s->native_ref = heapqueue_ref(p->seed, (uint32_t)s->native_ref);
		for (uint32_t i = 0; i < s->nr_frames; i++)
			if (s->frames[i].code)
				s->frames[i].code = hash_mix(p->seed, s->frames[i].code);
		p->pythons.nr++;
		p->pythons.nr_partly += s->end != PYTHON_WHOLE;
	}
	heapqueue_batch_python(&p->batch, r);
}

static void on_row(void *ctx, const struct heapaccount_row *row)
{
	struct heapprocess *p = ctx;
	vec_push(row->spec == TABLE_PEAK ? &p->peak.rows : &p->batch.rows,
		 (struct heapqueue_row){.pid = p->spec.pid, .seed = p->seed, .row = *row});
}

static void thin_if_due(struct heapprocess *p)
{
	uint64_t elapsed_ns = clock_mono_ns() - p->attached_ns;
	uint64_t nr_live = heapaccount_info(p->account).nr_live;
	bool is_due = thin_is_due(p->ring.nr_events, elapsed_ns, nr_live, HEAPINJECT_FULL_BLOCKS);
	if (p->is_stopped || (!is_due && heapinject_is_full(p->inject)))
		return;
	if (is_due)
		heapinject_thin(p->inject, p->spec.interval_bytes);
	p->is_full = false;
	p->full_ns = elapsed_ns;
}

uint64_t heapprocess_full_ns(const struct heapprocess *p)
{
	return p->is_full ? UINT64_MAX : p->full_ns;
}

uint32_t heapprocess_drain(struct heapprocess *p)
{
	set_clock(p);
	uint64_t now = clock_ticks();
	size_t n;
	if (clock_mono_ns() - p->seccomp_checked_ns >= SECCOMP_POLL_NS) {
		heapinject_poll_seccomp(p->inject);
		p->seccomp_checked_ns = clock_mono_ns();
	}
	heapring_begin(&p->ring, now);
	while ((n = heapring_next(&p->ring, p->events, BATCH)))
		heapaccount_add(p->account, p->events, n);
	heapaccount_advance(p->account, now);
	if (p->is_full)
		thin_if_due(p);
	heapqueue_put(p->spec.queue, &p->batch);
	return (uint32_t)(p->ring.fullest_bytes * 1024 / p->ring_bytes);
}

uint64_t heapprocess_poll_ns(const struct heapprocess *p)
{
	bool is_starting = p->spec.is_held && clock_mono_ns() - p->attached_ns < STARTUP_NS;
	return p->spec.is_full_trace || p->is_full || is_starting ||
			       !heapinject_may_syscall(p->inject)
		       ? SECCOMP_POLL_NS
		       : HEAPPROCESS_POLL_NS;
}

uint32_t *heapprocess_wake_futex(struct heapprocess *p)
{
	return &heapinject_shared(p->inject)->wake_futex;
}

static bool is_alive(void *ctx, int32_t tid)
{
	const struct heapprocess *p = ctx;
	int32_t outer = outer_tid(p, tid);
	return outer && (!syscall(SYS_tgkill, p->spec.pid, outer, 0) || errno != ESRCH);
}

void heapprocess_retire(struct heapprocess *p)
{
	heapring_retire(&p->ring, clock_mono_ns(), is_alive, p);
}

void heapprocess_thread_ended(struct heapprocess *p, int32_t tid)
{
	if (!p->has_pid_namespace) /* else heapring_retire finds it */
		heapring_thread_ended(&p->ring, clock_mono_ns(), tid);
}

/* ---- attaching ---------------------------------------------------------------------------- */

static bool find_space(void *ctx, int32_t pid, uint32_t *ret_idx)
{
	*ret_idx = 0;
	return pid == ((struct heapprocess *)ctx)->spec.pid;
}

static void open_tables(struct heapprocess *p)
{
	uint32_t nr_rows = 0;
	struct ktables_head *head = heapinject_tables(p->inject, &nr_rows);
	if (!head)
		return;
	kerneltables_init(&p->tables, &(struct kerneltables_spec){
					      .head = head,
					      .nr_rows = nr_rows,
					      .find_space = find_space,
					      .ctx = p,
				      });
	p->has_tables = true;
	uint32_t idx;
	(void)kerneltables_alloc_space(&p->tables, &idx); /* space 0 */
	if (p->spec.space)
		heapprocess_space(p, p->spec.space);
}

void heapprocess_space(struct heapprocess *p, const struct space *sp)
{
	if (!p->has_tables)
		return;
	kerneltables_changed(&p->tables, p->spec.pid, sp);
	kerneltables_applied(&p->tables, clock_mono_ns(), clock_mono_ns());
}

static const char *const names_of_mappings[HEAP_SHAPE_NR] = {
	[HEAP_MMAP] = "mmap", [HEAP_MUNMAP] = "munmap", [HEAP_MREMAP] = "mremap",
	[HEAP_BRK] = "brk",   [HEAP_SBRK] = "brk",
};

static void open_accounts(struct heapprocess *p)
{
	uint32_t nr_slots = 0;
	struct heap_slot *slots = heapinject_slots(p->inject, &nr_slots);
	p->rings = xcalloc(nr_slots, sizeof(*p->rings));
	for (uint32_t i = 0; i < nr_slots; i++)
		p->rings[i] = heapinject_ring(p->inject, i, &p->ring_bytes);
	p->account = heapaccount_new(&(struct heapaccount_spec){
		.start_ns = p->spec.start_ns,
		.slices_ns = p->spec.slices_ns,
		.interval_bytes = p->spec.is_full_trace ? 0 : p->spec.interval_bytes,
		.nr_slots = nr_slots,
		.has_all = p->spec.is_held && !p->spec.has_started,
		.on_row = on_row,
		.ctx = p});
	for (size_t i = 0; i < p->plan.functions.n && i < HEAP_SITES_MAX; i++)
		heapaccount_site_name(p->account, (uint8_t)i,
				      names_of_mappings[p->plan.functions.p[i].shape]);
	heapring_init(&p->ring, &(struct heapring_spec){.shared = heapinject_shared(p->inject),
							.slots = slots,
							.nr_slots = nr_slots,
							.ring_bytes = p->ring_bytes,
							.rings = p->rings,
							.on_thread = on_thread,
							.on_stack = on_stack,
							.on_python = on_python,
							.ctx = p});
}

/* vm.overcommit_memory = 2: reserved address space counts as memory, even MAP_NORESERVE. */
static bool is_space_memory(void)
{
	CLEANUP(buf_release) struct buf text = {0};
	return !file_read(&text, "/proc/sys/vm/overcommit_memory", 16, NULL) && text.n &&
	       text.p[0] == '2';
}

/* Slots in a small part of what RLIMIT_DATA leaves: their memory counts towards it. */
static uint32_t slots_in_data(int32_t pid, const struct memstat *m)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	(void)prlimit(pid, RLIMIT_DATA, NULL, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		return SLOTS_MANY;
	uint64_t left = limit.rlim_cur > m->data_bytes ? limit.rlim_cur - m->data_bytes : 0;
	uint32_t nr = SLOTS_MIN;
	while (nr < SLOTS_MANY && 2ull * nr * SLOT_BYTES < left / 16)
		nr *= 2;
	return nr;
}

/*
 * Number of slots: plenty, as unused slots cost only address space and programs start threads. Only
 * for the present threads if address space is limited, or the process locks its mappings
 * (mlockall), and fewer if its private memory is limited.
 */
static uint32_t slots_for(int32_t pid)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	struct memstat m = {0};
	(void)prlimit(pid, RLIMIT_AS, NULL, &limit);
	(void)memstat_read(&m, pid, MEMSTAT_COUNTERS, NULL, NULL);
	if (limit.rlim_cur == RLIM_INFINITY && !m.locked_bytes && !is_space_memory())
		return slots_in_data(pid, &m);
	uint64_t left = limit.rlim_cur > m.virtual_bytes ? limit.rlim_cur - m.virtual_bytes : 0;
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	(void)proc_threads(&tids, pid, NULL);
	uint32_t nr = SLOTS_MIN;
	/* well below heapspace_check_limit's limit of a quarter */
	while (nr < SLOTS_MANY && nr < 2 * tids.pids.n && 2ull * nr * SLOT_BYTES < left / 8)
		nr *= 2;
	return MIN(nr, slots_in_data(pid, &m));
}

int heapprocess_attach(struct heapprocess **ret_p, const struct heapprocess_spec *spec,
		       struct heap_plan *plan, struct err *err)
{
	CLEANUP(heapprocess_free_p) struct heapprocess *p = xcalloc(1, sizeof(*p));
	p->spec = *spec;
	p->pid_fd = (int)syscall(SYS_pidfd_open, spec->pid, 0);
	if (!target_is_same(spec->target, spec->pid)) /* the descriptor is of another process */
		return err_set(err, -ESRCH, "process %d has ended", spec->pid);
	p->plan = *plan;
	*plan = (struct heap_plan){0};
	p->seed = hash_mix((uint64_t)(uint32_t)spec->pid << 32 | spec->generation, spec->start_ns);
	p->before = p->between = clock_moment_now();
	p->attached_ns = p->between.ns;
	p->is_full = spec->starts_full;
	int32_t inner = 0;
	p->has_pid_namespace = !proc_nspid(spec->pid, &inner, NULL) && inner != spec->pid;
	struct heapinject_spec inject = {.pid = spec->pid,
					 .plan = &p->plan,
					 .is_full_trace = spec->is_full_trace,
					 .interval_bytes = spec->interval_bytes,
					 .starts_full = spec->starts_full,
					 .nr_slots = slots_for(spec->pid),
					 .wait_ns = !spec->is_full_trace && !spec->starts_full ? 0
						    : spec->is_held ? WAIT_HELD_NS
								    : WAIT_NS,
					 .is_held = spec->is_held,
					 .has_started = spec->has_started};
	TRY(heapinject_attach(&p->inject, &inject, err));
	open_accounts(p);
	open_tables(p);
	*ret_p = TAKE(p);
	return 0;
}

int heapprocess_start(struct heapprocess *p, struct err *err)
{
	return heapinject_start(p->inject, err);
}

/* ---- libraries loaded later ------------------------------------------------------------------ */

/* Allocator functions only: mmap and the like are in the C library, loaded before. */
static bool is_new(const struct heapprocess *p, const struct heap_function *s)
{
	return s->shape < HEAP_MMAP && heapinject_can_patch(p->inject, s->addr);
}

const char *heapprocess_find_unrecorded(const struct heapprocess *p, const struct heap_plan *now)
{
	vec_foreach(s, &now->functions)
		if (is_new(p, s))
			return s->path;
	return NULL;
}

/* Copies a path of a plan that will be released. */
static const char *path_known(const struct heapprocess *p, const char *path)
{
	vec_foreach(s, &p->plan.functions)
		if (!strcmp(s->path, path))
			return s->path;
	return NULL;
}

int heapprocess_add(struct heapprocess *p, struct heap_plan *now, struct heapprocess_added *ret_a,
		    struct err *err)
{
	CLEANUP(heap_plan_release) struct heap_plan more = {.method = p->plan.method};
	uint32_t nr_sites = heapinject_nr_sites(p->inject);
	size_t nr_before = heapinject_info(p->inject).nr_patched;
	const char *path = heapprocess_find_unrecorded(p, now);
	*ret_a = (struct heapprocess_added){0};
	if (!path)
		return 0;
	TRY(heapinject_repatch(p->inject, now, &ret_a->nr_again, err));
	ret_a->path = path_known(p, path);
	vec_foreach(s, &now->functions) {
		if (!is_new(p, s))
			continue;
		vec_push(&more.functions, *s);
		*s = (struct heap_function){0};
	}
	int rc = more.functions.n ? heapinject_add(p->inject, &more, err) : 0;
	if (heapinject_nr_sites(p->inject) == nr_sites)
		return rc;
	vec_foreach(s, &more.functions)
		vec_push(&p->plan.functions, *s);
	ret_a->path = more.functions.p[0].path;
	more.functions.n = 0;
	ret_a->nr = heapinject_info(p->inject).nr_patched - nr_before;
	return rc;
}

/* ---- the end ------------------------------------------------------------------------------ */

void heapprocess_stop(struct heapprocess *p)
{
	if (!p->is_stopped)
		(void)heapinject_stop(p->inject, NULL); /* fails if it has ended */
	p->is_stopped = true;
}

void heapprocess_end(struct heapprocess *p, unsigned flags)
{
	if (flags & HEAPPROCESS_FREED)
		heapaccount_end_freed(p->account, heapprocess_killed_by(p));
	else
		heapaccount_end(p->account);
	heapqueue_put(p->spec.queue, &p->batch);
	if (p->spec.peaks)
		heappeaks_add(p->spec.peaks, p->spec.pid, heapaccount_info(p->account).peak_bytes,
			      &p->peak);
	/* ended, or no longer permitted: the recorder stops by itself */
	(void)heapinject_detach(p->inject, NULL);
}

void heapprocess_free(struct heapprocess *p)
{
	if (!p)
		return;
	if (p->account)
		heapring_release(&p->ring);
	heapaccount_free(p->account);
	if (p->has_tables)
		kerneltables_release(&p->tables);
	heapinject_free(p->inject);
	heap_plan_release(&p->plan);
	heapqueue_batch_release(&p->batch);
	heapqueue_batch_release(&p->peak);
	map_release(&p->tid_of);
	close_p(&p->pid_fd);
	free(p->rings);
	free(p);
}

int heapprocess_killed_by(const struct heapprocess *p)
{
	return p->pid_fd >= 0 ? procend_signal(p->pid_fd, p->spec.pid) : 0;
}

int32_t heapprocess_pid(const struct heapprocess *p)
{
	return p->spec.pid;
}

const struct heap_plan *heapprocess_plan(const struct heapprocess *p)
{
	return &p->plan;
}

struct heapinject_info heapprocess_inject_info(const struct heapprocess *p)
{
	return heapinject_info(p->inject);
}

struct heapring_counts heapprocess_counts(const struct heapprocess *p)
{
	return heapring_counts(&p->ring);
}

struct heapprocess_pythons heapprocess_pythons(const struct heapprocess *p)
{
	struct heapprocess_pythons y = p->pythons;
	y.nr_without = heapring_counts(&p->ring).nr_no_python;
	return y;
}

struct heapaccount_info heapprocess_account_info(const struct heapprocess *p)
{
	return heapaccount_info(p->account);
}

uint64_t heapprocess_reach_ns(const struct heapprocess *p)
{
	return heapaccount_reach_ns(p->account);
}
