/* Makes jemalloc heap profile dumps; see dumps.h. */
#include "base/base.h"
#include "session/dumps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/process/stop.h"
#include "capture/heap/planner.h"
#include "host/memory/memstat.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "host/procmem.h"
#include "remote/jemalloc/jemalloc.h"

#define DUMP_BYTES_MAX   ((uint64_t)1 << 30)
#define COPY_BYTES       ((size_t)1 << 18)
#define CHECK_NS         (500 * NS_PER_MS) /* between checks of RSS; of allocated bytes: twice as long */
#define SHORTEST_STEP_NS (100 * NS_PER_MS)
#define MOUNTS_MAX       64

int dump_trigger_parse(struct dump_trigger *ret_t, const char *text, struct err *err)
{
	struct sv s = sv_from_str(text);
	struct dump_trigger t = {.kind = DUMP_BY_TIME};
	bool is_good;
	if (sv_has_prefix(s, SV("+")))
		s = sv_from_idx(s, 1);
	if (sv_has_suffix(s, SV("-allocated"))) {
		t.kind = DUMP_BY_ALLOCATED;
		s.n -= 10;
		is_good = num_parse_bytes(s, &t.step);
	} else if (sv_has_suffix(s, SV("-rss"))) {
		t.kind = DUMP_BY_RSS;
		s.n -= 4;
		is_good = num_parse_bytes(s, &t.step);
	} else {
		is_good = clock_parse_duration(s, &t.step) && t.step >= SHORTEST_STEP_NS;
	}
	if (!is_good || !t.step)
		return err_set(err, -EINVAL,
			       "'%s' is none of: a time of 100ms or more (10s), SIZE-allocated "
			       "(8GiB-allocated), +SIZE-rss (+1GiB-rss)",
			       text);
	*ret_t = t;
	return 0;
}

/* ---- a process ----------------------------------------------------------------------------- */

void dumps_release(struct dumps *d)
{
	vec_foreach(p, &d->list) {
		cleanup_release(&p->cleanup);
		heap_plan_release(&p->plan);
		free(p->variable);
		free(p->label);
		free(p->newest);
		close_p(&p->root_fd);
		vec_foreach(k, &p->kept)
			store_place_release(k);
		vec_release(&p->kept);
	}
	vec_release(&d->list);
	heaptargets_free(d->targets);
}

static int no_jemalloc(const struct heap_plan *plan, const char *label, const char *what,
		       struct err *err)
{
	if (plan->allocator != HEAP_ALLOCATOR_JEMALLOC) {
		(void)err_set(err, -ENOTSUP,
			      "%s: %s need jemalloc, but this process uses another "
			      "allocator (%s)",
			      label, what, plan->allocator_text);
		return err_hint(err, "`assay heap` without this option records what it allocates, "
				     "whatever the allocator; `assay watch` shows its memory");
	}
	(void)err_set(err, -ENOTSUP, "%s: the functions of its jemalloc were not found (%s)", label,
		      plan->allocator_text);
	return err_hint(err, "keep the symbols of the binary (cargo: strip = false), or install "
			     "its debug file");
}

/* A process can have one tracer only: reports it before attaching to its threads fails. */
static int check_tracer(int32_t pid, struct err *err)
{
	int32_t tracer = 0;
	unsigned seccomp;
	if (host_find_tracer(pid, pid, &tracer, &seccomp) || !tracer)
		return 0;
	return host_refuse_traced(pid, tracer, err);
}

int dumps_add(struct dumps *d, int32_t pid, const char *what, struct err *err)
{
	CLEANUP(buf_release) struct buf label = {0};
	struct dump_process p = {.pid = pid, .root_fd = -1};
	if (!d->targets)
		d->targets = heapplanner_new();
	TRY(proc_comm(&label, pid, pid, err));
	TRY(check_tracer(pid, err));
	buf_addf(&label, " (%d)", pid);
	TRY(heapplanner_plan(d->targets, pid, HEAP_METHOD_NONE, &p.plan, err));
	p.variable = heaptargets_variable(d->targets, pid);
	p.label = buf_detach(&label);
	vec_push(&d->list, p);
	if (p.plan.allocator != HEAP_ALLOCATOR_JEMALLOC || !p.plan.mallctl)
		return no_jemalloc(&p.plan, p.label, what, err);
	return 0;
}

uint64_t dumps_rss(int32_t pid)
{
	struct memstat m;
	return memstat_read(&m, pid, MEMSTAT_COUNTERS, NULL, NULL) ? 0 : m.rss_bytes;
}

/* ---- a dump -------------------------------------------------------------------------------- */

static int copy_dump(int from, int to, uint64_t *ret_n, struct err *err)
{
	char *part CLEANUP(free_p) = xmalloc(COPY_BYTES);
	uint64_t at = 0;
	for (;;) {
		ssize_t n = file_pread_some(from, part, COPY_BYTES, at, err);
		if (n < 0)
			return (int)n;
		if (!n)
			break;
		at += (uint64_t)n;
		if (at > DUMP_BYTES_MAX)
			return err_set(err, -EFBIG, "the dump is larger than 1 GiB");
		TRY(file_write_all(to, part, (size_t)n, err));
	}
	*ret_n = at;
	return at ? 0 : err_set(err, -ENODATA, "jemalloc wrote an empty dump");
}

static int new_place(const struct dumps *d, struct store_place *ret, int *ret_fd, struct err *err)
{
	if (d->path)
		return store_place_foreign_at(ret, ret_fd, d->path, err);
	return store_place_foreign(ret, ret_fd, NULL, d->name, "heap", STORE_DUMP_SUFFIX,
				   clock_real_ns(), err);
}

/* Removes the oldest dumps of this series; those of earlier runs stay. */
static void keep_newest(struct dump_process *p, uint64_t keep)
{
	while (p->kept.n > keep) {
		store_abandon(&p->kept.p[0]);
		store_place_release(&p->kept.p[0]);
		memmove(p->kept.p, p->kept.p + 1, (p->kept.n - 1) * sizeof(*p->kept.p));
		p->kept.n--;
	}
}

static int save(struct dumps *d, struct dump_process *p, int from, struct err *err)
{
	struct store_place place;
	int to CLEANUP(close_p) = -1;
	TRY(new_place(d, &place, &to, err));
	const char *slash = !*place.dir || !strcmp(place.dir, "/") ? "" : "/";
	int rc = copy_dump(from, to, &p->nr_bytes, err);
	if (rc) {
		rc = err_wrap(err, "saving '%s%s%s'", place.dir, slash, place.file);
		if (rc == -ENOSPC || rc == -EDQUOT)
			rc = err_hint(
				err, "free disk space, or start assay in a folder on another disk");
		store_abandon(&place);
		store_place_release(&place);
		return rc;
	}
	free(p->newest);
	p->newest = xasprintf("%s%s%s", place.dir, slash, place.file);
	p->nr_dumps++;
	if (!d->trigger.kind) {
		store_place_release(&place);
		return 0;
	}
	vec_push(&p->kept, place);
	keep_newest(p, d->keep);
	return 0;
}

/* jemalloc writes the dump to a file of the target; it is copied after the thread runs again. */
static int take(const struct dumps *d, struct dump_process *p, int *ret_fd, struct err *err)
{
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	struct jemalloc_prof prof;
	if (d->trigger.kind && !p->nr_dumps && !p->cleanup.pid)
		TRY(jemalloc_guard_sampling(&p->cleanup, p->pid, &p->plan, err));
	TRY(jemalloc_open(&j, p->pid, &p->plan, err));
	TRY(jemalloc_prof_state(j, &prof, err));
	TRY(jemalloc_prof_check(&prof, p->variable, err));
	if (!prof.is_active && d->trigger.kind) {
		TRY(jemalloc_write_bool(j, "prof.active", true, err));
		p->has_enabled_sampling = true;
	}
	TRY(jemalloc_dump(j, ret_fd, err));
	p->is_sampling_off = !prof.is_active && !d->trigger.kind;
	p->stopped_ns = jemalloc_stopped_ns(j);
	jemalloc_close_p(&j);
	if (!p->has_enabled_sampling)
		cleanup_cancel(&p->cleanup);
	return 0;
}

int dumps_make(struct dumps *d, struct dump_process *p, struct err *err)
{
	int fd CLEANUP(close_p) = -1;
	TRY(take(d, p, &fd, err));
	return save(d, p, fd, err);
}

/*
 * Opens the process's root directory, where the binaries named in the dump are, if its mount
 * namespace is not assay's; else -1. Opened early: /proc/PID/root needs capabilities.
 */
static int open_root(int32_t pid)
{
	char *link CLEANUP(free_p) = xasprintf("/proc/%d/ns/mnt", pid);
	char theirs[MOUNTS_MAX];
	char ours[MOUNTS_MAX];
	ssize_t n = readlink(link, theirs, sizeof(theirs));
	ssize_t m = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	if (n <= 0 || (n == m && !memcmp(theirs, ours, (size_t)n)))
		return -1;
	return MAX(hostfile_open_root(pid), -1);
}

void dumps_open_roots(struct dumps *d)
{
	vec_foreach(p, &d->list)
		p->root_fd = open_root(p->pid);
}

/* ---- a series ------------------------------------------------------------------------------ */

static int measure(const struct dumps *d, const struct dump_process *p, uint64_t now_ns,
		   uint64_t *ret_v, struct err *err)
{
	switch (d->trigger.kind) {
	case DUMP_NO_SERIES:
	case DUMP_BY_TIME:
		*ret_v = now_ns;
		return 0;
	case DUMP_BY_RSS:
		*ret_v = dumps_rss(p->pid);
		return *ret_v ? 0 : err_set(err, -ESRCH, "process %d has exited", p->pid);
	case DUMP_BY_ALLOCATED:
		return jemalloc_stats_allocated_total(ret_v, p->pid, &p->plan, err);
	}
	return 0;
}

static bool is_end(int code)
{
	return code == -ESRCH || code == -ENOENT;
}

/* Checks one process and makes a dump if it is due. */
static int look(struct dumps *d, struct dump_process *p, struct err *err)
{
	uint64_t now_ns = clock_mono_ns();
	if (p->is_done || now_ns < p->next_check_ns)
		return 0;
	uint64_t v = 0;
	TRY(measure(d, p, now_ns, &v, err));
	bool is_due = v >= p->last && v - p->last >= d->trigger.step;
	if (!p->nr_dumps || is_due) {
		TRY(dumps_make(d, p, err));
		p->last = v;
	}
	switch (d->trigger.kind) {
	case DUMP_NO_SERIES:
	case DUMP_BY_TIME:
		p->next_check_ns = p->last + d->trigger.step;
		break;
	case DUMP_BY_RSS:
		p->last = MIN(p->last, v); /* RSS may shrink and grow again */
		p->next_check_ns = now_ns + CHECK_NS;
		break;
	case DUMP_BY_ALLOCATED:
		p->next_check_ns = now_ns + 2 * CHECK_NS;
		break;
	}
	return 0;
}

static uint64_t next_check_ns(const struct dumps *d, uint64_t end_ns)
{
	uint64_t at = end_ns;
	vec_foreach(p, &d->list)
		if (!p->is_done)
			at = MIN(at, p->next_check_ns);
	return at;
}

static void wait_until(uint64_t at_ns)
{
	uint64_t now = clock_mono_ns();
	if (at_ns <= now)
		return;
	struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
	uint64_t ms = (at_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	(void)poll(&fd, 1, (int)MIN(ms, 1000)); /* the caller checks why it returned */
	stop_drain();
}

enum dumps_event dumps_next(struct dumps *d, uint64_t end_ns, struct dump_process **ret_p,
			    struct err *err)
{
	for (;;) {
		bool is_left = false;
		while (d->next < d->list.n) {
			struct dump_process *p = *ret_p = &d->list.p[d->next++];
			size_t nr_before = p->nr_dumps;
			int rc = look(d, p, err);
			if (rc == -EAGAIN) { /* every thread was in the allocator: retried soon */
				p->next_check_ns = clock_mono_ns() + CHECK_NS / 5;
				err_release(err);
			} else if (rc) {
				p->is_done = true;
				return is_end(rc) && p->nr_dumps ? DUMPS_EXITED : DUMPS_FAILED;
			} else if (p->nr_dumps > nr_before) {
				return DUMPS_MADE;
			}
		}
		d->next = 0;
		vec_foreach(p, &d->list)
			is_left |= !p->is_done;
		if (is_left)
			wait_until(next_check_ns(d, end_ns));
		if (!is_left || stop_count() || clock_mono_ns() >= end_ns)
			return DUMPS_OVER;
	}
}

int dumps_disable_sampling(struct dump_process *p, struct err *err)
{
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	if (!p->has_enabled_sampling || p->is_done)
		return 0;
	int rc = jemalloc_open(&j, p->pid, &p->plan, err);
	if (!rc)
		rc = jemalloc_write_bool(j, "prof.active", false, err);
	if (!rc || is_end(rc))
		cleanup_cancel(&p->cleanup);
	return is_end(rc) ? 0 : rc;
}
