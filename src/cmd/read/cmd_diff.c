/* assay diff: compares two profiles. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "analyze/stacks/calltree.h"
#include "analyze/stacks/diff.h"
#include "analyze/memory/heapweights.h"
#include "analyze/views.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/text/num.h"
#include "cmd/read/flamegraph.h"
#include "cmd/read/inputs.h"
#include "cmd/optgroups.h"
#include "session/dumpset.h"

struct diff_opts {
	int by; /* enum group_by or DIFF_BY_STACK */
	int how;
	uint64_t limit;
	const char *fail_above;
	bool is_flame;
	bool has_allocators;
};

#define HOW_DEFAULT (-1)

static const struct opt_choice by_choices[] = {
	{"function", BY_FUNCTION, NULL},
	{"module", BY_MODULE, NULL},
	{"crate", BY_CRATE, NULL},
	{"file", BY_FILE, NULL},
	{"line", BY_LINE, NULL},
	{"stack", DIFF_BY_STACK, "whole stacks, leaf first"},
	{0},
};

static const struct opt diff_options[] = {
	OPT_ENUM(0, "by", struct diff_opts, by, by_choices, "WHAT",
		 "group rows by (default function)"),
	OPT_U64('n', "limit", struct diff_opts, limit, "N",
		"rows of each table, 0 for all (default 20)"),
	OPT_SET(0, "shares", struct diff_opts, how, DIFF_SHARES,
		"compare shares of the totals (default unless memory is compared)"),
	OPT_SET(0, "absolute", struct diff_opts, how, DIFF_AMOUNTS,
		"compare amounts, not scaled (default for memory; but allocated, freed and temporary "
		"memory of captures that lasted differently long is scaled to the duration of "
		"AFTER, unless both launched a command)"),
	OPT_STR(0, "fail-above", struct diff_opts, fail_above, "SIZE",
		"exit with 4 if the total grew by more than SIZE (10MiB, 5%), with 5 if that may "
		"be chance; profiles of time need --absolute"),
	OPT_FLAG(0, "flame", struct diff_opts, is_flame,
		 "also draw a differential flame graph, named after AFTER: -diff.svg; -o FILE.svg "
		 "sets its name, and the text goes to standard output"),
	OPT_FLAG(0, "allocators", struct diff_opts, has_allocators,
		 "memory: keep leaf frames of allocators and of standard containers and strings"),
	OPT_END,
};
static const struct opt_group diff_group = {"Comparison", diff_options};

static const char details[] =
	"BEFORE and AFTER are recordings, allocator dumps, or other profiles of one kind. Rows "
	"are aligned by name and sorted by the size of the change. A change of sampled numbers "
	"has half of its confidence interval beside it (for all rows together 95 %); a change "
	"smaller than that is marked, because it may be chance.\n"
	"\n"
	"Memory is compared in bytes, after scaling: live bytes (--weight live) if both "
	"profiles have them. Allocated bytes and calls, which grow with time, are compared per "
	"time if the captures lasted differently long (not if both launched a command). If the times of both are known, live "
	"bytes also have their growth per minute. All else is compared by share. In "
	"a single folder or pattern of dumps, the first and the last of those that --dumps selects "
	"(default: all) are compared.";

static const char examples[] =
	"assay diff morning.assay noon.assay\twhat is live now and was not then\n"
	"assay diff a.heap b.heap --by stack\ttwo jemalloc dumps, by call stack\n"
	"assay diff /var/dumps --dumps last:2\tthe last two dumps of a folder\n"
	"assay diff old.assay new.assay --weight allocated --flame\talso draw a flame graph\n"
	"assay diff base.assay head.assay --weight peak --fail-above 5%\tfor CI\n";

/* ---- inputs -------------------------------------------------------------------------------- */

struct side {
	const char *path;
	struct profile *p;
	struct selection sel;
};

struct comparison {
	struct side before;
	struct side after;
	struct dumpset series; /* the dumps of a folder or pattern; both sides are two of them */
	struct arena arena;
};

static void comparison_release(struct comparison *c)
{
	profile_free(c->before.p);
	profile_free(c->after.p);
	dumpset_release(&c->series);
	arena_release(&c->arena);
}

/* Returns a memory weight that both profiles have, for use without --weight. */
static const char *common_weight(const struct profile *before, const struct profile *after)
{
	enum heap_weight w = heap_weight_default(after);
	for (int i = 0; i < HEAP_WEIGHT_NR && !heap_weight_has_rows(before, w); i++)
		if (heap_weight_has_rows(before, (enum heap_weight)i) &&
		    heap_weight_has_rows(after, (enum heap_weight)i))
			w = (enum heap_weight)i;
	return heap_weight_key(w);
}

static int check_kinds(const struct comparison *c, struct err *err)
{
	const struct selection *a = &c->before.sel;
	const struct selection *b = &c->after.sel;
	if (a->unit == b->unit && heapweights_is_memory(a) == heapweights_is_memory(b))
		return 0;
	err_set(err, -EINVAL, "cannot compare: '%s' has event '%s', '%s' has event '%s'",
		c->before.path, a->event, c->after.path, b->event);
	return err_hint(err, "select one that both have with --event or --weight");
}

/* Dumps contain no time: takes the time when the file was written, for growth per minute. */
static void set_time(struct side *s)
{
	CLEANUP(dumpset_release) struct dumpset set = {0};
	const char *const path[] = {s->path};
	if (s->p->wall_start_ns || !heapweights_exist(s->p) || !dumpset_is(s->path) ||
	    dumpset_select(&set, path, 1, NULL, NULL) || set.files.n != 1)
		return;
	s->p->wall_start_ns = set.files.p[0].written_ns;
}

/* Compares the first and the last of the selected dumps. */
static int choose_of_series(struct comparison *c, const char *operand, const char *dumps,
			    struct err *err)
{
	TRY(dumpset_select(&c->series, &operand, 1, dumps ? dumps : "all", err));
	size_t n = c->series.files.n;
	if (n < 2) {
		err_set(err, -EINVAL, "'%s': one dump is selected, two are needed", operand);
		return err_hint(
			err,
			dumps ? "select two with --dumps, or name them: assay diff BEFORE AFTER"
			      : "name both: assay diff BEFORE AFTER");
	}
	c->before.path = c->series.files.p[0].path;
	c->after.path = c->series.files.p[n - 1].path;
	if (c->series.not_selected)
		log_note("%s", c->series.not_selected);
	return 0;
}

static int load(struct comparison *c, const struct filter_opts *filter, struct err *err)
{
	struct load_options options = {.dumps = c->series.files.n ? NULL : filter->dumps};
	struct side *sides[] = {&c->before, &c->after};
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		TRY(inputs_load(&sides[i]->p, &sides[i]->path, 1, &options, err));
		TRY(filter_weigh(filter, sides[i]->p, err));
		set_time(sides[i]);
	}
	return 0;
}

static int select_both(struct comparison *c, struct select_spec *spec, const struct diff_opts *o,
		       struct err *err)
{
	struct side *sides[] = {&c->before, &c->after};
	spec->flags |= o->has_allocators ? 0 : SELECT_CUT_STACKS;
	if (!spec->event && !spec->heap.weight && !spec->heap.at &&
	    views_find(c->before.p, spec)->has_weights && views_find(c->after.p, spec)->has_weights)
		spec->heap.weight = common_weight(c->before.p, c->after.p);
	for (size_t i = 0; i < ARRAY_LEN(sides); i++)
		if (views_select(&c->arena, sides[i]->p, spec, &sides[i]->sel, err))
			return err_wrap(err, "'%s'", sides[i]->path);
	return check_kinds(c, err);
}

/* ---- the report ---------------------------------------------------------------------------- */

static void begin(struct report *r, const struct comparison *c)
{
	const struct side *sides[] = {&c->before, &c->after};
	static const enum fact_id names[] = {FACT_BEFORE, FACT_AFTER};
	view_begin(r, &c->after.sel, "assay diff");
	losses_merge(&r->losses, &c->before.p->losses);
	r->noun = heapweights_is_memory(&c->after.sel) ? "events" : r->noun;
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		uint64_t ns = view_duration_ns(&sides[i]->sel);
		report_fact(r, names[i],
			    arena_fmt(&r->arena, "%s%s%s", sides[i]->path, ns ? ", " : "",
				      ns ? num_ns(ns).s : ""));
		if (sides[i]->sel.why_empty)
			report_note(r, "'%s': %s", sides[i]->path, sides[i]->sel.why_empty);
	}
}

/* ---- the flame graph ----------------------------------------------------------------------- */

static bool is_svg(const char *path)
{
	return path && sv_has_suffix(sv_from_str(path), SV(".svg"));
}

static void add_flame_path(struct buf *to, const char *after)
{
	struct sv s = sv_from_str(after);
	ssize_t dot = sv_rindex(s, '.');
	if (dot > (ssize_t)(path_base(after) - after))
		s.n = (size_t)dot;
	buf_add_sv(to, s);
	buf_add_str(to, "-diff.svg");
}

static int draw(const struct comparison *c, const struct select_spec *spec, enum diff_how how,
		const char *path, struct err *err)
{
	unsigned normalise = how == DIFF_AMOUNTS ? 0 : CALLTREE_NORMALISE;
	CLEANUP(picture_release)
	struct picture pic = {.spec = *spec, .tree_flags = CALLTREE_ROOT_GROUP | normalise};
	pic.spec.flags &= ~(unsigned)SELECT_CUT_STACKS;
	picture_add_before(&pic, c->before.p, c->before.path);
	picture_add(&pic, c->after.p, c->after.path);
	TRY(flamegraph_write(path, &pic, NULL, err));
	log_note("differential flame graph: %s", path);
	return 0;
}

/* ---- the verdict --------------------------------------------------------------------------- */

/* Parses "10MiB" or "5%" (of BEFORE) to the unit of the comparison. */
static bool parse_limit(const char *text, const struct diff *d, double *ret_v)
{
	struct sv s = sv_from_str(text);
	uint64_t v;
	double pct;
	if (s.n && s.p[s.n - 1] == '%') {
		if (!sv_to_double(sv_from(s.p, s.n - 1), &pct) || !(pct >= 0))
			return false;
		*ret_v = (double)d->all.self[0].weight * pct / 100;
		return true;
	}
	bool is_bytes = d->spec.after->unit == UNIT_BYTES;
	if (!(is_bytes ? num_parse_bytes(s, &v) : num_parse_count(s, &v)))
		return false;
	*ret_v = (double)v;
	return true;
}

static int verdict(const struct diff_opts *o, const struct diff *d)
{
	double limit;
	if (!o->fail_above)
		return EXIT_OK;
	if (d->spec.how == DIFF_SHARES)
		return cmd_usage(
			"diff",
			"--fail-above limits amounts, shares are compared here: add --absolute");
	if (!parse_limit(o->fail_above, d, &limit))
		return cmd_usage("diff", "--fail-above: '%s' is not a size (10MiB, 5%%)",
				 o->fail_above);
	if (d->all.change <= limit)
		return EXIT_OK;
	uint64_t change = (uint64_t)d->all.change;
	bool is_bytes = d->spec.after->unit == UNIT_BYTES;
	bool is_certain = d->all.change - d->all.error > limit;
	log_note("'%s' grew by %s, more than %s%s", d->spec.after->event,
		 is_bytes ? num_bytes(change).s : num_count(change).s, o->fail_above,
		 is_certain ? "" : ", but that may be chance");
	return is_certain ? EXIT_THRESHOLD : EXIT_INCONCLUSIVE;
}

/* ---- the command --------------------------------------------------------------------------- */

static int run(struct comparison *c, const struct diff_opts *o, struct select_spec *spec,
	       struct output_opts *out)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf flame_path = {0};
	if (select_both(c, spec, o, &err))
		return cmd_refuse(&err);
	struct diff_spec ds = {&c->before.sel, &c->after.sel,
			       o->how == HOW_DEFAULT ? diff_how_of(&c->before.sel, &c->after.sel)
						     : (enum diff_how)o->how,
			       (unsigned)o->by};
	struct diff d;
	diff_make(&d, &c->arena, &ds);
	begin(r, c);
	diff_report(r, &d, &(struct view_limits){.max_rows = o->limit});
	if (is_svg(out->path)) {
		buf_add_str(&flame_path, out->path);
		out->path = NULL;
	} else if (o->is_flame) {
		add_flame_path(&flame_path, c->after.path);
	}
	int status = output_report(out, r);
	if (status == EXIT_OK && flame_path.n && draw(c, spec, ds.how, buf_str(&flame_path), &err))
		return cmd_refuse(&err);
	return status == EXIT_OK ? verdict(o, &d) : status;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_opts o = {.by = BY_FUNCTION, .how = HOW_DEFAULT, .limit = 20};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	struct output_opts out = {0};
	const struct opt_cmd cmd = {
		.name = "diff",
		.usage = {"[OPTION...] BEFORE AFTER", "[OPTION...] FOLDER-OF-DUMPS"},
		.details = details,
		.examples = examples,
		.groups = {{&diff_group, &o},
			   FILTER_GROUPS(&filter),
			   {&output_group, &out},
			   {&renderer_group, &out.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(comparison_release) struct comparison c = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	bool is_series = args.operands.n == 1 && dumpset_is(args.operands.p[0]);
	if (args.operands.n != 2 && !is_series)
		return cmd_usage("diff", "two profiles are needed: BEFORE and AFTER");
	if (filter_finish(&filter, &err))
		return cmd_refuse(&err);
	if (is_series && choose_of_series(&c, args.operands.p[0], filter.dumps, &err))
		return cmd_refuse(&err);
	if (!is_series) {
		c.before.path = args.operands.p[0];
		c.after.path = args.operands.p[1];
	}
	const char *const paths[] = {c.before.path, c.after.path};
	const char *output = out.path ? out.path : o.is_flame ? c.after.path : NULL;
	if (inputs_confine(paths, ARRAY_LEN(paths), output, &err) || load(&c, &filter, &err))
		return cmd_refuse(&err);
	return run(&c, &o, &filter.spec, &out);
}
