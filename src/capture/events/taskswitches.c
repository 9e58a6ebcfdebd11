/* Context switches by thread, without privileges; see taskswitches.h. */
#include "base/base.h"
#include "capture/events/taskswitches.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "capture/events/counts.h"
#include "capture/perf/synth.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/proc.h"

#define STATUS_BYTES_MAX (64 << 10)
/* Polling takes at most 1 / this of the time, but polls are at most a second apart. */
#define READ_SHARE  200
#define POLL_MIN_MS 100
#define POLL_MAX_MS 1000

enum switch_kind { SWITCH_BLOCKED, SWITCH_PREEMPTED, SWITCH_NR };

static const struct {
	const char *field;   /* of /proc/TID/status; the kinds are those of getrusage(2) */
	const char *outcome; /* as for sched:sched_switch */
} kinds[SWITCH_NR] = {
	{"voluntary_ctxt_switches", "blocked"},
	{"nonvoluntary_ctxt_switches", "preempted"},
};

struct task {
	int32_t tid;
	uint32_t round; /* number of the last poll that saw it */
	bool has_ended;
	uint64_t nr[SWITCH_NR]; /* as last read */
};

struct taskswitches {
	const struct target *target;
	uint32_t spec; /* of the event's rows */
	VEC(struct task) tasks;
	struct map by_tid;     /* tid -> index into tasks + 1 */
	struct map is_process; /* pid -> 1: a target, 0: not */
	uint32_t round;
	uint64_t start_ns;
	uint64_t read_ns; /* duration of the last poll */
	uint64_t nr_ended;
	struct buf text;
};

static void taskswitches_free(void *self)
{
	struct taskswitches *s = self;
	vec_release(&s->tasks);
	map_release(&s->by_tid);
	map_release(&s->is_process);
	buf_release(&s->text);
	free(s);
}

/* With privileges the other sources count it, with stacks. */
static bool taskswitches_is_wanted(const struct source_env *env)
{
	if (host_sysctl("perf_event_paranoid", 2) < 2 || host_has_cap(HOST_CAP_PERFMON))
		return false;
	vec_foreach(e, &env->counts->set->events)
		if (e->software && e->software->unprivileged &&
		    !strcmp(e->software->unprivileged, taskswitches_source.name))
			return true;
	return false;
}

static int taskswitches_open(void **ret_s, const struct source_env *env, struct err *err UNUSED)
{
	struct taskswitches *s = xcalloc(1, sizeof(*s));
	const struct event_set *set = env->counts->set;
	s->target = env->target;
	for (uint32_t i = 0; i < set->events.n; i++) {
		const struct software_event *e = set->events.p[i].software;
		if (e && e->unprivileged && !strcmp(e->unprivileged, taskswitches_source.name))
			s->spec = env->counts->first_spec + i;
	}
	*ret_s = s;
	return 0;
}

static bool read_counts(struct taskswitches *s, int32_t tid, uint64_t nr[SWITCH_NR])
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/status", tid);
	unsigned found = 0;
	buf_clear(&s->text);
	if (file_read(&s->text, path, STATUS_BYTES_MAX, NULL))
		return false;
	for (struct sv rest = buf_sv(&s->text); rest.n;) {
		struct sv value = sv_split(&rest, '\n');
		struct sv field = sv_split(&value, ':');
		for (unsigned i = 0; i < SWITCH_NR; i++)
			if (sv_eq_str(field, kinds[i].field) && sv_to_u64(sv_trim(value), &nr[i]))
				found |= 1u << i;
	}
	return found == (1u << SWITCH_NR) - 1;
}

/* Switches before the capture are not counted; a thread created during it starts at 0. */
static int read_task(struct taskswitches *s, int32_t pid, int32_t tid,
		     const struct event_sink *sink, struct err *err)
{
	uint64_t nr[SWITCH_NR];
	uint64_t now_ns = MAX(clock_mono_ns(), s->start_ns);
	if (!read_counts(s, tid, nr))
		return 0; /* gone */
	uint32_t *idx = map_put(&s->by_tid, (uint32_t)tid, NULL);
	bool is_new = !*idx || s->tasks.p[*idx - 1].has_ended;
	if (is_new) {
		vec_push(&s->tasks, (struct task){.tid = tid});
		*idx = (uint32_t)s->tasks.n;
		TRY(synth_name(pid, tid, now_ns, sink, err));
	}
	struct task *t = &s->tasks.p[*idx - 1];
	bool is_before = is_new && s->round == 1;
	t->round = s->round;
	for (unsigned i = 0; i < SWITCH_NR; i++) {
		const int64_t values[] = {(int64_t)(nr[i] - t->nr[i]), 0};
		struct event ev = event_aggregate(s->spec, pid, tid, now_ns, values);
		ev.aggregate.detail = kinds[i].outcome;
		if (!is_before && nr[i] > t->nr[i])
			TRY(sink->event(sink->ctx, &ev, err));
		t->nr[i] = nr[i];
	}
	return 0;
}

static int read_process(struct taskswitches *s, int32_t pid, const struct event_sink *sink,
			struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list threads = {0};
	if (proc_threads(&threads, pid, NULL))
		return 0; /* gone */
	for (size_t i = 0; i < threads.pids.n; i++)
		TRY(read_task(s, pid, threads.pids.p[i], sink, err));
	return 0;
}

/* A process's parent is checked once: whether a process is a target never changes. */
static bool is_target_process(struct taskswitches *s, int32_t pid)
{
	const struct target *t = s->target;
	bool is_new;
	int32_t parent;
	bool is_given = t->is_system || pid == t->child;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		is_given = is_given || t->pids.pids.p[i] == pid;
	uint32_t *known = map_put(&s->is_process, (uint32_t)pid, &is_new);
	if (!is_new)
		return *known;
	*known = is_given;
	/* children forked before the capture are not targets, nor those of single threads */
	if (is_given || s->round == 1 || t->tids.pids.n || proc_parent(pid, &parent, NULL))
		return is_given;
	const uint32_t *of_parent = map_get(&s->is_process, (uint32_t)parent);
	bool is_forked = of_parent && *of_parent;
	*map_put(&s->is_process, (uint32_t)pid, NULL) = is_forked;
	return is_forked;
}

static void mark_ended(struct taskswitches *s)
{
	vec_foreach(t, &s->tasks)
		if (!t->has_ended && t->round != s->round) {
			t->has_ended = true;
			s->nr_ended++;
		}
}

static int taskswitches_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct taskswitches *s = self;
	CLEANUP(pid_list_release) struct pid_list all = {0};
	const struct target *t = s->target;
	uint64_t before_ns = clock_mono_ns();
	s->round++;
	TRY(proc_list(&all, err));
	for (size_t i = 0; i < all.pids.n; i++)
		if (is_target_process(s, all.pids.p[i]))
			TRY(read_process(s, all.pids.p[i], sink, err));
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(t->tids.pids.p[i], &pid, NULL))
			TRY(read_task(s, pid, t->tids.pids.p[i], sink, err));
	}
	mark_ended(s);
	s->read_ns = clock_mono_ns() - before_ns;
	return 0;
}

static unsigned taskswitches_poll_timeout(const void *self)
{
	const struct taskswitches *s = self;
	uint64_t ms = s->read_ns * READ_SHARE / NS_PER_MS;
	return (unsigned)MIN(MAX(ms, (uint64_t)POLL_MIN_MS), (uint64_t)POLL_MAX_MS);
}

static int taskswitches_start(void *self, const struct source_env *env,
			      const struct event_sink *sink, struct err *err)
{
	struct taskswitches *s = self;
	s->start_ns = env->start_ns;
	return taskswitches_drain(self, sink, err);
}

static void taskswitches_facts(const void *self, struct profile *p)
{
	const struct taskswitches *s = self;
	CLEANUP(buf_release) struct buf text = {0};
	const char *others = profile_get_fact(p, FACT_ACCURACY);
	if (others)
		buf_addf(&text, "%s; ", others);
	buf_addf(&text,
		 "context-switches: the kernel's count of each thread, read every %u ms; what a "
		 "thread does after its last reading is missing",
		 taskswitches_poll_timeout(s));
	if (s->nr_ended)
		buf_addf(&text, " (%s ended)", num_noun(s->nr_ended, "threads").s);
	profile_fact(p, FACT_ACCURACY, buf_str(&text));
}

const struct source taskswitches_source = {
	.name = "taskswitches",
	.fills = TABLE_SET(EVENTS),
	.is_fallback = true,
	.is_wanted = taskswitches_is_wanted,
	.open = taskswitches_open,
	.start = taskswitches_start,
	.drain = taskswitches_drain,
	.stop = taskswitches_drain,
	.facts = taskswitches_facts,
	.poll_timeout = taskswitches_poll_timeout,
	.free = taskswitches_free,
};
