/* Phases by functions; see phasefuncs.h. */
#include "base/base.h"
#include "session/bench/phasefuncs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/vec.h"
#include "capture/perf/ring.h"
#include "host/limits.h"
#include "plan/spanprobes.h"

#define UPROBE_TYPE  "/sys/bus/event_source/devices/uprobe/type"
#define CPUS_MAX     1024
#define RING_PAGES   32u
#define RETPROBE     1u /* format/retprobe: config:0 */
#define SEMAPHORE_AT 32 /* format/ref_ctr_offset: config:32-63 */

struct phase {
	const char *name;
	bool is_pair; /* ends at a place of its own: calls are not nested */
	uint64_t depth;
};

/* A place in a binary, probed once even if several commands have it. */
struct site {
	int fd; /* of probes */
	dev_t dev;
	ino_t ino;
	uint64_t offset;
	uint64_t semaphore_offset;
	bool is_return;
	bool is_end;
	size_t phase;
};

struct site_event {
	uint64_t id; /* the kernel's */
	int fd;
	size_t site;
};

struct hit {
	uint64_t time_ns;
	int32_t pid;
	size_t site;
};

struct phasefuncs {
	VEC(struct phase) phases;
	VEC(struct span_probes) probes; /* own the descriptors of sites */
	VEC(struct site) sites;
	VEC(struct site_event) events;
	VEC(struct ring) rings;
	VEC(struct hit) hits; /* read, and not passed on yet */
	int epoll_fd;
	uint64_t nr_lost;
};

struct phasefuncs *phasefuncs_new(void)
{
	struct phasefuncs *f = xcalloc(1, sizeof(*f));
	f->epoll_fd = -1;
	return f;
}

void phasefuncs_free(struct phasefuncs *f)
{
	if (!f)
		return;
	vec_foreach(r, &f->rings)
		ring_release(r);
	vec_foreach(e, &f->events)
		close_p(&e->fd);
	vec_foreach(p, &f->probes)
		span_probes_release(p);
	close_p(&f->epoll_fd);
	vec_release(&f->rings);
	vec_release(&f->events);
	vec_release(&f->probes);
	vec_release(&f->sites);
	vec_release(&f->phases);
	vec_release(&f->hits);
	free(f);
}

/* ---- places ----------------------------------------------------------------------------------- */

static bool is_same(const struct site *a, const struct site *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->offset == b->offset &&
	       a->is_return == b->is_return && a->is_end == b->is_end && a->phase == b->phase;
}

static int add_site(struct phasefuncs *f, const struct span_point *at, struct site s,
		    struct err *err)
{
	struct stat st;
	if (fstat(at->fd, &st))
		return err_sys(err, "cannot read the program");
	s.fd = at->fd;
	s.dev = st.st_dev;
	s.ino = st.st_ino;
	s.offset = at->offset;
	s.semaphore_offset = at->semaphore_offset;
	vec_foreach(other, &f->sites)
		if (is_same(other, &s))
			return 0;
	vec_push(&f->sites, s);
	return 0;
}

static int add_probe(struct phasefuncs *f, const struct span_probe *p, size_t phase,
		     struct err *err)
{
	for (size_t i = 0; i < p->nr_from; i++) {
		TRY(add_site(f, &p->from[i], (struct site){.phase = phase}, err));
		if (!p->nr_to)
			TRY(add_site(
				f, &p->from[i],
				(struct site){.phase = phase, .is_return = true, .is_end = true},
				err));
	}
	for (size_t i = 0; i < p->nr_to; i++)
		TRY(add_site(f, &p->to[i], (struct site){.phase = phase, .is_end = true}, err));
	return 0;
}

static size_t phase_of(struct phasefuncs *f, const char *name, bool is_pair)
{
	for (size_t i = 0; i < f->phases.n; i++)
		if (!strcmp(f->phases.p[i].name, name))
			return i;
	vec_push(&f->phases, (struct phase){.name = name, .is_pair = is_pair});
	return f->phases.n - 1;
}

/* Words after the first one: of "taskset -c 1 ./app" the program is not the first. */
int phasefuncs_add(struct phasefuncs *f, const char *name, const char *span, char *const *words,
		   struct err *err)
{
	for (size_t i = 0; words[i]; i++) {
		CLEANUP(err_release) struct err e = {0};
		struct span_probes found = {0};
		char *command[] = {words[i], NULL};
		int rc = span_probes_find(&found, &span, 1, NULL, command, &e);
		if (!rc) {
			size_t phase = phase_of(f, name, strstr(span, "..") != NULL);
			for (size_t k = 0; k < found.list.n && !rc; k++)
				rc = add_probe(f, &found.list.p[k], phase, err);
			vec_push(&f->probes, found);
			return rc;
		}
		span_probes_release(&found);
		if (!i || rc != -ENOENT)
			err_move(err, &e);
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

/* ---- events ----------------------------------------------------------------------------------- */

static int refused(struct err *err, int rc)
{
	err_set(err, rc, "cannot probe functions: %s", strerror(-rc));
	if (rc == -EACCES || rc == -EPERM)
		err_hint(err,
			 "--phase-function needs CAP_PERFMON: run with sudo, or let the program "
			 "mark its phases (--phase NAME)");
	return rc;
}

static int open_event(struct phasefuncs *f, size_t site, uint32_t type, int32_t cpu,
		      struct err *err)
{
	const struct site *s = &f->sites.p[site];
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fd/%d", s->fd);
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = (s->is_return ? RETPROBE : 0) | s->semaphore_offset << SEMAPHORE_AT,
		.uprobe_path = (uintptr_t)path,
		.probe_offset = s->offset,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.wakeup_events = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return refused(err, -errno);
	struct site_event e = {.fd = fd, .site = site};
	(void)ioctl(fd, PERF_EVENT_IOC_ID, &e.id);
	vec_push(&f->events, e);
	return 0;
}

/* The events of a CPU write into the ring of the first one. */
static int open_cpu(struct phasefuncs *f, uint32_t type, int32_t cpu, struct err *err)
{
	size_t first = f->events.n;
	for (size_t i = 0; i < f->sites.n; i++)
		TRY(open_event(f, i, type, cpu, err));
	int fd = f->events.p[first].fd;
	struct ring *r = vec_add(&f->rings);
	TRY(ring_open(r, fd, RING_PAGES, err));
	for (size_t i = first + 1; i < f->events.n; i++)
		if (ioctl(f->events.p[i].fd, PERF_EVENT_IOC_SET_OUTPUT, fd))
			return err_sys(err, "cannot share a ring of probes");
	struct epoll_event ev = {.events = EPOLLIN};
	return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &ev)
		       ? err_sys(err, "cannot wait for probes")
		       : 0;
}

int phasefuncs_open(struct phasefuncs *f, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	int32_t cpus[CPUS_MAX];
	size_t nr = MIN(host_cpus(cpus, CPUS_MAX), (size_t)CPUS_MAX);
	uint64_t type;
	if (file_read(&text, UPROBE_TYPE, 64, NULL) || !sv_to_u64(sv_trim(buf_sv(&text)), &type))
		return err_set(err, -ENOTSUP, "the kernel has no probes on functions (uprobes)");
	(void)host_raise_nofile();
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll_fd < 0)
		return err_sys(err, "cannot wait for probes");
	for (size_t i = 0; i < nr; i++)
		TRY(open_cpu(f, (uint32_t)type, cpus[i], err));
	return 0;
}

int phasefuncs_fd(const struct phasefuncs *f)
{
	return f->epoll_fd;
}

/* ---- hits ------------------------------------------------------------------------------------- */

static void take_record(struct phasefuncs *f, const struct perf_event_header *h)
{
	struct {
		uint64_t id;
		int32_t pid, tid;
		uint64_t time_ns;
	} sample;
	uint64_t lost[2]; /* id, how many */
	if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*h) + sizeof(lost)) {
		memcpy(lost, h + 1, sizeof(lost));
		f->nr_lost += lost[1];
	}
	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(sample))
		return;
	memcpy(&sample, h + 1, sizeof(sample));
	vec_foreach(e, &f->events)
		if (e->id == sample.id)
			vec_push(&f->hits, (struct hit){sample.time_ns, sample.pid, e->site});
}

static void read_rings(struct phasefuncs *f)
{
	vec_foreach(r, &f->rings) {
		const struct perf_event_header *h;
		bool is_bad = false;
		ring_refresh(r);
		while ((h = ring_peek(r, &is_bad))) {
			take_record(f, h);
			ring_consume(r, h->size);
		}
		f->nr_lost += is_bad;
		ring_publish(r);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct hit *x = a;
	const struct hit *y = b;
	return COMPARE(x->time_ns, y->time_ns);
}

static void pass_on(struct phasefuncs *f, const struct hit *h, const struct phasefuncs_sink *sink,
		    uint64_t at_ns)
{
	const struct site *s = &f->sites.p[h->site];
	struct phase *p = &f->phases.p[s->phase];
	bool is_edge = s->is_end ? p->depth == 1 : !p->depth;
	if (s->is_end)
		p->depth -= p->depth > 0;
	else
		p->depth = p->is_pair ? 1 : p->depth + 1;
	if (!is_edge)
		return;
	CLEANUP(free_p)
	char *line =
		xasprintf("%s %s %" PRIu64 ".%09" PRIu64 "\n", p->name, s->is_end ? "end" : "begin",
			  (uint64_t)(h->time_ns / NS_PER_SEC), (uint64_t)(h->time_ns % NS_PER_SEC));
	sink->mark(sink->ctx, line, at_ns);
}

/*
 * Rings are read one after the other, so a later hit on another CPU may be read before an earlier one:
 * hits after the time at which reading began wait for the next call.
 */
void phasefuncs_drain(struct phasefuncs *f, const struct phasefuncs_sink *sink)
{
	uint64_t now_ns = clock_mono_ns();
	size_t n = 0;
	read_rings(f);
	if (f->hits.n)
		qsort(f->hits.p, f->hits.n, sizeof(*f->hits.p), by_time);
	for (; n < f->hits.n && f->hits.p[n].time_ns <= now_ns; n++)
		if (sink->has_pid(sink->ctx, f->hits.p[n].pid))
			pass_on(f, &f->hits.p[n], sink, now_ns);
	f->hits.n -= n;
	if (f->hits.n)
		memmove(f->hits.p, f->hits.p + n, f->hits.n * sizeof(*f->hits.p));
}

void phasefuncs_reset(struct phasefuncs *f)
{
	read_rings(f);
	vec_clear(&f->hits);
	vec_foreach(p, &f->phases)
		p->depth = 0;
}

uint64_t phasefuncs_nr_lost(const struct phasefuncs *f)
{
	return f->nr_lost;
}
