/* A capture with jemalloc's own profiling; see prof_capture.h. */
#include "base/base.h"
#include "session/prof_capture.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/process/stop.h"
#include "base/text/num.h"
#include "capture/heap/planner.h"
#include "format/assay/assayfile.h"
#include "host/cachedir.h"
#include "host/syscallfilter.h"
#include "session/load.h"

#define DUMP_BYTES_MAX ((size_t)1 << 30)
#define TICK_MS        200
#define FIRST_DUMP_NS  (200 * NS_PER_MS)
#define DUMP_SHARE     100 /* dumps before the end take at most this part of the time */
#define OPEN_TRIES     20  /* retries while every thread is in the allocator */

static int32_t pid_of(const struct prof_capture *p)
{
	return p->target->pids.pids.p[0];
}

static int open_retry(struct prof_capture *p, struct jemalloc **ret_j, struct err *err)
{
	for (int i = 0;; i++) {
		int rc = jemalloc_open(ret_j, pid_of(p), &p->plan, err);
		if (rc != -EAGAIN || i == OPEN_TRIES)
			return rc;
		err_release(err);
	}
}

typedef int (*ask_fn)(struct prof_capture *p, struct jemalloc *j, void *ctx, struct err *err);

/* Calls @ask with an open connection to jemalloc: a thread of the process is stopped meanwhile. */
static int with_jemalloc(struct prof_capture *p, ask_fn ask, void *ctx, struct err *err)
{
	struct jemalloc *j = NULL;
	TRY(open_retry(p, &j, err));
	int rc = ask(p, j, ctx, err);
	p->stopped_ns = MAX(p->stopped_ns, jemalloc_stopped_ns(j));
	jemalloc_close(j);
	return rc;
}

static unsigned lg_of(uint64_t bytes)
{
	return 63 - (unsigned)__builtin_clzll(bytes);
}

static int check(struct prof_capture *p, struct jemalloc *j, void *variable, struct err *err)
{
	TRY(jemalloc_prof_state(j, &p->before, err));
	return jemalloc_prof_check(&p->before, variable, err);
}

static int enable_sampling(struct prof_capture *p, struct jemalloc *j, void *ctx, struct err *err)
{
	(void)ctx;
	uint64_t lg = p->interval_bytes ? lg_of(p->interval_bytes) : p->before.lg_sample;
	if (lg != p->before.lg_sample) {
		TRY(jemalloc_write(j, "prof.reset", &lg, sizeof(lg), err));
		p->is_reset = true;
	}
	if (!p->before.is_active) {
		TRY(jemalloc_write_bool(j, "prof.active", true, err));
		p->has_enabled = true;
	}
	return 0;
}

static int dump_now(struct prof_capture *p UNUSED, struct jemalloc *j, void *ret_fd,
		    struct err *err)
{
	return jemalloc_dump(j, ret_fd, err);
}

/* A process that is killed takes its profile with it: keeps a dump, each time later by as much again. */
static void keep_dump(struct prof_capture *p, uint64_t now)
{
	int fd = -1;
	if (with_jemalloc(p, dump_now, &fd,
			  NULL)) /* it ends, or every thread is in the allocator */
		fd = -1;
	uint64_t after = clock_mono_ns();
	p->next_dump_ns = after + MAX(now - p->start_ns, DUMP_SHARE * (after - now));
	if (fd < 0)
		return;
	close_p(&p->kept_fd);
	p->kept_fd = fd;
	p->kept_ns = now;
}

static int dump(struct prof_capture *p, struct jemalloc *j, void *ret_fd, struct err *err)
{
	int rc = jemalloc_dump(j, ret_fd, err);
	p->stays_on = p->has_enabled && jemalloc_write_bool(j, "prof.active", false, NULL);
	return rc;
}

/* On failure jemalloc's own unwinder is used, which costs the process more. */
static void install_unwinder(struct prof_capture *p, struct heaptargets *t)
{
	CLEANUP(err_release) struct err why = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0}; /* a second one: it is passed on */
	CLEANUP(free_p) char *cache_dir = host_cache_dir(NULL);
	if (!prof_unwinder_is_possible(&p->plan)) {
		p->no_unwinder = xstrdup("it can be replaced from jemalloc 5.3.0 on");
		return;
	}
	if (heapplanner_plan(t, pid_of(p), HEAP_METHOD_PROF, &plan, &why) ||
	    prof_unwinder_begin(&p->unwinder, p->target, pid_of(p), &plan, cache_dir, &why))
		p->no_unwinder = xstrdup(err_msg(&why));
}

static void remove_unwinder(struct prof_capture *p)
{
	uint64_t ns = p->unwinder ? prof_unwinder_end(TAKE(p->unwinder)) : 0;
	p->stopped_ns = MAX(p->stopped_ns, ns);
}

int prof_capture_begin(struct prof_capture *p, struct err *err)
{
	CLEANUP(heaptargets_free_p) struct heaptargets *t = heapplanner_new();
	CLEANUP(free_p) char *variable = heaptargets_variable(t, pid_of(p));
	if (!target_is_same(p->target, pid_of(p)))
		return err_set(err, -ESRCH, "the target has ended");
	p->watch = (struct watch)WATCH_INIT(p->target);
	p->kept_fd = -1;
	p->cpu_ns = clock_process_cpu_ns();
	TRY(heapplanner_plan(t, pid_of(p), HEAP_METHOD_PROF, &p->plan, err));
	host_confine_tracer(target_has_filter(p->target));
	TRY(with_jemalloc(p, check, variable, err));
	install_unwinder(p, t);
	if (!p->before.is_active)
		TRY(jemalloc_guard_sampling(&p->cleanup, pid_of(p), &p->plan, err));
	TRY(with_jemalloc(p, enable_sampling, NULL, err));
	p->start_ns = clock_mono_ns();
	p->next_dump_ns = p->start_ns + FIRST_DUMP_NS;
	return 0;
}

bool prof_capture_wait(struct prof_capture *p, uint64_t end_ns)
{
	uint64_t now = clock_mono_ns();
	bool is_over = true;
	if (now >= end_ns)
		p->end = CAPTURE_END_TIME;
	else if (stop_count())
		p->end = CAPTURE_END_STOPPED;
	else if (watch_has_ended(&p->watch))
		p->end = CAPTURE_END_TARGET;
	else
		is_over = false;
	if (is_over)
		return false;
	if (now >= p->next_dump_ns)
		keep_dump(p, now);
	struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
	(void)poll(&fd, 1, (int)MIN((end_ns - MIN(now, end_ns)) / NS_PER_MS + 1, TICK_MS));
	stop_drain();
	if (p->unwinder)
		prof_unwinder_tick(p->unwinder);
	return true;
}

/* ---- the result ---------------------------------------------------------------------------- */

static int save_dump(const struct store_place *place, int from, char **ret_path, struct err *err)
{
	CLEANUP(buf_release) struct buf bytes = {0};
	int to CLEANUP(close_p) = -1;
	TRY(file_read_fd(&bytes, from, DUMP_BYTES_MAX, err));
	TRY(store_create(place, STORE_DUMP_SUFFIX, &to, err));
	TRY(file_write_all(to, bytes.p, bytes.n, err));
	*ret_path = store_path(place, STORE_DUMP_SUFFIX);
	return 0;
}

void prof_capture_add_unwinder(const struct prof_capture *p, struct buf *to)
{
	if (p->no_unwinder)
		buf_addf(to, "; stacks by jemalloc's own unwinder (%s)", p->no_unwinder);
	else
		buf_add_str(to, "; stacks by assay's unwinder");
}

/* The profile is of an earlier moment than the end. */
static void add_end(const struct prof_capture *p, struct profile *profile, uint64_t duration_ns)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct procend how = watch_end(&p->watch);
	uint64_t at_ns = p->kept_ns - p->start_ns;
	procend_add(&text, &how);
	buf_addf(&text, "%s %s after the last dump, which is shown", text.n ? "" : "exited",
		 num_ns(duration_ns - MIN(duration_ns, at_ns)).s);
	profile_fact(profile, FACT_TARGET_END, buf_str(&text));
}

static void add_facts(const struct prof_capture *p, struct profile *profile, uint64_t duration_ns)
{
	CLEANUP(buf_release) struct buf method = {0};
	buf_add_str(&method, p->is_reset ? "jemalloc-prof: sampled during the capture"
			     : p->has_enabled
				     ? "jemalloc-prof: sampled during the capture, and earlier "
				       "while sampling was on"
				     : "jemalloc-prof: sampled since the process started");
	prof_capture_add_unwinder(p, &method);
	if (p->is_partial)
		add_end(p, profile, duration_ns);
	profile_fact(profile, FACT_TARGET, p->target->name);
	profile_fact(profile, FACT_HEAP_ALLOCATOR, p->plan.allocator_text);
	profile_fact(profile, FACT_HEAP_ATTACHED, "attach");
	profile_fact(profile, FACT_HEAP_METHOD, buf_str(&method));
	profile_fact_ns(profile, FACT_HEAP_LONGEST_STOP, p->stopped_ns);
}

int prof_capture_end(struct prof_capture *p, const struct store_place *place, int recording_fd,
		     struct capture_result *ret_r, struct err *err)
{
	CLEANUP(close_p) int fd = -1;
	CLEANUP(free_p) char *path = NULL;
	ret_r->end = p->end;
	ret_r->duration_ns = clock_mono_ns() - p->start_ns;
	/* In a zombie no thread can make the call; waiting for one would only time out. */
	int rc = p->end == CAPTURE_END_TARGET ? -ESRCH : with_jemalloc(p, dump, &fd, err);
	if (!rc && !p->stays_on)
		cleanup_cancel(&p->cleanup);
	if (rc == -ESRCH && p->kept_fd >= 0) {
		err_release(err);
		fd = take_fd(&p->kept_fd);
		p->is_partial = true;
		rc = 0;
	}
	if (rc == -ESRCH) {
		(void)err_set(err, rc,
			      "the process ended before its profile could be dumped, %s after the "
			      "start: the profile is lost with it",
			      num_ns(ret_r->duration_ns).s);
		return err_hint(err, "--method hooks and --method patch record until the end");
	}
	remove_unwinder(p);
	ret_r->own_cpu_ns = clock_process_cpu_ns() - p->cpu_ns;
	host_confine();
	TRY(rc);
	TRY(save_dump(place, fd, &path, err));
	CLEANUP(free_p) char *cache_dir = host_cache_dir(NULL);
	struct load_options options = {.cache_dir = cache_dir};
	if (load_profile(&ret_r->profile, path, &options, err))
		return err_wrap(err, "reading the dump back");
	add_facts(p, ret_r->profile, ret_r->duration_ns);
	CLEANUP(buf_release) struct buf bytes = {0};
	TRY(assayfile_write(&bytes, ret_r->profile, "heap", err));
	if (file_write_all(recording_fd, bytes.p, bytes.n, &ret_r->disk))
		ret_r->nr_unsaved = capture_nr_rows(ret_r);
	ret_r->nr_bytes = ret_r->disk.code ? 0 : bytes.n;
	return 0;
}

void prof_capture_release(struct prof_capture *p)
{
	remove_unwinder(p);
	cleanup_release(&p->cleanup);
	watch_release(&p->watch);
	close_p(&p->kept_fd);
	heap_plan_release(&p->plan);
	free(p->no_unwinder);
}
