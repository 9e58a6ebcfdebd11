/* Dumps and statistics of jemalloc itself; see heap_dump.h. */
#include "base/base.h"
#include "cmd/capture/heap_dump.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/memory/allocstats.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/process/stop.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "host/privileges.h"
#include "host/limits.h"
#include "host/syscallfilter.h"
#include "remote/jemalloc/jemalloc.h"
#include "render/text.h"
#include "session/dumps.h"
#include "session/load.h"

#define TOP_ROWS     20
#define CLASS_ROWS   12
#define KEEP_DEFAULT 10

static const struct opt dump_opts[] = {
	OPT_FLAG(0, "stats", struct heap_dump_opts, is_stats,
		 "print the statistics of the allocator, with fragmentation by size class"),
	OPT_FLAG(0, "dump", struct heap_dump_opts, is_once,
		 "write one dump of jemalloc's own profile of live memory, heap-TIME.heap; the "
		 "process must run with prof:true"),
	OPT_STR(0, "dump-every", struct heap_dump_opts, every, "WHEN",
		"write a series of dumps: 10s (each 10 seconds), 8GiB-allocated (each 8 GiB "
		"allocated), +1GiB-rss (each GiB of RSS growth), until SECONDS or Ctrl-C"),
	OPT_U64_IN(0, "keep", struct heap_dump_opts, keep, 1, 1000000, "K",
		   "keep the newest K dumps of the series (default 10)"),
	OPT_END,
};
const struct opt_group heap_dump_group = {
	"Dumps and statistics of jemalloc itself, without a recording", dump_opts};

bool heap_dump_is_asked(const struct heap_dump_opts *o)
{
	return o->is_once || o->every || o->is_stats;
}

/* ---- dumps --------------------------------------------------------------------------------- */

static void emit_dump(const struct dump_process *p)
{
	CLEANUP(buf_release) struct buf memory = {0};
	uint64_t rss = dumps_rss(p->pid);
	if (rss)
		buf_addf(&memory, ", RSS %s", num_bytes(rss).s);
	log_note("%s: %s (%s%s; one thread was stopped for %s)", p->label, p->newest,
		 num_bytes(p->nr_bytes).s, buf_str(&memory), num_ns(p->stopped_ns).s);
}

static int print_page(const struct dump_process *p, struct err *err)
{
	if (cmd_is_quiet())
		return 0;
	CLEANUP(free_p) char *cache_dir = cmd_cache_dir();
	CLEANUP(free_p)
	char *symfs = p->root_fd < 0 ? NULL : xasprintf("/proc/%d/fd/%d", getpid(), p->root_fd);
	struct load_options options = {.cache_dir = cache_dir, .symfs = symfs};
	struct profile *profile = NULL;
	TRY(load_profile(&profile, p->newest, &options, err));
	CLEANUP(report_free_p) struct report *r = report_new();
	struct select_spec spec = {0};
	struct view_limits limits = {.max_rows = TOP_ROWS};
	int rc = views_page(r, profile, &spec, p->newest, &limits, err);
	CLEANUP(buf_release) struct buf text = {0};
	if (!rc) {
		struct text_style style = output_style(&(struct renderer_choice){0}, STDOUT_FILENO);
		text_render(&text, r, &style);
	}
	profile_free(profile);
	return rc ? rc : cmd_print(&text) == EXIT_OK ? 0 : -EPIPE;
}

static int dump_once(struct dumps *d)
{
	CLEANUP(err_release) struct err err = {0};
	int status = EXIT_OK;
	vec_foreach(p, &d->list) {
		int rc = dumps_make(d, p, &err);
		if (p->is_sampling_off)
			log_warn(
				"%s: sampling is off (prof.active): the dump has only earlier samples; to enable it: assay heap --dump-every WHEN",
				p->label);
		if (rc)
			status = cmd_fail(&err);
		else
			emit_dump(p);
		err_release(&err);
	}
	dumps_open_roots(d);
	host_lower_priority();
	host_confine();
	vec_foreach(p, &d->list) {
		if (p->newest && print_page(p, &err))
			status = err.code == -EPIPE ? EXIT_FAILED : cmd_fail(&err);
		err_release(&err);
	}
	return status;
}

static int end_series(struct dumps *d, int status)
{
	vec_foreach(p, &d->list) {
		CLEANUP(err_release) struct err err = {0};
		if (dumps_disable_sampling(p, &err))
			log_warn("%s: cannot disable sampling again: %s", p->label, err_msg(&err));
		if (!p->nr_dumps) {
			status = status == EXIT_OK ? EXIT_NOTHING : status;
			continue;
		}
		log_note("%s: %s, %zu kept", p->label, num_noun(p->nr_dumps, "dumps").s, p->kept.n);
		if (p->kept.n > 1)
			log_hint("assay diff %s/%s %s", p->kept.p[0].dir, p->kept.p[0].file,
				 p->newest);
		else
			log_hint("assay report %s", p->newest);
	}
	return status;
}

static int dump_series(struct dumps *d, uint64_t duration_ns)
{
	CLEANUP(err_release) struct err err = {0};
	uint64_t end_ns = duration_ns ? clock_mono_ns() + duration_ns : UINT64_MAX;
	int status = EXIT_OK;
	if (stop_install(&err))
		return cmd_fail(&err);
	for (;;) {
		struct dump_process *p;
		switch (dumps_next(d, end_ns, &p, &err)) {
		case DUMPS_OVER:
			return end_series(d, status);
		case DUMPS_MADE:
			emit_dump(p);
			break;
		case DUMPS_EXITED:
			log_note("%s has exited", p->label);
			break;
		case DUMPS_FAILED:
			status = cmd_fail(&err);
			break;
		}
		err_release(&err);
	}
}

/* ---- statistics ---------------------------------------------------------------------------- */

static int add_stats(struct report *r, const struct heap_dump_opts *o, const struct dump_process *p,
		     struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	TRY(jemalloc_stats_read(&s, p->pid, &p->plan, err));
	if (!s.has_stats) {
		(void)err_set(err, -ENOTSUP, "%s: this jemalloc was built without statistics",
			      p->label);
		return err_hint(err, "build it without --disable-stats (tikv-jemallocator: "
				     "features = [\"stats\"])");
	}
	const struct allocstats_of of = {p->label, p->plan.allocator_text, dumps_rss(p->pid)};
	allocstats_report(r, &of, &s, renderer_is_text(&o->form) ? CLASS_ROWS : 0);
	log_info("read in %s, one thread was stopped for %s at most",
		 num_noun(s.nr_sessions, "steps").s, num_ns(s.stopped_ns).s);
	return 0;
}

static int print_stats(const struct heap_dump_opts *o, const struct dumps *d)
{
	int status = EXIT_OK;
	const struct output_opts out = {.path = d->path, .form = o->form};
	CLEANUP(buf_release) struct buf text = {0};
	vec_foreach(p, &d->list) {
		CLEANUP(err_release) struct err err = {0};
		CLEANUP(report_free_p) struct report *r = report_new();
		r->title = "allocator statistics";
		if (add_stats(r, o, p, &err)) {
			status = cmd_fail(&err);
			continue;
		}
		output_render(&out, &text, r);
	}
	int rc = text.n ? output_write(&out, &text) : EXIT_OK;
	return status == EXIT_OK ? rc : status;
}

/* ---- the modes ----------------------------------------------------------------------------- */

static int check(const struct heap_dump_opts *o, const struct chosen_target *t, struct dumps *d,
		 struct err *err)
{
	if (o->is_once + !!o->every + o->is_stats > 1)
		return err_set(err, -EINVAL, "--dump, --dump-every and --stats exclude each other");
	if (o->keep && !o->every)
		return err_set(err, -EINVAL, "--keep needs --dump-every");
	if (!t->has_target || t->target.is_system || !t->target.pids.pids.n)
		return err_set(err, -EINVAL, "--%s needs a running process: a name, or -p PID",
			       o->is_stats  ? "stats"
			       : o->is_once ? "dump"
					    : "dump-every");
	if (d->path && (o->every || (o->is_once && t->target.pids.pids.n > 1)))
		return err_set(err, -EINVAL, "-o FILE: several files are written");
	return o->every ? dump_trigger_parse(&d->trigger, o->every, err) : 0;
}

int heap_dump_run(const struct heap_dump_opts *o, const struct chosen_target *target,
		  const char *path)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(dumps_release)
	struct dumps d = {.name = target->target.name,
			  .path = path,
			  .keep = o->keep ? o->keep : KEEP_DEFAULT};
	if (check(o, target, &d, &err))
		return cmd_usage("heap", "%s", err_msg(&err));
	if (host_become_invoker(&err) || host_need_files(&err))
		return cmd_fail(&err);
	host_raise_priority(); /* a thread of the target is stopped during each step */
	vec_foreach(pid, &target->target.pids.pids)
		if (target_is_same(&target->target, *pid) &&
		    dumps_add(&d, *pid, o->is_stats ? "these statistics" : "dumps", &err))
			return cmd_fail(&err);
	host_confine_tracer(target_has_filter(&target->target));
	if (o->is_stats)
		return print_stats(o, &d);
	return o->is_once ? dump_once(&d) : dump_series(&d, target->duration_ns);
}
