/* assay convert: writes a profile in another format. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/stacks/calltree.h"
#include "analyze/wait/idlewaits.h"
#include "analyze/wait/reason.h"
#include "analyze/memory/heapweights.h"
#include "analyze/select/weightcolumn.h"
#include "base/file/file.h"
#include "base/file/zio.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/suggest.h"
#include "cmd/optgroups.h"
#include "cmd/read/convert_heap.h"
#include "cmd/read/flamegraph.h"
#include "cmd/read/inputs.h"
#include "format/format.h"
#include "model/wait.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

struct convert_opts {
	const char *to;
	struct opt_list outputs;
	const char *event;
	const char *symfs;
	const char *dumps;
	struct opt_list debug_dirs;
	bool wants_list;
	bool has_no_idle;
	bool has_no_inlines;
	bool has_inline_locations;
	int offcpu; /* enum offcpu_form */
	unsigned demangle_flags;
	unsigned folded_flags;
	const char *weight;      /* name of a column; NULL: the event's default weight */
	const char *heap_weight; /* weight of a memory profile, for flame graphs */
	struct share_opts share;
};

static const struct opt convert_opts[] = {
	OPT_STR(0, "to", struct convert_opts, to, "FORMAT",
		"format to write (default: by the suffix of the output); --list prints all"),
	OPT_LIST('o', "output", struct convert_opts, outputs, "FILE",
		 "write to FILE (default '-', standard output); repeated: each in the format of "
		 "its suffix"),
	OPT_FLAG(0, "list", struct convert_opts, wants_list, "list the formats"),
	OPT_STR('e', "event", struct convert_opts, event, "EVENT",
		"samples of this event (default: all, or the first if the format holds one)"),
	OPT_STR(0, "weight", struct convert_opts, weight, "COLUMN",
		"value to write, if the event has several columns: samples, period, time, calls, "
		"bytes; of memory live, peak, leaked, held, allocated, calls, freed (default: what reports add "
		"up, of memory what was allocated; the period if the samples' periods vary)"),
	OPT_FLAG(
		0, "no-idle", struct convert_opts, has_no_idle,
		"leave out idle waits, as pages do: threads that wait for work, in park, poll or sleep"),
	OPT_STR(0, "dumps", struct convert_opts, dumps, "WHICH", DUMPS_HELP),
	OPT_END,
};
static const struct opt_group convert_group = {"Output", convert_opts};

static const struct opt folded_opts[] = {
	OPT_BITS(0, "pid", struct convert_opts, folded_flags, FOLDED_PID, "start with comm-PID"),
	OPT_BITS(0, "tid", struct convert_opts, folded_flags, FOLDED_TID,
		 "start with comm-PID/TID"),
	OPT_BITS(0, "no-comm", struct convert_opts, folded_flags, FOLDED_NO_COMM,
		 "start with the outermost function, without the thread (default: comm)"),
	OPT_BITS(0, "annotate", struct convert_opts, folded_flags,
		 FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT,
		 "mark kernel, inlined, JIT and inferred frames with _[k], _[i], _[j], _[t]"),
	OPT_BITS(0, "addresses", struct convert_opts, folded_flags, FOLDED_ADDRS,
		 "write unsymbolized frames as [module <address>]"),
	OPT_END,
};
static const struct opt_group folded_group = {"Folded stacks", folded_opts};

static const struct opt pprof_opts[] = {
	OPT_FLAG(0, "inline-as-locations", struct convert_opts, has_inline_locations,
		 "write inlined functions as locations: some readers (speedscope) take one "
		 "function of each location"),
	OPT_END,
};
static const struct opt_group pprof_group = {"pprof", pprof_opts};

enum offcpu_form { OFFCPU_MARKERS, OFFCPU_SAMPLES };
static const struct opt_choice offcpu_forms[] = {
	{"markers", OFFCPU_MARKERS}, {"samples", OFFCPU_SAMPLES}, {NULL, 0}};

static const struct opt firefox_opts[] = {
	OPT_ENUM(0, "offcpu", struct convert_opts, offcpu, offcpu_forms, "FORM",
		 "waits as 'markers' (default), or as 'samples' with the CPU time, both weighed by "
		 "their time"),
	OPT_END,
};
static const struct opt_group firefox_group = {"Firefox Profiler", firefox_opts};

static const struct opt names_opts[] = {
	OPT_FLAG(0, "no-inlines", struct convert_opts, has_no_inlines,
		 "do not resolve inlined functions"),
	OPT_BITS(0, "hashes", struct convert_opts, demangle_flags, DEMANGLE_HASHES,
		 "keep hashes and disambiguators in Rust names"),
	OPT_STR(0, "symfs", struct convert_opts, symfs, "DIR",
		"search binaries below DIR (default /)"),
	OPT_LIST(0, "debug-dir", struct convert_opts, debug_dirs, "DIR",
		 "search DIR for debug files, too"),
	OPT_END,
};
const struct opt_group convert_names_group = {"Symbolization, for files without names", names_opts};

#define SVG_NAME "svg"

static int list_formats(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct format *f = NULL;
	for (size_t i = 0; (f = format_at(i)); i++) {
		bool can_read = f->read || (f->flags & FORMAT_NEEDS_INGEST);
		buf_addf(&b, "%-12s %-6s %-6s %s\n", f->name, can_read ? "read" : "",
			 f->write ? "write" : "", f->title);
	}
	buf_addf(&b, "%-12s %-6s %-6s %s\n", SVG_NAME, "", "write",
		 "flame graph (see assay flame)");
	return cmd_print(&b);
}

/* Chooses the format of one output; *ret_f = NULL means a flame graph (SVG). */
static int choose_format(const struct format **ret_f, const struct convert_opts *o,
			 const char *path, struct err *err)
{
	bool is_svg = o->to ? !strcmp(o->to, SVG_NAME)
			    : sv_has_suffix(sv_from_str(path), SV("." SVG_NAME));
	if (is_svg) {
		*ret_f = NULL;
		return 0;
	}
	bool is_perf = o->to && !strcmp(o->to, "perf.data"); /* the usual name of the format */
	const struct format *f = is_perf ? format_find("perfdata")
				 : o->to ? format_find(o->to)
					 : format_of_path(path);
	if (f && f->write) {
		*ret_f = f;
		return 0;
	}
	if (!o->to && !strcmp(path, "-")) {
		err_set(err, -EINVAL, "missing format: --to FORMAT, or -o FILE with its suffix");
		return err_hint(err, "list the formats with: assay convert --list");
	}
	if (!o->to) {
		err_set(err, -EINVAL, "the suffix of '%s' is not that of a format", path);
		return err_hint(err,
				"add --to FORMAT; list the formats with: assay convert --list");
	}
	struct suggest s = suggest_for(sv_from_str(o->to));
	for (size_t i = 0; (f = format_at(i)); i++)
		if (f->write)
			suggest_offer(&s, sv_from_str(f->name));
	err_set(err, -EINVAL, "cannot write format '%s'", o->to);
	if (!strcmp(o->to, "csv"))
		err_hint(err, "tables as CSV: assay report --csv; to list the formats: assay "
			      "convert --list");
	else if (s.best.n)
		err_hint(err, "did you mean '%.*s'? to list the formats: assay convert --list",
			 SV_ARGS(s.best));
	else
		err_hint(err, "assay convert --list");
	return -EINVAL;
}

static struct format_options options_from(const struct convert_opts *o,
					  struct perfdata_written *written)
{
	unsigned flags = o->folded_flags | (o->has_no_inlines ? FOLDED_NO_INLINE : 0);
	return (struct format_options){
		.event = o->event,
		.folded = {.flags = flags},
		.pprof = {.has_inline_locations = o->has_inline_locations},
		.firefox = {.are_waits_samples = o->offcpu == OFFCPU_SAMPLES},
		.perfdata = {.ret_written = written},
	};
}

static int load(struct profile **ret_p, const struct convert_opts *o, const struct opt_args *args,
		struct err *err)
{
	CLEANUP(inputs_release) struct inputs in = {0};
	struct load_options options = {
		.symfs = o->symfs,
		.dumps = o->dumps,
		.debug_dirs = o->debug_dirs.p,
		.nr_debug_dirs = o->debug_dirs.n,
		.symbolizer_flags = o->has_no_inlines ? SYMBOLIZER_NO_INLINES : 0,
		.demangle_flags = o->demangle_flags,
	};
	TRY(inputs_find(&in, args, err));
	TRY(inputs_confine(in.paths, in.nr, o->outputs.n ? o->outputs.p[0] : NULL, err));
	return inputs_load(ret_p, in.paths, in.nr, &options, err);
}

static int write_svg(struct format_output *to, const struct profile *p,
		     const struct convert_opts *o, const char *title, struct err *err)
{
	CLEANUP(picture_release)
	struct picture pic = {.spec = {.event = o->event, .heap = {.weight = o->heap_weight}},
			      .tree_flags = CALLTREE_ROOT_COMM};
	picture_add(&pic, p, title);
	return flamegraph_svg(&to->buf, &pic, NULL, err);
}

/* Notes what perf.data cannot represent. */
static void print_perfdata_losses(const struct perfdata_written *w)
{
	if (w->is_folded)
		log_note(
			"too many samples to write one record each: wrote one record per row, with the count as period");
	if (w->nr_truncated_stacks)
		log_warn(
			"%" PRIu64
			" call stacks are deeper than a perf.data record can hold, truncated at the root",
			w->nr_truncated_stacks);
	if (w->nr_named_frames)
		log_note("perf shows %s with a name but no address as kernel code",
			 num_noun(w->nr_named_frames, "frames").s);
}

struct waits {
	const struct profile *p;
	struct reasons *reasons;
};

/* Returns the frame for the wait reason that flame graphs put on top of a stack. */
static const char *reason_frame(void *ctx, const struct table *t, size_t row)
{
	struct waits *w = ctx;
	enum wait_reason r = reason_of(w->reasons, t->stack[row], &w->p->tags.p[t->tag[row]]);
	return wait_frame(r);
}

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

/* How an output is packed; @f NULL: a flame graph. */
static enum zkind packing_of(const struct format *f, const char *path)
{
	struct sv s = sv_from_str(path);
	if (f && f->flags & FORMAT_GZIP)
		return ZKIND_GZIP;
	if (!f || !(f->flags & FORMAT_CAN_PACK))
		return ZKIND_NONE;
	return sv_has_suffix(s, SV(".gz"))    ? ZKIND_GZIP
	       : sv_has_suffix(s, SV(".zst")) ? ZKIND_ZSTD
					      : ZKIND_NONE;
}

static int write_packed(struct format_output *to, enum zkind kind, struct out *out, struct err *err)
{
	CLEANUP(buf_release) struct buf packed = {0};
	TRY(kind == ZKIND_GZIP ? zio_compress_gzip(&packed, to->buf.p, to->buf.n, GZIP_LEVEL, err)
			       : zio_compress_zstd(&packed, to->buf.p, to->buf.n, ZSTD_LEVEL, err));
	buf_clear(&to->buf);
	return out_write(out, packed.p, packed.n, err);
}

static int write_one(const struct convert_opts *o, const struct format *f, const char *path,
		     const struct profile *p, const char *title, struct err *err)
{
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(arena_release) struct arena a = {0};
	struct perfdata_written written = {0};
	struct format_options options = options_from(o, &written);
	struct waits waits = {.p = p, .reasons = reasons_new(&a, p)};
	options.synth_leaf_of = reason_frame;
	options.synth_leaf_ctx = &waits;
	options.heapwrite = convert_heap_options(&a, p);
	enum zkind packed = packing_of(f, path);
	TRY(out_open(&out, path, 0666, err));
	struct format_output to = {.file = packed == ZKIND_NONE ? &out : NULL};
	int rc = f ? f->write(&to, p, &options, err) : write_svg(&to, p, o, title, err);
	if (!rc && packed != ZKIND_NONE)
		rc = write_packed(&to, packed, &out, err);
	if (!rc)
		rc = format_flush(&to, err);
	if (!rc)
		rc = out_commit(&out, err);
	buf_release(&to.buf);
	if (!rc)
		print_perfdata_losses(&written);
	if (!rc && f)
		convert_heap_note_losses(p, f->name);
	return rc;
}

static bool is_binary(const struct format *f)
{
	return f && (!strcmp(f->name, "assay") || (f->flags & FORMAT_NEEDS_INGEST));
}

/* An output and its format, chosen before any input is read. */
struct output {
	const char *path;
	const struct format *format; /* NULL: a flame graph */
};

static int choose_outputs(struct output *outputs, size_t nr, const struct convert_opts *o)
{
	CLEANUP(err_release) struct err err = {0};
	for (size_t i = 0; i < nr; i++) {
		struct output *out = &outputs[i];
		out->path = o->outputs.n ? o->outputs.p[i] : "-";
		if (choose_format(&out->format, o, out->path, &err)) {
			log_err(&err);
			return EXIT_USAGE;
		}
		if (!strcmp(out->path, "-") && is_binary(out->format) && isatty(STDOUT_FILENO))
			return cmd_usage("convert",
					 "cannot write format '%s' to a terminal: use -o FILE",
					 out->format->name);
	}
	return EXIT_OK;
}

/* Applies --weight; flame graphs select their rows by it themselves. */
static int weigh(struct convert_opts *o, struct profile *p, bool is_flame, struct err *err)
{
	enum heap_weight w;
	if (!o->weight)
		return 0;
	if (o->event || !heapweights_exist(p) || !heap_weight_from_key(o->weight, &w))
		return weightcolumn_set(p, o->event, o->weight, err);
	o->heap_weight = o->weight;
	if (is_flame)
		return 0;
	return heapweights_set(p, w, &o->event, err);
}

static void remove_idle(struct profile *p)
{
	struct idlewaits removed = idlewaits_remove(p);
	log_note("left out: %s that were idle, %s of wait time", num_noun(removed.nr, "waits").s,
		 num_ns(removed.ns).s);
}

/* Two viewers have JSON formats of their own, which a suffix does not ask for. */
static void note_json(const struct convert_opts *o, const struct output *out)
{
	if (!o->to && out->format && !strcmp(out->format->name, "json"))
		log_note("'%s' has assay's own JSON (docs/formats/profile-json.md); for viewers: "
			 "--to firefox, --to speedscope",
			 out->path);
}

static int convert(const struct convert_opts *asked, const struct opt_args *args)
{
	struct convert_opts own = *asked;
	struct convert_opts *o = &own;
	CLEANUP(err_release) struct err err = {0};
	size_t nr = MAX(o->outputs.n, (size_t)1);
	CLEANUP(free_p) struct output *outputs = xcalloc(nr, sizeof(*outputs));
	int status = choose_outputs(outputs, nr, o);
	if (status != EXIT_OK)
		return status;
	CLEANUP(profile_free_p) struct profile *p = NULL;
	if (load(&p, o, args, &err))
		return cmd_fail(&err);
	share_apply(&o->share, &p);
	if (o->has_no_idle)
		remove_idle(p);
	inputs_note_incomplete(p);
	bool is_flame = true;
	for (size_t i = 0; i < nr; i++)
		is_flame &= !outputs[i].format;
	if (weigh(o, p, is_flame, &err))
		return cmd_refuse(&err);
	for (size_t i = 0; i < nr; i++)
		if (outputs[i].format && outputs[i].format->flags & FORMAT_OF_EVENTS &&
		    inputs_need_events(p, outputs[i].format->name, &err))
			return cmd_fail(&err);
	bool has_one_event = false;
	for (size_t i = 0; i < nr; i++)
		has_one_event |= !outputs[i].format || outputs[i].format->flags & FORMAT_ONE_EVENT;
	if (has_one_event)
		inputs_note_event(p, o->event);
	for (size_t i = 0; i < nr; i++)
		note_json(o, &outputs[i]);
	const char *title =
		args->operands.n == 1 && !o->share.is_redacted ? args->operands.p[0] : "profile";
	for (size_t i = 0; i < nr; i++) {
		int rc = write_one(o, outputs[i].format, outputs[i].path, p, title, &err);
		if (rc) /* no message if the reader closed the pipe */
			return rc == -EPIPE ? EXIT_FAILED : cmd_fail(&err);
	}
	return EXIT_OK;
}

int cmd_convert(int argc, char **argv)
{
	struct convert_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "convert",
		.usage = {"[OPTION...] --to FORMAT [FILE...]"},
		.details =
			"Reads recordings, perf.data, perf script output, folded stacks and other profiles, "
			"also compressed; '-' is standard input. Several files are merged. Without FILE, the "
			"newest recording below ./profiling is read. The result is written to standard output, "
			"or to FILE of -o.",
		.examples =
			"assay convert --to folded perf.data\tfolded stacks on standard output\n"
			"assay convert -o perf.data redis.assay\tfor perf report\n"
			"assay convert perf.data -o a.folded -o a.svg\ttwo formats, read once\n"
			"perf script | assay convert --to svg - -o flame.svg\tfrom perf script output\n",
		.groups = {{&convert_group, &o},
			   {&folded_group, &o},
			   {&pprof_group, &o},
			   {&firefox_group, &o},
			   {&convert_names_group, &o},
			   {&share_group, &o.share}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (o.wants_list)
		return list_formats();
	return convert(&o, &args);
}
