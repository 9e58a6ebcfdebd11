/* Loads and attaches the BPF programs, and sets their targets; see engine.h. */
#include "base/base.h"
#include "capture/bpf/engine.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "capture/bpf/coretypes.h"
#include "capture/bpf/kernelrecord.h"
#include "capture/bpf/kerneltables.h"
#include "capture/bpf/bpfring.h"
#include "capture/bpf/recordqueue.h"
#include "capture/bpf/skeleton.h"
#include "host/bpfrights.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/proc.h"

#define NR_KINDS   16 /* of records */
#define PRINT_MAX  1000
#define HELD_MAX   (48u << 20) /* bytes of records that recordqueue may hold in memory */
#define ROWS_SPARE (1u << 19)
/* Large binaries have 4 to 17 rows a KiB of code; the few denser ones are small. */
#define CODE_BYTES_PER_ROW 96

struct handler {
	engine_record_fn fn;
	void *ctx;
};

struct engine {
	const struct target *target;
	struct assay_bpf *skel;
	struct btf *types; /* of the kernel, until the programs are loaded */
	int types_fd;      /* of coretypes_open, until the programs are loaded */
	bool is_loaded;
	bool has_tables;
	struct recordqueue *queue;
	struct bpfring wakeups; /* readable: a ring fills up */
	const struct kernel_record
		*record; /* taken from the queue, not delivered yet; NULL = none */
	void *memory;    /* the tables, mapped */
	size_t memory_bytes;
	uint32_t nr_rows;
	struct kerneltables tables;
	struct handler handlers[NR_KINDS];
	engine_span_fn on_span; /* NULL: nobody uses them */
	void *on_span_ctx;
	uint64_t nr_bad;
	uint64_t nr_losses_reported;
};

/* ---- opening ------------------------------------------------------------------------------ */

static bool is_excluded(const char *name, const struct engine_spec *spec)
{
	for (size_t i = 0; i < spec->nr_excluded; i++)
		if (!strncmp(name, spec->excluded[i], strlen(spec->excluded[i])))
			return true;
	return false;
}

__attribute__((format(printf, 2, 0))) static int print_debug(enum libbpf_print_level level,
							     const char *fmt, va_list args)
{
	int depth = level == LIBBPF_WARN ? 1 : level == LIBBPF_INFO ? 2 : 3;
	if (!log_has_debug(LOG_BPF, depth))
		return 0;
	char *text;
	int n = vasprintf(&text, fmt, args);
	if (n < 0)
		return 0;
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = 0;
	/* The verifier's log can be a megabyte; the reason of the failure is at its end. */
	int skip = n > PRINT_MAX && !log_has_debug(LOG_BPF, 3) ? n - PRINT_MAX : 0;
	log_debug_at(LOG_BPF, "%s%s", skip ? "..." : "", text + skip);
	free(text);
	return 0;
}

static void disable_excluded(const struct bpf_object *o, const struct engine_spec *spec)
{
	for (struct bpf_program *p = NULL; (p = bpf_object__next_program(o, p));)
		if (is_excluded(bpf_program__name(p), spec))
			(void)bpf_program__set_autoload(p, false);
	for (struct bpf_map *m = NULL; (m = bpf_object__next_map(o, m));)
		if (is_excluded(bpf_map__name(m), spec))
			(void)bpf_map__set_autocreate(m, false);
}

static int add_code_bytes(void *ctx, const struct proc_map *m, struct err *err)
{
	(void)err;
	uint64_t *nr_bytes = ctx;
	if (m->is_exec && m->inode)
		*nr_bytes += m->end - m->start;
	return 0;
}

/*
 * Number of unwind rows to allocate. They are locked memory: as many as the target's code probably
 * needs, and some for libraries that are loaded later. A command that has not started is unknown.
 */
static uint32_t estimate_rows(const struct target *t)
{
	uint64_t most = 0;
	uint64_t all = 0;
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		uint64_t nr_bytes = 0;
		(void)proc_maps(t->pids.pids.p[i], add_code_bytes, &nr_bytes, NULL);
		most = MAX(most, nr_bytes);
		all += nr_bytes;
	}
	for (size_t i = 0; i < t->tids.pids.n; i++)
		(void)proc_maps(t->tids.pids.p[i], add_code_bytes, &all, NULL);
	bool is_known = !t->is_system && !t->child && all;
	uint64_t n = ROWS_SPARE + most / CODE_BYTES_PER_ROW;
	uint64_t n_all = ROWS_SPARE + all / CODE_BYTES_PER_ROW;
	/* Processes usually share most of their binaries. */
	n = MAX(n, is_known ? MIN(n_all, (uint64_t)KTABLES_ROWS_DEFAULT) : KTABLES_ROWS_DEFAULT);
	return (uint32_t)MIN(n, (uint64_t)KTABLES_ROWS_MAX);
}

static uint32_t choose_rows(const struct target *t)
{
	uint32_t n = estimate_rows(t);
	return (n & (n - 1)) ? 1u << (32 - __builtin_clz(n)) : n;
}

/* The ring is drained every 50 ms; a CPU writes up to 24 MiB per second of stack copies. */
static uint32_t ring_bytes(void)
{
	unsigned nr_cpus = host_nr_cpus();
	return nr_cpus <= 4 ? 8u << 20 : nr_cpus <= 16 ? 16u << 20 : 64u << 20;
}

static void free_types(struct engine *e)
{
	btf__free(e->types);
	e->types = NULL;
}

/* libbpf reads the BTF when it loads the object, so the descriptor stays open until then. */
static struct assay_bpf *open_skeleton(const struct btf *kernel, int *ret_types_fd)
{
	size_t nr_bytes;
	const void *elf = assay_bpf__elf_bytes(&nr_bytes);
	char path[64];
	*ret_types_fd = coretypes_open(elf, nr_bytes, kernel);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *ret_types_fd);
	struct bpf_object_open_opts opts = {.sz = sizeof(opts),
					    .btf_custom_path = *ret_types_fd >= 0 ? path : NULL};
	return assay_bpf__open_opts(&opts);
}

int engine_open(struct engine **ret_e, const struct engine_spec *spec, struct err *err)
{
	TRY(host_bpf_rights(HOST_BTF_PATH, err));
	libbpf_set_print(print_debug);
	CLEANUP(engine_free_p) struct engine *e = xcalloc(1, sizeof(*e));
	e->target = spec->target;
	e->types_fd = -1;
	e->types = btf__load_vmlinux_btf();
	e->skel = open_skeleton(e->types, &e->types_fd);
	if (!e->skel)
		return err_sys(err, "cannot open the BPF programs");
	disable_excluded(e->skel->obj, spec);
	e->nr_rows = choose_rows(spec->target);
	e->memory_bytes = KTABLES_HEAD_BYTES + (size_t)e->nr_rows * sizeof(struct unwind_row);
	e->skel->rodata->row_mask = e->nr_rows - 1;
	e->skel->rodata->watch_system = spec->target->is_system;
	e->skel->rodata->own_tgid = (uint32_t)getpid();
	e->skel->rodata->watch_threads = spec->target->tids.pids.n != 0;
	*ret_e = TAKE(e);
	return 0;
}

/* ---- targets ------------------------------------------------------------------------------ */

static bool take_space(struct engine *e, uint32_t *ret_idx)
{
	return kerneltables_alloc_space(&e->tables, ret_idx) ||
	       !bpf_map_lookup_and_delete_elem(bpf_map__fd(e->skel->maps.free_spaces), NULL,
					       ret_idx);
}

/* @since_ns: from when on it is a target; 0: always. */
static int add_process(struct engine *e, int32_t pid, uint32_t flags, uint64_t since_ns,
		       struct err *err)
{
	struct kproc proc = {.flags = flags, .since_ns = since_ns};
	uint32_t key = (uint32_t)pid;
	if (!take_space(e, &proc.space_idx))
		return err_set(err, -ENOSPC, "too many processes");
	int rc = bpf_map_update_elem(bpf_map__fd(e->skel->maps.procs), &key, &proc, BPF_NOEXIST);
	if (rc) /* a thread needs a space only if its process has none yet */
		(void)bpf_map_update_elem(bpf_map__fd(e->skel->maps.free_spaces), NULL,
					  &proc.space_idx, BPF_ANY);
	if (rc && rc != -EEXIST)
		return err_set(err, rc, "cannot add process %d to the BPF targets: %s", pid,
			       strerror(-rc));
	return 0;
}

static int add_thread(struct engine *e, int32_t tid, struct err *err)
{
	int32_t pid;
	if (proc_tgid(tid, &pid, NULL))
		return 0; /* gone */
	int rc = add_process(e, pid, KPROC_THREADS, 0, err);
	uint32_t key = (uint32_t)tid;
	uint8_t yes = 1;
	if (!rc)
		rc = bpf_map_update_elem(bpf_map__fd(e->skel->maps.tids), &key, &yes, BPF_ANY);
	return rc ? err_set(err, rc, "cannot add thread %d to the BPF targets: %s", tid,
			    strerror(-rc))
		  : 0;
}

/* The BPF programs may know it already as one that woke a target, or whose fork they followed. */
int engine_add(struct engine *e, int32_t pid, struct err *err)
{
	int fd = bpf_map__fd(e->skel->maps.procs);
	uint32_t key = (uint32_t)pid;
	struct kproc proc;
	if (bpf_map_lookup_elem(fd, &key, &proc))
		return add_process(e, pid, KPROC_TARGET, clock_mono_ns(), err);
	if (proc.flags & KPROC_TARGET)
		return 0;
	proc.flags = KPROC_TARGET;
	proc.since_ns = clock_mono_ns();
	(void)bpf_map_update_elem(fd, &key, &proc, BPF_EXIST); /* else it has ended */
	return 0;
}

static int add_targets(struct engine *e, struct err *err)
{
	const struct target *t = e->target;
	TRY(t->child ? add_process(e, t->child, KPROC_AT_EXEC, 0, err) : 0);
	for (size_t i = 0; i < t->pids.pids.n; i++)
		TRY(add_process(e, t->pids.pids.p[i], KPROC_TARGET, 0, err));
	for (size_t i = 0; i < t->tids.pids.n; i++)
		TRY(add_thread(e, t->tids.pids.p[i], err));
	return 0;
}

static bool find_space(void *ctx, int32_t pid, uint32_t *ret_idx)
{
	struct engine *e = ctx;
	uint32_t key = (uint32_t)pid;
	struct kproc proc;
	int fd = bpf_map__fd(e->skel->maps.procs);
	if (bpf_map_lookup_elem(fd, &key, &proc))
		return false;
	*ret_idx = proc.space_idx;
	return true;
}

/* ---- loading ------------------------------------------------------------------------------ */

static int load_error(int rc, struct err *err)
{
	if (rc == -EPERM || rc == -EACCES) {
		err_set(err, -EPERM, "the kernel refuses to load BPF programs: %s", strerror(-rc));
		return err_hint(err, "is it locked down, or a container without CAP_BPF and "
				     "CAP_PERFMON? its words: assay --debug=bpf ...");
	}
	if (rc == -EMFILE || rc == -ENFILE) {
		(void)err_set(err, rc, "cannot load BPF programs: %s", strerror(-rc));
		(void)err_hint(err, "raise the limit of open files: ulimit -n 65536");
		return rc;
	}
	if (rc == -ENOMEM)
		return err_set(err, rc, "cannot load BPF programs: %s", strerror(-rc));
	err_set(err, -ENOTSUP, "this kernel cannot load the BPF programs: %s", strerror(-rc));
	return err_hint(err, "the verifier's log: assay --debug=bpf ...");
}

static int map_tables(struct engine *e, struct err *err)
{
	void *p = mmap(NULL, e->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(e->skel->maps.tables), 0);
	if (p == MAP_FAILED)
		return err_sys(err, "cannot map the BPF map of unwind tables");
	e->memory = p;
	kerneltables_init(&e->tables, &(struct kerneltables_spec){.head = p,
								  .nr_rows = e->nr_rows,
								  .find_space = find_space,
								  .ctx = e});
	e->has_tables = true;
	return 0;
}

/*
 * Whether the section name says what to attach to ("tp_btf/sched_switch"); else the source
 * attaches.
 */
static bool has_attach_target(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);
	return strchr(section, '/') && strncmp(section, "iter", 4) != 0;
}

/* Attaches the programs with this name prefix that are not attached yet. */
static int attach(struct engine *e, const char *prefix, struct err *err)
{
	const struct bpf_object_skeleton *s = e->skel->skeleton;
	for (int i = 0; i < s->prog_cnt; i++) {
		const struct bpf_prog_skeleton *ps =
			(const void *)((const char *)s->progs +
				       (size_t)i * (size_t)s->prog_skel_sz);
		struct bpf_program *prog = *ps->prog;
		if (!bpf_program__autoload(prog) || !has_attach_target(prog) ||
		    (ps->link && *ps->link) || strncmp(ps->name, prefix, strlen(prefix)))
			continue;
		struct bpf_link *link = bpf_program__attach(prog);
		if (!link)
			return err_sys(err, "cannot attach a BPF program to '%s'",
				       bpf_program__section_name(prog));
		*ps->link = link;
	}
	return 0;
}

int engine_load(struct engine *e, struct err *err)
{
	int rc = bpf_map__set_value_size(e->skel->maps.tables, (uint32_t)e->memory_bytes);
	rc = rc ? rc : bpf_map__set_max_entries(e->skel->maps.ring, ring_bytes());
	e->skel->rodata->ring_wake_bytes = ring_bytes() / 4;
	free_types(e);
	rc = rc ? rc : assay_bpf__load(e->skel);
	close_p(&e->types_fd);
	if (rc)
		return load_error(rc, err);
	TRY(recordqueue_open(&e->queue, bpf_map__fd(e->skel->maps.ring),
			     bpf_map__max_entries(e->skel->maps.ring), HELD_MAX, err));
	TRY(bpfring_open(&e->wakeups, bpf_map__fd(e->skel->maps.wakeups),
			 bpf_map__max_entries(e->skel->maps.wakeups), err));
	TRY(map_tables(e, err));
	TRY(add_targets(e, err));
	/* Forks and exits of targets are followed from now on; the caller adds those before. */
	TRY(attach(e, "target_", err));
	e->is_loaded = true;
	return 0;
}

static int try_lookup(void *ctx)
{
	const struct engine *e = ctx;
	const uint32_t no_pid = 0;
	struct kproc proc;
	return bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.procs), &no_pid, &proc);
}

bool engine_works_without_caps(struct engine *e)
{
	return host_without_caps(try_lookup, e) != -EPERM;
}

int engine_start(struct engine *e, struct err *err)
{
	return attach(e, "", err);
}

void engine_stop(struct engine *e)
{
	if (e->skel)
		assay_bpf__detach(e->skel);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	recordqueue_free(e->queue);
	bpfring_release(&e->wakeups);
	if (e->has_tables)
		kerneltables_release(&e->tables);
	if (e->memory)
		munmap(e->memory, e->memory_bytes);
	assay_bpf__destroy(e->skel);
	free_types(e);
	close_p(&e->types_fd);
	free(e);
}

void engine_free_p(struct engine **e)
{
	engine_free(*e);
}

int engine_sample_prog(const struct engine *e)
{
	return bpf_program__fd(e->skel->progs.cpu_sample);
}

const struct btf *engine_kernel_types(const struct engine *e)
{
	return e->types;
}

struct assay_bpf *engine_skel(const struct engine *e)
{
	return e->skel;
}

/* ---- mappings ----------------------------------------------------------------------------- */

void engine_publish(struct engine *e, int32_t pid, const struct space *sp)
{
	if (e->has_tables)
		kerneltables_changed(&e->tables, pid, sp);
}

void engine_applied(struct engine *e, uint64_t time_ns)
{
	recordqueue_publish(e->queue);
	if (e->has_tables)
		kerneltables_applied(&e->tables, time_ns, clock_mono_ns());
}

/* ---- records ------------------------------------------------------------------------------ */

void engine_on_record(struct engine *e, unsigned kind, engine_record_fn fn, void *ctx)
{
	ASSERT(kind < NR_KINDS);
	e->handlers[kind] = (struct handler){fn, ctx};
}

void engine_on_span(struct engine *e, engine_span_fn fn, void *ctx)
{
	e->on_span = fn;
	e->on_span_ctx = ctx;
}

void engine_add_span(struct engine *e, int32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	if (e->on_span)
		e->on_span(e->on_span_ctx, tid, from_ns, to_ns);
}

void engine_on_poll(struct engine *e, void (*fn)(void *ctx), void *ctx)
{
	if (e->queue)
		recordqueue_on_poll(e->queue, fn, ctx);
}

int engine_wakeups_fd(const struct engine *e)
{
	return e->wakeups.consumer ? e->wakeups.fd : -1;
}

bool engine_take_wakeups(struct engine *e)
{
	const void *record;
	uint32_t nr_bytes;
	bool is_woken = false;
	if (!e->wakeups.consumer)
		return false;
	__atomic_store_n(&e->skel->bss->ring_is_woken, 0, __ATOMIC_RELAXED);
	while (bpfring_peek(&e->wakeups, &record, &nr_bytes) == BPFRING_RECORD) {
		bpfring_consume(&e->wakeups);
		is_woken = true;
	}
	bpfring_publish(&e->wakeups);
	return is_woken;
}

void engine_rest(struct engine *e, bool is_resting)
{
	if (e->queue)
		recordqueue_rest(e->queue, is_resting);
}

uint64_t engine_peek_ns(void *ctx)
{
	struct engine *e = ctx;
	while (!e->record) {
		const void *p;
		uint32_t nr_bytes;
		switch (recordqueue_next(e->queue, &p, &nr_bytes, &e->nr_bad)) {
		case RECORDQUEUE_EMPTY:
			return UINT64_MAX;
		case RECORDQUEUE_BUSY:
			return 0;
		case RECORDQUEUE_RECORD:
			break;
		}
		if (kernelrecord_is_sane(p, nr_bytes))
			e->record = p;
		else
			e->nr_bad++;
	}
	return e->record->time_ns;
}

int engine_deliver(void *ctx, const struct event_sink *sink, struct err *err)
{
	struct engine *e = ctx;
	const struct kernel_record *r = TAKE(e->record);
	if (!r)
		return 0;
	struct kernelrecord_scratch scratch;
	struct event ev;
	int rc = 0;
	if (kernelrecord_decode(r, &scratch, &ev)) {
		if (r->kind == RECORD_COPY && e->has_tables)
			kerneltables_missed(&e->tables, r->tgid);
		rc = sink->event(sink->ctx, &ev, err);
	} else if (r->kind < NR_KINDS && e->handlers[r->kind].fn) {
		rc = e->handlers[r->kind].fn(e->handlers[r->kind].ctx, r, sink, err);
	}
	return rc;
}

/* ---- what it cost and lost ---------------------------------------------------------------- */

int engine_sum_percpu(int map_fd, uint32_t idx, uint64_t *ret_v, size_t nr)
{
	int nr_cpus = libbpf_num_possible_cpus();
	if (nr_cpus < 0)
		return nr_cpus;
	CLEANUP(free_p) uint64_t *all = xcalloc((size_t)nr_cpus * nr, sizeof(*all));
	TRY(bpf_map_lookup_elem(map_fd, &idx, all));
	for (size_t i = 0; i < nr; i++) {
		ret_v[i] = 0;
		for (size_t cpu = 0; cpu < (size_t)nr_cpus; cpu++)
			ret_v[i] += all[cpu * nr + i];
	}
	return 0;
}

static uint64_t sum_of(const struct bpf_map *map, uint32_t idx)
{
	uint64_t v = 0;
	return engine_sum_percpu(bpf_map__fd(map), idx, &v, 1) ? 0 : v;
}

int engine_emit_losses(struct engine *e, const struct event_sink *sink, struct err *err)
{
	uint64_t nr = sum_of(e->skel->maps.losses, KLOSS_SAMPLES);
	if (nr <= e->nr_losses_reported)
		return 0;
	struct event ev = {.kind = EVENT_LOST,
			   .time_ns = clock_mono_ns(),
			   .cpu = -1,
			   .lost = {.nr = nr - e->nr_losses_reported, .is_samples = true}};
	e->nr_losses_reported = nr;
	return sink->event(sink->ctx, &ev, err);
}

static void add_runs(const struct engine *e, struct engine_info *info)
{
	for (struct bpf_program *prog = NULL;
	     (prog = bpf_object__next_program(e->skel->obj, prog));) {
		struct bpf_prog_info pi = {0};
		uint32_t len = sizeof(pi);
		if (bpf_program__fd(prog) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(prog), &pi, &len))
			continue;
		info->run_ns += pi.run_time_ns;
		info->nr_runs += pi.run_cnt;
	}
	uint64_t nr_timed_runs = 0;
	for (uint32_t i = 0; i < COST_NR; i++) {
		uint64_t c[3]; /* struct kernel_cost: runs, timed, ns */
		if (engine_sum_percpu(bpf_map__fd(e->skel->maps.costs), i, c, ARRAY_LEN(c)))
			continue;
		nr_timed_runs += c[0];
		if (c[1])
			info->own_ns += (uint64_t)((double)c[2] / (double)c[1] * (double)c[0]);
	}
	info->nr_runs = MAX(info->nr_runs, nr_timed_runs);
}

static void add_counts(const struct engine *e, struct engine_info *info)
{
	struct kernel_counts c;
	if (engine_sum_percpu(bpf_map__fd(e->skel->maps.engine_counts), 0, (uint64_t *)&c,
			      sizeof(c) / sizeof(uint64_t)))
		return;
	info->nr_stacks = c.nr_stacks;
	info->nr_copies = c.nr_copies;
	info->nr_copies_over_limit = c.nr_copies_over_limit;
	info->nr_walks = c.nr_walks;
	info->nr_stack_cache_hits = c.nr_stack_cache_hits;
	info->nr_frames = c.nr_frames;
	info->nr_rule_misses = c.nr_rule_misses;
	info->nr_pythons = c.nr_pythons;
	info->nr_pythons_partly = c.nr_pythons_partly;
	log_debug(LOG_BPF, 1, "python: %" PRIu64 " frames in %" PRIu64 " stacks",
		  (uint64_t)c.nr_python_frames, (uint64_t)c.nr_pythons);
	for (size_t i = 0; i < WALK_END_NR; i++)
		log_debug(LOG_BPF, 2, "walks that ended by cause %zu: %" PRIu64, i,
			  (uint64_t)c.nr_ends[i]);
}

static uint64_t map_bytes(const struct engine *e)
{
	uint64_t nr_bytes = 0;
	for (struct bpf_map *m = NULL; (m = bpf_object__next_map(e->skel->obj, m));)
		if (bpf_map__autocreate(m)) /* the size of a ring is in bytes */
			nr_bytes +=
				(uint64_t)MAX(bpf_map__value_size(m), 1u) * bpf_map__max_entries(m);
	return nr_bytes;
}

struct engine_info engine_info(const struct engine *e)
{
	struct engine_info info = {.nr_bad = e->nr_bad};
	if (!e->is_loaded)
		return info;
	add_runs(e, &info);
	add_counts(e, &info);
	info.nr_ring_full = sum_of(e->skel->maps.losses, KLOSS_RING_FULL);
	info.nr_tables_full = e->tables.nr_full;
	info.nr_rows = e->tables.row_pool.nr_used;
	info.map_bytes = map_bytes(e);
	return info;
}
