/* Polls of /proc; see procpoll.h. */
#include "base/base.h"
#include "capture/wait/procpoll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "capture/perf/synth.h"
#include "host/reader/hostfile.h"

#define COPY_MAX    (256u << 10)
#define PAGE_BYTES  4096u
#define DISCOVER_NS 100000000u
#define NAME_NS     1000000000u
#define NR_REGS     __builtin_popcountll(ARCH_PERF_REGS_MASK)

/* Reads a small file of /proc/PID/task/TID without stdio buffers: called for each poll. */
static int read_task_file(int32_t pid, int32_t tid, const char *name, char *text, size_t n)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t got = read(fd, text, n - 1);
	int rc = got < 0 ? -errno : 0;
	close(fd);
	text[got > 0 ? got : 0] = 0;
	return rc;
}

int procpoll_schedstat(int32_t pid, int32_t tid, struct procpoll_schedstat *ret_s)
{
	char text[128];
	TRY(read_task_file(pid, tid, "schedstat", text, sizeof(text)));
	char *p = text;
	ret_s->cpu_ns = strtoull(p, &p, 10);
	ret_s->queue_ns = strtoull(p, &p, 10);
	ret_s->nr_runs = strtoull(p, &p, 10);
	return 0;
}

/* Content: "running", "NR A0 .. A5 SP PC", or "-1 SP PC" if the thread waits outside a call. */
int procpoll_call(int32_t pid, int32_t tid, struct call *ret_c)
{
	char text[256];
	int rc = read_task_file(pid, tid, "syscall", text, sizeof(text));
	if (rc)
		return rc == -EPERM ? -EACCES : rc;
	if (text[0] == 'r' || !text[0])
		return -EAGAIN;
	struct call c = {0};
	char *p = text;
	c.nr = (int)strtol(p, &p, 10);
	for (size_t i = 0; c.nr >= 0 && i < ARRAY_LEN(c.args); i++)
		c.args[i] = strtoull(p, &p, 0);
	c.sp = strtoull(p, &p, 0);
	c.ip = strtoull(p, &p, 0);
	if (c.nr < 0)
		c.nr = CALL_NONE;
	*ret_c = c;
	return 0;
}

size_t procpoll_read(int32_t pid, uint64_t addr, void *to, size_t n)
{
	struct iovec from[COPY_MAX / PAGE_BYTES + 1];
	size_t nr = 0;
	n = MIN(n, (size_t)COPY_MAX);
	for (size_t at = 0; at < n;
	     nr++) { /* one element per page: whole elements are read or none */
		size_t part = MIN(n - at, (size_t)(PAGE_BYTES - (addr + at) % PAGE_BYTES));
		from[nr] = (struct iovec){(void *)(uintptr_t)(addr + at), part};
		at += part;
	}
	ssize_t got = process_vm_readv(pid, &(struct iovec){to, n}, 1, from, nr, 0);
	return got > 0 ? (size_t)got : 0;
}

/*
 * Delivers the thread's stack. /proc shows only the instruction and stack pointers, which is enough
 * unless the unwind needs the frame pointer.
 */
static int emit_stack(const struct procpoll_env *to, const struct event *at,
		      const struct call *call, uint64_t *ret_ref, struct err *err)
{
	*ret_ref = 0;
	if (!call->sp || !to->nr_copy_bytes)
		return 0;
	CLEANUP(free_p) uint8_t *copy = xmalloc(to->nr_copy_bytes);
	size_t n = procpoll_read(at->pid, call->sp, copy, to->nr_copy_bytes);
	if (!n)
		return 0;
	uint64_t regs[64] = {0};
	ASSERT(NR_REGS <= 64);
	regs[ARCH_PERF_SP] = call->sp;
	regs[ARCH_PERF_IP] = call->ip;
	return copyrefs_emit(to->refs, at, regs, copy, n, to->sink, ret_ref, err);
}

int procpoll_thread(const struct procpoll_env *to, int32_t pid, int32_t tid,
		    struct wait_cause *ret_cause, struct err *err)
{
	struct call call;
	struct call again;
	TRY(procpoll_call(pid, tid, &call));
	struct event at = {.time_ns = clock_mono_ns(), .pid = pid, .tid = tid};
	struct wait_cause cause = {.evidence = EVIDENCE_POLLED};
	if (emit_stack(to, &at, &call, &cause.ref, err))
		return err ? err->code : -EIO;
	int rc = procpoll_call(pid, tid, &again);
	if (rc || again.ip != call.ip || again.sp != call.sp || again.nr != call.nr)
		/* the thread ran during the copy, which may be inconsistent */
		cause.ref = copyrefs_last(to->refs, tid, call.ip, call.sp);
	else
		copyrefs_set_last(to->refs, tid, call.ip, call.sp, cause.ref);
	waitcalls_cause(to->calls, &to->account->objects, pid, &call, &cause);
	*ret_cause = cause;
	return 0;
}

/* ---- off-CPU accounting by polls alone ---------------------------------------------------- */

struct polled_process {
	int32_t pid;
	uint64_t image;          /* device and inode of the executable */
	uint64_t nr_code_misses; /* polls whose ip was in no known mapping */
	bool has_exited;
};

struct polled_thread {
	int32_t pid;
	int32_t tid;
	uint64_t polled_ns; /* last poll */
	uint64_t found_ns;
	int64_t carry_ns; /* off-CPU time of the last poll that came out below 0, else 0 */
	uint64_t open_ns; /* waited since it ran last, in the wait that is not over */
	struct procpoll_schedstat sums;
	struct wait_cause cause;
	bool has_cause;
	bool has_exited;
};

struct procpoll {
	VEC(struct polled_process) processes;
	VEC(struct polled_thread) threads;
	struct map known_pids;
	struct map known_tids;
	VEC(int32_t) single; /* the only tids to poll; empty = all of the processes */
	bool is_system;
	uint64_t next_discover_ns;
	uint64_t next_name_ns;
};

static void add_process(struct procpoll *p, int32_t pid)
{
	bool is_new;
	(void)map_put(&p->known_pids, (uint32_t)pid, &is_new);
	if (is_new && pid != getpid())
		vec_push(&p->processes, (struct polled_process){.pid = pid});
}

void procpoll_free(struct procpoll *p)
{
	if (!p)
		return;
	vec_release(&p->processes);
	vec_release(&p->threads);
	vec_release(&p->single);
	map_release(&p->known_pids);
	map_release(&p->known_tids);
	free(p);
}

static void find_children(struct procpoll *p, int32_t pid, int32_t tid, bool is_excluded)
{
	char text[4096];
	if (read_task_file(pid, tid, "children", text, sizeof(text)))
		return;
	for (char *s = text; *s;) {
		char *end;
		long child = strtol(s, &end, 10);
		if (end == s)
			return;
		if (child > 0 && is_excluded)
			(void)map_put(&p->known_pids, (uint32_t)child, NULL);
		else if (child > 0)
			add_process(p, (int32_t)child);
		s = end;
	}
}

/*
 * Children that run already are no targets unless the target lists them (--children): only those
 * that a target starts from now on are.
 */
static void exclude_children(struct procpoll *p)
{
	for (size_t i = 0; i < p->processes.n; i++) {
		CLEANUP(pid_list_release) struct pid_list tids = {0};
		int32_t pid = p->processes.p[i].pid;
		(void)proc_threads(&tids, pid, NULL);
		for (size_t k = 0; k < tids.pids.n; k++)
			find_children(p, pid, tids.pids.p[k], true);
	}
}

struct procpoll *procpoll_new(const struct target *t)
{
	struct procpoll *p = xcalloc(1, sizeof(*p));
	p->is_system = t->is_system;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		add_process(p, t->pids.pids.p[i]);
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		if (proc_tgid(t->tids.pids.p[i], &pid, NULL))
			continue;
		add_process(p, pid);
		vec_push(&p->single, t->tids.pids.p[i]);
	}
	if (t->child)
		add_process(p, t->child);
	if (!p->is_system && !p->single.n)
		exclude_children(p);
	return p;
}

static bool is_wanted(const struct procpoll *p, int32_t tid)
{
	for (size_t i = 0; i < p->single.n; i++)
		if (p->single.p[i] == tid)
			return true;
	return !p->single.n;
}

static uint64_t image_of(int32_t pid)
{
	char path[64];
	struct stat st;
	CLEANUP(buf_release) struct buf link = {0};
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (hostfile_read_link(&link, &st, path))
		return 0;
	return (uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino;
}

/* Events about a process also go to copyrefs, which must know its code. */
struct forward {
	struct copyrefs *refs;
	const struct event_sink *sink;
};

static int forward_event(void *ctx, const struct event *ev, struct err *err)
{
	const struct forward *pass = ctx;
	copyrefs_apply(pass->refs, ev);
	return pass->sink->event(pass->sink->ctx, ev, err);
}

/* Delivers a process that is new, has called execve, or runs code that it mapped since. */
static int emit_process(struct polled_process *pr, const struct procpoll_env *to, uint64_t now,
			struct err *err)
{
	struct forward pass = {to->refs, to->sink};
	struct event_sink sink = {forward_event, &pass};
	uint64_t image = image_of(pr->pid);
	if (pr->image && image != pr->image) {
		CLEANUP(buf_release) struct buf comm = {0};
		(void)proc_comm(&comm, pr->pid, pr->pid, NULL);
		struct event ev = event_comm(pr->pid, pr->pid, now, buf_str(&comm));
		ev.comm.is_exec = true;
		TRY(sink.event(sink.ctx, &ev, err));
	}
	pr->image = image;
	pr->nr_code_misses = 0;
	return synth_process(pr->pid, now, &sink, err);
}

static void find_threads(struct procpoll *p, struct polled_process *pr, uint64_t now)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	int32_t pid = pr->pid;
	pr->has_exited = proc_threads(&tids, pid, NULL) != 0;
	for (size_t i = 0; i < tids.pids.n; i++) {
		int32_t tid = tids.pids.p[i];
		bool is_new;
		if (!is_wanted(p, tid))
			continue;
		(void)map_put(&p->known_tids, (uint32_t)tid, &is_new);
		if (!p->is_system && !p->single.n)
			find_children(p, pid, tid, false); /* may reallocate p->processes */
		if (!is_new)
			continue;
		struct polled_thread t = {
			.pid = pid, .tid = tid, .polled_ns = now, .found_ns = now};
		if (!procpoll_schedstat(pid, tid, &t.sums))
			vec_push(&p->threads, t);
	}
}

static int emit_names(struct procpoll *p, const struct procpoll_env *to, uint64_t now,
		      struct err *err)
{
	vec_foreach(t, &p->threads)
		if (now - t->found_ns <= 5 * NAME_NS)
			TRY(synth_name(t->pid, t->tid, now, to->sink, err));
	return 0;
}

static int discover(struct procpoll *p, const struct procpoll_env *to, uint64_t now,
		    struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	if (p->is_system && !proc_list(&all, NULL))
		for (size_t i = 0; i < all.pids.n; i++)
			add_process(p, all.pids.p[i]);
	size_t nr_before = p->threads.n;
	for (size_t i = 0; i < p->processes.n; i++) {
		struct polled_process *pr = &p->processes.p[i];
		if (!pr->image || pr->nr_code_misses || pr->image != image_of(pr->pid)) {
			TRY(emit_process(pr, to, now, err));
		}
		find_threads(p, pr, now);
	}
	size_t n = 0;
	for (size_t i = 0; i < p->processes.n; i++) {
		if (p->processes.p[i].has_exited)
			(void)map_del(&p->known_pids, (uint32_t)p->processes.p[i].pid);
		else
			p->processes.p[n++] = p->processes.p[i];
	}
	p->processes.n = n;
	if (p->threads.n == nr_before && now < p->next_name_ns)
		return 0;
	p->next_name_ns = now + NAME_NS;
	return emit_names(p, to, now, err);
}

/*
 * Adds the time since the last poll: CPU and run queue time by schedstat, the rest as a wait for
 * the polled cause.
 */
static void account_round(struct polled_thread *t, const struct procpoll_env *to, uint64_t now,
			  const struct procpoll_schedstat *sums)
{
	struct waitaccount_thread *bt =
		waitaccount_thread(to->account, t->pid, t->tid, t->polled_ns);
	bt->state = THREAD_SUMS_ONLY;
	uint64_t cpu_ns = sums->cpu_ns - MIN(t->sums.cpu_ns, sums->cpu_ns);
	uint64_t queue_ns = sums->queue_ns - MIN(t->sums.queue_ns, sums->queue_ns);
	uint32_t nr = (uint32_t)(sums->nr_runs - MIN(t->sums.nr_runs, sums->nr_runs));
	int64_t off_ns = (int64_t)(now - t->polled_ns) - (int64_t)cpu_ns - (int64_t)queue_ns;
	off_ns += t->carry_ns; /* schedstat lags by up to a tick while a thread runs */
	t->carry_ns = MIN(off_ns, (int64_t)0);
	bt->start_ns = bt->accounted_ns = now;
	if (cpu_ns)
		waitaccount_add_on(to->account, bt, now, cpu_ns, nr);
	struct wait_cause cause = {
		.reason = WAIT_UNKNOWN, .syscall = -1, .evidence = EVIDENCE_POLLED};
	if (t->has_cause)
		cause = t->cause;
	if (queue_ns)
		waitaccount_add_off(to->account, bt, now, queue_ns, queue_ns / MAX(nr, 1u), nr,
				    OFFCPU_WOKEN,
				    &(struct wait_cause){.reason = WAIT_RUN_QUEUE, .syscall = -1});
	uint64_t wait_ns = (uint64_t)MAX(off_ns, (int64_t)0);
	uint64_t whole_ns = (t->open_ns + wait_ns) / MAX(nr, 1u);
	if (wait_ns)
		waitaccount_add_off(to->account, bt, now, wait_ns, whole_ns, nr, OFFCPU_WAIT,
				    &cause);
	t->open_ns = nr ? 0 : whole_ns;
	t->sums = *sums;
	t->polled_ns = now;
}

void procpoll_finish(struct procpoll *p, const struct procpoll_env *to)
{
	vec_foreach(t, &p->threads) {
		struct waitaccount_thread *bt = waitaccount_find(to->account, t->tid);
		if (!bt || !t->open_ns || !t->has_cause)
			continue;
		t->cause.evidence |= EVIDENCE_OPEN;
		waitaccount_add_off(to->account, bt, t->polled_ns, 0, t->open_ns, 1, OFFCPU_WAIT,
				    &t->cause);
	}
}

static void count_code_miss(struct procpoll *p, struct copyrefs *refs, int32_t pid, uint64_t ip)
{
	if (!ip || copyrefs_is_code(refs, pid, ip))
		return;
	vec_foreach(pr, &p->processes)
		if (pr->pid == pid)
			pr->nr_code_misses++;
}

static int poll_thread(struct procpoll *p, struct polled_thread *t, const struct procpoll_env *to,
		       struct err *err)
{
	struct procpoll_schedstat sums;
	struct call call;
	if (procpoll_schedstat(t->pid, t->tid, &sums)) {
		t->has_exited = true;
		struct waitaccount_thread *bt = waitaccount_find(to->account, t->tid);
		if (bt)
			bt->state = THREAD_EXITED;
		return 0;
	}
	uint64_t now = clock_mono_ns();
	struct wait_cause cause;
	/* A thread that has not run since the last poll is still in the same wait. */
	bool is_same =
		t->has_cause && sums.nr_runs == t->sums.nr_runs && sums.cpu_ns == t->sums.cpu_ns;
	int rc = is_same ? 0 : procpoll_thread(to, t->pid, t->tid, &cause, err);
	if (err && err->code)
		return err->code;
	if (!rc && !is_same) {
		t->cause = cause;
		t->has_cause = true;
		if (!procpoll_call(t->pid, t->tid, &call))
			count_code_miss(p, to->refs, t->pid, call.ip);
	}
	account_round(t, to, now, &sums);
	return 0;
}

int procpoll_round(struct procpoll *p, const struct procpoll_env *to, struct err *err)
{
	uint64_t now = clock_mono_ns();
	if (now >= p->next_discover_ns) {
		TRY(discover(p, to, now, err));
		p->next_discover_ns = now + DISCOVER_NS;
	}
	size_t n = 0;
	for (size_t i = 0; i < p->threads.n; i++) {
		TRY(poll_thread(p, &p->threads.p[i], to, err));
		if (p->threads.p[i].has_exited)
			(void)map_del(&p->known_tids, (uint32_t)p->threads.p[i].tid);
		else
			p->threads.p[n++] = p->threads.p[i];
	}
	p->threads.n = n;
	return 0;
}
