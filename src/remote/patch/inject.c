/* Start, stop and detach of the recorder; see inject.h. The attach: attach.c. */
#include "base/base.h"
#include "remote/patch/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <linux/membarrier.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "remote/patch/image.h"
#include "remote/patch/attach.h"
#include "remote/patch/injectstate.h"
#include "remote/patch/leftover.h"
#include "remote/patch/patchtext.h"
#include "remote/jemalloc/hooks.h"
#include "host/proc.h"
#include "host/procmem.h"

#define ATTACH_TRIES      5
#define INSIDE_TIMEOUT_NS NS_PER_SEC /* wait for threads inside the recorder */
#define LOCK_TIMEOUT_NS   (10 * NS_PER_SEC)
#define UNMAP_TRIES       4
#define UNMAP_PAUSE_NS    (5 * NS_PER_MS)

int heapinject_read(void *ctx, uint64_t addr, void *to, size_t n)
{
	const struct heapinject *h = ctx;
	return pread(h->mem_fd, to, n, (off_t)addr) == (ssize_t)n ? 0 : -EFAULT;
}

int heapinject_write(struct heapinject *h, uint64_t addr, const void *from, size_t n,
		     struct err *err)
{
	ssize_t put = pwrite(h->mem_fd, from, n, (off_t)addr);
	if (put == (ssize_t)n)
		return 0;
	if (!put || (put < 0 && (errno == ESRCH || kill(h->pid, 0))))
		return err_set(err, -ESRCH, "pid %d has ended or executed another program", h->pid);
	return err_set(err, -EFAULT, "cannot write memory of pid %d at 0x%" PRIx64, h->pid, addr);
}

/*
 * Finds the offset of the thread id from the thread pointer: struct pthread's tid of glibc on
 * x86-64 (2.x) and of musl (1.x). Accepted if the word there is the id of the session's thread.
 */
static uint32_t find_tid_offset(const struct heapinject *h, struct remote *r)
{
	static const uint32_t known[] = {720, 48, 56};
	int32_t id = 0;
	uint64_t tp = remote_thread_pointer(r);
	if (proc_nspid(remote_tid(r), &id, NULL))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		int32_t there = 0;
		if (tp && !heapinject_read((void *)(uintptr_t)h, tp + known[i], &there, 4) &&
		    there == id)
			return known[i];
	}
	return 0;
}

int heapinject_open(struct heap_session *ret_s, struct heapinject *h, bool is_call, struct err *err)
{
	/* The area for sessions is at the end of local memory, of this attach or an earlier one. */
	const struct heap_layout *p = &h->saved_layouts[0];
	if (h->is_mapped)
		p = &h->layout;
	else if (!p->local)
		p = &h->saved_layouts[1];
	struct remote_options options = {.avoid = is_call ? &h->avoid : NULL,
					 .area = p->local && !h->is_area_unsafe
							 ? p->local + p->local_bytes -
								   REMOTE_AREA_BYTES
							 : 0};
	TRY(h->is_held ? remote_open_stopped(&ret_s->r, h->pid, h->pid, &options, err)
		       : remote_open(&ret_s->r, h->pid, &options, err));
	ret_s->h = h;
	h->has_filter = remote_has_filter(ret_s->r);
	h->tid_off = find_tid_offset(h, ret_s->r);
	return 0;
}

void heapinject_close(struct heap_session *s)
{
	if (!s->r)
		return;
	uint64_t ns = remote_stopped_ns(s->r);
	s->h->info.stopped_ns = MAX(s->h->info.stopped_ns, ns);
	remote_close(s->r);
}

int heapinject_batch(struct heapinject *h, struct remote *r, struct heapcode_op *ops, size_t n,
		     struct err *err)
{
	uint64_t at = 0;
	size_t done = 0;
	for (size_t i = 0; i < n; i++)
		ops[i].result = ops[i].nr == HEAPCODE_STORE ? 0 : -ECANCELED;
	if (h->has_filter) /* it may kill the thread */
		return err_set(err, -EPERM, "pid %d has a seccomp filter now", h->pid);
	TRY(remote_scratch(r, n * sizeof(*ops), &at, err));
	TRY(remote_write(r, at, ops, n * sizeof(*ops), err));
	const uint64_t args[REMOTE_ARGS_MAX] = {at, n};
	TRY(remote_call(r, h->batch, args, NULL, err));
	TRY(remote_read(r, at, ops, n * sizeof(*ops), err));
	while (done < n && (ops[done].result >= 0 || ops[done].result < -4095))
		done++;
	if (done == n)
		return 0;
	int code = (int)ops[done].result;
	return err_set(err, code, "system call %d in pid %d failed: %s", (int)ops[done].nr, h->pid,
		       strerror(-code));
}

static struct heapinject *inject_new(const struct heapinject_spec *spec)
{
	struct heapinject *h = xcalloc(1, sizeof(*h));
	h->pid = spec->pid;
	h->spec = spec;
	h->is_held = spec->is_held;
	h->nr_sites = (uint32_t)MIN(spec->plan->functions.n, HEAP_SITES_MAX);
	h->method = spec->plan->method;
	h->mallctl = spec->plan->mallctl;
	h->mem_fd = -1;
	vec_foreach(a, &spec->plan->allocator_code)
		vec_push(&h->avoid, *a);
	return h;
}

static int set_active(struct heapinject *h, uint32_t is_active, struct err *err)
{
	return heapinject_write(h, h->layout.local + offsetof(struct heap_local, is_active),
				&is_active, sizeof(is_active), err);
}

int heapinject_start(struct heapinject *h, struct err *err)
{
	h->is_stopped = false;
	return set_active(h, 1, err);
}

/* Seccomp modes are per thread. */
int heapinject_check_seccomp(struct heapinject *h, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	int rc = proc_threads(&tids, h->pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	h->may_syscall = true;
	for (size_t i = 0; i < tids.pids.n; i++) {
		struct proc_task f;
		if (proc_task(h->pid, tids.pids.p[i], &f)) /* it has ended */
			continue;
		if (f.seccomp == 1) {
			err_set(err, -ENOTSUP,
				"thread %d of pid %d is in strict seccomp mode, which does not "
				"permit what the recorder does",
				tids.pids.p[i], h->pid);
			return err_hint(
				err,
				"--method uprobes records without a recorder inside the process");
		}
		h->may_syscall &= !f.seccomp;
	}
	return 0;
}

void heapinject_poll_seccomp(struct heapinject *h)
{
	uint64_t local = h->layout.local;
	uint32_t off = 0;
	uint32_t flags = 0;
	if (!h->may_syscall)
		return;
	/* The recorder has noticed the prctl itself (heap_entry.S). */
	if (!heapinject_read(h, local + offsetof(struct heap_local, flags), &flags,
			     sizeof(flags)) &&
	    !(flags & HEAP_SYSCALLS_ALLOWED)) {
		h->may_syscall = false;
		return;
	}
	struct proc_task t;
	if (proc_task(h->pid, h->pid, &t) || !t.seccomp)
		return;
	h->may_syscall = false;
	/* A failed write means that the process has ended. */
	if (t.seccomp == 1)
		(void)!pwrite(h->mem_fd, &off, sizeof(off),
			      (off_t)(local + offsetof(struct heap_local, is_active)));
	local += offsetof(struct heap_local, flags);
	if (heapinject_read(h, local, &flags, sizeof(flags)))
		return;
	flags &= ~(uint32_t)HEAP_SYSCALLS_ALLOWED;
	(void)!pwrite(h->mem_fd, &flags, sizeof(flags), (off_t)local);
}

void heapinject_thin(struct heapinject *h, uint64_t interval_bytes)
{
	/* fails if the process has ended */
	(void)!pwrite(h->mem_fd, &interval_bytes, sizeof(interval_bytes),
		      (off_t)(h->layout.local + offsetof(struct heap_local, always_bytes)));
}

bool heapinject_is_full(struct heapinject *h)
{
	uint64_t bytes = 0;
	(void)heapinject_read(h, h->layout.local + offsetof(struct heap_local, always_bytes),
			      &bytes, sizeof(bytes));
	return !bytes;
}

bool heapinject_may_syscall(const struct heapinject *h)
{
	return h->may_syscall;
}

int heapinject_stop(struct heapinject *h, struct err *err)
{
	h->is_held = false;
	TRY(set_active(h, 0, err));
	/* After this every running thread has executed a barrier and sees is_active. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	h->is_stopped = true;
	uint32_t n;
	struct heap_slot *slots = heapinject_slots(h, &n);
	uint64_t deadline_ns = clock_mono_ns() + INSIDE_TIMEOUT_NS;
	for (uint32_t i = 0; i < n; i++) {
		while (__atomic_load_n(&slots[i].is_inside, __ATOMIC_ACQUIRE)) {
			/* A thread that left by a longjmp from a signal handler never clears it. */
			if (clock_mono_ns() > deadline_ns)
				break;
			(void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
		}
	}
	return 0;
}

/* Replaces shared memory by anonymous zeros, so that a late access does not fault. */
static int replace_shared(struct heapinject *h, struct remote *r, struct err *err)
{
	const struct heap_layout *p = &h->layout;
	uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	struct heapcode_op ops[] = {
		{.nr = SYS_mmap,
		 .args = {p->shared, p->shared_bytes, PROT_READ | PROT_WRITE, flags, ~0ull, 0}},
		{.nr = SYS_mmap, .args = {p->tables, p->tables_bytes, PROT_READ, flags, ~0ull, 0}},
		{.nr = SYS_madvise,
		 .args = {p->local, p->local_bytes - REMOTE_AREA_BYTES, MADV_DONTNEED}},
	};
	return heapinject_batch(h, r, ops, ARRAY_LEN(ops), err);
}

static int undo_on_thread(struct heapinject *h, bool has_calls, struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	TRY(heapinject_open(&s, h, has_calls, err));
	if (has_calls) {
		TRY(heaphooks_remove(h, s.r, err));
		TRY(heaphooks_backtrace(h, s.r, false, err));
	}
	return heaptext_restore(h, s.r, err);
}

int heapinject_undo(struct heapinject *h, bool has_calls, struct err *err)
{
	TRY(undo_on_thread(h, has_calls, err));
	TRY(heaptext_change_multi(h, true, err));
	return heaptext_quiesce(h, err);
}

/* After this, whoever enters the recorder finds it inert. */
static int clear_local(struct heapinject *h, struct err *err)
{
	const uint64_t none = 0;
	return heapinject_write(h,
				h->image + heap_image()->data + offsetof(struct heap_data, local),
				&none, sizeof(none), err);
}

static bool may_return(struct heapinject *h)
{
	for (int i = 0; i < UNMAP_TRIES; i++) {
		if (!heaptext_may_return(h))
			return false;
		(void)nanosleep(&(struct timespec){.tv_nsec = UNMAP_PAUSE_NS}, NULL);
	}
	return true;
}

/*
 * Unmaps all memory except for the code, of this attach and an earlier one of the other kind, if no
 * thread can come back to the recorder. Else it stays mapped, empty, until the next detach.
 */
static int unmap_memory(struct heapinject *h, struct err *err)
{
	struct heapcode_op ops[3 * ARRAY_LEN(h->saved_layouts)] = {0};
	size_t n = 0;
	TRY(clear_local(h, err));
	if (may_return(h))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(h->saved_layouts); i++) {
		const struct heap_layout *p = &h->saved_layouts[i];
		const uint64_t parts[][2] = {{p->shared, p->shared_bytes},
					     {p->tables, p->tables_bytes},
					     {p->local, p->local_bytes}};
		for (size_t k = 0; p->local && k < ARRAY_LEN(parts); k++)
			ops[n++] = (struct heapcode_op){.nr = SYS_munmap,
							.args = {parts[k][0], parts[k][1]}};
	}
	/* First of all, no later attach may reuse what belongs to the target again. */
	memset(h->saved_layouts, 0, sizeof(h->saved_layouts));
	TRY(heaptext_write_heads(h, err));
	h->is_area_unsafe = true; /* the area for sessions is unmapped, too */
	CLEANUP(heapinject_close) struct heap_session s = {0};
	TRY(heapinject_open(&s, h, false, err));
	return heapinject_batch(h, s.r, ops, n, err);
}

static int release_shared(struct heapinject *h, struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	TRY(heapinject_open(&s, h, false, err));
	/* With a filter it stays mapped, unused. */
	return h->has_filter ? 0 : replace_shared(h, s.r, err);
}

static int remove_recorder(struct heapinject *h, struct err *err)
{
	TRY(heapinject_undo(h, h->method != HEAP_METHOD_PATCH, err));
	TRY(release_shared(h, err));
	return h->has_filter || h->is_held || !h->is_mapped ? 0 : unmap_memory(h, err);
}

static int open_target(struct heapinject *h, struct err *err)
{
	h->mem_fd = host_open_mem(h->pid, O_RDWR);
	if (h->mem_fd == -ENOENT)
		return err_set(err, -ESRCH, "pid %d has ended", h->pid);
	if (h->mem_fd < 0)
		return err_set(err, h->mem_fd, "cannot open memory of pid %d: %s", h->pid,
			       strerror(-h->mem_fd));
	return 0;
}

/*
 * Locks /proc/PID against other assays, until the descriptor is closed: two of them must not attach,
 * detach or clean up at the same time.
 */
static int lock_target(int32_t pid, int *ret_fd, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d", pid);
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t deadline_ns = clock_mono_ns() + LOCK_TIMEOUT_NS;
	if (fd < 0 && errno == ENOENT)
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, "cannot lock '%s'", path);
		if (clock_mono_ns() > deadline_ns)
			return err_set(err, -EBUSY, "another assay is changing pid %d", pid);
		(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

static int undo_once(void *ctx)
{
	const struct heapinject *dead = ctx;
	const struct heapinject_spec *spec = dead->spec;
	CLEANUP(heapinject_free_p) struct heapinject *h = inject_new(spec);
	CLEANUP(close_p) int lock = -1;
	h->is_held = false;
	h->generation = dead->generation;
	TRY(open_target(h, NULL));
	TRY(lock_target(h->pid, &lock, NULL));
	TRY(proc_check_exec(h->pid, spec->plan->image, NULL));
	return leftover_undo_attach(h, NULL);
}

/* Runs in the cleanup process. */
static void undo_after_death(void *ctx, int fd UNUSED)
{
	remote_undo(undo_once, ctx);
}

static int attach_once(struct heapinject **ret_h, const struct heapinject_spec *spec,
		       struct err *err)
{
	CLEANUP(heapinject_free_p) struct heapinject *h = inject_new(spec);
	CLEANUP(close_p) int lock = -1;
	h->generation = (uint32_t)clock_mono_ns() | 1;
	TRY(open_target(h, err));
	TRY(cleanup_start(&h->cleanup,
			  &(struct cleanup_spec){
				  .begin = remote_keep_rights, .fn = undo_after_death, .ctx = h},
			  err));
	int rc = lock_target(h->pid, &lock, err);
	rc = rc ? rc : heapattach_run(h, err);
	h->spec = NULL;
	bool is_changed = rc && h->is_changing && rc != -ESRCH;
	if (is_changed)
		is_changed = remove_recorder(h, NULL) != 0;
	if (rc && !is_changed)
		cleanup_cancel(&h->cleanup);
	TRY(rc);
	*ret_h = TAKE(h);
	return 0;
}

int heapinject_attach(struct heapinject **ret_h, const struct heapinject_spec *spec,
		      struct err *err)
{
	size_t nr_image;
	(void)heap_image_bytes(&nr_image);
	if (!nr_image)
		return err_set(err, -ENOTSUP,
			       "the recorder is not available for this architecture");
	int rc = -EEXIST;
	/* -EEXIST: the target has mapped memory at a chosen address meanwhile. */
	for (int i = 0; i < ATTACH_TRIES && rc == -EEXIST; i++)
		rc = attach_once(ret_h, spec, err);
	return rc;
}

int heapinject_detach(struct heapinject *h, struct err *err)
{
	CLEANUP(close_p) int lock = -1;
	if (h->is_detached)
		return 0;
	int rc = h->is_stopped ? 0 : heapinject_stop(h, err);
	if (!rc)
		rc = lock_target(h->pid, &lock, err);
	if (!rc)
		rc = remove_recorder(h, err);
	if (rc && rc != -ESRCH)
		return rc;
	h->is_detached = true;
	cleanup_cancel(&h->cleanup);
	return rc;
}

void heapinject_release(struct heapinject *h)
{
	heapspace_release(&h->space);
	vec_release(&h->patches);
	vec_foreach(g, &h->regions)
		vec_release(&g->patches);
	vec_release(&h->regions);
	free(h->info.unpatched);
}

void heapinject_free(struct heapinject *h)
{
	if (!h)
		return;
	cleanup_release(&h->cleanup);
	if (h->shared && h->shared != MAP_FAILED)
		(void)munmap(h->shared, h->layout.shared_bytes);
	if (h->tables && h->tables != MAP_FAILED)
		(void)munmap(h->tables, h->layout.tables_bytes);
	close_p(&h->mem_fd);
	heap_ranges_release(&h->avoid);
	heapinject_release(h);
	free(h);
}

struct heap_shared *heapinject_shared(const struct heapinject *h)
{
	return (struct heap_shared *)h->shared;
}

struct heap_slot *heapinject_slots(const struct heapinject *h, uint32_t *ret_nr)
{
	*ret_nr = h->layout.nr_slots;
	return (struct heap_slot *)(h->shared + h->slots_off);
}

const uint8_t *heapinject_ring(const struct heapinject *h, uint32_t i, uint32_t *ret_nr_bytes)
{
	ASSERT(i < h->layout.nr_slots);
	*ret_nr_bytes = h->layout.ring_bytes;
	return h->shared + h->rings_off + (uint64_t)i * h->layout.ring_bytes;
}

struct ktables_head *heapinject_tables(const struct heapinject *h, uint32_t *ret_nr_rows)
{
	*ret_nr_rows = h->nr_rows;
	return (struct ktables_head *)h->tables;
}

struct heapinject_info heapinject_info(const struct heapinject *h)
{
	return h->info;
}
