/*
 * Reads the rows that the BPF programs added up, and sets their texts: file, device, operation.
 *
 *	map a ──┐ io_active_map says which one is written. They are swapped each second; the other one is
 *	map b ──┘ read and emptied 5 ms later or more, when no program can still be writing it
 *
 * A row's file is an id; its name is sent before, through the ring buffer (RECORD_FILE).
 */
#include "base/base.h"
#include "capture/bpf/deferclose.h"
#include "capture/io/io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/iocalls.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "capture/io/blockdev.h"
#include "capture/bpf/bpfring.h"
#include "capture/bpf/btfhas.h"
#include "capture/io/faults.h"
#include "capture/bpf/filename.h"
#include "capture/heap/growth.h"
#include "capture/heap/heapsource.h"
#include "capture/bpf/skeleton.h"
#include "capture/perf/synth.h"
#include "capture/bpf/syscallprobe.h"
#include "host/memory/pressure.h"
#include "host/proc.h"
#include "host/tracefs.h"
#include "kernel_io.h"
#include "model/tables.h"

#define SECOND_NS 1000000000ull
/* BPF programs that were running when the maps were swapped have ended this much later. */
#define SWAP_WAIT_NS (5 * 1000000ull)

struct io {
	table_set tables; /* wanted */
	struct assay_bpf *skel;
	struct bpf_links links;
	struct faults *faults;
	struct heapgrowth *growth;
	struct bpfring ring; /* of names */
	struct intern texts; /* names of files */
	struct map names;    /* file id -> text */
	struct map devices;  /* device -> text */
	struct map reported; /* tids whose name was delivered */
	uint64_t epoch_ns;
	uint64_t next_swap_ns;
	uint64_t swapped_ns; /* 0 = the other map has been read */
	uint64_t reach_ns;   /* rows of what ended before were delivered */
	struct io_key *keys;
	struct io_sum *sums;
	size_t nr_room;
	bool has_fault_pages; /* the size of each fault is known; else growth is one page per fault */
	int32_t pid;          /* whose memory cgroup and reads are measured, 0 = none */
	bool wants_pressure;
	bool has_heap;   /* the heap of other processes is recorded beside growth */
	char *no_calls;  /* why mapping calls are not recorded beside growth; NULL: they are */
	const char *why; /* growth is recorded instead of allocations; may be NULL */
	struct mempressure before;
	uint64_t nr_calls;    /* delivered */
	uint32_t nr_children; /* of the target, running and not recorded */
	bool is_32bit;        /* @pid */
	bool has_syncs_only;  /* reads, writes and minor faults are not recorded */
	bool has_reads;       /* of @pid alone */
	const struct target *target;
	struct proc_reads all_before; /* with has_syncs_only: of all processes of the target */
	struct proc_reads all;
	size_t nr_all;  /* at the start */
	size_t nr_left; /* at the end: those that ended are not in the sum */
	struct proc_reads reads_before;
	struct proc_reads reads; /* last values read: they are gone when the process exits */
};

static void store_name(struct io *s, const struct kernel_file *r)
{
	CLEANUP(buf_release) struct buf name = {0};
	filename_add(&name, r);
	*map_put(&s->names, r->id, NULL) = intern_add(&s->texts, buf_str(&name), name.n);
}

/* Stores the names in the ring: called before rows are read, since names are sent first. */
static void store_names(struct io *s)
{
	const void *record;
	uint32_t nr_bytes;
	enum bpfring_state state;
	const uint32_t nr_head = (uint32_t)offsetof(struct kernel_file, names);
	while ((state = bpfring_peek(&s->ring, &record, &nr_bytes)) == BPFRING_RECORD) {
		struct kernel_file r;
		bool is_whole = nr_bytes >= nr_head;
		if (is_whole) {
			memcpy(&r, record, MIN((size_t)nr_bytes, sizeof(r)));
			r.nr_names = (uint16_t)MIN((uint32_t)r.nr_names, nr_bytes - nr_head);
		}
		if (is_whole && r.head.kind == RECORD_FILE)
			store_name(s, &r);
		bpfring_consume(&s->ring);
	}
	bpfring_publish(&s->ring);
}

/* ---- open, load, start ---- */

static void disable_unless(struct bpf_program *p, bool is_wanted)
{
	if (!is_wanted)
		(void)bpf_program__set_autoload(p, false);
}

static unsigned growth_flags(const struct io *s)
{
	unsigned flags = s->tables & TABLE_SET(GROWTH) ? HEAPGROWTH_FAULTS : 0;
	bool has_heap = s->tables & TABLE_SET(ALLOCATED);
	return flags && !has_heap ? flags | HEAPGROWTH_CALLS : flags;
}

static enum faults_which faults_of(const struct io *s)
{
	if (!(s->tables & TABLE_SET(FAULTS)))
		return FAULTS_NONE;
	return s->has_syncs_only ? FAULTS_MAJOR : FAULTS_ALL;
}

static void choose_programs(struct io *s, const struct btf *types)
{
	bool has_calls = s->tables & TABLE_SET(IO);
	bool has_reclaim = s->tables & TABLE_SET(RECLAIM);
	disable_unless(s->skel->progs.io_enter, has_calls);
	disable_unless(s->skel->progs.io_exit, has_calls);
	disable_unless(s->skel->progs.io_reclaim_begin, has_reclaim);
	disable_unless(s->skel->progs.io_reclaim_direct_end, has_reclaim);
	disable_unless(s->skel->progs.io_reclaim_memcg_end, has_reclaim);
	disable_unless(s->skel->progs.io_reclaim_node_end, has_reclaim);
	disable_unless(s->skel->progs.io_reclaim_kswapd, has_reclaim);
	bool has_uring = has_calls && !s->has_syncs_only &&
			 btf_has_tracepoint_with_args(types, "io_uring_submit_req", 1) &&
			 btf_has_tracepoint_with_args(types, "io_uring_complete", 3);
	disable_unless(s->skel->progs.io_uring_begin, has_uring);
	disable_unless(s->skel->progs.io_uring_end, has_uring);
	bool has_block = s->tables & TABLE_SET(BLOCK);
	static const char *const starts[] = {"block_io_start", NULL};
	disable_unless(s->skel->progs.io_block_start,
		       has_block && btf_has_tracepoints(types, starts));
	disable_unless(s->skel->progs.io_block_issue, has_block);
	disable_unless(s->skel->progs.io_block_complete, has_block);
	faults_choose(s->skel, types, faults_of(s));
	s->has_fault_pages = heapgrowth_choose(s->skel, types, growth_flags(s));
}

/* The calls of table "mapped" are recorded beside growth; else by the heap's source. */
static bool io_is_wanted(const struct source_env *env)
{
	return env->tables & ~TABLE_SET(MAPPED) & io_source.fills;
}

static int io_open(void **ret_s, const struct source_env *env, struct err *err UNUSED)
{
	struct io *s = xcalloc(1, sizeof(*s));
	const struct target *t = env->target;
	s->tables = env->tables;
	s->has_syncs_only = env->has_syncs_only;
	s->target = t;
	s->skel = engine_skel(env->engine);
	s->pid = t->pids.pids.n ? t->pids.pids.p[0] : t->child;
	s->nr_children = t->nr_children;
	s->wants_pressure = s->tables & TABLE_SET(RECLAIM) && !env->has_hooks;
	s->has_heap = env->tables & TABLE_SET(LIVE);
	s->why = env->heap ? env->heap->why : NULL;
	choose_programs(s, engine_kernel_types(env->engine));
	*ret_s = s;
	return 0;
}

static int attach_call(struct io *s, int tracefs_fd, const struct iocall *c, uint32_t nr,
		       struct err *err)
{
	struct io_call v = {.what = c->what, .fd_arg = c->fd_arg};
	TRY(syscallprobe_attach(&s->links, tracefs_fd, s->skel->progs.io_exit, SYSCALLPROBE_EXIT,
				c->name, 0, err));
	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.io_calls), &nr, &v, BPF_ANY))
		return err_sys(err, "cannot trace system call '%s'", c->name);
	return syscallprobe_attach(&s->links, tracefs_fd, s->skel->progs.io_enter,
				   SYSCALLPROBE_ENTER, c->name, 0, err);
}

static int attach_calls(struct io *s, struct err *err)
{
	CLEANUP(close_p) int tracefs_fd = -1;
	const struct iocall *c;
	size_t nr_attached = 0;
	TRY(tracefs_open(&tracefs_fd, err));
	for (size_t i = 0; (c = iocall_at(i)); i++) {
		bool is_wanted = !s->has_syncs_only || c->what == IO_FSYNC;
		if (c->syscall < 0 || c->syscall >= IO_CALLS_MAX || !is_wanted)
			continue;
		int rc = attach_call(s, tracefs_fd, c, (uint32_t)c->syscall, err);
		if (rc && rc != -ENOENT) /* the kernel may be built without this call */
			return rc;
		nr_attached += !rc;
	}
	err_release(err);
	return nr_attached ? 0
			   : err_set(err, -ENOTSUP,
				     "this kernel has no tracepoints of system "
				     "calls (CONFIG_FTRACE_SYSCALLS)");
}

/* Attaches to those of the tracepoints that the kernel has. */
static void attach_reclaim(struct io *s)
{
	static const char *const names[] = {"mm_vmscan_direct_reclaim_begin",
					    "mm_vmscan_memcg_reclaim_begin",
					    "mm_vmscan_node_reclaim_begin"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct bpf_link *link = bpf_program__attach_raw_tracepoint(
			s->skel->progs.io_reclaim_begin, names[i]);
		if (link)
			vec_push(&s->links.list, link);
	}
}

static int attach_growth(struct io *s, struct err *err)
{
	TRY(heapgrowth_attach(&s->growth, s->skel, growth_flags(s), err));
	const char *no_calls = heapgrowth_no_calls(s->growth);
	s->no_calls = no_calls ? xstrdup(no_calls) : NULL;
	return 0;
}

static int io_load(void *self, struct err *err)
{
	struct io *s = self;
	TRY(bpfring_open(&s->ring, bpf_map__fd(s->skel->maps.io_names),
			 bpf_map__max_entries(s->skel->maps.io_names), err));
	s->nr_room = bpf_map__max_entries(s->skel->maps.io_rows_a);
	s->keys = xcalloc(s->nr_room, sizeof(*s->keys));
	s->sums = xcalloc(s->nr_room, sizeof(*s->sums));
	if (faults_of(s))
		TRY(faults_attach(&s->faults, s->skel, faults_of(s), err));
	TRY(s->tables & TABLE_SET(GROWTH) ? attach_growth(s, err) : 0);
	if (s->tables & TABLE_SET(RECLAIM))
		attach_reclaim(s);
	return s->tables & TABLE_SET(IO) ? attach_calls(s, err) : 0;
}

/* Sums of the processes that the target had at the start. Returns how many can be read. */
static size_t sum_reads(const struct io *s, struct proc_reads *ret_sum)
{
	const struct target *t = s->target;
	size_t nr = 0;
	struct proc_reads one;
	*ret_sum = (struct proc_reads){0};
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		if (proc_reads(t->pids.pids.p[i], &one, NULL))
			continue;
		ret_sum->call_bytes += one.call_bytes;
		ret_sum->written_bytes += one.written_bytes;
		ret_sum->nr_calls += one.nr_calls;
		ret_sum->nr_minor += one.nr_minor;
		nr++;
	}
	return nr;
}

static int io_start(void *self, const struct source_env *env, const struct event_sink *sink UNUSED,
		    struct err *err UNUSED)
{
	struct io *s = self;
	if (s->wants_pressure)
		mempressure_read(&s->before, s->pid, NULL);
	bool wants_reads = s->wants_pressure || s->tables & TABLE_SET(IO);
	if (s->has_syncs_only)
		s->nr_all = sum_reads(s, &s->all_before);
	s->has_reads = wants_reads && s->pid && !proc_reads(s->pid, &s->reads_before, NULL);
	s->is_32bit = s->tables & TABLE_SET(IO) && s->pid && proc_is_32bit(s->pid);
	s->reads = s->reads_before;
	s->epoch_ns = env->start_ns;
	s->next_swap_ns = env->start_ns + SOURCE_ROWS_NS + 10000000;
	s->skel->bss->io_epoch_ns = env->start_ns;
	return 0;
}

/* ---- rows ---- */

static const char *object_text(const struct io *s, uint64_t object)
{
	switch (object) {
	case IO_OBJECT_NONE:
		return NULL;
	case IO_OBJECT_HEAP:
		return "[heap]";
	case IO_OBJECT_STACK:
		return "[stack]";
	case IO_OBJECT_ANON:
		return "[anon]";
	case IO_OBJECT_UNKNOWN:
		return "[unknown]";
	case IO_OBJECT_WRITEBACK:
		return "[writeback]";
	case IO_OBJECT_METADATA:
		return "[metadata]";
	case IO_OBJECT_BAD_FD:
		return "[bad descriptor]";
	case IO_OBJECT_VDSO:
		return "[vdso]";
	}
	uint32_t *text = map_get(&s->names, object);
	return text ? intern_str(&s->texts, *text) : "[file without a name]";
}

static const char *detail_text(uint8_t what)
{
	bool has_failed = what & IO_FAILED;
	switch ((enum io_what)(what & ~IO_FAILED)) {
	case IO_READ:
		return has_failed ? "read failed" : "read";
	case IO_WRITE:
		return has_failed ? "write failed" : "write";
	case IO_COPY:
		return has_failed ? "copy failed" : "copy";
	case IO_FSYNC:
		return has_failed ? "fsync failed" : "fsync";
	case IO_BATCH:
		return has_failed ? "batch failed" : "batch";
	case IO_FLUSH:
		return has_failed ? "flush failed" : "flush";
	case IO_DISCARD:
		return has_failed ? "discard failed" : "discard";
	case IO_OTHER:
		return has_failed ? "other failed" : "other";
	case IO_MAJOR:
		return "major";
	case IO_MINOR:
		return "minor";
	case IO_DIRECT:
		return "direct";
	case IO_MEMCG:
		return "memcg";
	case IO_NODE:
		return "node";
	case IO_KSWAPD:
		return "kswapd";
	case IO_MMAP:
		return "mmap";
	case IO_MMAP_FILE:
		return "mmap of a file";
	case IO_MUNMAP:
		return "munmap";
	case IO_MREMAP:
		return "mremap";
	case IO_BRK:
		return "brk";
	case IO_NONE:
	case IO_FAILED:
		break;
	}
	return NULL;
}

static const char *device_text(struct io *s, uint32_t dev)
{
	bool is_new;
	uint32_t *at = map_put(&s->devices, dev, &is_new);
	if (is_new) {
		CLEANUP(buf_release) struct buf name = {0};
		blockdev_name(&name, dev);
		*at = intern_add(&s->texts, buf_str(&name), name.n);
	}
	return intern_str(&s->texts, *at);
}

/* Delivers the name of a thread outside the target (kernel threads too) that issued a request. */
static int emit_thread(struct io *s, const struct io_key *k, uint64_t time_ns,
		       const struct event_sink *sink, struct err *err)
{
	bool is_new;
	(void)map_put(&s->reported, (uint32_t)k->pid, &is_new);
	return is_new ? synth_name(k->tgid, k->pid, time_ns, sink, err) : 0;
}

static int deliver_row(struct io *s, const struct io_key *k, const struct io_sum *v,
		       const struct event_sink *sink, struct err *err)
{
	uint64_t time_ns = s->epoch_ns + k->second_idx * SECOND_NS;
	int64_t sums[4] = {(int64_t)v->nr, (int64_t)v->bytes, (int64_t)v->ns,
			   (int64_t)v->longest_ns};
	int64_t no_bytes[3] = {sums[0], sums[2], sums[3]};
	int64_t pages[4] = {sums[0], sums[2], sums[1], sums[3]};
	s->nr_calls += k->table == IO_TABLE_CALLS;
	struct event ev = event_aggregate(TABLE_IO, k->tgid, k->pid, time_ns, sums);
	ev.aggregate.user_ref = k->stack;
	ev.aggregate.log2_ns = k->log2_ns;
	ev.aggregate.syscall = k->syscall;
	ev.aggregate.detail = detail_text(k->what);
	CLEANUP(buf_release) struct buf object = {0};
	const char *name = object_text(s, k->object);
	if (k->table == IO_TABLE_BLOCK) {
		TRY(emit_thread(s, k, time_ns, sink, err));
		buf_add_str(&object, device_text(s, k->dev));
		if (name)
			buf_addf(&object, ": %s", name);
		name = buf_str(&object);
	}
	ev.aggregate.object = name;
	switch ((enum io_table)k->table) {
	case IO_TABLE_CALLS:
		break;
	case IO_TABLE_BLOCK:
		ev.aggregate.spec = TABLE_BLOCK;
		break;
	case IO_TABLE_FAULTS:
		ev.aggregate.spec = TABLE_FAULTS;
		ev.aggregate.values = no_bytes;
		break;
	case IO_TABLE_RECLAIM:
		ev.aggregate.spec = TABLE_RECLAIM;
		ev.aggregate.values = pages;
		break;
	case IO_TABLE_GROWTH:
		ev.aggregate.spec = TABLE_GROWTH;
		break;
	case IO_TABLE_MAPPED:
		ev.aggregate.spec = TABLE_MAPPED;
		break;
	}
	return sink->event(sink->ctx, &ev, err);
}

static int drain_map(struct io *s, const struct bpf_map *map, const struct event_sink *sink,
		     struct err *err)
{
	uint32_t cursor = 0;
	uint32_t n = (uint32_t)s->nr_room;
	store_names(s);
	int rc = bpf_map_lookup_and_delete_batch(bpf_map__fd(map), NULL, &cursor, s->keys, s->sums,
						 &n, NULL);
	if (rc && errno != ENOENT)
		return err_sys(err, "cannot read BPF map of I/O");
	for (uint32_t i = 0; i < n; i++)
		TRY(deliver_row(s, &s->keys[i], &s->sums[i], sink, err));
	return 0;
}

static int drain_page(struct io *s, unsigned page, const struct event_sink *sink, struct err *err)
{
	TRY(drain_map(s, page ? s->skel->maps.io_rows_b : s->skel->maps.io_rows_a, sink, err));
	return drain_map(s, page ? s->skel->maps.io_overflow_b : s->skel->maps.io_overflow_a, sink,
			 err);
}

static int io_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct io *s = self;
	uint64_t now = clock_mono_ns();
	if (s->has_reads && !s->skel->bss->io_stop_ns) /* of the time that the rows are of */
		(void)proc_reads(s->pid, &s->reads, NULL);
	store_names(s);
	if (s->swapped_ns && now >= s->swapped_ns + SWAP_WAIT_NS) {
		s->reach_ns = s->swapped_ns;
		s->swapped_ns = 0;
		return drain_page(s, !s->skel->bss->io_active_map, sink, err);
	}
	if (s->epoch_ns && !s->swapped_ns && now >= s->next_swap_ns) {
		s->skel->bss->io_active_map ^= 1;
		s->swapped_ns = now;
		s->next_swap_ns += SOURCE_ROWS_NS;
		if (s->next_swap_ns < now)
			s->next_swap_ns = now + SOURCE_ROWS_NS;
	}
	return 0;
}

static void detach(struct io *s)
{
	/* 0: programs that are not detached yet do nothing */
	s->skel->bss->io_epoch_ns = 0;
	bpf_links_detach(&s->links); /* a link holds its perf event */
	faults_free(TAKE(s->faults));
	heapgrowth_free(TAKE(s->growth));
}

static int io_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct io *s = self;
	if (!s->epoch_ns)
		return 0;
	s->skel->bss->io_stop_ns = clock_mono_ns();
	if (s->has_reads)
		(void)proc_reads(s->pid, &s->reads, NULL);
	if (s->nr_all > 1)
		s->nr_left = sum_reads(s, &s->all);
	detach(s);
	TRY(drain_page(s, 0, sink, err));
	return drain_page(s, 1, sink, err);
}

/* ---- facts ---- */

/*
 * "4.58 GiB from disk, 7.43 MiB for each of 631 major faults by the kernel's own count": that count includes
 * faults without registers (get_user_pages), for which the kernel makes no event (mm_account_fault).
 */
static void add_reads_fact(struct profile *p, const struct io *s)
{
	uint64_t disk_bytes = s->reads.disk_bytes - s->reads_before.disk_bytes;
	uint64_t call_bytes = s->reads.call_bytes - s->reads_before.call_bytes;
	uint64_t nr_major = s->reads.nr_major - s->reads_before.nr_major;
	if (!disk_bytes && !nr_major)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%s from disk, ", num_bytes(disk_bytes).s);
	/* If calls read much too, the bytes read by faults are not known. */
	if (nr_major && call_bytes < disk_bytes / 10)
		buf_addf(&b, "%s for each of ", num_bytes(disk_bytes / nr_major).s);
	buf_addf(&b, "%s by the kernel's own count", num_noun(nr_major, "major faults").s);
	if (nr_major)
		buf_add_str(&b, ", which includes those of kernel code on its pages");
	profile_fact(p, FACT_DISK_READS, buf_str(&b));
}

/* Why there are no calls, by what the kernel counts itself. */
static void add_nothing_fact(struct profile *p, const struct io *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint64_t nr_calls = s->reads.nr_calls - s->reads_before.nr_calls;
	uint64_t dirtied = s->reads.dirtied_bytes - s->reads_before.dirtied_bytes;
	if (!s->has_reads)
		buf_add_str(&b, "the kernel's own counts cannot be read");
	else if (!nr_calls)
		buf_addf(&b, "the kernel itself counts no read or write call of process %d",
			 s->pid);
	else
		buf_addf(&b, "the kernel counts %s of process %d%s",
			 num_noun(nr_calls, "read or write calls").s, s->pid,
			 s->is_32bit ? ", a 32-bit program, whose calls its tracepoints leave out"
				     : ", but its tracepoints reported none");
	if (s->has_reads && !nr_calls && dirtied)
		buf_addf(&b,
			 "; %s were written to files that are mapped into memory, without "
			 "calls: see assay faults",
			 num_bytes(dirtied).s);
	if (s->nr_children)
		buf_addf(&b, "; %s that ran before the capture %s not recorded: --children",
			 num_noun(s->nr_children, "child processes").s,
			 s->nr_children == 1 ? "is" : "are");
	profile_fact(p, FACT_IO_NOTHING, buf_str(&b));
}

static void add_syncs_only_fact(struct profile *p, const struct io *s)
{
	const struct proc_reads *was = s->nr_all > 1 ? &s->all_before : &s->reads_before;
	const struct proc_reads *now = s->nr_all > 1 ? &s->all : &s->reads;
	CLEANUP(buf_release) struct buf whose = {0};
	bool is_known = s->nr_all > 1 ? s->nr_left == s->nr_all : s->has_reads;
	if (!is_known) {
		profile_fact(p, FACT_IO_SYNCS_ONLY, "not recorded one by one (--io)");
		return;
	}
	if (s->nr_all > 1)
		buf_addf(&whose, "the %zu processes", s->nr_all);
	else
		buf_addf(&whose, "process %d", s->pid);
	profile_factf(p, FACT_IO_SYNCS_ONLY,
		      "not recorded one by one (--io); the kernel counts %s of %s: %s read, "
		      "%s written (also sockets, but not their recv and send), and %s",
		      num_noun(now->nr_calls - was->nr_calls, "calls").s, buf_str(&whose),
		      num_bytes(now->call_bytes - was->call_bytes).s,
		      num_bytes(now->written_bytes - was->written_bytes).s,
		      num_noun(now->nr_minor - was->nr_minor, "minor page faults").s);
}

static void add_pressure_facts(struct profile *p, const struct io *s)
{
	CLEANUP(mempressure_release) struct mempressure after = {0};
	CLEANUP(buf_release) struct buf machine = {0};
	CLEANUP(buf_release) struct buf group = {0};
	mempressure_read(&after, 0, &s->before);
	mempressure_add_machine(&machine, &s->before, &after);
	mempressure_add_group(&group, &s->before, &after);
	if (machine.n)
		profile_fact(p, FACT_MEMORY_PRESSURE, buf_str(&machine));
	if (group.n)
		profile_fact(p, FACT_MEMORY_CGROUP, buf_str(&group));
}

static void add_growth_facts(struct profile *p, const struct io *s)
{
	if (!s->has_heap)
		profile_factf(p, FACT_HEAP_METHOD, "growth%s%s", s->why ? ": " : "",
			      s->why ? s->why : "");
	profile_factf(p, FACT_GROWTH, "%s%s%s",
		      s->has_fault_pages ? "exact: size of each page fault"
					 : "one page per fault: huge pages count as small ones",
		      s->no_calls ? "; mmap, munmap, mremap and brk calls are not recorded: " : "",
		      s->no_calls ? s->no_calls : "");
}

static void io_early_facts(const void *self, struct profile *p)
{
	const struct io *s = self;
	if (s->tables & TABLE_SET(GROWTH))
		add_growth_facts(p, s);
}

static void io_facts(const void *self, struct profile *p)
{
	const struct io *s = self;
	const struct io_counts *c = (const void *)&s->skel->bss->io_counts;
	profile_fact_nr(p, FACT_IO_CALLS_AT_START, c->nr_no_start);
	profile_lose(p, LOSS_IO_NO_ROW, c->nr_rows_full);
	profile_lose(p, LOSS_IO_UNCOUNTED, c->nr_lost);
	profile_lose(p, LOSS_IO_NO_NAME, c->nr_files_lost);
	profile_lose(p, LOSS_FAULTS_NO_MAP, c->nr_busy_maps);
	profile_lose(p, LOSS_BLOCK_NO_ISSUE, c->nr_no_issue);
	profile_lose(p, LOSS_BLOCK_UNTRACKED, c->nr_requests_full);
	profile_fact_nr(p, FACT_BLOCK_IN_FLIGHT, (uint64_t)MAX(c->max_inflight, 0));
	io_early_facts(self, p);
	if (s->wants_pressure)
		add_pressure_facts(p, s);
	if (s->has_reads && s->wants_pressure)
		add_reads_fact(p, s);
	if (s->has_syncs_only)
		add_syncs_only_fact(p, s);
	else if (s->tables & TABLE_SET(IO) && !s->nr_calls)
		add_nothing_fact(p, s);
}

static uint64_t io_reach_ns(const void *self)
{
	return ((const struct io *)self)->reach_ns;
}

static void io_free(void *self)
{
	struct io *s = self;
	detach(s);
	mempressure_release(&s->before);
	if (s->ring.data)
		bpfring_release(&s->ring);
	intern_release(&s->texts);
	map_release(&s->names);
	map_release(&s->devices);
	map_release(&s->reported);
	free_p(&s->keys);
	free_p(&s->sums);
	free_p(&s->no_calls);
	free_p(&s);
}

const struct source io_source = {
	.name = "io",
	.fills = TABLE_SET(IO) | TABLE_SET(BLOCK) | TABLE_SET(FAULTS) | TABLE_SET(RECLAIM) |
		 TABLE_SET(GROWTH) | TABLE_SET(MAPPED),
	.is_wanted = io_is_wanted,
	.bpf_prefix = "io_",
	.poll_ms = 100,
	.open = io_open,
	.load = io_load,
	.start = io_start,
	.drain = io_drain,
	.stop = io_stop,
	.facts = io_facts,
	.early_facts = io_early_facts,
	.reach_ns = io_reach_ns,
	.free = io_free,
};
