/* assay bench: repeats a command, or compares several. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/bench/benchreport.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/progress.h"
#include "base/process/stop.h"
#include "base/text/num.h"
#include "cmd/bench/benchcommands.h"
#include "cmd/bench/benchprofile.h"
#include "cmd/bench/benchresults.h"
#include "cmd/optgroups.h"
#include "render/page/benchhtml.h"
#include "host/cpuquota.h"
#include "host/privileges.h"
#include "session/bench/benchlines.h"
#include "session/bench/benchloop.h"

#define NR_SHELL_RUNS 30

#define BENCH_EVENTS \
	"task-clock,cpu-migrations,cycles,instructions,branches,branch-misses," COUNTER_EVENTS_DETAILED
#define NR_BENCH_EVENTS ((size_t)12)
/* Of runs the kernel has these without counters. */
#define PHASE_EVENTS    "minor-faults,major-faults,context-switches,"
#define NR_PHASE_EVENTS ((size_t)3)

struct bench_opts {
	struct bench_words words;
	uint64_t nr_warmups;
	uint64_t nr_exact;
	uint64_t nr_min;
	uint64_t nr_max;
	uint64_t for_ns;
	double floor_pct;
	bool is_strict;
	bool is_failure_ok;
	bool has_fixed_environment;
	const char *input;
	const char *output;
	bool shows_output;
	const char *each;
	bool has_metric_lines;
	struct opt_list phases;
	struct opt_list phase_functions;
	double work;
	const char *unit;
	struct opt_list events;
	const char *against;
	const char *profile_dir;
	struct opt_list profile_phases;
	const char *json;
	const char *csv;
	const char *markdown;
	const char *html;
};

static const struct opt run_table[] = {
	OPT_U64_IN(
		'w', "warmup", struct bench_opts, nr_warmups, 1, 100000, "N",
		"run each command N times before it is measured (default: the first, cold run is "
		"measured, but kept apart)"),
	OPT_U64_IN('r', "runs", struct bench_opts, nr_exact, 1, 10000000, "N",
		   "exactly N runs of each command (of several: an even number)"),
	OPT_U64_IN(0, "repeat", struct bench_opts, nr_exact, 1, 10000000, "N", "same as --runs"),
	OPT_U64_IN('m', "min-runs", struct bench_opts, nr_min, 1, 10000000, "N",
		   "at least N runs (default 10)"),
	OPT_U64_IN('M', "max-runs", struct bench_opts, nr_max, 1, 10000000, "N",
		   "at most N runs (default: none; runs take at least 3 s in all)"),
	OPT_DURATION(0, "for", struct bench_opts, for_ns, "TIME", "run for this time: 60s, 5m"),
	OPT_FLAG('i', "ignore-failure", struct bench_opts, is_failure_ok,
		 "measure commands that exit with another status than 0"),
	OPT_DOUBLE(0, "floor", struct bench_opts, floor_pct, "PCT",
		   "call no smaller change slower or faster (default 1)"),
	OPT_FLAG(0, "strict", struct bench_opts, is_strict,
		 "exit with 5 if a comparison is inconclusive"),
	OPT_FLAG(0, "fixed-environment", struct bench_opts, has_fixed_environment,
		 "do not vary the size of the environment, which moves the stack, from run to run"),
	OPT_END,
};
static const struct opt_group run_group = {"Runs", run_table};

#define WORDS(field) words.field
static const struct opt command_table[] = {
	OPT_STR(0, "vs", struct bench_opts, WORDS(versus), "CMD",
		"compare this command with the one after --, which is the base; both without a shell"),
	OPT_STR(0, "against", struct bench_opts, against, "FILE",
		"compare with the runs in FILE, which --save wrote"),
	OPT_STR(0, "profile", struct bench_opts, profile_dir, "DIR",
		"afterwards record the CPU samples of both commands into DIR, and show in which functions "
		"they differ"),
	OPT_LIST(
		0, "profile-phase", struct bench_opts, profile_phases, "NAME=REGEX",
		"with --profile: compare the samples below functions that match, those nearest to the "
		"root, as a phase; may be repeated"),
	OPT_LIST('n', "command-name", struct bench_opts, WORDS(names), "NAME",
		 "name of a command in the output; once for each command"),
	OPT_STR('s', "setup", struct bench_opts, WORDS(setup), "CMD",
		"run CMD before the runs of each command"),
	OPT_LIST('p', "prepare", struct bench_opts, WORDS(prepare), "CMD",
		 "run CMD before each run, unmeasured; once, or once for each command"),
	OPT_STR('c', "cleanup", struct bench_opts, WORDS(cleanup), "CMD",
		"run CMD after the runs of each command"),
	OPT_STR('S', "shell", struct bench_opts, WORDS(shell), "SHELL",
		"shell for quoted commands (default sh), or none"),
	OPT_FLAG('N', "no-shell", struct bench_opts, WORDS(has_no_shell),
		 "run quoted commands without a shell"),
	OPT_LIST('L', "parameter-list", struct bench_opts, WORDS(lists), "VAR VALUES",
		 "a command for each of the VALUES, separated by commas; {VAR} is replaced"),
	OPT_LIST('P', "parameter-scan", struct bench_opts, WORDS(scans), "VAR MIN MAX",
		 "a command for each number from MIN to MAX"),
	OPT_DOUBLE('D', "parameter-step-size", struct bench_opts, WORDS(step), "DELTA",
		   "step of --parameter-scan (default 1)"),
	OPT_STR(0, "input", struct bench_opts, input, "FILE",
		"standard input of the commands (default /dev/null)"),
	OPT_STR(0, "output", struct bench_opts, output, "WHERE",
		"where standard output of the commands goes: null (default), pipe, inherit, or a file"),
	OPT_FLAG(0, "show-output", struct bench_opts, shows_output,
		 "same as --output inherit, with standard error"),
	OPT_END,
};
static const struct opt_group command_group = {"Commands", command_table};

static const struct opt value_table[] = {
	OPT_STR(0, "each", struct bench_opts, each, "REGEX",
		"take the number in the first group of each matching output line as a run: 'TIME "
		"SPENT: ([0-9.]+) ms'; the program runs once unless --runs says otherwise"),
	OPT_FLAG(0, "each-metric", struct bench_opts, has_metric_lines,
		 "the same for the execution times in [METRIC] lines of ethrex, old and new form"),
	OPT_LIST(0, "phase", struct bench_opts, phases, "NAME[=REGEX]",
		 "times of a part of each run: as --each by a group of the pattern; without a "
		 "group, from the matching output line to the next such line of another phase; "
		 "without a pattern, from the mark 'NAME begin' to 'NAME end' of the command (echo "
		 "NAME begin > $ASSAY_MARKS)"),
	OPT_LIST(
		0, "phase-function", struct bench_opts, phase_functions, "NAME=FUNCTION",
		"the same from the entry of a function of the program to its return, by uprobes "
		"(root); A..B: from the entry of A to that of B; calls that overlap are one; may be "
		"repeated"),
	OPT_LIST('e', "event", struct bench_opts, events, "EVENT,...",
		 "count these events, too, by the names of perf list (default: cycles, "
		 "instructions, branches, caches, if there are hardware counters)"),
	OPT_DOUBLE(0, "work", struct bench_opts, work, "N",
		   "what a run does, for a throughput: 37.5e6"),
	OPT_STR(0, "unit", struct bench_opts, unit, "UNIT", "unit of --work: gas gives Ggas/s"),
	OPT_END,
};
static const struct opt_group value_group = {"Values and counters", value_table};

static const struct opt export_table[] = {
	OPT_STR(0, "export-json", struct bench_opts, json, "FILE",
		"write hyperfine's JSON, with more under the key assay; - is standard output"),
	OPT_STR(0, "save", struct bench_opts, json, "FILE", "same as --export-json, for --against"),
	OPT_STR(0, "export-csv", struct bench_opts, csv, "FILE", "write hyperfine's CSV"),
	OPT_STR(0, "export-markdown", struct bench_opts, markdown, "FILE",
		"write a table in Markdown"),
	OPT_STR(0, "html", struct bench_opts, html, "FILE",
		"write one HTML page: verdict, tables, distribution and course of the runs"),
	OPT_END,
};
static const struct opt_group export_group = {"Export", export_table};

static const char details[] =
	"Runs a command repeatedly and prints what a run takes: times with the interval of their "
	"median, memory, faults, context switches. Quoted commands are run by a shell, whose own "
	"time is measured and subtracted; a command after -- is run without one.\n"
	"\n"
	"Several commands are compared with the first one. Their runs are interleaved in blocks, A "
	"B B A, so that a change of the machine's speed is no difference between them. The "
	"verdict is slower or faster if the interval of the ratio excludes 1 and the change is "
	"beyond the floor: 1 %, or what the machine makes of A compared with itself. Runs end "
	"early when the verdict is clear.\n"
	"\n"
	"Marks: a command writes lines to the pipe that $ASSAY_MARKS names, 'NAME begin' and 'NAME "
	"end', or it runs assay mark -p PID 'NAME begin' with a process id of its own. A line may end "
	"with its time, in seconds of CLOCK_MONOTONIC; else it has the time at which assay read it. "
	"Marked phases may overlap.\n"
	"\n"
	"Exit status: 0 the same, faster or inconclusive; 4 slower; 5 inconclusive, with --strict; "
	"6 invalid, for example no line matches --each; 1 a command failed. After Ctrl-C the runs "
	"so far are printed.";

static const char examples[] =
	"assay bench 'sort big.txt'\thow long does it take?\n"
	"assay bench --repeat 20 -- ./server --selftest\twithout a shell, 20 runs\n"
	"assay bench 'old/app in' 'new/app in'\tis the new one slower?\n"
	"assay bench --vs ./new -- ./old\tthe same without a shell\n"
	"assay bench -L n 1,2,4,8 './app -j {n}'\tone command for each value\n"
	"assay bench --each 'took ([0-9.]+) ms' -- ./replay\trepeats inside one process\n"
	"assay bench --phase 'load=^loading' --phase 'run=^running' -- ./job\tparts of a run\n"
	"assay bench --phase load --phase run -- ./job\tthe same, by marks\n"
	"assay bench --phase-function 'run=run_job' -- ./job\tthe same, by a function\n";

/* ---- the runs -------------------------------------------------------------------------------- */

struct job {
	const struct bench_opts *o;
	struct bench_commands commands;
	struct bench_lines *lines; /* of each command */
	struct bench_patterns patterns;
	bool has_each;
	struct bench_run shell;
	struct progress progress;
	struct arena arena;
	struct counter_set counters;
	struct bench_machine *machines; /* for each command, in the arena */
	struct bench_baseline baseline;
	struct bench_profile profile;
	struct phasefuncs *functions; /* NULL: none */
	size_t nr_blocks;
	size_t nr_block_looks;
	uint64_t throttled_ns;
	bool is_stopped;
	bool has_failed; /* a run, so that it was the last one */
	uint64_t bound_bytes;
};

static void job_release(struct job *j)
{
	for (size_t i = 0; j->lines && i < j->commands.subjects.n; i++)
		bench_lines_release(&j->lines[i]);
	free(j->lines);
	bench_patterns_release(&j->patterns);
	bench_commands_release(&j->commands);
	bench_profile_release(&j->profile);
	phasefuncs_free(j->functions);
	bench_baseline_release(&j->baseline);
	arena_release(&j->arena);
}

static void fill_results(struct bench_results *ret, const struct job *j)
{
	*ret = (struct bench_results){
		.commands = &j->commands,
		.lines = j->lines,
		.has_each = j->has_each,
		.counters = &j->counters,
		.machines = j->machines,
		.baseline = j->o->against ? &j->baseline : NULL,
		.shell = j->commands.has_shell ? &j->shell : NULL,
		.nr_blocks = j->nr_blocks,
		.has_early_looks = !j->o->nr_exact,
		.least = j->o->floor_pct / 100,
		.work = j->o->work,
		.unit = j->o->unit,
		.is_stopped = j->is_stopped,
		.has_failed = j->has_failed,
		.throttled_ns = j->throttled_ns,
		.bound_bytes = j->bound_bytes,
		.nr_lost_hits = j->functions ? phasefuncs_nr_lost(j->functions) : 0,
	};
}

static void on_run(void *ctx, uint64_t nr, uint64_t nr_all, uint64_t left_ns)
{
	struct job *j = ctx;
	if (!progress_due(&j->progress))
		return;
	if (nr_all)
		progress_text(&j->progress, "run %" PRIu64 " of %s%" PRIu64 ", %s left", nr + 1,
			      j->o->nr_exact ? "" : "at most ", nr_all, num_ns(left_ns).s);
	else
		progress_text(&j->progress, "run %" PRIu64 ", %s left", nr + 1, num_ns(left_ns).s);
}

static void on_plan(void *ctx, size_t nr_blocks)
{
	struct job *j = ctx;
	j->nr_blocks = nr_blocks;
}

static bool is_decided(void *ctx, size_t nr_blocks)
{
	struct job *j = ctx;
	struct bench_results results;
	if (j->o->nr_exact || nr_blocks < BENCH_LOOK_MIN)
		return false;
	fill_results(&results, j);
	return bench_results_decided(&results, nr_blocks);
}

static void on_output(void *ctx, size_t subject, const struct bench_piece *piece)
{
	struct job *j = ctx;
	(piece->is_mark ? bench_lines_add_marks : bench_lines_add)(&j->lines[subject], piece->p,
								   piece->n, piece->at_ns);
}

static void on_end(void *ctx, size_t subject, uint64_t end_ns)
{
	struct job *j = ctx;
	struct bench_lines *l = &j->lines[subject];
	bench_lines_end(l, end_ns);
	l->run_idx = j->commands.subjects.p[subject].runs.n;
	if (!l->run_idx) /* it was the cold run, or one to warm up */
		bench_lines_clear(l);
}

static int run_all(struct job *j, struct bench_runner *runner, struct err *err)
{
	const struct bench_opts *o = j->o;
	struct bench_commands *c = &j->commands;
	struct bench_loop loop = {
		.subjects = c->subjects.p,
		.nr_subjects = c->subjects.n,
		.nr_warmups = o->nr_warmups,
		.has_no_cold =
			j->has_each && c->subjects.n == 1, /* its first value is the cold one */
		.nr_exact = o->nr_exact,
		.nr_min = o->nr_min,
		.nr_max = o->nr_max,
		.for_ns = o->for_ns,
		.is_failure_ok = o->is_failure_ok,
		.is_padded = !o->has_fixed_environment,
		.on_run = on_run,
		.on_plan = on_plan,
		.is_decided = is_decided,
		.on_output = on_output,
		.on_end = on_end,
		.ctx = j,
	};
	if (loop.has_no_cold && !o->nr_exact && !o->for_ns)
		loop.nr_exact = 1;
	if (c->has_shell)
		TRY(bench_loop_calibrate(&j->shell, runner, c->shell_argv, NR_SHELL_RUNS, err));
	progress_init(&j->progress, "benchmark");
	int rc = bench_loop_run(&loop, runner, err);
	progress_release(&j->progress);
	return rc;
}

static bool count(void *runner, struct counter_value *ret)
{
	return bench_runner_count(runner, ret);
}

static int measure(struct job *j, struct err *err)
{
	const struct bench_opts *o = j->o;
	struct bench_stdio io = {.input = o->input};
	CLEANUP(bench_runner_free_p) struct bench_runner *runner = NULL;
	CLEANUP(cpuquota_release) struct cpuquota quota = {0};
	if (o->shows_output || (o->output && !strcmp(o->output, "inherit")))
		io.output = BENCH_OUTPUT_INHERIT;
	else if (bench_patterns_has_lines(&j->patterns) ||
		 (o->output && !strcmp(o->output, "pipe")))
		io.output = BENCH_OUTPUT_PIPE;
	else if (o->output && strcmp(o->output, "null") != 0)
		io.output = BENCH_OUTPUT_FILE;
	io.output_path = o->output;
	io.has_marks = bench_patterns_has_marks(&j->patterns);
	io.functions = j->functions;
	io.has_counts = bench_patterns_has_bounds(&j->patterns);
	TRY(bench_runner_new(&runner, &io, &j->counters.events, err));
	j->counters = *bench_runner_counters(runner);
	for (size_t i = 0; i < j->commands.subjects.n && io.has_counts; i++) {
		j->lines[i].count = count;
		j->lines[i].count_ctx = runner;
	}
	cpuquota_update(&quota, "/", getpid());
	int rc = run_all(j, runner, err);
	cpuquota_update(&quota, "/", getpid());
	j->throttled_ns = quota.total_ns;
	j->bound_bytes = bench_runner_bound_bytes(runner);
	return rc;
}

/* ---- the result ------------------------------------------------------------------------------ */

static int write_export(const char *path, const struct buf *text)
{
	CLEANUP(err_release) struct err err = {0};
	if (!strcmp(path, "-"))
		return cmd_print(text);
	return out_file(path, 0644, text, &err) ? cmd_fail(&err) : EXIT_OK;
}

static void html_of(struct buf *to, const struct bench_commands *c, const struct report *r)
{
	CLEANUP(buf_release) struct buf title = {0};
	if (c->subjects.n == 1)
		buf_addf(&title, "benchmark of '%s'", c->subjects.p[0].name);
	else
		buf_addf(&title, "comparison of %s", num_noun(c->subjects.n, "commands").s);
	benchhtml_write(to, r, buf_str(&title));
}

static int write_exports(const struct bench_opts *o, const struct bench_results *results,
			 const struct report *report)
{
	static void (*const writers[])(struct buf *, const struct bench_export *, size_t) = {
		bench_export_json, bench_export_csv, bench_export_markdown};
	const char *const paths[] = {o->json, o->csv, o->markdown};
	int status = EXIT_OK;
	for (size_t i = 0; i < ARRAY_LEN(paths) && !status; i++) {
		CLEANUP(buf_release) struct buf text = {0};
		if (!paths[i])
			continue;
		bench_results_export(results, &text, writers[i]);
		status = write_export(paths[i], &text);
	}
	if (o->html && !status) {
		CLEANUP(buf_release) struct buf text = {0};
		html_of(&text, results->commands, report);
		status = write_export(o->html, &text);
	}
	return status;
}

static int status_of(const struct bench_opts *o, const struct bench_results *results)
{
	CLEANUP(arena_release) struct arena a = {0};
	const char *why = NULL;
	const char *invalid = bench_results_invalid(results, &a);
	if (invalid) {
		log_error("%s", invalid);
		return EXIT_INVALID;
	}
	enum bench_verdict worst = bench_results_verdict(results, &why);
	if (worst == BENCH_SLOWER)
		return EXIT_THRESHOLD;
	if (why)
		log_warn("inconclusive: %s", why);
	return why && o->is_strict ? EXIT_INCONCLUSIVE : EXIT_OK;
}

/* The mean of the second command, whose runs are as many as those of the first. */
static uint64_t cpu_of_a_run(const struct job *j)
{
	const struct bench_subject *s = &j->commands.subjects.p[1];
	uint64_t sum_ns = 0;
	for (size_t i = 0; i < s->runs.n; i++)
		sum_ns += s->runs.p[i].v[BENCH_USER] + s->runs.p[i].v[BENCH_SYSTEM];
	return sum_ns / MAX(s->runs.n, (size_t)1);
}

static int finish(struct job *j, const struct renderer_choice *form)
{
	struct bench_results results;
	fill_results(&results, j);
	const char *const paths[] = {j->o->json, j->o->csv, j->o->markdown, j->o->html};
	bool is_stdout_taken = false;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		is_stdout_taken |= paths[i] && !strcmp(paths[i], "-");
	CLEANUP(report_free_p) struct report *r = bench_results_report(&results);
	if (!is_stdout_taken) {
		struct output_opts out = {.form = *form};
		int status =
			cmd_is_quiet() && renderer_is_text(form) ? EXIT_OK : output_report(&out, r);
		if (status)
			return status;
	}
	int status = write_exports(j->o, &results, r);
	if (!status)
		status = j->has_failed ? EXIT_FAILED : status_of(j->o, &results);
	bool is_measured = status != EXIT_FAILED && status != EXIT_INVALID && !j->is_stopped;
	if (j->profile.pid && is_measured && bench_profile_run(&j->profile, cpu_of_a_run(j))) {
		log_error(stop_count()
				  ? "stopped by a signal before the profiles of both were complete"
				  : "the profiles could not be recorded or compared");
		return EXIT_FAILED;
	}
	return status;
}

/* A file that cannot be made is noticed before the runs, which would be lost. */
static int check_export(const char *path, struct err *err)
{
	CLEANUP(out_release) struct out try = {.fd = -1, .dirfd = -1};
	struct stat st;
	/* Who reads a pipe would see its end. */
	bool is_read_meanwhile =
		path && !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
	return path && strcmp(path, "-") != 0 && !is_read_meanwhile
		       ? out_open(&try, path, 0644, err)
		       : 0;
}

static int check(const struct bench_opts *o, struct err *err)
{
	const char *const paths[] = {o->json, o->csv, o->markdown, o->html};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		TRY(check_export(paths[i], err));
	if (o->each && o->has_metric_lines)
		return err_set(err, -EINVAL, "--each excludes --each-metric");
	if (o->nr_exact && (o->nr_min != BENCH_MIN_RUNS || o->nr_max || o->for_ns))
		return err_set(err, -EINVAL, "--runs excludes --min-runs, --max-runs and --for");
	if (o->nr_max && o->nr_max < o->nr_min && o->nr_min != BENCH_MIN_RUNS)
		return err_set(err, -EINVAL, "--max-runs is below --min-runs");
	if (!(o->floor_pct >= 0 && o->floor_pct < 1000))
		return err_set(err, -EINVAL, "--floor: a percentage of at least 0");
	if (!(o->work >= 0))
		return err_set(err, -EINVAL, "--work: a number above 0");
	return 0;
}

/* The baseline must have each command, and the same kind of values. */
static int read_baseline(struct job *j, struct err *err)
{
	size_t nr = j->commands.subjects.n;
	const char *path = j->o->against;
	if (!path)
		return 0;
	TRY(bench_baseline_read(&j->baseline, path, err));
	for (size_t i = 0; i < nr; i++) {
		const char *name = j->commands.subjects.p[i].name;
		const struct bench_baseline_row *row = bench_baseline_find(&j->baseline, name, nr);
		if (!row) {
			err_set(err, -EINVAL, "'%s' has no runs of '%s'", path, name);
			return err_hint(err, "it has those of '%s'; -n NAME names a command",
					j->baseline.rows.p[0].command);
		}
		if ((row->each.n > 0) != j->has_each)
			return err_set(err, -EINVAL, "'%s' was made %s --each", path,
				       row->each.n ? "with" : "without");
	}
	return 0;
}

static int start_profile(struct job *j, struct err *err)
{
	const struct bench_subject *s = j->commands.subjects.p;
	const struct opt_list *phases = &j->o->profile_phases;
	for (size_t i = 0; i < phases->n; i++)
		if (!strchr(phases->p[i], '='))
			return err_set(err, -EINVAL, "--profile-phase '%s': NAME=REGEX is expected",
				       phases->p[i]);
	if (!j->o->profile_dir)
		return phases->n ? err_set(err, -EINVAL, "--profile-phase needs --profile DIR") : 0;
	if (j->commands.subjects.n != 2)
		return err_set(err, -EINVAL, "--profile compares two commands");
	return bench_profile_start(&j->profile,
				   &(struct bench_profile_spec){.dir = j->o->profile_dir,
								.a = s[0].argv,
								.b = s[1].argv,
								.phases = phases->p,
								.nr_phases = phases->n},
				   err);
}

/* Before assay gives up the privileges that probes need. */
static int open_functions(struct job *j, struct err *err)
{
	if (!j->o->phase_functions.n)
		return 0;
	j->functions = phasefuncs_new();
	vec_foreach(phase, &j->patterns)
		for (size_t i = 0; phase->function && i < j->commands.subjects.n; i++) {
			char *const *words;
			TRY(bench_command_words(&words, &j->arena, j->commands.subjects.p[i].argv,
						err));
			TRY(phasefuncs_add(j->functions, phase->name, phase->function, words, err));
		}
	return phasefuncs_open(j->functions, err);
}

static void describe_machines(struct job *j)
{
	size_t nr = j->commands.subjects.n;
	j->machines = arena_alloc(&j->arena, nr * sizeof(*j->machines));
	for (size_t i = 0; i < nr; i++)
		bench_machine_describe(&j->machines[i], &j->arena,
				       j->commands.has_shell ? NULL
							     : j->commands.subjects.p[i].argv[0]);
}

static int add_events(struct job *j, struct err *err)
{
	const struct opt_list *more = &j->o->events;
	struct counter_events *events = &j->counters.events;
	bool has_phases = bench_patterns_has_bounds(&j->patterns);
	TRY(counter_events_add(events, &j->arena,
			       has_phases ? PHASE_EVENTS BENCH_EVENTS : BENCH_EVENTS, err));
	for (size_t i = 0; i < more->n; i++)
		TRY(counter_events_add(events, &j->arena, more->p[i], err));
	if (events->n > BENCH_COUNTERS_MAX)
		return err_set(err, -EINVAL, "-e: at most %zu events besides the default ones",
			       BENCH_COUNTERS_MAX - NR_BENCH_EVENTS - NR_PHASE_EVENTS * has_phases);
	return 0;
}

static int prepare_job(struct job *j, const struct opt_args *args, struct err *err)
{
	const struct bench_opts *o = j->o;
	const char *pattern = o->has_metric_lines ? BENCH_METRIC_PATTERN : o->each;
	TRY(check(o, err));
	TRY(bench_commands_init(&j->commands, &o->words, args, err));
	for (size_t i = 0; i < o->phases.n; i++)
		TRY(bench_patterns_add_phase(&j->patterns, &j->arena, o->phases.p[i], err));
	for (size_t i = 0; i < o->phase_functions.n; i++)
		TRY(bench_patterns_add_function(&j->patterns, &j->arena, o->phase_functions.p[i],
						err));
	TRY(add_events(j, err));
	if (o->nr_exact % 2 && j->commands.subjects.n > 1)
		log_note("%" PRIu64 " runs of each command, not %" PRIu64
			 ": blocks have two of each, in order and in reverse",
			 o->nr_exact + 1, o->nr_exact);
	if (pattern)
		TRY(bench_patterns_add_each(&j->patterns, pattern, err));
	if (bench_patterns_has_lines(&j->patterns) && (o->output || o->shows_output))
		return err_set(
			err, -EINVAL,
			"--each and --phase NAME=REGEX read the output: --output excludes them");
	j->has_each = pattern != NULL;
	j->lines = xcalloc(j->commands.subjects.n, sizeof(*j->lines));
	for (size_t i = 0; i < j->commands.subjects.n; i++)
		bench_lines_init(&j->lines[i], &j->patterns);
	return read_baseline(j, err);
}

static int run(const struct bench_opts *o, const struct opt_args *args,
	       const struct renderer_choice *form)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(job_release) struct job j = {.o = o};
	if (prepare_job(&j, args, &err))
		return cmd_refuse(&err);
	if (start_profile(&j, &err) || open_functions(&j, &err))
		return cmd_refuse(&err);
	if (stop_install(&err) || host_become_invoker(&err))
		return cmd_fail(&err);
	int rc = measure(&j, &err);
	j.is_stopped = rc == -EINTR;
	describe_machines(&j);
	j.has_failed = rc && !j.is_stopped;
	if (j.has_failed) {
		int status = cmd_fail(&err);
		if (!j.commands.subjects.p[0].runs.n)
			return status;
	}
	if (j.is_stopped && !j.commands.subjects.p[0].runs.n) {
		log_error("interrupted before the first run had ended");
		return EXIT_NOTHING;
	}
	return finish(&j, form);
}

int cmd_bench(int argc, char **argv)
{
	struct bench_opts o = {.nr_min = BENCH_MIN_RUNS, .floor_pct = 100 * BENCH_FLOOR};
	struct renderer_choice form = {0};
	const struct opt_cmd cmd = {
		.name = "bench",
		.usage = {"[OPTION...] 'CMD'...", "[OPTION...] -- CMD [ARG...]"},
		.details = details,
		.examples = examples,
		.groups = {{&run_group, &o},
			   {&command_group, &o},
			   {&value_group, &o},
			   {&export_group, &o},
			   {&renderer_group, &form}},
	};
	CLEANUP(arena_release) struct arena arena = {0};
	CLEANUP(free_p) char **joined = xcalloc((size_t)argc + 1, sizeof(*joined));
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	argc = bench_join_words(&arena, joined, argc, argv);
	if (!cmd_parse(&args, &cmd, argc, joined, &status))
		return status;
	return run(&o, &args, &form);
}
