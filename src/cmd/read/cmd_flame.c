/* assay flame: writes flame graphs as SVG files. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <strings.h>

#include "analyze/stacks/calltree.h"
#include "analyze/views.h"
#include "analyze/wait/waittables.h"
#include "base/file/file.h"
#include "cmd/read/flamegraph.h"
#include "cmd/read/inputs.h"
#include "cmd/optgroups.h"
#include "cmd/capture/outputs.h"

struct flame_opts {
	const char *output;
	struct svg_options svg; /* bound to the options, completed by finish_svg */
	const char *width;
	const char *min_width;
	const char *encoding;
	const char *font_width; /* ignored */
	uint64_t row_px;
	unsigned tree_flags; /* enum calltree_flags */
	int root;            /* one of the CALLTREE_ROOT_ flags, or 0 */
	bool is_blame;
	bool is_by_reason;
	bool is_differential;
	bool is_absolute;
};

static const struct opt_choice root_choices[] = {
	{"none", 0, NULL},
	{"name", CALLTREE_ROOT_GROUP,
	 "the thread's name, digits as # where names differ in them only"},
	{"comm", CALLTREE_ROOT_COMM, "the thread's name as it is"},
	{"process", CALLTREE_ROOT_PROCESS, "name-PID"},
	{"thread", CALLTREE_ROOT_THREAD, "name-PID/TID"},
	{0},
};

static const struct opt out_opts[] = {
	OPT_STR('o', "output", struct flame_opts, output, "FILE",
		"write to FILE, '-' for standard output (default: beside the first input, .svg)"),
	OPT_END,
};
static const struct opt_group out_group = {"Output", out_opts};

static const struct opt tree_opts[] = {
	OPT_BITS('r', "reverse", struct flame_opts, tree_flags, CALLTREE_REVERSE,
		 "put leaf functions at the root and their callers above them"),
	OPT_BITS(0, "flamechart", struct flame_opts, tree_flags, CALLTREE_TIME_ORDER,
		 "order by time; equal stacks merge only if they are adjacent"),
	OPT_ENUM(0, "root", struct flame_opts, root, root_choices, "WHAT",
		 "first frame of each stack (default name)"),
	OPT_BITS(0, "fold-recursion", struct flame_opts, tree_flags, CALLTREE_FOLD_RECURSION,
		 "draw direct recursion as one frame"),
	OPT_BITS(0, "annotate", struct flame_opts, tree_flags,
		 CALLTREE_MARK_KERNEL | CALLTREE_MARK_JIT | CALLTREE_MARK_INLINED,
		 "mark kernel, JIT, inlined and inferred functions with _[k], _[j], _[i], _[t]"),
	OPT_FLAG(0, "blame", struct flame_opts, is_blame,
		 "draw waits with the stack of the lock holder or waker on top"),
	OPT_FLAG(0, "by-reason", struct flame_opts, is_by_reason,
		 "write one flame graph for each wait reason"),
	OPT_FLAG(0, "differential", struct flame_opts, is_differential,
		 "compare: the first file is BEFORE, the others are AFTER"),
	OPT_FLAG(0, "absolute", struct flame_opts, is_absolute,
		 "with --differential: compare amounts, not shares of the totals"),
	OPT_BITS(0, "negate", struct flame_opts, svg.flags, SVG_NEGATE,
		 "with --differential: swap the colours of growth and decrease"),
	OPT_END,
};
static const struct opt_group tree_group = {"Flame graph", tree_opts};

#define SAME_COLORS(name)                                                         \
	{                                                                         \
		.kind = OPT_KIND_BITS, .long_name = name,                         \
		.at = offsetof(struct flame_opts, svg.flags), .flags = OPT_HIDDEN \
	}

static const struct opt look_opts[] = {
	OPT_BITS('i', "inverted", struct flame_opts, svg.flags, SVG_INVERTED,
		 "icicle graph: draw the root at the top"),
	OPT_STR(0, "title", struct flame_opts, svg.title, "TEXT",
		"title (default: the kind of profile)"),
	OPT_STR(0, "subtitle", struct flame_opts, svg.subtitle, "TEXT",
		"second line (default: event, duration, samples)"),
	OPT_STR(0, "notes", struct flame_opts, svg.notes, "TEXT", "add a line at the bottom"),
	OPT_STR(0, "width", struct flame_opts, width, "PX",
		"width in pixels (default 100%, the width of the window)"),
	OPT_U64_IN(0, "height", struct flame_opts, row_px, 4, 200, "PX",
		   "height of a frame in pixels (default 17)"),
	OPT_STR(0, "min-width", struct flame_opts, min_width, "WIDTH",
		"draw narrower frames only when zoomed: pixels, or a share like 0.1% (default 0.3)"),
	OPT_STR(0, "font", struct flame_opts, svg.font, "FAMILY", "font (default: the system's)"),
	OPT_DOUBLE(0, "fontsize", struct flame_opts, svg.font_px, "PX",
		   "font size in pixels (default 12)"),
	OPT_STR(0, "colors", struct flame_opts, svg.palette, "PALETTE",
		"colours of frames: default, hot, mem, io, java, rust, module, chain, red, green, "
		"blue, aqua, yellow, purple, orange"),
	OPT_STR(0, "bgcolors", struct flame_opts, svg.background, "COLOR",
		"background: yellow, blue, green, grey or #rrggbb"),
	OPT_STR(0, "countname", struct flame_opts, svg.count_name, "TEXT",
		"unit in details (default: samples, ns or bytes)"),
	OPT_STR(0, "nametype", struct flame_opts, svg.name_type, "TEXT",
		"text before function names in details"),
	OPT_DOUBLE(0, "factor", struct flame_opts, svg.factor, "N",
		   "multiply the numbers that are shown by N (1000 for counts of thousands)"),
	OPT_U64(0, "total", struct flame_opts, svg.total, "N",
		"weight of the whole width, if more than the stacks have: graphs of one scale"),
	OPT_STR(0, "search-color", struct flame_opts, svg.match, "COLOR",
		"colour of frames that a search finds: #rrggbb"),
	OPT_STR(0, "stroke-color", struct flame_opts, svg.stroke, "COLOR",
		"lines around frames: #rrggbb (default: none)"),
	OPT_STR(0, "uicolor", struct flame_opts, svg.ui, "COLOR",
		"colour of titles, buttons and details: #rrggbb (default: by the background)"),
	OPT_STR(0, "encoding", struct flame_opts, encoding, "NAME",
		"only UTF-8, which the file always has: bytes that are none are shown as \\xNN"),
	OPT_BITS(0, "static", struct flame_opts, svg.flags, SVG_STATIC,
		 "write no script: no zoom, no search"),
	/*
	 * Options of flamegraph.pl and inferno, accepted for scripts. Those of the choice of colours have
	 * no effect: colours always follow from the names.
	 */
	SAME_COLORS("hash"),
	SAME_COLORS("random"),
	SAME_COLORS("cp"),
	SAME_COLORS("deterministic"),
	SAME_COLORS("colordiffusion"),
	/* Widths of letters are those of the font, not an average. */
	{.kind = OPT_KIND_STR,
	 .long_name = "fontwidth",
	 .at = offsetof(struct flame_opts, font_width),
	 .flags = OPT_HIDDEN},
	{.kind = OPT_KIND_BITS,
	 .long_name = "no-javascript",
	 .at = offsetof(struct flame_opts, svg.flags),
	 .value = SVG_STATIC,
	 .flags = OPT_HIDDEN},
	{.kind = OPT_KIND_STR,
	 .long_name = "fonttype",
	 .at = offsetof(struct flame_opts, svg.font),
	 .flags = OPT_HIDDEN},
	{.kind = OPT_KIND_STR,
	 .long_name = "minwidth",
	 .at = offsetof(struct flame_opts, min_width),
	 .flags = OPT_HIDDEN},
	OPT_END,
};
static const struct opt_group look_group = {"Appearance", look_opts};

static bool is_hex_color(const char *text)
{
	uint64_t v;
	return text[0] == '#' && strlen(text) == 7 && sv_to_hex(sv_from_str(text + 1), &v);
}

/* "0.5": pixels; "0.1%": of the whole width. */
static int parse_min_width(struct svg_options *svg, const char *text, struct err *err)
{
	struct sv s = sv_from_str(text);
	bool is_pct = sv_has_suffix(s, SV("%"));
	double v;
	s.n -= is_pct;
	if (!sv_to_double(s, &v) || !(v >= 0) || v > (is_pct ? 100 : SVG_WIDTH_MAX))
		return err_set(err, -EINVAL,
			       "minimum width '%s' is no number of pixels, and no share like 0.1%%",
			       text);
	svg->min_width_px = is_pct ? -1 : v;
	svg->min_width_pct = is_pct ? v : 0;
	return 0;
}

static int check_texts(struct flame_opts *o, struct err *err)
{
	struct svg_options *svg = &o->svg;
	if (o->min_width)
		TRY(parse_min_width(svg, o->min_width, err));
	const struct {
		const char *what;
		const char *color;
	} colors[] = {{"search", svg->match}, {"stroke", svg->stroke}, {"ui", svg->ui}};
	for (size_t i = 0; i < ARRAY_LEN(colors); i++)
		if (colors[i].color && !is_hex_color(colors[i].color))
			return err_set(err, -EINVAL, "%s colour '%s' is not #rrggbb",
				       colors[i].what, colors[i].color);
	if (o->encoding && strcasecmp(o->encoding, "utf-8") && strcasecmp(o->encoding, "utf8"))
		return err_set(err, -EINVAL, "encoding '%s': the file is always UTF-8",
			       o->encoding);
	if (svg->factor < 0 || svg->factor > 1e12 || svg->factor != svg->factor)
		return err_set(err, -EINVAL, "factor %g is not in 0..1e12", svg->factor);
	return 0;
}

static int finish_svg(struct flame_opts *o, struct err *err)
{
	struct svg_options *svg = &o->svg;
	TRY(check_texts(o, err));
	if (svg->palette && palette_from_name(svg->palette) < 0)
		return err_set(err, -EINVAL, "unknown palette '%s', known are %s", svg->palette,
			       palette_names());
	struct rgb light;
	struct rgb dark;
	if (svg->background && !palette_background(svg->background, &light, &dark))
		return err_set(
			err, -EINVAL,
			"unknown background '%s', known are yellow, blue, green, grey and #rrggbb",
			svg->background);
	if (svg->font_px != 0 && !(svg->font_px >= 4 && svg->font_px <= 100))
		return err_set(err, -EINVAL, "font size %g is not in 4..100", svg->font_px);
	uint64_t width = 0;
	bool is_fluid = !o->width || !strcmp(o->width, "100%");
	if (!is_fluid && (!sv_to_u64(sv_from_str(o->width), &width) || width < SVG_WIDTH_MIN ||
			  width > SVG_WIDTH_MAX))
		return err_set(err, -EINVAL, "width '%s' is not in %d..%d, and not 100%%", o->width,
			       SVG_WIDTH_MIN, SVG_WIDTH_MAX);
	svg->width_px = (unsigned)width;
	svg->row_px = (unsigned)o->row_px;
	return 0;
}

/* Appends "dir/redis.svg" for "dir/redis.folded.gz", with a suffix for options: redis-diff.svg. */
static void add_output_path(struct buf *to, const char *input, const struct flame_opts *o,
			    const char *reason)
{
	inputs_add_output(to, input, "");
	if (o->is_differential)
		buf_add_str(to, "-diff");
	if (o->tree_flags & CALLTREE_REVERSE)
		buf_add_str(to, "-reverse");
	if (o->tree_flags & CALLTREE_TIME_ORDER)
		buf_add_str(to, "-chart");
	if (o->is_blame)
		buf_add_str(to, "-blame");
	if (reason)
		buf_addf(to, "-%s", reason);
	buf_add_str(to, ".svg");
}

struct profiles {
	VEC(struct profile *) list;
};

static void profiles_release(struct profiles *all)
{
	vec_foreach(p, &all->list)
		profile_free(*p);
	vec_release(&all->list);
}

static int load_all(struct profiles *all, struct picture *pic, const struct filter_opts *filter,
		    const struct inputs *in, bool is_differential, struct err *err)
{
	const struct load_options options = {.dumps = filter->dumps};
	for (size_t i = 0; i < in->nr; i++) {
		struct profile *p = NULL;
		TRY(inputs_load(&p, &in->paths[i], 1, &options, err));
		vec_push(&all->list, p);
		TRY(filter_weigh(filter, p, err));
		if (views_find(p, &pic->spec) == views_at(VIEW_CPU))
			inputs_note_event(p, pic->spec.event);
		if (is_differential && !i)
			picture_add_before(pic, p, in->paths[i]);
		else
			picture_add(pic, p, in->paths[i]);
	}
	return 0;
}

/* Returns the path of the SVG file, NULL for standard output. @reason: of --by-reason, or NULL. */
static const char *output_path(struct buf *to, const struct flame_opts *o, const char *input,
			       const char *reason)
{
	const char *path = o->output ? o->output : input;
	if (!strcmp(path, "-"))
		return NULL;
	if (o->output && !reason)
		buf_add_str(to, path);
	else
		add_output_path(to, path, o, reason);
	return buf_str(to);
}

/* Returns the weight to append to the file name, as in "heap-live.svg", or NULL. */
static const char *heap_weight_of(const struct flame_opts *o, const struct picture *pic)
{
	bool is_named = views_find(pic->inputs.p[0].p, &pic->spec)->has_weights && !o->output;
	return is_named ? pic->spec.heap.weight : NULL;
}

static int draw(const struct flame_opts *o, const struct picture *pic, const char *input,
		const char *reason, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf path = {0};
	const char *suffix = reason ? reason : heap_weight_of(o, pic);
	const char *to = output_path(&path, o, input, suffix);
	if (!to) {
		TRY(flamegraph_svg(&text, pic, &o->svg, err));
		return cmd_print(&text) == EXIT_OK ? 0 : -EPIPE; /* cmd_print printed the error */
	}
	TRY(flamegraph_write(to, pic, &o->svg, err));
	buf_add_ch(&path, '\n');
	if (!cmd_is_quiet())
		(void)cmd_print(
			&path); /* the file is written, even if its path cannot be printed */
	return 0;
}

static int draw_by_reason(const struct flame_opts *o, struct picture *pic, const char *input,
			  struct err *err)
{
	uint32_t reasons = 0;
	vec_foreach(in, &pic->inputs) {
		TRY(waits_reasons_shown(in->p, &pic->spec, &reasons, err));
	}
	if (!reasons)
		return err_set(err, -ENODATA, "no waits match the filters");
	pic->spec.event = table_key(TABLE_OFF_CPU);
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++) {
		if (!(reasons >> r & 1))
			continue;
		pic->spec.reason = wait_key(r);
		TRY(draw(o, pic, input, wait_key(r), err));
	}
	return 0;
}

static int run(struct flame_opts *o, struct filter_opts *filter, const struct opt_args *args,
	       struct err *err)
{
	CLEANUP(picture_release) struct picture pic = {0};
	CLEANUP(profiles_release) struct profiles profiles = {0};
	CLEANUP(inputs_release) struct inputs in = {0};
	if (o->output)
		TRY(outputs_check_name("-o", o->output, ".svg", "an SVG file", err));
	TRY(inputs_find(&in, args, err));
	TRY(inputs_confine(in.paths, in.nr, o->output ? o->output : in.paths[0], err));
	TRY(finish_svg(o, err));
	TRY(filter_finish(filter, err));
	pic.tree_flags =
		o->tree_flags | (unsigned)o->root | (o->is_absolute ? 0u : CALLTREE_NORMALISE);
	pic.is_blame = o->is_blame;
	pic.spec = filter->spec;
	pic.spec.flags |= o->tree_flags & CALLTREE_TIME_ORDER ? SELECT_TIME_ORDER : 0;
	TRY(load_all(&profiles, &pic, filter, &in, o->is_differential, err));
	const char *input = in.paths[o->is_differential ? 1 : 0];
	return o->is_by_reason ? draw_by_reason(o, &pic, input, err)
			       : draw(o, &pic, input, NULL, err);
}

/* Returns why the options exclude each other, or NULL. */
static const char *check_kinds(const struct flame_opts *o)
{
	if (o->is_blame &&
	    (o->is_differential || o->is_by_reason || o->tree_flags & CALLTREE_TIME_ORDER))
		return "--blame excludes --differential, --by-reason and --flamechart";
	if (o->is_by_reason && o->is_differential)
		return "--by-reason excludes --differential; use --reason with it";
	if (o->is_by_reason && o->output && !strcmp(o->output, "-"))
		return "--by-reason writes several files: '-' is not possible";
	return NULL;
}

int cmd_flame(int argc, char **argv)
{
	struct flame_opts o = {.svg.min_width_px = -1, .root = CALLTREE_ROOT_GROUP};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	const struct opt_cmd cmd = {
		.name = "flame",
		.usage = {"[OPTION...] [FILE...]", "--differential [OPTION...] BEFORE AFTER..."},
		.details =
			"FILE is a recording, perf.data, perf script output or folded stacks, also compressed; "
			"'-' is standard input. Several files are added up. Without FILE, the newest recording "
			"below ./profiling is read.\n"
			"\n"
			"If a recording has several events, --event selects the one to draw; default is the "
			"first that exists of: spans, CPU samples and waits together (thread-time), CPU "
			"samples, waits, memory, calls, faults, counts. Files to add up or to compare need the "
			"same event.\n"
			"\n"
			"The SVG file holds every frame: search counts frames that are too narrow to draw, and "
			"zooming draws them. Colours: hue by module or crate, kernel orange, libc slate, JIT "
			"green, inlined functions pale; derived from names, so always the same.",
		.examples = "assay flame redis.assay\twrites redis.svg\n"
			    "assay flame -i --colors hot a.folded\ticicle graph, classic colours\n"
			    "assay flame --differential old.assay new.assay\twhat changed\n"
			    "perf script | assay flame - > out.svg\tfrom perf script output\n",
		.groups = {{&out_group, &o},
			   FILTER_GROUPS(&filter),
			   {&tree_group, &o},
			   {&look_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (o.is_differential && args.operands.n < 2)
		return cmd_usage("flame", "--differential needs two files: BEFORE AFTER");
	if (check_kinds(&o))
		return cmd_usage("flame", "%s", check_kinds(&o));
	CLEANUP(err_release) struct err err = {0};
	int rc = run(&o, &filter, &args, &err);
	if (!rc)
		return EXIT_OK;
	if (err.code)
		(void)cmd_fail(&err);
	return rc == -ENODATA ? EXIT_NOTHING : rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}
