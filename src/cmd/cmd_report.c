/* assay report: a profile as tables and trees, text or JSON. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/blame.h"
#include "analyze/callers.h"
#include "analyze/calltext.h"
#include "analyze/calltree.h"
#include "analyze/heapsum.h"
#include "analyze/heapweights.h"
#include "analyze/ledger.h"
#include "analyze/memtime.h"
#include "analyze/named.h"
#include "analyze/overview.h"
#include "analyze/phases.h"
#include "analyze/threads.h"
#include "analyze/top.h"
#include "analyze/views.h"
#include "analyze/waittables.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "cmd/memchart.h"
#include "cmd/optgroups.h"
#include "cmd/runs_view.h"
#include "host/cachedir.h"
#include "session/load.h"
#include "session/store.h"

#define TABLE_FILE_BYTES_MAX ((size_t)1 << 20)
#define PHASE_FUNCTIONS      5

enum report_by {
	REPORT_THREAD = BY_NR,
	REPORT_THREAD_GROUP,
	/* Of waits. */
	REPORT_REASON,
	REPORT_WAITER,
	REPORT_STACK,
	REPORT_WAKER,
	REPORT_LOCK,
	REPORT_OBJECT,
	/* Of memory. */
	REPORT_SIZE,
	REPORT_LEAK,
	REPORT_BY_NONE,
};

struct report_opts {
	int by; /* enum group_by or enum report_by */
	int sort;
	uint64_t limit;
	double percent_limit;
	const char *callers;
	const char *callees;
	const char *nearest;
	bool is_tree;
	bool is_reverse;
	uint64_t depth;
	const char *table;
	bool is_outermost;
	bool is_blame;
	bool is_marks;
	bool is_runs;
	bool is_over_time;
	const char *chart;
	bool has_allocators;
};

static const struct opt_choice by_choices[] = {
	{"function", BY_FUNCTION, "inlined functions count as functions"},
	{"module", BY_MODULE, "binaries, libraries, the kernel"},
	{"crate", BY_CRATE, "Rust crates, C++ namespaces, Go packages, else modules"},
	{"file", BY_FILE, "source files"},
	{"line", BY_LINE, "source lines"},
	{"thread", REPORT_THREAD, NULL},
	{"thread-group", REPORT_THREAD_GROUP, "threads whose names differ in numbers only"},
	{"reason", REPORT_REASON, "waits: why"},
	{"waiter", REPORT_WAITER, "waits: the program's function nearest to the wait"},
	{"stack", REPORT_STACK, "waits: whole stacks"},
	{"waker", REPORT_WAKER, "waits: who ended them"},
	{"lock", REPORT_LOCK, "waits: which lock, who let go of it, what holders did"},
	{"object", REPORT_OBJECT, "waits: files and peers"},
	{"size", REPORT_SIZE, "memory: sizes of blocks"},
	{"leak", REPORT_LEAK, "memory: leaks by site, with their age and growth"},
	{0},
};

static const struct opt_choice sort_choices[] = {
	{"self", VIEW_BY_SELF, NULL},
	{"total", VIEW_BY_TOTAL, NULL},
	{"name", VIEW_BY_NAME, NULL},
	{0},
};

static const struct opt view_opts[] = {
	OPT_ENUM(0, "by", struct report_opts, by, by_choices, "WHAT",
		 "self and total by function, module, crate, file, line, thread, "
		 "thread-group; waits by reason, waiter, stack, waker, lock, object; memory by "
		 "size, leak"),
	OPT_SET(0, "lines", struct report_opts, by, BY_LINE, "the same as --by line"),
	OPT_STR(0, "callers", struct report_opts, callers, "REGEX",
		"who calls the matching functions"),
	OPT_STR(0, "callees", struct report_opts, callees, "REGEX",
		"what the matching functions call"),
	OPT_STR(0, "nearest", struct report_opts, nearest, "REGEX",
		"with --callers, --callees: not the next frame, the nearest that "
		"matches"),
	OPT_FLAG(0, "tree", struct report_opts, is_tree, "call tree from the root down"),
	OPT_FLAG(0, "reverse", struct report_opts, is_reverse,
		 "call tree from the leaf functions to what leads to them"),
	OPT_U64(0, "depth", struct report_opts, depth, "N", "levels of the tree (default all)"),
	OPT_STR(0, "table", struct report_opts, table, "FILE",
		"rows of your own: lines NAME REGEX REMARK; with <other> they add "
		"up to 100 %"),
	OPT_FLAG(0, "outermost", struct report_opts, is_outermost,
		 "with --table: the match nearest to the root decides, not to the leaf"),
	OPT_FLAG(0, "blame", struct report_opts, is_blame,
		 "waits moved to their cause: what those who were waited for did meanwhile"),
	OPT_FLAG(0, "allocators", struct report_opts, has_allocators,
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
	OPT_U64('n', "limit", struct report_opts, limit, "N",
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

/* ---- views
 * -----------------------------------------------------------------------------
 */

struct view_run {
	const struct report_opts *o;
	const struct select_spec *spec;
	const struct selection *sel;
	struct report *r;
	struct view_limits limits;
};

static bool wants_overview(const struct view_run *v)
{
	const struct report_opts *o = v->o;
	return o->by == REPORT_BY_NONE && !o->callers && !o->callees && !o->is_tree &&
	       !o->is_reverse && !o->table && !o->is_blame && !v->spec->nr_rules;
}

/* Threads of waits are rows of the ledger, which has their time on a CPU as well. */
static int add_threads(const struct view_run *v, struct err *err)
{
	bool is_grouped = v->o->by == REPORT_THREAD_GROUP;
	bool is_time = v->sel->unit == UNIT_NS; /* what a ledger has */
	if (!v->sel->tagged || !is_time || strcmp(v->sel->event, table_key(TABLE_OFF_CPU)) != 0) {
		(is_grouped ? thread_groups_report : threads_report)(v->r, v->sel, &v->limits);
		return 0;
	}
	CLEANUP(arena_release) struct arena a = {0};
	struct ledger l;
	int rc = ledger_make(&a, v->sel->p, v->spec, &l, err);
	if (!rc)
		ledger_threads_report(v->r, &l, is_grouped ? LEDGER_GROUPS : 0, &v->limits);
	return rc;
}

static int no_locks(const struct view_run *v, struct err *err)
{
	for (size_t i = 0; i < v->sel->nr_tagged; i++)
		if (v->sel->tagged[i].reason == WAIT_LOCK)
			return 0;
	err_set(err, -ENODATA, "nothing in view waited for a lock");
	return err_hint(err, "what was waited for: assay report --by reason");
}

static void add_locks(const struct view_run *v)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection blame;
	struct select_spec spec = *v->spec;
	spec.event = table_key(TABLE_BLAME);
	spec.reason = NULL;
	bool has_blame =
		blame_is_there(v->sel->p) && !select_run(&a, v->sel->p, &spec, &blame, NULL);
	waits_locks(v->r, v->sel, has_blame ? &blame : NULL, &v->limits);
}

static int add_waits_by(const struct view_run *v, struct err *err)
{
	bool is_time = v->sel->unit == UNIT_NS; /* what a ledger has */
	if (!v->sel->tagged || !is_time || strcmp(v->sel->event, table_key(TABLE_OFF_CPU)) != 0) {
		err_set(err, -EINVAL, "this view is one of waits, and event '%s' has none",
			v->sel->event);
		return err_hint(err, "record some: assay offcpu, assay cpu --offcpu");
	}
	switch ((enum report_by)v->o->by) {
	case REPORT_REASON:
		waits_reasons(v->r, v->sel);
		break;
	case REPORT_WAITER:
		waits_functions(v->r, v->sel, &v->limits);
		break;
	case REPORT_STACK:
		waits_stacks(v->r, v->sel, &v->limits);
		break;
	case REPORT_WAKER:
		waits_wakers(v->r, v->sel, &v->limits);
		break;
	case REPORT_LOCK:
		if (no_locks(v, err))
			return -ENODATA;
		add_locks(v);
		break;
	case REPORT_OBJECT:
		waits_objects(v->r, v->sel, &v->limits);
		break;
	case REPORT_THREAD:
	case REPORT_THREAD_GROUP:
	case REPORT_SIZE:
	case REPORT_LEAK:
	case REPORT_BY_NONE:
		break;
	}
	return 0;
}

static int add_heap_by(const struct view_run *v, struct err *err)
{
	int by = v->o->by;
	if (by < BY_NR) {
		top_report(v->r, v->sel, (enum group_by)by, &v->limits);
		return 0;
	}
	if (!heapweights_is_one(v->sel)) {
		err_set(err, -EINVAL, "this view is one of memory, and event '%s' has none",
			v->sel->event);
		return err_hint(err, "record some: assay heap");
	}
	if (by == REPORT_THREAD || by == REPORT_SIZE || by == REPORT_LEAK)
		return heapsum_table(v->r, v->sel->p, v->spec, &v->limits,
				     by == REPORT_SIZE     ? HEAPSUM_SIZES
				     : by == REPORT_THREAD ? HEAPSUM_THREADS
							   : HEAPSUM_LEAKS,
				     err);
	if (by == REPORT_THREAD_GROUP) {
		thread_groups_report(v->r, v->sel, &v->limits);
		return 0;
	}
	return add_waits_by(v, err);
}

static int add_by(const struct view_run *v, struct err *err)
{
	int by = v->o->by;
	if (by == REPORT_BY_NONE)
		return 0;
	if (by == REPORT_SIZE || by == REPORT_LEAK || heapweights_is_one(v->sel))
		return add_heap_by(v, err);
	if (by == REPORT_THREAD || by == REPORT_THREAD_GROUP)
		return add_threads(v, err);
	if (by > REPORT_THREAD_GROUP)
		return add_waits_by(v, err);
	top_report(v->r, v->sel, (enum group_by)by, &v->limits);
	return 0;
}

static int add_blame(const struct view_run *v, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct blame b;
	int rc = blame_make(&a, v->sel->p, v->spec, &b, err);
	if (!rc)
		blame_report(v->r, &b, &v->limits);
	return rc;
}

static int add_table_file(const struct view_run *v, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf text = {0};
	if (file_read(&text, v->o->table, TABLE_FILE_BYTES_MAX, err))
		return err_wrap(err, "--table");
	struct named_rule *rules = NULL;
	size_t nr_rules = 0;
	if (named_parse(&a, buf_sv(&text), &rules, &nr_rules, err))
		return err_wrap(err, "--table '%s'", v->o->table);
	return named_report(v->r, v->sel, rules, nr_rules,
			    v->o->is_outermost ? NAMED_NEAREST_ROOT : NAMED_NEAREST_LEAF, err);
}

static void add_trees(const struct view_run *v)
{
	struct calltext_options options = {
		.min_pct = v->o->percent_limit >= 0 ? v->o->percent_limit : 0.5,
		.max_depth = v->o->depth,
	};
	if (v->o->is_tree)
		calltext_report(v->r, v->sel, &options);
	options.flags = CALLTREE_REVERSE;
	if (v->o->is_reverse)
		calltext_report(v->r, v->sel, &options);
}

static int add_views(const struct view_run *v, struct err *err)
{
	const struct report_opts *o = v->o;
	enum group_by by = o->by < BY_NR ? (enum group_by)o->by : BY_FUNCTION;
	int rc = 0;
	overview_begin(v->r, v->sel);
	if (!o->callers && !o->callees)
		rc = add_by(v, err);
	if (!rc && o->is_blame)
		rc = add_blame(v, err);
	if (rc)
		return rc;
	if (v->sel->nr_rules)
		phases_report(v->r, v->sel, PHASE_FUNCTIONS);
	if (o->callers)
		rc = callers_report(v->r, v->sel, o->callers, o->nearest, by, &v->limits, err);
	if (!rc && o->callees)
		rc = callees_report(v->r, v->sel, o->callees, o->nearest, by, &v->limits, err);
	if (!rc && o->table)
		rc = add_table_file(v, err);
	if (!rc)
		add_trees(v);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A wrong filter is a usage error, a filter that finds nothing is not. */
static int fail(const struct err *err)
{
	int status = cmd_fail(err);
	return err->code == -EINVAL ? EXIT_USAGE : status;
}

static bool has_waits_view(const struct report_opts *o)
{
	return o->is_blame || (o->by > REPORT_THREAD_GROUP && o->by < REPORT_SIZE);
}

/* Of a recording of CPU samples and waits. */
static const char *default_event(const struct profile *p, const struct report_opts *o)
{
	if (has_waits_view(o))
		return table_key(TABLE_OFF_CPU);
	return o->is_tree ? views_tree_event(p) : NULL;
}

static int report_profile(const struct profile *p, const struct report_opts *o,
			  struct select_spec *spec, const struct output_opts *out,
			  const char *input)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	if (o->is_marks && !spec->nr_rules) {
		spec->rules = phases_from_marks(&a, p, &spec->nr_rules);
		if (!spec->nr_rules)
			log_note("this profile has no marks; `assay mark` sets them");
	}
	struct selection sel;
	struct view_run v = {
		.o = o,
		.spec = spec,
		.sel = &sel,
		.r = r,
		.limits = {o->limit, MAX(o->percent_limit, 0), (enum view_sort)o->sort},
	};
	int rc = 0;
	if (wants_overview(&v)) {
		rc = views_page(r, p, spec, input, &v.limits, &err);
	} else {
		struct select_spec own = *spec;
		own.flags |= o->has_allocators ? 0 : SELECT_CUT_STACKS;
		if (!spec->event && views_default(p)->is_mixed)
			own.event = default_event(p, o);
		rc = views_select(&a, p, &own, &sel, &err);
		rc = rc ? rc : add_views(&v, &err);
	}
	if (rc)
		return fail(&err);
	CLEANUP(buf_release) struct buf b = {0};
	output_render(out, &b, r);
	return output_write(out, &b);
}

/* --over-time: of the whole profile, no selection. */
static int report_over_time(const struct profile *p, const struct report_opts *o,
			    const struct output_opts *out)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	const struct view_limits limits = {.max_rows = o->limit};
	double min_pct = o->percent_limit >= 0 ? o->percent_limit : MEMTIME_TREE_PCT;
	if (memtime_report(r, p, &limits, min_pct, &err) ||
	    (o->chart && memchart_file(o->chart, p, &err)))
		return fail(&err);
	output_render(out, &b, r);
	return output_write(out, &b);
}

/* --runs: files are compared with each other, not added up. */
static int report_runs(const struct report_opts *o, const struct select_spec *spec,
		       const struct output_opts *out, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct view_limits limits = {o->limit, MAX(o->percent_limit, 0), (enum view_sort)o->sort};
	if (o->by != REPORT_BY_NONE || o->callers || o->callees || o->is_tree || o->is_reverse ||
	    o->table || o->is_marks || spec->nr_rules || o->sort == VIEW_BY_TOTAL)
		return cmd_usage("report", "--runs is a view of its own, of self shares of "
					   "functions");
	if (!args->operands.n)
		return cmd_usage("report", "--runs needs the FILEs to compare");
	if (runs_view(r, (const char *const *)args->operands.p, args->operands.n, spec, &limits,
		      &err))
		return fail(&err);
	CLEANUP(buf_release) struct buf b = {0};
	output_render(out, &b, r);
	return output_write(out, &b);
}

/* @newest: the newest recording's path, where no file was named; owned by the caller. */
static int load_inputs(struct profile **ret_p, const struct opt_args *args, const char *dumps,
		       char **newest, struct err *err)
{
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct load_options options = {.cache_dir = cache_dir, .dumps = dumps};
	if (args->operands.n > 1)
		return load_profiles(ret_p, (const char *const *)args->operands.p, args->operands.n,
				     &options, err);
	if (args->operands.n)
		return load_profile(ret_p, args->operands.p[0], &options, err);
	if (store_newest_path(newest, NULL, NULL, err))
		return err->code;
	return load_profile(ret_p, *newest, &options, err);
}

/* What hints call the input: nothing that cannot be typed again. */
static const char *input_name(const struct opt_args *args, const char *newest)
{
	if (args->operands.n > 1)
		return NULL;
	const char *name = args->operands.n ? args->operands.p[0] : newest;
	return strcmp(name, "-") ? name : NULL;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts o = {
		.by = REPORT_BY_NONE, .sort = VIEW_BY_SELF, .limit = 20, .percent_limit = -1};
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
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.command)
		return cmd_usage("report", "a command to run makes no sense here");
	if (o.nearest && !o.callers && !o.callees)
		return cmd_usage("report", "--nearest needs --callers or --callees");
	if (filter.weight && (has_waits_view(&o) || o.is_runs))
		return cmd_usage("report",
				 "--weight is for functions, modules, threads and trees; "
				 "the tables of waits and runs have columns of their own");
	if (filter_finish(&filter, &err))
		return fail(&err);
	if (o.chart && !o.is_over_time)
		return cmd_usage("report", "--chart needs --over-time");
	if (o.is_runs)
		return report_runs(&o, &filter.spec, &out, &args);
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(free_p) char *newest = NULL;
	if (load_inputs(&p, &args, filter.dumps, &newest, &err))
		return cmd_fail(&err);
	if (filter_weigh(&filter, p, &err))
		return fail(&err);
	if (o.is_over_time)
		return report_over_time(p, &o, &out);
	bool is_weighed = filter.weight || filter.spec.heap.at;
	if (is_weighed && o.by == REPORT_BY_NONE) /* the first page has all columns */
		o.by = BY_FUNCTION;
	const char *input = input_name(&args, newest);
	return report_profile(p, &o, &filter.spec, &out, input);
}
