/* assay report: a profile as tables and trees, text or JSON. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "analyze/stacks/groupings.h"
#include "analyze/memory/timeline.h"
#include "analyze/stacks/named.h"
#include "analyze/select/phases.h"
#include "analyze/query.h"
#include "base/file/file.h"
#include "base/log.h"
#include "cmd/read/inputs.h"
#include "cmd/read/memchart.h"
#include "cmd/optgroups.h"
#include "cmd/read/runs_view.h"

#define TABLE_FILE_BYTES_MAX ((size_t)1 << 20)
#define TREE_PCT             0.5 /* below it, parts of trees are put together */

struct report_opts {
	struct query query; /* bound to the options, completed by finish_query */
	int sort;
	double percent_limit;
	const char *table;
	bool is_outermost;
	bool is_marks;
	bool is_runs;
	bool is_over_time;
	const char *chart;
};

#define GROUPINGS_MAX 31
static struct opt_choice by_choices[GROUPINGS_MAX + 1]; /* the registry's, filled when it starts */

static const struct opt_choice sort_choices[] = {
	{"self", VIEW_BY_SELF, NULL},
	{"total", VIEW_BY_TOTAL, NULL},
	{"name", VIEW_BY_NAME, NULL},
	{0},
};

static const struct opt view_opts[] = {
	OPT_ENUM(0, "by", struct report_opts, query.by, by_choices, "WHAT",
		 "self and total, or what waits and memory have of their own, by"),
	OPT_SET(0, "lines", struct report_opts, query.by, BY_LINE, "the same as --by line"),
	OPT_STR(0, "callers", struct report_opts, query.callers, "REGEX",
		"who calls the matching functions"),
	OPT_STR(0, "callees", struct report_opts, query.callees, "REGEX",
		"what the matching functions call"),
	OPT_STR(0, "nearest", struct report_opts, query.nearest, "REGEX",
		"with --callers, --callees: not the next frame, the nearest that "
		"matches"),
	OPT_BITS(0, "tree", struct report_opts, query.flags, QUERY_TREE,
		 "call tree from the root down"),
	OPT_BITS(0, "reverse", struct report_opts, query.flags, QUERY_REVERSE,
		 "call tree from the leaf functions to what leads to them"),
	OPT_U64(0, "depth", struct report_opts, query.tree_depth, "N",
		"levels of the tree (default all)"),
	OPT_STR(0, "table", struct report_opts, table, "FILE",
		"rows of your own: lines NAME REGEX REMARK; with <other> they add "
		"up to 100 %"),
	OPT_FLAG(0, "outermost", struct report_opts, is_outermost,
		 "with --table: the match nearest to the root decides, not to the leaf"),
	OPT_BITS(0, "blame", struct report_opts, query.flags, QUERY_BLAME,
		 "waits moved to their cause: what those who were waited for did meanwhile"),
	OPT_BITS(0, "allocators", struct report_opts, query.flags, QUERY_ALLOCATORS,
		 "of memory: with the frames of allocators and of the containers and strings of "
		 "standard libraries, which are left out at the ends of stacks else"),
	OPT_FLAG(0, "marks", struct report_opts, is_marks,
		 "phases between the marks set during the capture"),
	OPT_FLAG(0, "over-time", struct report_opts, is_over_time,
		 "memory: snapshots, growth with a verdict, and what was live at the peak"),
	OPT_STR(0, "chart", struct report_opts, chart, "FILE",
		"with --over-time: draw it (SVG), too"),
	OPT_FLAG(0, "runs", struct report_opts, is_runs,
		 "each FILE is a run of one thing: functions by mean self share, with the spread "
		 "from run to run"),
	OPT_END,
};
static const struct opt_group view_group = {"Views (default: an overview)", view_opts};

static const struct opt limit_opts[] = {
	OPT_U64('n', "limit", struct report_opts, query.limits.max_rows, "N",
		"rows of a table, 0 for all (default 20)"),
	OPT_DOUBLE(0, "percent-limit", struct report_opts, percent_limit, "PCT",
		   "leave out rows below PCT (default 0; trees 0.5)"),
	OPT_ENUM(0, "sort", struct report_opts, sort, sort_choices, "KEY",
		 "order of the rows (default self)"),
	OPT_END,
};
static const struct opt_group limit_group = {"How much is shown", limit_opts};

static const char details[] = "Any profile is read: a recording, perf.data, "
			      "perf script text, folded stacks; plain, .gz,\n"
			      ".xz or .zst; '-' is standard input; several "
			      "files are added up. Without a FILE the newest\n"
			      "recording under ./profiling is taken.\n"
			      "\n"
			      "Self is the time in a function itself, total "
			      "that and what it calls; recursion counts\n"
			      "once. '+-' is half of the 95 % interval in "
			      "percentage points. What was lost is part of\n"
			      "every report.\n";

static const char examples[] =
	"assay report\tthe newest recording\n"
	"assay report perf.data --by crate --sort total\twhich crate takes the "
	"time\n"
	"assay report --callers keccak --nearest ^ethrex_\twho calls it, by our "
	"own code\n"
	"assay report --within add_block --tree\twhat one operation does\n"
	"assay report --phase 'io=^read_' --phase 'exec=^add_block' "
	"--json\tphases\n";

/* ---- the command ----------------------------------------------------------------------------- */

static int read_rules(struct arena *a, const char *path, struct query *q, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct named_rule *rules = NULL;
	if (file_read(&text, path, TABLE_FILE_BYTES_MAX, err))
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
			log_note("this profile has no marks; `assay mark` sets them");
	}
	if ((o->table && read_rules(&a, o->table, &q, &err)) || query_run(r, p, &q, &err))
		return cmd_refuse(&err);
	return output_report(out, r);
}

/* --over-time: of the whole profile, no selection. */
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

/* --runs: files are compared with each other, not added up. */
static int report_runs(const struct report_opts *o, const struct select_spec *spec,
		       const struct output_opts *out, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct query *q = &o->query;
	if (q->by != QUERY_BY_NONE || q->callers || q->callees ||
	    q->flags & (QUERY_TREE | QUERY_REVERSE) || o->table || o->is_marks || spec->nr_rules ||
	    o->sort == VIEW_BY_TOTAL)
		return cmd_usage("report", "--runs is a view of its own, of self shares of "
					   "functions");
	if (!args->operands.n)
		return cmd_usage("report", "--runs needs the FILEs to compare");
	if (runs_view(r, (const char *const *)args->operands.p, args->operands.n, spec, &q->limits,
		      &err))
		return cmd_refuse(&err);
	return output_report(out, r);
}

/* What hints call the input: nothing that cannot be typed again. */
static const char *input_name(const struct inputs *in)
{
	return in->nr == 1 && strcmp(in->paths[0], "-") ? in->paths[0] : NULL;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts o = {.query.by = QUERY_BY_NONE,
				.query.limits.max_rows = 20,
				.sort = VIEW_BY_SELF,
				.percent_limit = -1};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	struct output_opts out = {0};
	const struct opt_cmd cmd = {
		.name = "report",
		.usage = {"[OPTION...] [FILE...]"},
		.summary = "where the time goes: tables and trees of a profile",
		.details = details,
		.examples = examples,
		.groups = {{&view_group, &o},
			   {&filter_group, &filter},
			   {&limit_group, &o},
			   {&output_group, &out},
			   {&renderer_group, &out.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	const struct grouping *g;
	for (int i = 0; i < GROUPINGS_MAX && (g = groupings_at((size_t)i)); i++)
		by_choices[i] = (struct opt_choice){g->key, i, g->help};
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.command)
		return cmd_usage("report", "a command to run makes no sense here");
	if (o.query.nearest && !o.query.callers && !o.query.callees)
		return cmd_usage("report", "--nearest needs --callers or --callees");
	finish_query(&o, &filter.spec);
	if (filter.weight && (query_is_of_waits(&o.query) || o.is_runs))
		return cmd_usage("report",
				 "--weight is for functions, modules, threads and trees; "
				 "the tables of waits and runs have columns of their own");
	if (filter_finish(&filter, &err))
		return cmd_refuse(&err);
	if (o.chart && !o.is_over_time)
		return cmd_usage("report", "--chart needs --over-time");
	if (o.is_runs)
		return report_runs(&o, &filter.spec, &out, &args);
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(inputs_release) struct inputs in = {0};
	if (inputs_find(&in, &args, &err) ||
	    inputs_load(&p, in.paths, in.nr, &(struct load_options){.dumps = filter.dumps}, &err))
		return cmd_fail(&err);
	if (filter_weigh(&filter, p, &err))
		return cmd_refuse(&err);
	if (o.is_over_time)
		return report_over_time(p, &o, &out);
	bool is_weighed = filter.weight || filter.spec.heap.at;
	if (is_weighed && o.query.by == QUERY_BY_NONE) /* the first page has all columns */
		o.query.by = BY_FUNCTION;
	return report_profile(p, &o, &filter.spec, &out, input_name(&in));
}
