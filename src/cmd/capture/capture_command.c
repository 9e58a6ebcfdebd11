/* Runs capture commands; see capture_command.h. */
#include "base/base.h"
#include "cmd/capture/capture_command.h"

#include <errno.h>
#include <limits.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/process/progress.h"
#include "base/process/stop.h"
#include "cmd/cmd.h"
#include "cmd/capture/cpu_runs.h"
#include "cmd/optgroups.h"
#include "cmd/read/memchart.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#define FREQ_MAX     100000
#define ROWS_DEFAULT UINT64_MAX /* --limit was not given */

static const struct opt freq_table[] = {
	OPT_U64_IN('F', "freq", struct capture_opts, freq_hz, 1, FREQ_MAX, "HZ",
		   "samples per second of CPU time (default 999; 499 for more than 15 s, 249 for "
		   "more than 30 s, 99 for more than 60 s)"),
	OPT_END,
};
/* A group of its own: help lists it with the options of the command under the same title. */
const struct opt_group capture_freq_group = {"Sampling", freq_table};

/*
 * The cost of sampling grows with its rate, and long captures have samples enough: at their end, each of
 * the first three rates gives 15,000 samples of a busy thread. Not round: programs often have periods of
 * round length.
 */
static const struct {
	unsigned seconds; /* the longest capture */
	uint32_t freq_hz;
} freq_defaults[] = {{15, 999}, {30, 499}, {60, 249}, {UINT_MAX, 99}};

uint32_t capture_freq_hz(const struct capture_opts *o, uint64_t duration_ns)
{
	size_t i = 0;
	while (i + 1 < ARRAY_LEN(freq_defaults) &&
	       duration_ns > freq_defaults[i].seconds * NS_PER_SEC)
		i++;
	return o->freq_hz ? (uint32_t)o->freq_hz : freq_defaults[i].freq_hz;
}

static const struct opt capture_table[] = {
	OPT_STR('o', "output", struct capture_opts, output, "FILE",
		"write the recording to FILE, and its HTML page beside it (default "
		"profiling/TARGET/COMMAND-TIME.assay)"),
	OPT_FLAG(0, "svg", struct capture_opts, has_svg,
		 "also write each flame graph as a file of its own (SVG)"),
	OPT_FLAG(0, "no-pictures", struct capture_opts, has_no_pictures,
		 "write only the recording: no HTML page, no folded stacks, no flame graphs"),
	OPT_U64(0, "limit", struct capture_opts, nr_rows, "N",
		"rows of each printed table, 0 for all (default: 5 to 15, depending on the table)"),
	OPT_DURATION_UNIT('D', "delay", struct capture_opts, delay_ns, "TIME",
			  "wait TIME (500ms, 2s) before the capture of a running target starts "
			  "(default 0)"),
	OPT_STR(0, "when", struct capture_opts, when, "CONDITION",
		"wait until CONDITION holds for a running target, then record: 'rss > 8G', 'cpu < 10%', "
		"'p99(FUNCTION) > 50ms' (see assay(1))"),
	OPT_FLAG(0, "no-bpf", struct capture_opts, has_no_bpf,
		 "load no BPF programs; the output says what is missing without them"),
	OPT_FLAG(0, "no-inlines", struct capture_opts, has_no_inlines,
		 "do not resolve inlined functions"),
	OPT_FLAG(0, "jit-map", struct capture_opts, has_jit_map,
		 "have running java (JDK 17 or later) write the names of its JIT code at the end; "
		 "launched java and node do by options in their environment"),
	OPT_FLAG(0, "hashes", struct capture_opts, has_hashes,
		 "keep hashes and disambiguators in Rust names"),
	OPT_LIST(0, "debug-dir", struct capture_opts, debug_dirs, "DIR",
		 "search DIR for debug files, too"),
	OPT_END,
};
const struct opt_group capture_group = {"Capture and output", capture_table};

static void job_release(struct capture_job *job)
{
	chosen_target_release(&job->target);
	opt_args_release(&job->args);
	codefiles_release(&job->code);
	startwhen_release(&job->when);
	free((void *)job->options.cache_dir);
}

struct view_limits capture_job_limits(const struct capture_job *job)
{
	return (struct view_limits){.max_rows = job->common.nr_rows == ROWS_DEFAULT
							? job->command->nr_rows
							: job->common.nr_rows};
}

int capture_job_failed(const struct capture_job *job)
{
	return job->args.command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

void capture_job_print_no_bpf(const struct capture_job *job, const struct capture_result *r)
{
	if (!r->no_engine.code || job->common.has_no_bpf)
		return;
	const char *remedy = profile_get_fact(r->profile, FACT_REMEDY);
	log_note("without BPF programs: %s", err_msg(&r->no_engine));
	if (r->no_engine.hint || remedy)
		log_hint("%s", r->no_engine.hint ? r->no_engine.hint : remedy);
}

/* ---- while it runs ------------------------------------------------------------------------ */

struct shown {
	struct progress bar;
	const char *noun;
};

static void show_status(void *ctx, const struct capture_status *s)
{
	struct shown *shown = ctx;
	if (!progress_due(&shown->bar))
		return;
	if (s->is_symbolizing) {
		progress_text(&shown->bar, "symbolized %" PRIu64 " of %" PRIu64 " addresses",
			      s->nr_symbolized, s->nr_to_symbolize);
		return;
	}
	CLEANUP(buf_release) struct buf text = {0};
	if (shown->noun)
		buf_addf(&text, "%s, ", num_noun(s->losses->nr[LOSS_WRITTEN], shown->noun).s);
	if (s->losses->nr[LOSS_LOST])
		buf_addf(&text, "%s lost, ", num_count(s->losses->nr[LOSS_LOST]).s);
	if (s->left_ns != UINT64_MAX)
		buf_addf(&text, "%" PRIu64 " s left", (s->left_ns + 999999999u) / 1000000000u);
	else
		buf_addf(&text, "%" PRIu64 " s", s->elapsed_ns / 1000000000u);
	progress_text(&shown->bar, "%s", buf_str(&text));
}

/* ---- the end ------------------------------------------------------------------------------ */

/* A data format is a document even if nothing was recorded; a text is the warning on stderr. */
static int print_nothing(struct capture_job *job, struct outputs *out, const struct profile *p,
			 struct report *report)
{
	if (renderer_is_text(&out->form))
		return EXIT_OK;
	report->title = job->view->title;
	report->losses = p->losses;
	report_facts(report, p);
	report_note(report, "%s", job->command->nothing);
	return outputs_print(out, report);
}

static int print_view(struct capture_job *job, struct outputs *out, const struct profile *p,
		      struct err *err)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	struct view_limits limits = capture_job_limits(job);
	if (!job->view)
		return EXIT_OK;
	if (!views_has(job->view, p) && !views_is_recorded(job->view, p))
		return print_nothing(job, out, p, report);
	TRY(job->view->page(report, p, &job->spec, NULL, &limits, err));
	return outputs_print(out, report);
}

static int print_own(struct capture_job *job, struct outputs *out, const struct capture_result *r,
		     struct err *err)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(free_p)
	char *path = job->is_unrecorded ? NULL : store_path(&out->place, STORE_SUFFIX);
	job->recording = path;
	int rc = job->command->page(job, r, report, err);
	job->recording = NULL;
	TRY(rc);
	int status = outputs_print(out, report);
	out->form.idx =
		0; /* JSON output is one document: only the first page is rendered as JSON */
	return status;
}

/* Returns an exit status. */
static int print_pages(struct capture_job *job, struct outputs *out, const struct capture_result *r)
{
	CLEANUP(err_release) struct err err = {0};
	bool has_own = job->command->page != NULL;
	int status = has_own ? print_own(job, out, r, &err) : EXIT_OK;
	if (status == EXIT_OK && (!has_own || job->has_two_pages))
		status = print_view(job, out, r->profile, &err);
	if (status < 0)
		log_err(&err);
	return status < 0 ? EXIT_FAILED : status;
}

static bool wants_svg(const struct capture_job *job)
{
	return job->common.has_svg || job->flame_flags;
}

static int write_flame_graphs(const struct capture_job *job, struct outputs *out,
			      const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec spec = job->spec;
	int status = EXIT_OK;
	if (!job->view || !job->view->pictures)
		return EXIT_OK;
	spec.flags |= job->draws_idle ? SELECT_IDLE : 0;
	struct view_pictures list = job->view->pictures(&a, job->view, p, &spec, job->flame_flags);
	if (job->folded == CAPTURE_FOLDED_COUNTS)
		status = outputs_folded_samples(out, p);
	for (size_t i = 0; i < list.n; i++) {
		CLEANUP(picture_release)
		struct picture pic = {.spec = list.p[i].spec, .tree_flags = list.p[i].tree_flags};
		picture_add(&pic, p, job->common.share.is_redacted ? "profile" : out->place.stem);
		if (!i && job->folded == CAPTURE_FOLDED_WEIGHTS)
			status = outputs_folded(out, &pic);
		if (wants_svg(job) &&
		    outputs_flame(out, list.p[i].suffix, list.p[i].title, &pic) == EXIT_FAILED)
			status = EXIT_FAILED;
	}
	if (wants_svg(job) && !out->flames.n && status == EXIT_OK)
		log_note("no flame graph: no recorded row has a call stack and a weight");
	return status;
}

/* "; the target ended after 1.10 s: killed by SIGKILL"; of a command that runs beside a target: itself */
static void add_end(struct buf *to, const struct capture_job *job, const struct capture_result *r)
{
	bool is_beside = r->end == CAPTURE_END_COMMAND && job->options.target;
	const char *how = profile_get_fact(r->profile, FACT_TARGET_END);
	if (r->end != CAPTURE_END_TARGET && r->end != CAPTURE_END_COMMAND)
		return;
	buf_addf(to, "%s%s ended after %s%s%s", to->n ? "; " : "",
		 is_beside ? "the command, which is not profiled itself," : "the target",
		 num_ns(r->duration_ns).s, how ? ": " : "", how ? how : "");
}

static void warn_of_nothing(const struct capture_job *job, const struct capture_result *r)
{
	const struct capture_command *c = job->command;
	if (!r->profile->losses.nr[LOSS_HEAP_REFUSED]) {
		CLEANUP(buf_release) struct buf reason = {0};
		if (c->add_reason)
			c->add_reason(&reason, job, r);
		add_end(&reason, job, r);
		log_warn("%s%s%s", c->nothing, reason.n ? ": " : "", buf_str(&reason));
		return;
	}
	log_warn("nothing was recorded: cannot attach to the target, see the warning above");
	log_hint("run with sudo; to see what is missing: assay doctor -p PID");
}

/*
 * --redact: what the capture leaves is what its options say, the recording as well. While it runs, its
 * file is whole.
 */
static int share_result(const struct capture_job *job, struct outputs *out,
			struct capture_result *r)
{
	share_apply(&job->common.share, &r->profile);
	if (!job->common.share.is_redacted || job->is_unrecorded)
		return EXIT_OK;
	log_note("redacted: the recording and all that is written beside it");
	return outputs_replace_recording(out, r, job->command->name);
}

/* Page, folded stacks and pictures: what people give away. */
static int write_pictures(struct capture_job *job, struct outputs *out, struct capture_result *r)
{
	int status = EXIT_OK;
	if (outputs_page(out, r->profile, &job->code) == EXIT_FAILED ||
	    write_flame_graphs(job, out, r->profile) == EXIT_FAILED)
		status = EXIT_FAILED;
	if (wants_svg(job) && memchart_output(out, r->profile) != EXIT_OK)
		status = EXIT_FAILED;
	return status;
}

/* A restarted container is another target; whoever named it may not expect that. */
static void note_container_end(const struct capture_job *job, const struct capture_result *r)
{
	const struct target *t = &job->target.target;
	if (r->end != CAPTURE_END_TARGET || !t->containers.n)
		return;
	log_note("all processes of the container have ended after %s: if it was restarted, the new "
		 "ones are not recorded",
		 num_ns(r->duration_ns).s);
	log_hint("assay %s --container %s", job->command->name,
		 *t->containers.p[0].name ? t->containers.p[0].name : t->containers.p[0].id);
}

static int finish(struct capture_job *job, struct outputs *out, struct capture_result *r)
{
	const struct capture_command *c = job->command;
	const struct profile *p = r->profile;
	bool has_any = !job->view || views_is_recorded(job->view, p);
	bool has_pictures = has_any && !job->is_unrecorded && !job->common.has_no_pictures;
	int status = r->disk.code ? EXIT_FAILED : EXIT_OK;
	outputs_print_disk_error(out, r);
	if (!has_any)
		warn_of_nothing(job, r);
	if (print_pages(job, out, r) != EXIT_OK)
		status = EXIT_FAILED;
	note_container_end(job, r);
	if (c->print_notes)
		c->print_notes(job, r);
	if (share_result(job, out, r) != EXIT_OK)
		status = EXIT_FAILED;
	if (has_pictures && stop_count() <= 1 && write_pictures(job, out, r) != EXIT_OK)
		status = EXIT_FAILED;
	if (!job->is_unrecorded) {
		outputs_print_cost(r);
		outputs_print_files(out, r);
	}
	return status == EXIT_OK && !has_any ? EXIT_NOTHING : status;
}

/* ---- the capture -------------------------------------------------------------------------- */

int capture_job_run(struct capture_job *job, struct outputs *out, struct capture_result *ret_r,
		    struct err *err)
{
	struct shown shown = {.noun = job->command->noun};
	struct capture_options c = job->options;
	c.status = show_status;
	c.ctx = &shown;
	c.recording_fd = take_fd(&out->recording_fd);
	progress_init(&shown.bar, job->command->name);
	int rc = capture_run(ret_r, &c, err);
	progress_release(&shown.bar);
	return rc;
}

int capture_job_record(struct capture_job *job, struct outputs *out)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result r = {0};
	int rc = stop_install(&err);
	rc = rc ? rc : job->run(job, out, &r, &err);
	if (rc) {
		log_err(&err);
		outputs_abandon(out);
		return r.has_exit_code ? r.exit_code : capture_job_failed(job);
	}
	int status = finish(job, out, &r);
	if (r.left_pid)
		log_warn("the command is left running, as process %d: it did not end after Ctrl-C",
			 r.left_pid);
	if (!r.has_exit_code)
		return status;
	/* A failure of assay must not look like success of the command. */
	return status == EXIT_FAILED && !r.exit_code ? EXIT_ASSAY_FAILED : r.exit_code;
}

struct outputs capture_job_outputs(const struct capture_job *job)
{
	return (struct outputs){.recording_fd = -1,
				.flags = job->args.command ? OUTPUTS_HAS_COMMAND : 0,
				.form = job->common.form};
}

int capture_job_open(const struct capture_job *job, struct outputs *ret_o, const char *output,
		     struct err *err)
{
	const char *name =
		job->target.has_target ? job->target.target.name : path_base(job->args.command[0]);
	struct outputs o = capture_job_outputs(job);
	TRY(outputs_open(ret_o, output, name, job->command->name, err));
	ret_o->flags = o.flags;
	ret_o->form = o.form;
	return 0;
}

static int run(struct capture_job *job)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(outputs_release) struct outputs out = capture_job_outputs(job);
	if (host_become_invoker(&err)) {
		log_err(&err);
		return capture_job_failed(job);
	}
	if (source_open(&job->code, &job->common.source, &err)) {
		log_err(&err);
		return capture_job_failed(job);
	}
	job->options.cache_dir = cmd_cache_dir(); /* of that user */
	if (job->nr_runs)
		return cpu_runs(job);
	if (!job->is_unrecorded && capture_job_open(job, &out, job->common.output, &err)) {
		log_err(&err);
		return capture_job_failed(job);
	}
	return capture_job_record(job, &out);
}

/* ---- from the command line ---------------------------------------------------------------- */

/* Checks what the option parser cannot check. */
static int check_options(const struct capture_job *job, struct err *err)
{
	const struct capture_command *c = job->command;
	const struct capture_opts *o = &job->common;
	if (o->output)
		TRY(outputs_check_name("-o", o->output, STORE_SUFFIX, "a recording", err));
	if (source_is_refused(&o->source, &o->share))
		return err_set(err, -EINVAL, SOURCE_REFUSAL);
	if (o->source.folders.n && o->has_no_pictures)
		return err_set(err, -EINVAL,
			       "--source is for the HTML page, which --no-pictures does not write");
	if (c->has_no_target && job->args.operands.n) {
		err_set(err, -EINVAL, "unexpected '%s': put the command after --",
			job->args.operands.p[0]);
		cmd_hint_launch(err, &job->args);
		return -EINVAL;
	}
	return c->has_no_target && !job->args.command
		       ? err_set(err, -EINVAL, "missing command: -- CMD")
		       : 0;
}

static int check_delay(const struct capture_job *job, struct err *err)
{
	if (!job->common.delay_ns || job->target.has_target)
		return 0;
	return err_set(err, -EINVAL,
		       "--delay needs a running target: start the command, then profile it by "
		       "name");
}

static void fill_options(struct capture_job *job)
{
	const struct capture_opts *o = &job->common;
	struct capture_options *c = &job->options;
	c->kind = job->command->name;
	c->target = job->target.has_target ? &job->target.target : NULL;
	c->command = job->args.command;
	c->duration_ns = job->target.duration_ns;
	if (!c->duration_ns && !c->command)
		c->duration_ns = CAPTURE_SECONDS_DEFAULT * NS_PER_SEC;
	c->delay_ns = o->delay_ns;
	c->started_when = startwhen_text(&job->when);
	c->flags = (o->has_no_bpf ? CAPTURE_NO_BPF : 0u) | (o->has_jit_map ? CAPTURE_JIT_MAP : 0u) |
		   (o->share.has_arguments ? CAPTURE_WITH_ARGS : 0u);
	c->symbolizer_flags = o->has_no_inlines ? SYMBOLIZER_NO_INLINES : 0;
	c->demangle_flags = o->has_hashes ? DEMANGLE_HASHES : 0;
	c->debug_dirs = o->debug_dirs.p;
	c->nr_debug_dirs = o->debug_dirs.n;
}

/* Prints the error. Returns the exit status: a usage error, or a capture that failed to start. */
static int refused(const struct capture_job *job, int rc, const struct err *err)
{
	int status = cmd_refuse(err);
	return status == EXIT_USAGE || rc == -ENOENT ? EXIT_USAGE : capture_job_failed(job);
}

/* A stopped process is recorded all the same: it may be continued during the capture. */
static void warn_of_stopped(const struct chosen_target *t)
{
	struct proc_task f;
	for (size_t i = 0; t->has_target && i < t->target.pids.pids.n; i++) {
		int32_t pid = t->target.pids.pids.p[i];
		if (proc_task(pid, pid, &f) || (f.state != 'T' && f.state != 't'))
			continue;
		log_warn("process %d is stopped: it does nothing until it is continued", pid);
		log_hint("kill -CONT %d", pid);
	}
}

static int prepare(struct capture_job *job, struct err *err)
{
	warn_of_stopped(&job->target);
	TRY(check_delay(job, err));
	fill_options(job);
	return job->command->prepare(job, err);
}

static struct opt_cmd command_line(const struct capture_command *c, struct capture_job *job)
{
	struct opt_cmd cmd = {
		.name = c->name,
		.usage = {"[OPTION...] TARGET [SECONDS]",
			  "[OPTION...] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.details = c->details,
		.examples = c->examples,
		.excluded = c->excluded,
	};
	size_t n = 0;
	for (size_t i = 0; c->usage[0] && i < ARRAY_LEN(c->usage); i++)
		cmd.usage[i] = c->usage[i];
	if (!c->has_no_target)
		cmd.groups[n++] = (struct opt_bind){&target_group, &job->common.target};
	cmd.groups[n++] = (struct opt_bind){&capture_freq_group, &job->common};
	for (size_t i = 0; i < ARRAY_LEN(c->groups) && c->groups[i].group; i++)
		cmd.groups[n++] =
			(struct opt_bind){c->groups[i].group, (char *)job->own + c->groups[i].at};
	cmd.groups[n++] = (struct opt_bind){&capture_group, &job->common};
	cmd.groups[n++] = (struct opt_bind){&source_group, &job->common.source};
	cmd.groups[n++] = (struct opt_bind){&share_group, &job->common.share};
	cmd.groups[n] = (struct opt_bind){&renderer_group, &job->common.form};
	return cmd;
}

int capture_command_operand(const struct capture_command *c, void *own, int argc, char **argv)
{
	struct capture_job job = {.own = own}; /* nothing is written there */
	const struct opt_cmd cmd = command_line(c, &job);
	return cmd_first_operand(&cmd, argc, argv);
}

int capture_command(const struct capture_command *c, void *own, int argc, char **argv)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(job_release)
	struct capture_job job = {.command = c,
				  .own = own,
				  .common.nr_rows = ROWS_DEFAULT,
				  .view = c->view < VIEW_NR ? views_at(c->view) : NULL,
				  .folded = c->folded,
				  .run = capture_job_run};
	const struct opt_cmd cmd = command_line(c, &job);
	int status;
	if (!cmd_parse(&job.args, &cmd, argc, argv, &status))
		return status;
	job.common.form.has_limit = c->is_whole || job.common.nr_rows != ROWS_DEFAULT;
	int rc = check_options(&job, &err);
	if (!rc && job.common.when)
		rc = startwhen_parse(&job.when, job.common.when, &err);
	if (!rc && c->check)
		rc = c->check(&job, &err);
	if (rc)
		return refused(&job, rc, &err);
	if (!c->has_no_target &&
	    !target_opts_choose(&job.target, &job.common.target, &job.args, &status))
		return status;
	if (job.common.when && !startwhen_wait(&job.when, &job.target, c->name, &status))
		return status;
	rc = prepare(&job, &err);
	if (rc)
		return refused(&job, rc, &err);
	return job.is_done ? job.status : run(&job);
}
