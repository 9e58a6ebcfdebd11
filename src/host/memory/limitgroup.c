/* Runs a command under a memory limit; see limitgroup.h. */
#include "base/base.h"
#include "host/memory/limitgroup.h"

#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/memory/memstat.h"

#define POINTS_MAX 400
#define SPACING_NS 10000000u /* between points at first */
#define DATA_NS    5000000   /* between readings without a cgroup */

/* How long a killed process frees its memory, at least and at most; it has ended at this part of share_of_parts. */
#define KILL_FREES_NS (100 * NS_PER_MS)
#define KILL_ENDS_NS  (5 * NS_PER_SEC)
#define KILL_SHARE    0.8

struct limitgroup {
	struct limit_spec spec;
	struct memgroup_tree tree;
	struct memgroup group;
	int event_fd;
	int32_t pid;
	bool is_closed;
	uint64_t spacing_ns;
	uint64_t next_ns;
	uint64_t nr_oom_kill; /* at the last sample */
	struct limit_point last;
	uint64_t kill_ends_ns; /* until then a killed process may be freeing its memory */
	double kill_share;     /* of the sum, that the parts had before */
	struct memgroup_numbers before;
	struct limit_outcome outcome;
};

void limitgroup_free(struct limitgroup *l)
{
	if (!l)
		return;
	(void)limitgroup_close(l, NULL); /* on failure the cleanup process tries again */
	close_p(&l->event_fd);
	memgroup_release(&l->group);
	memgroup_tree_release(&l->tree);
	vec_release(&l->outcome.points);
	free_p(&l);
}

static int open_group(struct limitgroup *l, struct err *err)
{
	bool has_swap = false;
	size_t nr_left;
	TRY(memgroup_tree_open(&l->tree, "/", err));
	/* removes cgroups of runs that were killed together with their cleanup processes */
	(void)memgroup_clean(&l->tree, &nr_left, NULL);
	TRY(memgroup_make(&l->group, &l->tree, err));
	TRY(memgroup_start_cleanup(&l->group, err));
	TRY(memgroup_limit(&l->group, l->spec.memory_bytes, l->spec.swap_bytes, &has_swap, err));
	l->outcome.has_group = true;
	l->outcome.has_swap = has_swap && l->spec.swap_bytes != MEMGROUP_NO_LIMIT;
	/* without the event the last sample before a kill is up to 50 ms old */
	(void)memgroup_open_oom(&l->group, &l->event_fd, NULL);
	return 0;
}

/* Nothing tells when RLIMIT_DATA refuses memory: it is read often. */
static int open_timer(struct limitgroup *l, struct err *err)
{
	const struct itimerspec every = {{.tv_nsec = DATA_NS}, {.tv_nsec = DATA_NS}};
	l->event_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->event_fd < 0 || timerfd_settime(l->event_fd, 0, &every, NULL))
		return err_sys(err, "cannot make a timer");
	return 0;
}

int limitgroup_open(struct limitgroup **ret_l, const struct limit_spec *spec, struct err *err)
{
	CLEANUP(limitgroup_free_p) struct limitgroup *l = xcalloc(1, sizeof(*l));
	*l = (struct limitgroup){.spec = *spec,
				 .tree = MEMGROUP_TREE_INIT,
				 .group = MEMGROUP_INIT,
				 .event_fd = -1,
				 .spacing_ns = SPACING_NS};
	TRY(spec->flags & LIMIT_RLIMIT ? open_timer(l, err) : open_group(l, err));
	*ret_l = TAKE(l);
	return 0;
}

int limitgroup_fd(const struct limitgroup *l)
{
	return l->event_fd;
}

const char *limitgroup_path(const struct limitgroup *l)
{
	return l->group.path;
}

int limitgroup_put(struct limitgroup *l, int32_t pid, struct err *err)
{
	l->pid = pid;
	if (!l->outcome.has_group) {
		struct rlimit limit = {l->spec.memory_bytes, l->spec.memory_bytes};
		if (prlimit(pid, RLIMIT_DATA, &limit, NULL))
			return err_sys(err, "cannot limit the memory of process %d", pid);
		return 0;
	}
	TRY(memgroup_add(&l->group, pid, err));
	return memgroup_read(&l->group, &l->tree, &l->before, err);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Drops every second point and doubles the spacing. */
static void halve_points(struct limitgroup *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->outcome.points.n; i += 2)
		l->outcome.points.p[n++] = l->outcome.points.p[i];
	l->outcome.points.n = n;
	l->spacing_ns *= 2;
}

static void add_point(struct limitgroup *l, const struct limit_point *p)
{
	struct limit_outcome *s = &l->outcome;
	struct limit_point *h = &s->highest;
	h->usage_bytes = MAX(h->usage_bytes, p->usage_bytes);
	h->anon_bytes = MAX(h->anon_bytes, p->anon_bytes);
	h->file_bytes = MAX(h->file_bytes, p->file_bytes);
	h->swap_bytes = MAX(h->swap_bytes, p->swap_bytes);
	if (p->usage_bytes >= s->largest.usage_bytes)
		s->largest = *p;
	if (p->time_ns < l->next_ns)
		return;
	if (s->points.n >= POINTS_MAX)
		halve_points(l);
	vec_push(&s->points, *p);
	l->next_ns = p->time_ns + l->spacing_ns;
}

/* Which share of what is in use the parts add up to; the rest is the kernel's. */
static double share_of_parts(const struct limit_point *p)
{
	return p->usage_bytes ? (double)(p->anon_bytes + p->file_bytes) / (double)p->usage_bytes
			      : 0;
}

/*
 * Of a reading during a kill, one number is of before and one of after. The killed process frees for a
 * while, in which the parts fall before their sum does.
 */
static void on_kill(struct limitgroup *l, const struct limit_point *p)
{
	/* the killed process may have freed memory since: the larger of two samples is used */
	l->outcome.at_kill = p->usage_bytes > l->last.usage_bytes ? *p : l->last;
	l->kill_share = share_of_parts(&l->last);
	l->kill_ends_ns = p->time_ns + KILL_ENDS_NS;
	l->next_ns = MAX(l->next_ns, p->time_ns + KILL_FREES_NS);
}

static bool is_during_kill(const struct limitgroup *l, const struct limit_point *p)
{
	return p->time_ns < l->kill_ends_ns && share_of_parts(p) < KILL_SHARE * l->kill_share;
}

/* Reads the pending events. Their content is not used: they only say that something happened. */
static void drain_events(struct limitgroup *l)
{
	char bytes[512];
	while (l->event_fd >= 0 && read(l->event_fd, bytes, sizeof(bytes)) > 0)
		;
}

static struct limit_point point_of(const struct limitgroup *l, const struct memgroup_numbers *n,
				   uint64_t now)
{
	return (struct limit_point){.time_ns = now - l->outcome.start_ns,
				    .usage_bytes = n->usage_bytes,
				    .anon_bytes = n->anon_bytes,
				    .file_bytes = n->file_bytes,
				    .swap_bytes = n->swap_bytes};
}

static void sample_group(struct limitgroup *l, uint64_t now)
{
	struct memgroup_numbers n;
	drain_events(l);
	if (memgroup_read(&l->group, &l->tree, &n, NULL))
		return;
	struct limit_point p = point_of(l, &n, now);
	l->outcome.numbers = memgroup_since(&l->before, &n);
	if (l->outcome.numbers.nr_oom_kill > l->nr_oom_kill)
		on_kill(l, &p);
	/* What the kernel still counts in an empty group is not the command's use of memory. */
	if (memgroup_has_processes(&l->group) && !is_during_kill(l, &p))
		add_point(l, &p);
	l->nr_oom_kill = l->outcome.numbers.nr_oom_kill;
	l->last = p;
}

/* Without a cgroup: samples the launched process alone. */
static void sample_process(struct limitgroup *l, uint64_t now)
{
	struct memstat m;
	drain_events(l);
	if (memstat_read(&m, l->pid, MEMSTAT_COUNTERS, NULL, NULL) || !m.rss_bytes)
		return;
	l->outcome.numbers = (struct memgroup_numbers){.has = MEMGROUP_HAS_PEAK,
						       .limit_bytes = l->spec.memory_bytes,
						       .limit_above_bytes = MEMGROUP_NO_LIMIT,
						       .swap_limit_bytes = MEMGROUP_NO_LIMIT,
						       .usage_bytes = m.rss_bytes,
						       .peak_bytes = m.peak_rss_bytes,
						       .swap_bytes = m.swap_bytes,
						       .anon_bytes = m.anon_bytes,
						       .file_bytes = m.file_bytes,
						       .shmem_bytes = m.shmem_bytes};
	l->outcome.data_bytes = MAX(l->outcome.data_bytes, m.data_bytes);
	struct limit_point p = point_of(l, &l->outcome.numbers, now);
	add_point(l, &p);
}

void limitgroup_sample(struct limitgroup *l)
{
	if (l->is_closed || !l->pid)
		return;
	uint64_t now = clock_mono_ns();
	/* The first sample comes when the command begins to run; before, assay prepares the capture. */
	if (!l->outcome.start_ns)
		l->outcome.start_ns = now;
	l->outcome.duration_ns = now - l->outcome.start_ns;
	if (l->outcome.has_group)
		sample_group(l, now);
	else
		sample_process(l, now);
}

int limitgroup_close(struct limitgroup *l, struct err *err)
{
	if (l->is_closed)
		return 0;
	uint64_t duration_ns = l->outcome.duration_ns;
	limitgroup_sample(l);
	if (duration_ns) /* the command had ended at the last sample; assay was busy since */
		l->outcome.duration_ns = duration_ns;
	l->is_closed = true;
	return l->group.name ? memgroup_remove(&l->group, &l->outcome.nr_moved, err) : 0;
}

const struct limit_outcome *limitgroup_outcome(const struct limitgroup *l)
{
	return &l->outcome;
}
