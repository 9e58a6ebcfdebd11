/* Dumps and statistics of the allocator itself; see heap_dump.h. */
#include "base/base.h"
#include "cmd/heap_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "analyze/allocstats.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/stop.h"
#include "remote/jemalloc.h"
#include "cmd/cmd.h"
#include "capture/heapplanner.h"
#include "cmd/optgroups.h"
#include "host/cachedir.h"
#include "host/caps.h"
#include "host/limits.h"
#include "host/memstat.h"
#include "host/proc.h"
#include "host/procmem.h"
#include "render/jsonout.h"
#include "render/text.h"
#include "session/load.h"
#include "session/store.h"

#define SUFFIX           ".heap"
#define DUMP_BYTES_MAX   ((uint64_t)1 << 30)
#define COPY_BYTES       ((size_t)1 << 18)
#define TOP_ROWS         20
#define CLASS_ROWS       12
#define LOOK_NS          (500 * NS_PER_MS) /* at RSS; at what was allocated twice as rarely */
#define SHORTEST_STEP_NS (100 * NS_PER_MS)
#define MOUNTS_MAX       64

static const struct opt dump_opts[] = {
	OPT_FLAG(0, "dump", struct heap_dump_opts, is_once,
		 "jemalloc's own profile of what is live, once: needs profiling (prof:true) in "
		 "the process, records nothing, writes heap-<time>.heap"),
	OPT_STR(0, "dump-every", struct heap_dump_opts, every, "WHEN",
		"a series of dumps: each 10s (a time), 8GiB-allocated (so much was allocated), "
		"+1GiB-rss (the process has grown by so much); ends with SECONDS or Ctrl-C"),
	OPT_U64_IN(0, "keep", struct heap_dump_opts, keep, 1, 1000000, "K",
		   "keep the newest K dumps of the series (default 10)"),
	OPT_FLAG(0, "stats", struct heap_dump_opts, is_stats,
		 "the allocator's own statistics, with fragmentation by size class: no recording"),
	OPT_FLAG(0, "json", struct heap_dump_opts, is_json, "JSON instead of text"),
	OPT_END,
};
const struct opt_group heap_dump_group = {"Of the allocator itself (jemalloc)", dump_opts};

bool heap_dump_is_asked(const struct heap_dump_opts *o)
{
	return o->is_once || o->every || o->is_stats;
}

int heap_dump_parse_trigger(struct dump_trigger *ret_t, const char *text, struct err *err)
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
			       "'%s' is no time of 100ms or more (10s), no SIZE-allocated "
			       "(8GiB-allocated), no +SIZE-rss (+1GiB-rss)",
			       text);
	*ret_t = t;
	return 0;
}

/* ---- a process ----------------------------------------------------------------------------- */

struct dumped {
	int32_t pid;
	struct heap_plan plan;
	char *variable; /* that its jemalloc reads; NULL = not known */
	char *label;    /* "redis-server (4242)" */
	int root_fd;    /* of its mount namespace, if that is another; -1 = none */
	/* Of a series. */
	bool was_off; /* sampling was switched on by us */
	bool is_gone;
	uint64_t last; /* what the trigger counts, at the last dump */
	uint64_t next_look_ns;
	size_t nr_dumps;
	VEC(struct store_place) kept; /* oldest first */
	char *newest;                 /* path of the newest dump */
};

struct dumper {
	const struct heap_dump_opts *o;
	struct heaptargets *targets;
	const char *name; /* of the target, for folders */
	const char *path; /* of -o */
	struct dump_trigger trigger;
	VEC(struct dumped) list;
};

static void dumper_release(struct dumper *d)
{
	vec_foreach(p, &d->list) {
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
			      "%s: %s are jemalloc's, and this process has another "
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

/* Only one may trace a process: told before its threads are tried in vain. */
static int check_tracer(int32_t pid, struct err *err)
{
	int32_t tracer = 0;
	unsigned seccomp;
	if (host_trace_state(pid, &tracer, &seccomp) || !tracer)
		return 0;
	(void)err_set(err, -EPERM, "process %d is traced by process %d already", pid, tracer);
	return err_hint(err, "end that debugger or strace first");
}

static int add_process(struct dumper *d, int32_t pid, const char *what, struct err *err)
{
	CLEANUP(buf_release) struct buf label = {0};
	struct dumped p = {.pid = pid, .root_fd = -1};
	TRY(proc_comm(&label, pid, pid, err));
	TRY(check_tracer(pid, err));
	buf_addf(&label, " (%d)", pid);
	TRY(heapplanner_plan(d->targets, pid, HEAP_TIER_NONE, &p.plan, err));
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	if (!heaptargets_look(d->targets, pid, &h, NULL)) {
		const struct heaptarget_image *m = heaptarget_jemalloc(&h);
		if (m && m->found->jemalloc.variable)
			p.variable = xstrdup(m->found->jemalloc.variable);
	}
	p.label = buf_detach(&label);
	vec_push(&d->list, p);
	if (p.plan.allocator != HEAP_ALLOCATOR_JEMALLOC || !p.plan.mallctl)
		return no_jemalloc(&p.plan, p.label, what, err);
	return 0;
}

static uint64_t rss_of(int32_t pid)
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

static int new_place(const struct dumper *d, struct store_place *ret, int *ret_fd, struct err *err)
{
	if (d->path && !d->o->every)
		return store_place_foreign_at(ret, ret_fd, d->path, err);
	return store_place_foreign(ret, ret_fd, NULL, d->name, "heap", SUFFIX, clock_real_ns(),
				   err);
}

/* The oldest of the series make room; those of earlier runs stay. */
static void keep_newest(struct dumped *p, uint64_t keep)
{
	while (p->kept.n > keep) {
		store_abandon(&p->kept.p[0]);
		store_place_release(&p->kept.p[0]);
		memmove(p->kept.p, p->kept.p + 1, (p->kept.n - 1) * sizeof(*p->kept.p));
		p->kept.n--;
	}
}

static int save(struct dumper *d, struct dumped *p, int from, uint64_t *ret_n, struct err *err)
{
	struct store_place place;
	int to CLEANUP(close_p) = -1;
	TRY(new_place(d, &place, &to, err));
	const char *slash = !*place.dir || !strcmp(place.dir, "/") ? "" : "/";
	int rc = copy_dump(from, to, ret_n, err);
	if (rc) {
		rc = err_wrap(err, "saving '%s%s%s'", place.dir, slash, place.file);
		if (rc == -ENOSPC || rc == -EDQUOT)
			rc = err_hint(err, "make room, or start assay in a folder of another disk");
		store_abandon(&place);
		store_place_release(&place);
		return rc;
	}
	free(p->newest);
	p->newest = xasprintf("%s%s%s", place.dir, slash, place.file);
	p->nr_dumps++;
	if (!d->o->every) {
		store_place_release(&place);
		return 0;
	}
	vec_push(&p->kept, place);
	keep_newest(p, d->o->keep ? d->o->keep : HEAP_DUMP_KEEP);
	return 0;
}

static void tell_dump(const struct dumped *p, uint64_t nr_bytes, uint64_t stopped_ns)
{
	CLEANUP(buf_release) struct buf line = {0};
	num_add_bytes(&line, nr_bytes);
	uint64_t rss = rss_of(p->pid);
	if (rss) {
		buf_add_str(&line, ", the process has ");
		num_add_bytes(&line, rss);
		buf_add_str(&line, " of memory");
	}
	buf_add_str(&line, "; one thread was held for ");
	num_add_ns(&line, stopped_ns);
	log_note("%s: %s (%s)", p->label, p->newest, buf_str(&line));
}

static int dump_process(struct dumper *d, struct dumped *p, struct err *err)
{
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	struct jemalloc_prof prof;
	int fd CLEANUP(close_p) = -1;
	int rc = jemalloc_open(&j, p->pid, &p->plan, err);
	if (!rc)
		rc = jemalloc_prof_state(j, &prof, err);
	if (!rc)
		rc = jemalloc_prof_check(&prof, p->variable, err);
	if (!rc && !prof.is_active && d->o->every) {
		rc = jemalloc_write_bool(j, "prof.active", true, err);
		p->was_off = !rc;
	}
	if (!rc)
		rc = jemalloc_dump(j, &fd, err);
	uint64_t stopped_ns = j ? jemalloc_stopped_ns(j) : 0;
	jemalloc_close(TAKE(j)); /* before anything is written here: it waits for us */
	if (rc)
		return rc;
	if (!prof.is_active && !d->o->every)
		log_warn("%s: sampling is off (prof.active), so the dump has only what was sampled "
			 "before that; `assay heap --dump-every` switches it on",
			 p->label);
	uint64_t nr_bytes = 0;
	rc = save(d, p, fd, &nr_bytes, err);
	if (!rc)
		tell_dump(p, nr_bytes, stopped_ns);
	return rc;
}

/* ---- reading it back ----------------------------------------------------------------------- */

/*
 * Where the binaries are that the dump names: in the process's root, if that is not ours; else -1.
 * Open, as what may be looked up below /proc/PID goes with the capabilities.
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
	char *root CLEANUP(free_p) = xasprintf("/proc/%d/root", pid);
	return open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int print_page(const struct dumped *p, struct err *err)
{
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	CLEANUP(free_p)
	char *symfs = p->root_fd < 0 ? NULL : xasprintf("/proc/self/fd/%d", p->root_fd);
	struct load_options options = {.cache_dir = cache_dir, .symfs = symfs};
	struct profile *profile = NULL;
	TRY(load_profile(&profile, p->newest, &options, err));
	CLEANUP(report_free_p) struct report *r = report_new();
	struct select_spec spec = {0};
	struct view_limits limits = {.max_rows = TOP_ROWS};
	int rc = views_page(r, profile, &spec, p->newest, &limits, err);
	CLEANUP(buf_release) struct buf text = {0};
	if (!rc) {
		struct text_style style = output_style(STDOUT_FILENO);
		text_render(&text, r, &style);
	}
	profile_free(profile);
	return rc ? rc : cmd_print(&text) == EXIT_OK ? 0 : -EPIPE;
}

static int dump_once(struct dumper *d)
{
	CLEANUP(err_release) struct err err = {0};
	int status = EXIT_OK;
	vec_foreach(p, &d->list) {
		if (dump_process(d, p, &err))
			status = cmd_fail(&err);
		err_clear(&err);
	}
	vec_foreach(p, &d->list)
		p->root_fd = open_root(p->pid);
	host_lower_priority();
	host_keep_caps(HOST_NAMING);
	vec_foreach(p, &d->list) {
		if (p->newest && print_page(p, &err))
			status = err.code == -EPIPE ? EXIT_FAILED : cmd_fail(&err);
		err_clear(&err);
	}
	return status;
}

/* ---- a series ------------------------------------------------------------------------------ */

/* Bytes that were ever allocated, by the exact counts of each size class. */
static int allocated_so_far(const struct dumped *p, uint64_t *ret_bytes, struct err *err)
{
	return jemalloc_stats_ever(ret_bytes, p->pid, &p->plan, err);
}

static int measure(const struct dumper *d, const struct dumped *p, uint64_t now_ns, uint64_t *ret_v,
		   struct err *err)
{
	switch (d->trigger.kind) {
	case DUMP_BY_TIME:
		*ret_v = now_ns;
		return 0;
	case DUMP_BY_RSS:
		*ret_v = rss_of(p->pid);
		return *ret_v ? 0 : err_set(err, -ESRCH, "process %d has ended", p->pid);
	case DUMP_BY_ALLOCATED:
		return allocated_so_far(p, ret_v, err);
	}
	return 0;
}

static bool is_end(int code)
{
	return code == -ESRCH || code == -ENOENT;
}

/* One look at one process; a dump if it is due. */
static int look(struct dumper *d, struct dumped *p, struct err *err)
{
	uint64_t now_ns = clock_mono_ns();
	if (p->is_gone || now_ns < p->next_look_ns)
		return 0;
	uint64_t v = 0;
	TRY(measure(d, p, now_ns, &v, err));
	bool is_due = v >= p->last && v - p->last >= d->trigger.step;
	if (!p->nr_dumps || is_due) {
		TRY(dump_process(d, p, err));
		p->last = v;
	}
	switch (d->trigger.kind) {
	case DUMP_BY_TIME:
		p->next_look_ns = p->last + d->trigger.step;
		break;
	case DUMP_BY_RSS:
		p->last = MIN(p->last, v); /* what shrank may grow again */
		p->next_look_ns = now_ns + LOOK_NS;
		break;
	case DUMP_BY_ALLOCATED:
		p->next_look_ns = now_ns + 2 * LOOK_NS;
		break;
	}
	return 0;
}

static uint64_t next_look_ns(const struct dumper *d, uint64_t end_ns)
{
	uint64_t at = end_ns;
	vec_foreach(p, &d->list)
		if (!p->is_gone)
			at = MIN(at, p->next_look_ns);
	return at;
}

static void wait_until(uint64_t at_ns)
{
	uint64_t now = clock_mono_ns();
	if (at_ns <= now)
		return;
	struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
	uint64_t ms = (at_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	(void)poll(&fd, 1, (int)MIN(ms, 1000)); /* why it ended is looked at by the caller */
	stop_drain();
}

static void switch_off(struct dumped *p)
{
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	CLEANUP(err_release) struct err err = {0};
	int rc = jemalloc_open(&j, p->pid, &p->plan, &err);
	if (!rc)
		rc = jemalloc_write_bool(j, "prof.active", false, &err);
	if (rc && !is_end(rc))
		log_warn("%s: sampling stays on: %s", p->label, err_msg(&err));
}

static int end_series(struct dumper *d, int status)
{
	vec_foreach(p, &d->list) {
		if (p->was_off && !p->is_gone)
			switch_off(p);
		if (!p->nr_dumps) {
			status = status == EXIT_OK ? EXIT_NOTHING : status;
			continue;
		}
		log_note("%s: %zu dump%s, %zu kept", p->label, p->nr_dumps,
			 p->nr_dumps == 1 ? "" : "s", p->kept.n);
		if (p->kept.n > 1)
			log_hint("assay diff %s/%s %s", p->kept.p[0].dir, p->kept.p[0].file,
				 p->newest);
		else
			log_hint("assay report %s", p->newest);
	}
	return status;
}

static int dump_series(struct dumper *d, uint64_t duration_ns)
{
	CLEANUP(err_release) struct err err = {0};
	if (stop_install(&err))
		return cmd_fail(&err);
	uint64_t end_ns = duration_ns ? clock_mono_ns() + duration_ns : UINT64_MAX;
	int status = EXIT_OK;
	size_t nr_left = d->list.n;
	while (nr_left && !stop_count() && clock_mono_ns() < end_ns) {
		vec_foreach(p, &d->list) {
			int rc = look(d, p, &err);
			if (rc == -EAGAIN) { /* every thread was in the allocator: again soon */
				p->next_look_ns = clock_mono_ns() + LOOK_NS / 5;
			} else if (rc) {
				p->is_gone = true;
				nr_left--;
				if (is_end(rc) && p->nr_dumps)
					log_note("%s has ended", p->label);
				else
					status = cmd_fail(&err);
			}
			err_clear(&err);
		}
		wait_until(next_look_ns(d, end_ns));
	}
	return end_series(d, status);
}

/* ---- statistics ---------------------------------------------------------------------------- */

static struct allocstats_class *classes_of(const struct jemalloc_stats *s)
{
	struct allocstats_class *c = xcalloc(s->classes.n + 1, sizeof(*c));
	for (size_t i = 0; i < s->classes.n; i++) {
		const struct jemalloc_class *j = &s->classes.p[i];
		c[i] = (struct allocstats_class){j->size_bytes, j->nr_live, j->nr_slabs,
						 j->slab_bytes, j->nr_per_slab};
	}
	return c;
}

static int add_stats(struct report *r, const struct dumper *d, const struct dumped *p,
		     struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct jemalloc_stats s = {0};
	TRY(jemalloc_stats_read(&s, p->pid, &p->plan, err));
	if (!s.has_stats) {
		(void)err_set(err, -ENOTSUP, "%s: this jemalloc was built without statistics",
			      p->label);
		return err_hint(err, "build it without --disable-stats (tikv-jemallocator: "
				     "features = [\"stats\"])");
	}
	struct allocstats_class *classes CLEANUP(free_p) = classes_of(&s);
	const struct allocstats out = {
		.process = p->label,
		.allocator = p->plan.allocator_text,
		.allocated_bytes = s.allocated_bytes,
		.active_bytes = s.active_bytes,
		.metadata_bytes = s.metadata_bytes,
		.resident_bytes = s.resident_bytes,
		.mapped_bytes = s.mapped_bytes,
		.retained_bytes = s.retained_bytes,
		.dirty_bytes = s.dirty_bytes,
		.muzzy_bytes = s.muzzy_bytes,
		.tcache_bytes = s.tcache_bytes,
		.rss_bytes = rss_of(p->pid),
		.dirty_decay_ms = s.dirty_decay_ms,
		.has_background_thread = s.has_background_thread,
		.nr_arenas = s.nr_arenas,
		.nr_threads = s.nr_threads,
		.classes = classes,
		.nr_classes = s.classes.n,
	};
	allocstats_report(r, &out, d->o->is_json ? 0 : CLASS_ROWS);
	CLEANUP(buf_release) struct buf held = {0};
	num_add_ns(&held, s.stopped_ns);
	log_info("asked in %u sessions, one thread was held for %s at most", s.nr_sessions,
		 buf_str(&held));
	return 0;
}

static int print_stats(struct dumper *d)
{
	int status = EXIT_OK;
	const struct output_opts out = {.path = d->path};
	CLEANUP(buf_release) struct buf text = {0};
	vec_foreach(p, &d->list) {
		CLEANUP(err_release) struct err err = {0};
		CLEANUP(report_free_p) struct report *r = report_new();
		r->title = "allocator statistics";
		if (add_stats(r, d, p, &err)) {
			status = cmd_fail(&err);
			continue;
		}
		struct text_style style = output_style(STDOUT_FILENO);
		if (d->o->is_json)
			jsonout_render(&text, r);
		else
			text_render(&text, r, &style);
	}
	int rc = text.n ? output_write(&out, &text) : EXIT_OK;
	return status == EXIT_OK ? rc : status;
}

/* ---- the modes ----------------------------------------------------------------------------- */

static int check(const struct heap_dump_opts *o, const struct chosen_target *t, struct dumper *d,
		 struct err *err)
{
	if (o->is_once + !!o->every + o->is_stats > 1)
		return err_set(err, -EINVAL, "one of --dump, --dump-every and --stats at a time");
	if (o->keep && !o->every)
		return err_set(err, -EINVAL, "--keep goes with --dump-every");
	if (!t->has_target || t->target.is_system || !t->target.pids.pids.n)
		return err_set(err, -EINVAL, "--%s needs a process that runs: a name, or -p PID",
			       o->is_stats  ? "stats"
			       : o->is_once ? "dump"
					    : "dump-every");
	if (d->path && (o->every || (o->is_once && t->target.pids.pids.n > 1)))
		return err_set(err, -EINVAL, "-o names one file, and this writes several");
	return o->every ? heap_dump_parse_trigger(&d->trigger, o->every, err) : 0;
}

int heap_dump_run(const struct heap_dump_opts *o, const struct chosen_target *target,
		  const char *path)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(dumper_release)
	struct dumper d = {.o = o, .name = target->target.name, .path = path};
	if (check(o, target, &d, &err))
		return cmd_usage("heap", "%s", err_msg(&err));
	d.targets = heapplanner_new();
	host_raise_priority(); /* a thread of the target waits for each of our steps */
	vec_foreach(pid, &target->target.pids.pids)
		if (add_process(&d, *pid, o->is_stats ? "these statistics" : "dumps", &err))
			return cmd_fail(&err);
	if (o->is_stats)
		return print_stats(&d);
	return o->is_once ? dump_once(&d) : dump_series(&d, target->duration_ns);
}
