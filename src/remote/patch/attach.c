/*
 * Puts the recorder into a process; see attach.h.
 *
 * Everything slow is done before a thread is stopped: reading the mappings, finding what an earlier
 * attach left, analyzing functions, choosing addresses, making stubs. Then, in a session on one
 * thread:
 *
 * stubs    memfd_create, mmap: two single steps (none if regions of an earlier attach suffice)
 * batch    memfd_create of the other files; assay sizes, fills and seals them
 * batch    mmap of all, madvise, close
 * batch    stores into code
 */
#include "base/base.h"
#include "remote/patch/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "remote/patch/image.h"
#include "remote/patch/injectstate.h"
#include "remote/patch/leftover.h"
#include "remote/patch/patchtext.h"
#include "remote/jemalloc/hooks.h"
#include "remote/patch/nothrow.h"
#include "host/proc.h"

#define FIXED_NOREPLACE       0x100000u
#define ANON                  (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define SLOTS_MIN             64u
#define RING_FULL_TRACE_BYTES (1u << 20)
#define RING_SAMPLED_BYTES    (1u << 17)
#define RINGS_MAX_BYTES       (4ull << 30) /* address space, not memory: see HEAP_LARGE_RINGS */
#define STACKS_NR             (1u << 19)   /* also of Python frames and code objects */
#define BLOCKS_NR             (1u << 16)
#define RULE_BYTES            16u
#define ASSAY_TIMEOUT_NS      (2 * NS_PER_SEC)
#define RING_WAIT_NS          (2 * NS_PER_MS)
#define HWCAP2_FSGSBASE_      (1u << 1)

static uint64_t pages(uint64_t n)
{
	return (n + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

/* Ticks per microsecond, precise enough for timeouts. Measured once, for a fifth of a millisecond. */
static uint64_t tsc_per_us(void)
{
	static _Atomic uint64_t measured;
	if (measured)
		return measured;
	struct clock_moment start = clock_moment_now();
	while (clock_mono_ns() < start.ns + 200000)
		;
	struct clock_moment end = clock_moment_now();
	measured = MAX((end.ticks - start.ticks) * 1000 / (end.ns - start.ns), 1);
	return measured;
}

/* ---- sizes and addresses --------------------------------------------------------------------- */

static uint32_t power_of_two(uint64_t n)
{
	uint32_t p = 1;
	while (p < n && p < 1u << 31)
		p *= 2;
	return p;
}

/* Offsets in local memory: struct, thread states, pythons, stacks, blocks, rules, area for sessions. */
static uint64_t pythons_at(const struct heap_layout *p)
{
	return pages(sizeof(struct heap_local)) + (uint64_t)p->nr_slots * HEAP_THREAD_STATE_BYTES;
}

static uint64_t stacks_at(const struct heap_layout *p)
{
	return pythons_at(p) + (uint64_t)p->nr_slots * HEAP_PYTHON_STATE_BYTES;
}

static uint64_t blocks_at(const struct heap_layout *p)
{
	return stacks_at(p) + STACKS_NR * sizeof(uint64_t);
}

static uint64_t rules_at(const struct heap_layout *p)
{
	return blocks_at(p) + pages(HEAP_BLOCKS_BYTES(BLOCKS_NR));
}

static void choose_sizes(struct heapinject *h)
{
	const struct heapinject_spec *s = h->spec;
	struct heap_layout *p = &h->layout;
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	(void)proc_threads(&tids, h->pid, NULL);
	p->nr_slots = s->nr_slots ? s->nr_slots : MAX(power_of_two(tids.pids.n * 2), SLOTS_MIN);
	p->nr_slots = MIN(p->nr_slots, HEAP_SLOTS_MAX);
	/* Not fewer than before: thread counts vary, and the old mappings could not be reused. */
	if (!s->ring_bytes && h->old.nr_slots > p->nr_slots && h->old.nr_slots <= HEAP_SLOTS_MAX)
		p->nr_slots = h->old.nr_slots;
	p->ring_bytes = s->ring_bytes                        ? s->ring_bytes
			: s->is_full_trace || s->starts_full ? RING_FULL_TRACE_BYTES
							     : RING_SAMPLED_BYTES;
	while (!s->ring_bytes && (uint64_t)p->ring_bytes * p->nr_slots > RINGS_MAX_BYTES)
		p->ring_bytes /= 2;
	h->slots_off = sizeof(struct heap_shared);
	h->rings_off = pages(h->slots_off + p->nr_slots * sizeof(struct heap_slot));
	h->nr_rows = KTABLES_ROWS_DEFAULT;
	p->shared_bytes = h->rings_off + (uint64_t)p->nr_slots * p->ring_bytes;
	p->tables_bytes = KTABLES_HEAD_BYTES + (uint64_t)h->nr_rows * sizeof(struct unwind_row);
	p->tables_bytes = pages(p->tables_bytes);
	p->local_bytes = rules_at(p) + pages(HEAP_RULES_DEFAULT * RULE_BYTES) + REMOTE_AREA_BYTES;
}

/* Reuses the old address if the size is the same, so repeated attaches do not leak mappings. */
static int choose_addr(struct heapinject *h, uint64_t *at, uint64_t nr_bytes, uint64_t old,
		       uint64_t old_bytes, struct err *err)
{
	const struct heapspace_map *m = old ? heapspace_at(&h->space, old) : NULL;
	if (m && old_bytes == nr_bytes && m->end >= old + nr_bytes &&
	    (!m->inode || m->kind != HEAPSPACE_OTHER)) {
		*at = old;
		return 0;
	}
	*at = heapspace_find_free(&h->space, nr_bytes + 2 * PAGE_BYTES);
	if (!*at)
		return err_set(err, -ENOMEM, "no address space left in pid %d", h->pid);
	*at += PAGE_BYTES;
	heapspace_reserve(&h->space, *at, nr_bytes);
	return 0;
}

static int choose_layout(struct heapinject *h, struct err *err)
{
	const struct heap_image *im = heap_image();
	struct heap_layout *p = &h->layout;
	const struct heap_layout *o = &h->old;
	/* A preempted thread may still use the old values (wire/heap_wire.h). */
	bool is_same = p->nr_slots == o->nr_slots && p->ring_bytes == o->ring_bytes &&
		       p->shared_bytes == o->shared_bytes && p->tables_bytes == o->tables_bytes;
	h->is_image_new = !h->image;
	uint64_t image_bytes = im->data_start + im->data_bytes;
	TRY(h->image ? 0 : choose_addr(h, &h->image, image_bytes, 0, 0, err));
	TRY(choose_addr(h, &p->local, p->local_bytes, is_same ? o->local : 0, o->local_bytes, err));
	TRY(choose_addr(h, &p->shared, p->shared_bytes, o->shared, o->shared_bytes, err));
	TRY(choose_addr(h, &p->tables, p->tables_bytes, o->tables, o->tables_bytes, err));
	h->is_local_new = p->local != o->local;
	return 0;
}

/* ---- the attach ------------------------------------------------------------------------------ */

/*
 * The target has the file open as well: check its size after sealing, as access beyond the end of a
 * mapped file raises SIGBUS.
 */
static int check_size(int fd, uint64_t nr_bytes, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(err, "cannot prepare shared memory");
	if ((uint64_t)st.st_size != nr_bytes)
		return err_set(err, -EPROTO, "the target has changed the size of shared memory");
	return 0;
}

static int size_fd(int fd, uint64_t nr_bytes, unsigned seals, struct err *err)
{
	if (ftruncate(fd, (off_t)nr_bytes) || fcntl(fd, F_ADD_SEALS, seals))
		return err_sys(err, "cannot prepare shared memory");
	return check_size(fd, nr_bytes, err);
}

static int memfd_refused(struct heapinject *h, int64_t code, struct err *err)
{
	err_set(err, (int)code, "cannot make shared memory in pid %d: memfd_create: %s", h->pid,
		strerror((int)-code));
	if (code == -EACCES)
		err_hint(err, "sysctl vm.memfd_noexec=2 forbids it for this namespace");
	return (int)code;
}

/* Closes a descriptor in the target. */
static void close_remote(struct remote *r, int64_t fd)
{
	int64_t closed;
	if (fd >= 0)
		(void)remote_syscall(r, SYS_close, (uint64_t[REMOTE_ARGS_MAX]){(uint64_t)fd},
				     &closed, NULL);
}

/* Writes a name for memfd_create to scratch memory. */
static int write_name(struct remote *r, const char *name, uint64_t *ret_at, struct err *err)
{
	TRY(remote_scratch(r, strlen(name) + 1, ret_at, err));
	return remote_write(r, *ret_at, name, strlen(name) + 1, err);
}

/* Writes all new regions to one file and seals it, before it is mapped. */
static int fill_stubs(struct heapinject *h, int fd, const struct buf *code, struct err *err)
{
	uint64_t off = 0;
	size_t at = 0;
	vec_foreach(g, &h->regions) {
		struct stub_head head = {.magic = STUB_MAGIC,
					 .version = STUB_VERSION,
					 .nr_stubs = g->nr_stubs,
					 .pid = h->pid};
		if (g->is_new) {
			uint64_t code_at = off + (stub_region_batch(g) - g->addr);
			TRY(file_pwrite_all(fd, &head, sizeof(head), off, err));
			TRY(file_pwrite_all(fd, code->p + at, stub_region_code_bytes(g), code_at,
					    err));
			off += stub_region_bytes(g->nr_stubs);
		}
		at += stub_region_code_bytes(g);
	}
	if (ftruncate(fd, (off_t)off) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return err_sys(err, "cannot prepare shared memory");
	return 0;
}

static int map_regions(struct heapinject *h, struct remote *r, int64_t theirs,
		       const struct buf *code, struct err *err)
{
	CLEANUP(close_p) int fd = -1;
	uint64_t off = 0;
	TRY(remote_get_fd(r, (int)theirs, &fd, err));
	TRY(fill_stubs(h, fd, code, err));
	vec_foreach(g, &h->regions) {
		if (!g->is_new)
			continue;
		int64_t got = 0;
		uint64_t n = stub_region_bytes(g->nr_stubs);
		const uint64_t args[REMOTE_ARGS_MAX] = {
			g->addr,          n,  PROT_READ | PROT_EXEC, MAP_PRIVATE | FIXED_NOREPLACE,
			(uint64_t)theirs, off};
		TRY(remote_syscall(r, SYS_mmap, args, &got, err));
		if (got != (int64_t)g->addr)
			return err_set(err, got < 0 ? (int)got : -EEXIST,
				       "cannot map the recorder's stubs in pid %d at 0x%" PRIx64
				       ": %" PRId64,
				       h->pid, g->addr, got);
		off += n;
		h->batch = stub_region_batch(g);
	}
	return 0;
}

int heapattach_map_stubs(struct heapinject *h, struct remote *r, const struct buf *code,
			 struct err *err)
{
	uint64_t args[REMOTE_ARGS_MAX] = {0, MFD_CLOEXEC | MFD_ALLOW_SEALING};
	int64_t theirs = 0;
	bool has_new = false;
	vec_foreach(g, &h->regions)
		has_new |= g->is_new;
	if (!has_new)
		return 0;
	TRY(write_name(r, HEAPSPACE_STUBS, &args[0], err));
	TRY(remote_syscall(r, SYS_memfd_create, args, &theirs, err));
	if (theirs < 0)
		return memfd_refused(h, theirs, err);
	int rc = map_regions(h, r, theirs, code, err);
	close_remote(r, theirs);
	return rc;
}

/* Writes stubs to existing regions, which no thread executes now. */
static int write_stubs(struct heapinject *h, const struct buf *code, struct err *err)
{
	size_t at = 0;
	vec_foreach(g, &h->regions) {
		if (!g->is_new) {
			TRY(heapinject_write(h, stub_region_batch(g), code->p + at,
					     stub_region_code_bytes(g), err));
		}
		at += stub_region_code_bytes(g);
	}
	return 0;
}

enum file { FILE_RING, FILE_TABLES, FILE_IMAGE, FILE_NR };

static int make_files(struct heapinject *h, struct remote *r, int64_t theirs[FILE_NR],
		      struct err *err)
{
	static const char *const names[FILE_NR] = {HEAPSPACE_RING, HEAPSPACE_TABLES,
						   HEAPSPACE_IMAGE};
	struct heapcode_op ops[FILE_NR] = {0};
	size_t n = h->is_image_new ? FILE_NR : FILE_IMAGE;
	for (size_t i = 0; i < n; i++) {
		uint64_t at;
		TRY(write_name(r, names[i], &at, err));
		ops[i] = (struct heapcode_op){.nr = SYS_memfd_create,
					      .args = {at, MFD_CLOEXEC | MFD_ALLOW_SEALING}};
	}
	int rc = heapinject_batch(h, r, ops, n, err);
	for (size_t i = 0; i < n; i++)
		theirs[i] = ops[i].result;
	return rc;
}

static int fill_files(struct heapinject *h, struct remote *r, const int64_t theirs[FILE_NR],
		      struct err *err)
{
	size_t nr_image;
	const uint8_t *image = heap_image_bytes(&nr_image);
	CLEANUP(close_p) int ring = -1;
	CLEANUP(close_p) int tables = -1;
	CLEANUP(close_p) int file = -1;
	TRY(remote_get_fd(r, (int)theirs[FILE_RING], &ring, err));
	TRY(remote_get_fd(r, (int)theirs[FILE_TABLES], &tables, err));
	TRY(size_fd(ring, h->layout.shared_bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, err));
	if (ftruncate(tables, (off_t)h->layout.tables_bytes))
		return err_sys(err, "cannot prepare shared memory");
	if (h->is_image_new) {
		TRY(remote_get_fd(r, (int)theirs[FILE_IMAGE], &file, err));
		TRY(file_pwrite_all(file, image, nr_image, 0, err));
		TRY(size_fd(file, heap_image()->data_start + heap_image()->data_bytes,
			    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, err));
	}
	h->shared = mmap(NULL, h->layout.shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	h->tables =
		mmap(NULL, h->layout.tables_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, tables, 0);
	if (h->shared == MAP_FAILED || h->tables == MAP_FAILED)
		return err_sys(err, "cannot map shared memory");
	/* Now forbid further writable mappings. */
	if (fcntl(tables, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */ | F_SEAL_SEAL))
		return err_sys(err, "cannot seal shared memory");
	TRY(check_size(tables, h->layout.tables_bytes, err));
	struct heap_shared *s = (struct heap_shared *)h->shared;
	s->magic = HEAP_WIRE_MAGIC;
	s->version = HEAP_WIRE_VERSION;
	s->alive_tsc = clock_ticks();
	return 0;
}

static void add_op(struct heapcode_ops *l, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		   uint64_t a3, int64_t a4, uint64_t a5)
{
	vec_push(&l->v, (struct heapcode_op){.nr = (uint64_t)nr,
					     .args = {a0, a1, a2, a3, (uint64_t)a4, a5}});
}

/* Marks the descriptors that the batch has closed. */
static void mark_closed(const struct heapcode_ops *l, int64_t theirs[FILE_NR])
{
	vec_foreach(op, &l->v)
		for (size_t i = 0; i < FILE_NR; i++)
			if (op->nr == SYS_close && !op->result && (int64_t)op->args[0] == theirs[i])
				theirs[i] = -1;
}

void heapattach_unmap_stale(const struct heapinject *h, struct heapcode_ops *l)
{
	const struct heap_layout *p = &h->layout;
	vec_foreach(m, &h->space.maps) {
		bool is_ring = m->kind == HEAPSPACE_IS_RING && m->start != p->shared;
		bool is_tables = m->kind == HEAPSPACE_IS_TABLES && m->start != p->tables;
		uint64_t prot = is_ring ? PROT_READ | PROT_WRITE : PROT_READ;
		if (is_ring || is_tables)
			add_op(l, SYS_mmap, m->start, m->end - m->start, prot, ANON | MAP_FIXED, -1,
			       0);
	}
}

static bool is_data_limited(int32_t pid)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	(void)prlimit(pid, RLIMIT_DATA, NULL, &limit);
	return limit.rlim_cur != RLIM_INFINITY;
}

static int map_all(struct heapinject *h, struct remote *r, int64_t theirs[FILE_NR], struct err *err)
{
	CLEANUP(vec_free_p) struct heapcode_ops l = {0};
	const struct heap_image *im = heap_image();
	const struct heap_layout *p = &h->layout;
	/* Replace our own old mapping; elsewhere only map free addresses. */
	uint64_t ring_fixed = p->shared == h->old.shared ? MAP_FIXED : FIXED_NOREPLACE;
	uint64_t tables_fixed = p->tables == h->old.tables ? MAP_FIXED : FIXED_NOREPLACE;
	add_op(&l, SYS_mmap, p->shared, p->shared_bytes, PROT_READ | PROT_WRITE,
	       MAP_SHARED | ring_fixed, theirs[FILE_RING], 0);
	add_op(&l, SYS_madvise, p->shared, p->shared_bytes, MADV_DONTFORK, 0, 0, 0);
	/* A core dump would allocate all pages never written. */
	add_op(&l, SYS_madvise, p->shared, p->shared_bytes, MADV_DONTDUMP, 0, 0, 0);
	add_op(&l, SYS_mmap, p->tables, p->tables_bytes, PROT_READ, MAP_SHARED | tables_fixed,
	       theirs[FILE_TABLES], 0);
	add_op(&l, SYS_madvise, p->tables, p->tables_bytes, MADV_DONTFORK, 0, 0, 0);
	add_op(&l, SYS_madvise, p->tables, p->tables_bytes, MADV_DONTDUMP, 0, 0, 0);
	if (h->is_local_new) {
		add_op(&l, SYS_mmap, p->local, p->local_bytes, PROT_READ | PROT_WRITE,
		       ANON | FIXED_NOREPLACE, -1, 0);
		add_op(&l, SYS_madvise, p->local, p->local_bytes, MADV_WIPEONFORK, 0, 0, 0);
	} else {
		add_op(&l, SYS_madvise, p->local, p->local_bytes - REMOTE_AREA_BYTES, MADV_DONTNEED,
		       0, 0, 0);
	}
	if (h->is_image_new) {
		add_op(&l, SYS_mmap, h->image, pages(im->text_bytes), PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | FIXED_NOREPLACE, theirs[FILE_IMAGE], 0);
		add_op(&l, SYS_mmap, h->image + im->data_start, im->data_bytes,
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | FIXED_NOREPLACE, theirs[FILE_IMAGE],
		       im->data_start);
	}
	heapattach_unmap_stale(h, &l);
	for (size_t i = 0; i < FILE_NR; i++)
		if (theirs[i] >= 0)
			add_op(&l, SYS_close, (uint64_t)theirs[i], 0, 0, 0, 0, 0);
	int rc = heapinject_batch(h, r, l.v.p, l.v.n, err);
	mark_closed(&l, theirs);
	vec_foreach(op, &l.v) {
		if (op->nr == SYS_mmap && op->result != (int64_t)op->args[0])
			return err_set(
				err, op->result < 0 ? (int)op->result : -EEXIST,
				"cannot map the recorder's memory in pid %d: %s", h->pid,
				op->result >= 0 ? "the address was taken meanwhile"
				: op->result == -ENOMEM && is_data_limited(h->pid)
					? "its private memory is limited (RLIMIT_DATA, ulimit -d), "
					  "with no room for a recorder"
					: strerror((int)-op->result));
	}
	return rc;
}

void heapattach_originals(const struct heapinject *h, struct heap_data *data)
{
	const struct heap_plan *plan = h->spec->plan;
	vec_foreach(p, &h->patches) {
		const struct heap_function *site = &plan->functions.p[p->site];
		uint32_t number = h->first_site + p->site;
		if (p->kind == PATCH_NONE)
			continue;
		data->original[number] = p->stub + HEAPCODE_TRAMPOLINE;
		if (!nothrow_is_needed(site->name))
			continue;
		/* The nothrow variant itself, or its trampoline if it is patched. */
		const struct heap_function *nothrow = nothrow_find(plan, site);
		data->nothrow[number] = nothrow ? nothrow->addr : 0;
		vec_foreach(q, &h->patches)
			if (nothrow && q->kind != PATCH_NONE && q->function == nothrow->addr)
				data->nothrow[number] = q->stub + HEAPCODE_TRAMPOLINE;
	}
}

static int write_local(struct heapinject *h, uint64_t per_us, struct err *err)
{
	const struct heap_image *im = heap_image();
	const struct heap_layout *p = &h->layout;
	const struct heapspace_map *stack = heapspace_first(&h->space, HEAPSPACE_IS_STACK);
	struct heap_local l = {
		.generation = h->generation,
		.shared = p->shared,
		.shared_bytes = p->shared_bytes,
		.tables = p->tables,
		.tables_rows = h->nr_rows,
		.thread_states = p->local + pages(sizeof(struct heap_local)),
		.pythons = p->local + pythons_at(p),
		.stacks = p->local + stacks_at(p),
		.nr_stacks = STACKS_NR,
		.blocks = h->spec->is_full_trace ? 0 : p->local + blocks_at(p),
		.nr_blocks = h->spec->is_full_trace ? 0 : BLOCKS_NR,
		.rules = p->local + rules_at(p),
		.nr_rules = HEAP_RULES_DEFAULT,
		.tid_off = h->tid_off,
		.main_stack_lo = stack ? stack->start : 0,
		.main_stack_hi = stack ? stack->end : 0,
		.image_lo = h->image,
		.image_hi = h->image + pages(im->text_bytes),
		.nr_slots = p->nr_slots,
		.ring_bytes = p->ring_bytes,
		.slots_off = h->slots_off,
		.rings_off = h->rings_off,
		.is_full_trace = h->spec->is_full_trace,
		.interval_bytes = h->spec->interval_bytes,
		.always_bytes = h->spec->is_full_trace || h->spec->starts_full
					? 0
					: h->spec->interval_bytes,
		.assay_timeout_tsc = per_us * (ASSAY_TIMEOUT_NS / NS_PER_US),
		.wait_tsc =
			per_us * ((h->spec->wait_ns ? h->spec->wait_ns : RING_WAIT_NS) / NS_PER_US),
	};
	if (h->method != HEAP_METHOD_PATCH) {
		l.skip_lo = h->spec->plan->skip.start;
		l.skip_hi = h->spec->plan->skip.end;
	}
	h->may_syscall &= !h->has_filter;
	if (h->may_syscall)
		l.flags |= HEAP_SYSCALLS_ALLOWED;
	if (!h->is_held || h->spec->has_started)
		l.flags |= HEAP_FS0_IS_TP; /* its C library is initialized */
	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_)
		l.flags |= HEAP_HAS_FSGSBASE;
	TRY(heapinject_write(h, p->local, &l, sizeof(l), err));
	struct heap_data data = {
		.magic = HEAP_WIRE_MAGIC, .version = HEAP_WIRE_VERSION, .local = p->local};
	heapattach_originals(h, &data);
	return heapinject_write(h, h->image + im->data, &data, sizeof(data), err);
}

static int install(struct heapinject *h, struct remote *r, struct err *err)
{
	h->is_changing = true;
	TRY(heaptext_patch(h, r, err));
	TRY(h->method == HEAP_METHOD_HOOKS ? heaphooks_install(h, r, err) : 0);
	TRY(h->method == HEAP_METHOD_PROF ? heaphooks_backtrace(h, r, true, err) : 0);
	return h->method != HEAP_METHOD_PATCH ? heaptext_write_heads(h, err)
					      : 0; /* with the handles */
}

static int map_memory(struct heapinject *h, struct remote *r, const struct buf *code,
		      int64_t theirs[FILE_NR], struct err *err)
{
	/* The thread is stopped: an exec from here on is noticed. */
	int rc = proc_check_exec(h->pid, h->spec->plan->image, err);
	if (rc)
		return rc == -ESRCH ? -ESTALE : rc;
	TRY(heapattach_map_stubs(h, r, code, err));
	TRY(write_stubs(h, code, err));
	TRY(make_files(h, r, theirs, err));
	TRY(fill_files(h, r, theirs, err));
	return map_all(h, r, theirs, err);
}

static int inject_recorder(struct heapinject *h, const struct buf *code, uint64_t per_us,
			   struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	int64_t theirs[FILE_NR] = {-1, -1, -1};
	TRY(heapinject_open(&s, h, h->method != HEAP_METHOD_PATCH, err));
	int rc = map_memory(h, s.r, code, theirs, err);
	for (size_t i = 0; i < FILE_NR; i++)
		close_remote(s.r, theirs[i]);
	h->is_mapped = !rc;
	TRY(rc);
	h->saved_layouts[h->spec->is_full_trace] = h->layout;
	TRY(write_local(h, per_us, err));
	return install(h, s.r, err);
}

/* With is_all_or_none a function that cannot be patched is an error. */
static int check_all_or_none(const struct heapinject *h, struct err *err)
{
	const struct heap_plan *plan = h->spec->plan;
	vec_foreach(p, &h->patches)
		if (plan->is_all_or_none && p->kind == PATCH_NONE &&
		    plan->functions.p[p->site].shape < HEAP_MMAP)
			return err_set(err, -ENOTSUP, "%s cannot be patched: %s",
				       plan->functions.p[p->site].name,
				       p->why ? p->why : "unknown instructions");
	return 0;
}

int heapattach_run(struct heapinject *h, struct err *err)
{
	uint64_t per_us = tsc_per_us();
	TRY(heapinject_check_seccomp(h, err));
	TRY(leftover_inspect(h, err));
	TRY(leftover_check_busy(h, err));
	TRY(leftover_undo(h, err));
	leftover_check_area(h);
	if (h->method == HEAP_METHOD_PATCH)
		heapstubs_plan(h);
	heapstubs_place(h);
	choose_sizes(h);
	TRY(choose_layout(h, err));
	const struct heap_layout *p = &h->layout;
	uint64_t nr_bytes = p->local_bytes + p->shared_bytes + p->tables_bytes;
	TRY(h->is_local_new ? heapspace_check_limit(&h->space, h->pid, nr_bytes, err) : 0);
	CLEANUP(buf_release) struct buf code = {0};
	heapstubs_make(h, &code);
	heapstubs_count(h);
	if (h->method == HEAP_METHOD_PATCH && !h->info.nr_patched)
		return err_set(err, -ENOTSUP, "no function of pid %d can be patched: %s", h->pid,
			       h->info.unpatched ? h->info.unpatched : "none was found");
	TRY(check_all_or_none(h, err));
	if (!h->regions.n)
		return err_set(err, -ENOMEM, "no address space left in pid %d", h->pid);
	TRY(inject_recorder(h, &code, per_us, err));
	return heaptext_change_multi(h, false, err);
}
