/* assay diff: compares two profiles. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/diff/diffblocks.h"
#include "analyze/diff/condition.h"
#include "analyze/diff/diff.h"
#include "analyze/diff/diffparts.h"
#include "analyze/stacks/calltree.h"
#include "analyze/memory/heapweights.h"
#include "analyze/select/tags.h"
#include "analyze/views.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/read/flamegraph.h"
#include "cmd/read/inputs.h"
#include "cmd/optgroups.h"
#include "render/page/diffhtml.h"
#include "session/dumpset.h"

struct diff_opts {
	int by; /* enum group_by or enum diff_by */
	int how;
	int sort; /* enum diff_sort */
	uint64_t limit;
	struct opt_list fail_if;
	bool is_strict;
	bool is_runs;
	bool is_flame;
	bool is_html;
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
	{"thread", DIFF_BY_THREAD, "names of threads, digits as # where names differ in them only"},
	{"phase", DIFF_BY_PHASE, "the phases that --phase defines"},
	{0},
};

static const struct opt_choice sort_choices[] = {
	{"self", DIFF_SORT_SELF, NULL},
	{"total", DIFF_SORT_TOTAL, "with callees"},
	{0},
};

static const struct opt diff_options[] = {
	OPT_FLAG(
		0, "runs", struct diff_opts, is_runs,
		"compare several runs of each side, those of BEFORE first, then -- and those of AFTER: "
		"intervals then cover the spread between runs"),
	OPT_ENUM(0, "by", struct diff_opts, by, by_choices, "WHAT",
		 "group rows by (default function)"),
	OPT_ENUM(0, "sort", struct diff_opts, sort, sort_choices, "WHAT",
		 "which changes come first (default self)"),
	OPT_U64('n', "limit", struct diff_opts, limit, "N",
		"rows of each table, 0 for all (default 20)"),
	OPT_SET(0, "shares", struct diff_opts, how, DIFF_SHARES,
		"compare shares of the totals (default for CPU samples and thread time)"),
	OPT_SET(0, "absolute", struct diff_opts, how, DIFF_AMOUNTS,
		"compare amounts, not scaled (default for live memory, and if both durations are equal)"),
	OPT_SET(0, "per-time", struct diff_opts, how, DIFF_PER_TIME,
		"compare amounts by time: those of BEFORE are scaled to the duration of AFTER (default for "
		"waits, I/O, faults, allocated and freed memory of captures that lasted differently "
		"long, unless both launched a command)"),
	OPT_LIST(0, "fail-if", struct diff_opts, fail_if, "CONDITION",
		 "exit with 4 if CONDITION holds beyond chance, for example 'fn~keccak > 3%', "
		 "'total(module=libc.so) > 1.2x', 'all > 10MiB'; may be repeated"),
	OPT_FLAG(0, "strict", struct diff_opts, is_strict,
		 "exit with 5 if a CONDITION may hold by chance (default: a warning)"),
	OPT_FLAG(0, "flame", struct diff_opts, is_flame,
		 "also draw a differential flame graph, named after AFTER: -diff.svg; -o FILE.svg "
		 "sets its name, and draws it instead of the text without --flame"),
	OPT_FLAG(
		0, "html", struct diff_opts, is_html,
		"also write one HTML page with tables and flame graph, named after AFTER: -diff.html; "
		"-o FILE.html sets its name, and writes it instead of the text without --html"),
	OPT_FLAG(0, "allocators", struct diff_opts, has_allocators,
		 "memory: keep leaf frames of allocators and of standard containers and strings"),
	OPT_END,
};
static const struct opt_group diff_group = {"Comparison", diff_options};

static const char details[] =
	"BEFORE and AFTER are recordings, allocator dumps, or other profiles, with an event in common. "
	"Rows are aligned by name, without hashes, .cold, .llvm.N and numbers of clones. Each change has "
	"half of its confidence interval beside it (for all rows together 95 %). A row is marked if the "
	"interval excludes 0, and only then; marked rows come first.\n"
	"\n"
	"Memory is compared in bytes, after scaling: live bytes (--weight live) if both "
	"profiles have them. If the times of both are known, live bytes also have their growth per "
	"minute. CPU samples and thread time are compared by share, waits, I/O and faults by time. In a single folder or pattern of dumps, the first and the "
	"last of those that --dumps selects (default: all) are compared.\n"
	"\n"
	"Of recordings of CPU samples and waits (--offcpu), the samples are compared by function, the "
	"thread time by wait reason, and the waits by waiting function; of recordings of waits the last "
	"two, too. -e NAME compares one event: cpu-clock, off-cpu, thread-time.\n"
	"\n"
	"CONDITION is ROWS > LIMIT: the change is larger. ROWS: all, or fn, module or crate (each of "
	"them), with ~REGEX (the matching ones together) or =NAME; self(ROWS) is the default, total(ROWS) "
	"includes callees. LIMIT: 3% of everything (points, where shares are compared), 1.2x the amount "
	"before, or an amount (10MiB, 20ms, 5000).";

static const char examples[] =
	"assay diff morning.assay noon.assay\twhat is live now and was not then\n"
	"assay diff a.heap b.heap --by stack\ttwo jemalloc dumps, by call stack\n"
	"assay diff /var/dumps --dumps last:2\tthe last two dumps of a folder\n"
	"assay diff old.assay new.assay --weight allocated --flame\talso draw a flame graph\n"
	"assay diff old.assay new.assay -o diff.html\tone page with tables and flame graph\n"
	"assay diff --runs a1.assay a2.assay a3.assay -- b1.assay b2.assay b3.assay\tthree runs each\n"
	"assay diff base.assay head.assay --fail-if 'fn~keccak > 3%'\tfor CI\n"
	"assay diff base.assay head.assay --md -n 10\tfor a pull request\n";

/* ---- inputs -------------------------------------------------------------------------------- */

struct side {
	const char *const *paths; /* of its runs */
	size_t nr;
	struct profile **profiles;
	struct selection *sels;
};

struct comparison {
	struct side side[2];   /* by enum diff_side */
	struct dumpset series; /* the dumps of a folder or pattern; both sides are one of them */
	const char *ends[2];   /* paths of single runs */
	struct arena arena;
};

static void comparison_release(struct comparison *c)
{
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		struct side *s = &c->side[side];
		for (size_t i = 0; s->profiles && i < s->nr; i++)
			profile_free(s->profiles[i]);
		free(s->profiles);
		free(s->sels);
	}
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

/* Returns the first event of @after that @before has, too, or NULL. */
static const char *common_event(const struct profile *before, const struct profile *after)
{
	vec_foreach(t, &after->tables) {
		const char *event = profile_text(after, t->event);
		uint32_t idx;
		if (t->n && !select_table(before, event, &idx, NULL) && before->tables.p[idx].n)
			return event;
	}
	return NULL;
}

/* Text formats have no name of the event: their rows may be of any. */
static bool is_unnamed(const struct selection *sel)
{
	return !strcmp(sel->event, "samples") || !strcmp(sel->event, TABLES_BEFORE) ||
	       !strcmp(sel->event, TABLES_AFTER);
}

static bool is_comparable(const struct selection *a, const struct selection *b)
{
	if (a->unit != b->unit || heapweights_is_memory(a) != heapweights_is_memory(b))
		return false;
	size_t n = strcspn(a->event, ":");
	bool is_same = n == strcspn(b->event, ":") && !strncmp(a->event, b->event, n);
	return is_same || (view_is_cpu_time(a) && view_is_cpu_time(b)) || is_unnamed(a) ||
	       is_unnamed(b);
}

/* Returns the first selection that cannot be compared with the first one of AFTER, or NULL. */
static const struct selection *find_other(const struct comparison *c, const char **ret_path)
{
	const struct selection *to = &c->side[DIFF_AFTER].sels[0];
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < c->side[side].nr; i++) {
			*ret_path = c->side[side].paths[i];
			if (!is_comparable(&c->side[side].sels[i], to))
				return &c->side[side].sels[i];
		}
	return NULL;
}

static void add_events(struct buf *to, const struct profile *p)
{
	size_t nr = 0;
	vec_foreach(t, &p->tables)
		if (t->n)
			buf_addf(to, "%s%s", nr++ ? ", " : "", profile_text(p, t->event));
	buf_add_str(to, nr ? "" : "no events");
}

static int check_kinds(const struct comparison *c, bool is_chosen, struct err *err)
{
	const char *path = NULL;
	const struct side *after = &c->side[DIFF_AFTER];
	const struct selection *other = find_other(c, &path);
	if (!other)
		return 0;
	err_set(err, -EINVAL, "cannot compare: '%s' has event '%s', '%s' has event '%s'", path,
		other->event, after->paths[0], after->sels[0].event);
	if (is_chosen)
		return err_hint(err, "select one that both have with --event or --weight");
	CLEANUP(buf_release) struct buf events = {0};
	add_events(&events, other->p);
	buf_addf(&events, "; '%s' has ", after->paths[0]);
	add_events(&events, after->profiles[0]);
	return err_hint(err, "they have no event in common: '%s' has %s", path, buf_str(&events));
}

/* Dumps contain no time: takes the time when the file was written, for growth per minute. */
static void set_time(struct profile *p, const char *path)
{
	CLEANUP(dumpset_release) struct dumpset set = {0};
	if (p->wall_start_ns || !heapweights_exist(p) || !dumpset_is(path) ||
	    dumpset_select(&set, &path, 1, NULL, NULL) || set.files.n != 1)
		return;
	p->wall_start_ns = set.files.p[0].written_ns;
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
	c->ends[DIFF_BEFORE] = c->series.files.p[0].path;
	c->ends[DIFF_AFTER] = c->series.files.p[n - 1].path;
	if (c->series.not_selected)
		log_note("%s", c->series.not_selected);
	return 0;
}

/* Sets the paths of both sides. */
static int find_sides(struct comparison *c, const struct opt_args *args, const struct diff_opts *o,
		      const char *dumps, struct err *err)
{
	size_t nr = args->operands.n;
	if (o->is_runs) {
		if (!nr || args->nr_command < 1) {
			err_set(err, -EINVAL, "--runs needs recordings of both sides");
			return err_hint(err, "assay diff --runs A1 A2 A3 -- B1 B2 B3");
		}
		c->side[DIFF_BEFORE].paths = (const char *const *)args->operands.p;
		c->side[DIFF_BEFORE].nr = nr;
		c->side[DIFF_AFTER].paths = (const char *const *)args->command;
		c->side[DIFF_AFTER].nr = (size_t)args->nr_command;
		return 0;
	}
	if (args->command)
		return err_set(err, -EINVAL, "'--' separates the runs of --runs");
	if (nr == 1 && dumpset_is(args->operands.p[0])) {
		TRY(choose_of_series(c, args->operands.p[0], dumps, err));
	} else if (nr != 2) {
		err_set(err, -EINVAL, "two profiles are needed: BEFORE and AFTER");
		return nr > 2 ? err_hint(err, "several runs of each: assay diff --runs A1 A2 -- B1 "
					      "B2")
			      : -EINVAL;
	} else {
		c->ends[DIFF_BEFORE] = args->operands.p[0];
		c->ends[DIFF_AFTER] = args->operands.p[1];
	}
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		c->side[side].paths = &c->ends[side];
		c->side[side].nr = 1;
	}
	return 0;
}

static int load(struct comparison *c, const struct filter_opts *filter, struct err *err)
{
	struct load_options options = {.dumps = c->series.files.n ? NULL : filter->dumps};
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		struct side *s = &c->side[side];
		s->profiles = xcalloc(s->nr, sizeof(*s->profiles));
		s->sels = xcalloc(s->nr, sizeof(*s->sels));
		for (size_t i = 0; i < s->nr; i++) {
			TRY(inputs_load(&s->profiles[i], &s->paths[i], 1, &options, err));
			TRY(filter_weigh(filter, s->profiles[i], err));
			set_time(s->profiles[i], s->paths[i]);
		}
	}
	return 0;
}

static int select_all(struct comparison *c, const struct select_spec *spec, struct err *err)
{
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		struct side *s = &c->side[side];
		for (size_t i = 0; i < s->nr; i++)
			if (views_select(&c->arena, s->profiles[i], spec, &s->sels[i], err))
				return err_wrap(err, "'%s'", s->paths[i]);
	}
	return 0;
}

/* Without --event and --weight: the default of AFTER, or else an event that both have. */
static int select_both(struct comparison *c, struct select_spec *spec, const struct diff_opts *o,
		       struct err *err)
{
	const struct profile *before = c->side[DIFF_BEFORE].profiles[0];
	const struct profile *after = c->side[DIFF_AFTER].profiles[0];
	const char *path;
	bool is_chosen = spec->event || spec->heap.weight || spec->heap.at;
	spec->flags |= o->has_allocators ? 0 : SELECT_CUT_STACKS;
	if (!is_chosen && views_find(before, spec)->has_weights &&
	    views_find(after, spec)->has_weights)
		spec->heap.weight = common_weight(before, after);
	if (!is_chosen && selecttags_is_needed(spec) && views_has(views_at(VIEW_WAITS), before) &&
	    views_has(views_at(VIEW_WAITS), after))
		spec->event = table_key(TABLE_OFF_CPU);
	TRY(select_all(c, spec, err));
	const char *common = common_event(before, after);
	if (!is_chosen && find_other(c, &path) && common) {
		spec->event = common;
		spec->heap.weight = NULL;
		TRY(select_all(c, spec, err));
	}
	return check_kinds(c, is_chosen, err);
}

/* ---- the report ---------------------------------------------------------------------------- */

/* The title names both programs, if they are not the same. */
static void name_programs(struct report *r, const struct comparison *c)
{
	const char *before = profile_get_fact(c->side[DIFF_BEFORE].profiles[0], FACT_TARGET);
	const char *after = profile_get_fact(c->side[DIFF_AFTER].profiles[0], FACT_TARGET);
	if (before && after && strcmp(before, after))
		report_fact(r, FACT_TARGET,
			    arena_fmt(&r->arena, "%s, compared with %s", after, before));
}

static void begin(struct report *r, const struct comparison *c)
{
	const struct side *after = &c->side[DIFF_AFTER];
	view_begin(r, &after->sels[0], "assay diff");
	name_programs(r, c);
	r->noun = heapweights_is_memory(&after->sels[0]) ? "events" : r->noun;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		const struct side *s = &c->side[side];
		for (size_t i = 0; i < s->nr; i++) {
			bool is_first = side == DIFF_AFTER && !i;
			if (!is_first)
				losses_merge(&r->losses, &s->profiles[i]->losses);
			if (s->sels[i].why_empty)
				report_note(r, "'%s': %s", s->paths[i], s->sels[i].why_empty);
			if (strcmp(s->sels[i].event, after->sels[0].event) != 0)
				report_note(r, "'%s' has event '%s', compared with '%s'",
					    s->paths[i], s->sels[i].event, after->sels[0].event);
			r->nr_samples += is_first ? 0 : s->sels[i].nr_samples;
		}
	}
}

/* ---- pictures ------------------------------------------------------------------------------ */

static bool has_extension(const char *path, const char *extension)
{
	return path && sv_has_suffix(sv_from_str(path), sv_from_str(extension));
}

static void add_picture_path(struct buf *to, const char *after, const char *extension)
{
	struct sv s = sv_from_str(after);
	ssize_t dot = sv_rindex(s, '.');
	if (dot > (ssize_t)(path_base(after) - after))
		s.n = (size_t)dot;
	buf_add_sv(to, s);
	buf_addf(to, "-diff%s", extension);
}

static void set_picture(struct picture *pic, const struct comparison *c,
			const struct select_spec *spec, const struct diff_spec *d)
{
	pic->spec = *spec;
	pic->spec.flags &= ~(unsigned)SELECT_CUT_STACKS;
	pic->tree_flags = (diffparts_are_different_programs(d) ? 0u : CALLTREE_ROOT_GROUP) |
			  (d->how == DIFF_AMOUNTS ? 0u : CALLTREE_NORMALISE);
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < c->side[side].nr; i++)
			(side == DIFF_BEFORE ? picture_add_before : picture_add)(
				pic, c->side[side].profiles[i], c->side[side].paths[i]);
}

#define HTML_ROWS_MAX 2000 /* more slow the page down */

static int write_html(const char *path, const struct report *r, const struct comparison *c,
		      const struct picture *pic, struct err *err)
{
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(buf_release) struct buf html = {0};
	CLEANUP(buf_release) struct buf title = {0};
	const struct svg_options options = {
		.title = "Difference", .min_width_px = -1, .flags = SVG_NO_SCRIPT | SVG_INVERTED};
	TRY(flamegraph_svg(&svg, pic, &options, err));
	buf_addf(&title, "%s, compared with %s", path_base(c->side[DIFF_AFTER].paths[0]),
		 path_base(c->side[DIFF_BEFORE].paths[0]));
	diffhtml_write(&html, r, buf_str(&title), buf_sv(&svg));
	return out_file(path, 0644, &html, err);
}

/* ---- conditions ---------------------------------------------------------------------------- */

struct conditions {
	struct condition *list;
	struct condition_result *results;
	size_t nr;
};

static int parse_conditions(struct conditions *to, struct arena *a, const struct opt_list *texts,
			    struct err *err)
{
	to->list = arena_calloc(a, texts->n + 1, sizeof(*to->list));
	to->results = arena_calloc(a, texts->n + 1, sizeof(*to->results));
	for (; to->nr < texts->n; to->nr++)
		TRY(condition_parse(&to->list[to->nr], a, texts->p[to->nr], err));
	return 0;
}

static int eval_conditions(struct conditions *c, struct arena *a, const struct diff *d,
			   struct err *err)
{
	for (size_t i = 0; i < c->nr; i++) {
		TRY(condition_eval(&c->results[i], a, &c->list[i], d, err));
		if (!c->results[i].is_matched)
			log_warn("'%s': no row matches on either side", c->list[i].text);
	}
	return 0;
}

static int verdict(const struct conditions *c, bool is_strict)
{
	int status = EXIT_OK;
	for (size_t i = 0; i < c->nr; i++) {
		const struct condition_result *r = &c->results[i];
		if (r->verdict == CONDITION_HOLDS) {
			log_note("'%s' holds%s%s", r->condition->text, *r->name ? ": " : "",
				 r->name);
			status = EXIT_THRESHOLD;
		} else if (r->verdict == CONDITION_IS_UNCERTAIN) {
			log_warn("'%s' may hold by chance%s%s", r->condition->text,
				 *r->name ? ": " : "", r->name);
			if (is_strict && status == EXIT_OK)
				status = EXIT_INCONCLUSIVE;
		}
	}
	return status;
}

/* ---- the command --------------------------------------------------------------------------- */

/* The comparison, and those that are shown with it. */
struct parts {
	struct diff d[DIFF_PARTS_MAX];
	size_t nr;
};

static int make(struct parts *ret_parts, struct comparison *c, unsigned by,
		const struct diff_opts *o, const struct select_spec *select, struct err *err)
{
	struct diff_spec spec = {.by = by,
				 .sort = (enum diff_sort)o->sort,
				 .has_default_how = o->how == HOW_DEFAULT};
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		spec.runs[side] = c->side[side].sels;
		spec.nr_runs[side] = c->side[side].nr;
		spec.names[side] = c->side[side].paths;
	}
	spec.how = o->how == HOW_DEFAULT
			   ? diff_how_of(spec.runs[DIFF_BEFORE], spec.runs[DIFF_AFTER])
			   : (enum diff_how)o->how;
	TRY(blocks_select(&c->arena, &spec, select, err));
	diff_make(&ret_parts->d[0], &c->arena, &spec);
	return diffparts_add(ret_parts->d, &ret_parts->nr, &c->arena, select, err);
}

static struct report *make_report(const struct comparison *c, const struct parts *parts,
				  const struct conditions *conditions, uint64_t max_rows)
{
	struct report *r = report_new();
	begin(r, c);
	diffparts_note_programs(r, &parts->d[0].spec);
	if (conditions->nr)
		condition_report(r, &parts->d[0], conditions->results, conditions->nr);
	diff_report(r, parts->d, parts->nr, &(struct view_limits){.max_rows = max_rows});
	return r;
}

/* Writes the flame graph and the page that were asked for. */
static int write_pictures(struct comparison *c, const struct diff_opts *o,
			  const struct select_spec *spec, const struct parts *parts,
			  const struct conditions *conditions, const char *output, struct err *err)
{
	const char *after = c->side[DIFF_AFTER].paths[0];
	bool is_svg = o->is_flame || has_extension(output, ".svg");
	bool is_html = o->is_html || has_extension(output, ".html");
	CLEANUP(picture_release) struct picture pic = {.diffs = parts->d, .nr_diffs = parts->nr};
	struct parts by_function;
	if ((is_svg || is_html) && o->by != BY_FUNCTION) {
		TRY(make(&by_function, c, BY_FUNCTION, o, spec, err));
		pic.diffs = by_function.d;
		pic.nr_diffs = by_function.nr;
	}
	set_picture(&pic, c, spec, &parts->d[0].spec);
	if (is_svg) {
		CLEANUP(buf_release) struct buf path = {0};
		if (has_extension(output, ".svg"))
			buf_add_str(&path, output);
		else
			add_picture_path(&path, after, ".svg");
		TRY(flamegraph_write(buf_str(&path), &pic, NULL, err));
		log_note("differential flame graph: %s", buf_str(&path));
	}
	if (is_html) {
		CLEANUP(buf_release) struct buf path = {0};
		CLEANUP(report_free_p)
		struct report *r = make_report(c, parts, conditions, HTML_ROWS_MAX);
		if (has_extension(output, ".html"))
			buf_add_str(&path, output);
		else
			add_picture_path(&path, after, ".html");
		TRY(write_html(buf_str(&path), r, c, &pic, err));
		log_note("page: %s", buf_str(&path));
	}
	return 0;
}

static int run(struct comparison *c, const struct diff_opts *o, struct select_spec *spec,
	       struct output_opts *out)
{
	CLEANUP(err_release) struct err err = {0};
	struct conditions conditions = {0};
	struct parts parts;
	if (o->by == DIFF_BY_PHASE && !spec->nr_rules) {
		err_set(&err, -EINVAL, "--by phase needs --phase NAME=RULE");
		return cmd_refuse(&err);
	}
	if (parse_conditions(&conditions, &c->arena, &o->fail_if, &err) ||
	    select_both(c, spec, o, &err))
		return cmd_refuse(&err);
	if (make(&parts, c, (unsigned)o->by, o, spec, &err) ||
	    eval_conditions(&conditions, &c->arena, &parts.d[0], &err))
		return cmd_refuse(&err);
	const char *output = out->path;
	bool is_picture = has_extension(output, ".svg") || has_extension(output, ".html");
	int status = EXIT_OK;
	if (is_picture)
		out->path = NULL;
	/* -o FILE.svg is instead of the text, as in other commands; --flame is beside it */
	if (!is_picture || o->is_flame || o->is_html) {
		CLEANUP(report_free_p)
		struct report *r = make_report(c, &parts, &conditions, o->limit);
		status = output_report(out, r);
	}
	if (status == EXIT_OK && write_pictures(c, o, spec, &parts, &conditions, output, &err))
		return cmd_refuse(&err);
	return status == EXIT_OK ? verdict(&conditions, o->is_strict) : status;
}

static int confine(const struct comparison *c, const char *output, struct err *err)
{
	CLEANUP(free_p)
	const char **paths = xcalloc(c->side[0].nr + c->side[1].nr, sizeof(*paths));
	size_t n = 0;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < c->side[side].nr; i++)
			paths[n++] = c->side[side].paths[i];
	return inputs_confine(paths, n, output, err);
}

int cmd_diff(int argc, char **argv)
{
	struct diff_opts o = {.by = BY_FUNCTION, .how = HOW_DEFAULT, .limit = 20};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	struct output_opts out = {0};
	const struct opt_cmd cmd = {
		.name = "diff",
		.usage = {"[OPTION...] BEFORE AFTER", "[OPTION...] FOLDER-OF-DUMPS",
			  "[OPTION...] --runs BEFORE... -- AFTER..."},
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
	if (filter_finish(&filter, &err) || find_sides(&c, &args, &o, filter.dumps, &err))
		return cmd_refuse(&err);
	const char *output = out.path                  ? out.path
			     : o.is_flame || o.is_html ? c.side[DIFF_AFTER].paths[0]
						       : NULL;
	if (confine(&c, output, &err) || load(&c, &filter, &err))
		return cmd_refuse(&err);
	return run(&c, &o, &filter.spec, &out);
}
