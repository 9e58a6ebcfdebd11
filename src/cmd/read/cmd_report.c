/* assay report: prints tables and trees of a profile as text, JSON or Markdown. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <unistd.h>

#include "analyze/stacks/groupings.h"
#include "analyze/memory/timeline.h"
#include "analyze/stacks/named.h"
#include "analyze/select/phases.h"
#include "analyze/query.h"
#include "base/file/file.h"
#include "base/log.h"
#include "cmd/read/inputs.h"
#include "cmd/read/interactive.h"
#include "cmd/capture/outputs.h"
#include "cmd/read/memchart.h"
#include "cmd/optgroups.h"
#include "cmd/read/runs_view.h"

#define TABLE_FILE_BYTES_MAX ((size_t)1 << 20)
#define TREE_PCT             0.5 /* subtrees below this share are merged */
#define ROWS                 20
#define ROWS_NOT_GIVEN       UINT64_MAX

struct report_opts {
	struct query query; /* bound to the options, completed by finish_query */
	int sort;
	double percent_limit;
	const char *table;
	bool is_outermost;
	bool is_marks;
	bool is_runs;
	bool is_over_time;
	bool is_text;
	const char *chart;
	struct share_opts share;
	struct source_opts source;
};

#define GROUPINGS_MAX 31
static struct opt_choice by_choices[GROUPINGS_MAX + 1]; /* filled by cmd_report from groupings_at */

static const struct opt_choice sort_choices[] = {
	{"self", VIEW_BY_SELF, NULL},
	{"total", VIEW_BY_TOTAL, NULL},
	{"name", VIEW_BY_NAME, NULL},
	{0},
};

static const struct opt view_opts[] = {
	OPT_ENUM(0, "by", struct report_opts, query.by, by_choices, "WHAT", "group rows by"),
	OPT_BITS(0, "tree", struct report_opts, query.flags, QUERY_TREE,
		 "print the call tree from the root down"),
	OPT_BITS(
		0, "reverse", struct report_opts, query.flags, QUERY_REVERSE,
		"print the inverted call tree: the functions that ran (self), below each its callers"),
	OPT_U64(0, "depth", struct report_opts, query.tree_depth, "N",
		"levels of the tree (default: all)"),
	OPT_STR(0, "callers", struct report_opts, query.callers, "REGEX",
		"print the callers of matching functions"),
	OPT_STR(0, "callees", struct report_opts, query.callees, "REGEX",
		"print the functions that matching functions call"),
	OPT_STR(0, "annotate", struct report_opts, query.annotate, "REGEX",
		"print the instructions of matching functions with the samples at each; -n 0: all of "
		"them"),
	OPT_STR(0, "nearest", struct report_opts, query.nearest, "REGEX",
		"with --callers, --callees: print the nearest caller or callee that matches, not the "
		"direct one"),
	OPT_SET(0, "lines", struct report_opts, query.by, BY_LINE, "the same as --by line"),
	OPT_BITS(0, "blame", struct report_opts, query.flags, QUERY_BLAME,
		 "waits: group by what the lock holder or waker did during the wait"),
	OPT_FLAG(0, "over-time", struct report_opts, is_over_time,
		 "memory: snapshots, growth with a verdict, and what was live at the peak"),
	OPT_STR(0, "chart", struct report_opts, chart, "FILE",
		"with --over-time: also draw memory over time (SVG) to FILE"),
	OPT_BITS(0, "allocators", struct report_opts, query.flags, QUERY_ALLOCATORS,
		 "memory: keep leaf frames of allocators and of standard containers and strings"),
	OPT_FLAG(0, "marks", struct report_opts, is_marks,
		 "print the phases between the marks set by assay mark"),
	OPT_FLAG(0, "stdio", struct report_opts, is_text,
		 "print text also on a terminal, not the interactive view"),
	OPT_FLAG(0, "runs", struct report_opts, is_runs,
		 "each FILE is one run of the same program: mean self share of each function, with "
		 "its spread"),
	OPT_STR(0, "table", struct report_opts, table, "FILE",
		"group by the rules in FILE, lines NAME REGEX NOTE; the rest is <other>"),
	OPT_FLAG(0, "outermost", struct report_opts, is_outermost,
		 "with --table: use the match nearest to the root (default: to the leaf)"),
	OPT_END,
};
static const struct opt_group view_group = {"View (default: an overview)", view_opts};

static const struct opt limit_opts[] = {
	OPT_U64('n', "limit", struct report_opts, query.limits.max_rows, "N",
		"rows of each table, 0 for all (default 20)"),
	OPT_ENUM(0, "sort", struct report_opts, sort, sort_choices, "KEY",
		 "order of the rows (default self)"),
	OPT_DOUBLE(0, "percent-limit", struct report_opts, percent_limit, "PCT",
		   "hide rows below PCT percent (default 0, for trees 0.5)"),
	OPT_END,
};
static const struct opt_group limit_group = {"Rows", limit_opts};

static const char details[] =
	"FILE is a recording, perf.data, perf script output, folded stacks or another profile; "
	"also compressed (.gz, .xz, .zst); '-' is standard input. Several files are added up. "
	"Without FILE, the newest recording below ./profiling is read.\n"
	"\n"
	"Self is the time in a function itself; total includes the functions that it calls, and "
	"counts recursion once. '+-' is half of the 95 % confidence interval in percentage "
	"points. Every report states what was lost.\n"
	"\n"
	"On a terminal, without an option that selects a view, the interactive view opens: tables and "
	"trees with the keys of perf report, '?' lists them. --stdio, a pipe or -o print text.";

static const char examples[] =
	"assay report\tthe newest recording\n"
	"assay report redis.assay --tree\tits call tree\n"
	"assay report perf.data --by crate --sort total\twhich crate takes the time\n"
	"assay report --callers memcpy --nearest ^myapp_\twho calls memcpy, in own code\n"
	"assay report --annotate dictFind --source src\tits instructions and source lines\n"
	"assay report --within handle_request --tree\tthe call tree of one operation\n"
	"assay report --phase 'io=^read_' --phase 'cpu=^run_' --json\ttime by phase, as JSON\n";

/* ---- the command ----------------------------------------------------------------------------- */

static int read_rules(struct arena *a, const char *path, struct query *q, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct named_rule *rules = NULL;
	if (file_read_named(&text, path, TABLE_FILE_BYTES_MAX, err))
		return err_wrap(err, "--table");
	if (named_parse(a, buf_sv(&text), &rules, &q->nr_named, err))
		return err_wrap(err, "--table '%s'", path);
	q->named = rules;
	return 0;
}

static void finish_query(struct report_opts *o, const struct select_spec *spec)
{
	struct query *q = &o->query;
	q->spec = spec;
	q->named_nearest = o->is_outermost ? NAMED_NEAREST_ROOT : NAMED_NEAREST_LEAF;
	q->tree_min_pct = o->percent_limit >= 0 ? o->percent_limit : TREE_PCT;
	q->limits.min_pct = MAX(o->percent_limit, 0);
	q->limits.sort = (enum view_sort)o->sort;
}

static int report_profile(const struct profile *p, const struct report_opts *o,
			  struct select_spec *spec, const struct output_opts *out,
			  const char *input)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct query q = o->query;
	q.input = input;
	if (o->is_marks && !spec->nr_rules) {
		spec->rules = phases_from_marks(&a, p, &spec->nr_rules);
		if (!spec->nr_rules)
			log_note(
				"this profile has no marks; they are set during a capture: assay mark TARGET TEXT");
	}
	if ((o->table && read_rules(&a, o->table, &q, &err)) || query_run(r, p, &q, &err))
		return cmd_refuse(&err);
	return output_report(out, r);
}

/* --over-time: reports the whole profile; filters are not applied. */
static int report_over_time(const struct profile *p, const struct report_opts *o,
			    const struct output_opts *out)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct view_limits limits = {.max_rows = o->query.limits.max_rows};
	double min_pct = o->percent_limit >= 0 ? o->percent_limit : MEMTIME_TREE_PCT;
	if (memtime_report(r, p, &limits, min_pct, &err) ||
	    (o->chart && memchart_file(o->chart, p, &err)))
		return cmd_refuse(&err);
	return output_report(out, r);
}

/* --runs: compares the files instead of adding them up. */
static int report_runs(const struct report_opts *o, const struct select_spec *spec,
		       const struct output_opts *out, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct query *q = &o->query;
	if (q->by != QUERY_BY_NONE || q->callers || q->callees || q->annotate ||
	    q->flags & (QUERY_TREE | QUERY_REVERSE) || o->table || o->is_marks || spec->nr_rules ||
	    o->sort == VIEW_BY_TOTAL)
		return cmd_usage("report",
				 "--runs prints self shares of functions and excludes other views");
	if (!args->operands.n)
		return cmd_usage("report", "missing files: --runs needs the recordings to compare");
	const char *const *paths = (const char *const *)args->operands.p;
	if (inputs_confine(paths, args->operands.n, out->path, &err) ||
	    runs_view(r, paths, args->operands.n, spec, &q->limits, &err))
		return cmd_refuse(&err);
	return output_report(out, r);
}

/* The terminal view has every table and tree; options that ask for one of them get it as text. */
static bool is_interactive(const struct report_opts *o, const struct output_opts *out,
			   bool is_weighed)
{
	const struct query *q = &o->query;
	return !o->is_text && !out->path && renderer_is_text(&out->form) && !is_weighed &&
	       q->by == QUERY_BY_NONE && !q->flags && !q->callers && !q->callees && !q->annotate &&
	       !o->table && !o->is_marks && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* False: the terminal cannot show it. */
static bool show_interactive(const struct profile *p, const struct report_opts *o, const char *name)
{
	CLEANUP(err_release) struct err err = {0};
	if (!interactive_run(p, &o->query, name, &err))
		return true;
	log_info("%s: printing text", err_msg(&err));
	return false;
}

/* Returns the input as hints name it; NULL if a new command could not read it again. */
static const char *input_name(const struct inputs *in)
{
	return in->nr == 1 && strcmp(in->paths[0], "-") ? in->paths[0] : NULL;
}

/* Returns an exit status: 0, or that of a combination that makes no sense. */
static int check_options(const struct report_opts *o, struct filter_opts *filter, struct err *err)
{
	if (o->query.nearest && !o->query.callers && !o->query.callees)
		return cmd_usage("report", "--nearest needs --callers or --callees");
	if (filter->weight && (query_is_of_waits(&o->query) || o->is_runs))
		return cmd_usage("report",
				 "--weight is for functions, modules, threads and trees; "
				 "the tables of waits and runs have columns of their own");
	if (filter_finish(filter, err))
		return cmd_refuse(err);
	if (source_is_refused(&o->source, &o->share))
		return cmd_usage("report", SOURCE_REFUSAL);
	if (o->chart && !o->is_over_time)
		return cmd_usage("report", "--chart needs --over-time");
	if (o->chart && outputs_check_name("--chart", o->chart, ".svg", "an SVG file", err))
		return cmd_refuse(err);
	return 0;
}

static void fill_by_choices(void)
{
	const struct grouping *g;
	for (int i = 0; i < GROUPINGS_MAX && (g = groupings_at((size_t)i)); i++)
		by_choices[i] = (struct opt_choice){g->key, i, g->help};
}

int cmd_report(int argc, char **argv)
{
	struct report_opts o = {.query.by = QUERY_BY_NONE,
				.query.limits.max_rows = ROWS_NOT_GIVEN,
				.sort = VIEW_BY_SELF,
				.percent_limit = -1};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	struct output_opts out = {0};
	const struct opt_cmd cmd = {
		.name = "report",
		.usage = {"[OPTION...] [FILE...]"},
		.details = details,
		.examples = examples,
		.groups = {{&view_group, &o},
			   {&limit_group, &o},
			   FILTER_GROUPS(&filter),
			   {&output_group, &out},
			   {&source_group, &o.source},
			   {&share_group, &o.share},
			   {&renderer_group, &out.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	fill_by_choices();
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	out.form.has_limit = o.query.limits.max_rows != ROWS_NOT_GIVEN;
	if (!out.form.has_limit)
		o.query.limits.max_rows = ROWS;
	finish_query(&o, &filter.spec);
	status = check_options(&o, &filter, &err);
	if (status)
		return status;
	if (o.is_runs)
		return report_runs(&o, &filter.spec, &out, &args);
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(inputs_release) struct inputs in = {0};
	CLEANUP(codefiles_release) struct codefiles code = {0};
	o.query.code = &code.access;
	if (inputs_find(&in, &args, &err) || source_open(&code, &o.source, &err) ||
	    inputs_confine(in.paths, in.nr, o.chart ? o.chart : out.path, &err) ||
	    inputs_load(&p, in.paths, in.nr, &(struct load_options){.dumps = filter.dumps}, &err))
		return cmd_fail(&err);
	share_apply(&o.share, &p);
	codefiles_of(&code, p);
	if (filter_weigh(&filter, p, &err))
		return cmd_refuse(&err);
	if (o.is_over_time)
		return report_over_time(p, &o, &out);
	bool is_weighed = filter.weight || filter.spec.heap.at;
	if (is_weighed && o.query.by == QUERY_BY_NONE) /* the first page shows all weights anyway */
		o.query.by = BY_FUNCTION;
	if (is_interactive(&o, &out, is_weighed) && show_interactive(p, &o, in.paths[0]))
		return EXIT_OK;
	status = report_profile(p, &o, &filter.spec, &out, input_name(&in));
	source_print_note(&code);
	return status;
}
