/* A capture of what the kernel adds up; see tally_run.h. */
#include "base/base.h"
#include "cmd/tally_run.h"

#include <errno.h>

#include <string.h>
#include <unistd.h>

#include "analyze/calltree.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/progress.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "cmd/outputs.h"
#include "cmd/drawing.h"
#include "host/cachedir.h"
#include "render/jsonout.h"
#include "render/text.h"
#include "session/store.h"

#define SECONDS_DEFAULT 60

static const struct opt table[] = {
	OPT_DURATION('D', "delay", struct tally_opts, delay_ns, "TIME",
		     "a running target: wait this long before the capture starts"),
	OPT_LIST(0, "debug-dir", struct tally_opts, debug_dirs, "DIR",
		 "look for debug files here, too"),
	OPT_U64(0, "limit", struct tally_opts, limit, "N",
		"rows of a table, 0 for all (default 15)"),
	OPT_FLAG(0, "json", struct tally_opts, is_json, "the summary as JSON"),
	OPT_STR('o', "output", struct tally_opts, output, "FILE",
		"name of the recording; pictures share its stem (default "
		"profiling/TARGET/KIND-TIME.assay)"),
	OPT_FLAG(0, "no-pictures", struct tally_opts, has_no_pictures,
		 "write the recording only, no flame graphs"),
	OPT_END,
};
const struct opt_group tally_group = {"Capture and output", table};

void tally_opts_release(struct tally_opts *o)
{
	target_opts_release(&o->target);
	opt_list_release(&o->debug_dirs);
}

struct run {
	const struct tally_kind *kind;
	const struct tally_opts *o;
	const struct chosen_target *t;
	const struct opt_args *args;
	struct store_place place;
	int recording_fd;
};

static void run_release(struct run *run)
{
	if (!run->place.stem)
		return;
	close_p(&run->recording_fd);
	store_place_release(&run->place);
}

static void show_status(void *ctx, const struct capture_status *s)
{
	struct progress *bar = ctx;
	if (!progress_due(bar))
		return;
	CLEANUP(buf_release) struct buf text = {0};
	if (s->is_naming)
		buf_addf(&text, "naming %" PRIu64 " of %" PRIu64 " addresses", s->nr_named,
			 s->nr_to_name);
	else if (s->left_ns != UINT64_MAX)
		buf_addf(&text, "%" PRIu64 " s left", (s->left_ns + 999999999u) / 1000000000u);
	else
		buf_addf(&text, "%" PRIu64 " s", s->elapsed_ns / 1000000000u);
	progress_text(bar, "%s", buf_str(&text));
}

/* ---- what is left behind ------------------------------------------------------------------ */

static bool has_rows(const struct profile *p, const char *name)
{
	vec_foreach(t, &p->tables)
		if (t->n && !strcmp(profile_text(p, t->event), name))
			return true;
	return false;
}

static int write_picture(const struct run *run, const struct profile *p, const char *event)
{
	CLEANUP(picture_release)
	struct picture pic = {.spec = {.event = event}, .tree_flags = CALLTREE_ROOT_COMM};
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p)
	char *suffix = strcmp(event, run->kind->pictures[0]) ? xasprintf(".%s.svg", event)
							     : xstrdup(".svg");
	picture_add(&pic, p, run->place.stem);
	int rc = drawing_svg(&svg, &pic, NULL, &err);
	/* rows without weight, calls that moved no bytes, are no picture and no error */
	if (rc == -ENODATA)
		return EXIT_NOTHING;
	if (!rc && !store_out(&out, &run->place, suffix, &err) &&
	    !out_write(&out, svg.p, svg.n, &err) && !out_commit(&out, &err))
		return EXIT_OK;
	log_err(&err);
	return EXIT_FAILED;
}

static int write_pictures(const struct run *run, const struct profile *p)
{
	int status = EXIT_OK;
	for (size_t i = 0; run->kind->pictures[i]; i++) {
		const char *event = run->kind->pictures[i];
		if (!has_rows(p, event))
			continue;
		int one = write_picture(run, p, event);
		CLEANUP(free_p)
		char *path = store_path(&run->place, i ? "" : ".svg");
		if (one == EXIT_OK)
			log_note("flame graph: %s%s%s%s", path, i ? "." : "", i ? event : "",
				 i ? ".svg" : "");
		else if (one == EXIT_FAILED)
			status = EXIT_FAILED;
	}
	return status;
}

static int summarize(const struct run *run, const struct profile *p)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct view_limits limits = {.max_rows = run->o->limit};
	if (run->kind->report(report, p, &(struct select_spec){0}, NULL, &limits, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	bool to_stderr = run->args->command != NULL && !run->o->is_json;
	struct text_style style = output_style(to_stderr ? STDERR_FILENO : STDOUT_FILENO);
	if (run->o->is_json)
		jsonout_render(&text, report);
	else
		text_render(&text, report, &style);
	if (!to_stderr)
		return cmd_print(&text);
	(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	return EXIT_OK;
}

static void say_recording(const struct run *run, const struct capture_result *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf word = {0};
	CLEANUP(free_p) char *recording = store_path(&run->place, STORE_SUFFIX);
	num_add_bytes(&text, r->nr_bytes);
	escape_shell(&word, sv_from_str(recording));
	if (!r->nr_bytes) {
		log_note("recording:   none, nothing of it could be written");
		return;
	}
	log_note("recording:   %s (%s)", recording, buf_str(&text));
	log_note("next: assay report %s", buf_str(&word));
}

static int finish(const struct run *run, const struct capture_result *r)
{
	int status = EXIT_OK;
	/* rows of the whole machine alone are not what was asked for */
	bool is_empty = !has_rows(r->profile, run->kind->pictures[0]);
	bool has_any = false;
	vec_foreach(t, &r->profile->tables)
		has_any = has_any || t->n;
	if (r->disk.code) {
		log_error("the recording lacks %" PRIu64 " rows: %s", r->nr_unsaved,
			  err_msg(&r->disk));
		log_hint("free some space, or name a file elsewhere with -o FILE");
		status = EXIT_FAILED;
	}
	if (is_empty)
		log_warn("%s", run->kind->nothing);
	if (has_any && summarize(run, r->profile))
		status = EXIT_FAILED;
	if (run->kind->say)
		run->kind->say(r);
	if (!is_empty && !run->o->has_no_pictures && stop_count() <= 1 &&
	    write_pictures(run, r->profile))
		status = EXIT_FAILED;
	outputs_say_cost(r);
	say_recording(run, r);
	return status == EXIT_OK && is_empty ? EXIT_NOTHING : status;
}

/* ---- the capture -------------------------------------------------------------------------- */

static int failed_status(const struct capture_result *r, bool has_command)
{
	if (r->has_exit_code)
		return r->exit_code;
	return has_command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

static int capture(struct run *run, const struct capture_options *base)
{
	bool has_command = run->args->command != NULL;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result result = {0};
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct progress bar = {0};
	struct capture_options c = *base;
	c.kind = run->kind->name;
	c.target = run->t->has_target ? &run->t->target : NULL;
	c.command = run->args->command;
	c.duration_ns = run->t->duration_ns;
	c.delay_ns = run->o->delay_ns;
	c.debug_dirs = run->o->debug_dirs.p;
	c.nr_debug_dirs = run->o->debug_dirs.n;
	c.cache_dir = cache_dir;
	c.status = show_status;
	c.ctx = &bar;
	if (!c.duration_ns && !c.command)
		c.duration_ns = (uint64_t)SECONDS_DEFAULT * 1000000000u;
	int rc = stop_install(&err);
	if (!rc) {
		c.recording_fd = take_fd(&run->recording_fd);
		progress_init(&bar, run->kind->name);
		rc = capture_run(&result, &c, &err);
		progress_release(&bar);
	}
	if (!rc && !result.has_engine) {
		rc = err_wrap(&result.no_engine, "this needs programs in the kernel");
		log_err(&result.no_engine);
	} else if (rc) {
		log_err(&err);
	}
	if (rc) {
		store_abandon(&run->place);
		return failed_status(&result, has_command);
	}
	int status = finish(run, &result);
	if (!result.has_exit_code)
		return status;
	/* Our own failure must not pass for a good run of the command. */
	bool has_failed = status == EXIT_FAILED && !result.exit_code;
	return has_failed ? EXIT_ASSAY_FAILED : result.exit_code;
}

int tally_run_on(const struct tally_kind *kind, const struct tally_opts *o,
		 const struct capture_options *base, const struct chosen_target *t,
		 const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	if (o->delay_ns && !t->has_target)
		return cmd_usage(kind->name, "--delay needs a running target");
	CLEANUP(run_release)
	struct run r = {.kind = kind, .o = o, .t = t, .args = args, .recording_fd = -1};
	const char *name = t->has_target ? t->target.name : path_base(args->command[0]);
	int rc = o->output ? store_place_at(&r.place, &r.recording_fd, o->output, &err)
			   : store_place_new(&r.place, &r.recording_fd, NULL, name, kind->name,
					     clock_real_ns(), &err);
	if (!rc)
		return capture(&r, base);
	log_err(&err);
	return args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

int tally_run(const struct tally_kind *kind, const struct tally_opts *o,
	      const struct capture_options *base, const struct opt_args *args)
{
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	int status;
	if (!target_opts_choose(&target, &o->target, args, &status))
		return status;
	return tally_run_on(kind, o, base, &target, args);
}
