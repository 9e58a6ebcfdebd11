/* assay script: prints the samples of a profile one by one, in the format of perf script. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "analyze/memory/heapweights.h"
#include "analyze/views.h"
#include "analyze/wait/waitlist.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/text/num.h"
#include "cmd/read/inputs.h"
#include "cmd/optgroups.h"
#include "format/format.h"
#include "render/renderers.h"

struct script_opts {
	const char *output;
	bool has_waits;
	struct renderer_choice form; /* with has_waits */
};

static const struct opt script_opts[] = {
	OPT_FLAG(0, "waits", struct script_opts, has_waits,
		 "print the single waits that were kept, one a line: time, thread, reason, waker"),
	OPT_STR('o', "output", struct script_opts, output, "FILE",
		"write to FILE (default '-', standard output)"),
	OPT_END,
};
static const struct opt_group script_group = {"Output", script_opts};

static const char details[] =
	"Prints each sample with its call stack, in order of time, in the text format of perf "
	"script, for programs that read that format.\n"
	"\n"
	"FILE is a recording, perf.data, perf script output, folded stacks or another profile; "
	"also compressed (.gz, .xz, .zst); '-' is standard input. Several files are added up. "
	"Without FILE, the newest recording below ./profiling is read.\n"
	"\n"
	"Filters select samples; call stacks are printed whole, also with --within.";

static const char examples[] =
	"assay script | less\tthe newest recording\n"
	"assay script --time 2..2.1 --thread ^worker\twhat the workers did in 0.1 s\n"
	"assay script --waits --reason lock\tsingle waits for locks, with their wakers\n"
	"assay script perf.data --function ^parse_ | head\tsamples with a function\n";

/* A compiled filter for each table; NULL: the table is not printed. */
struct row_filters {
	struct arena arena;
	struct row_filter **by_table;
};

static void row_filters_release(struct row_filters *s)
{
	arena_release(&s->arena);
}

static bool is_selected(void *ctx, uint32_t table, size_t sample_idx)
{
	const struct row_filters *s = ctx;
	return s->by_table[table] && select_has(s->by_table[table], sample_idx);
}

static int compile(struct row_filters *s, const struct profile *p, const struct select_spec *spec,
		   struct err *err)
{
	s->by_table = arena_calloc(&s->arena, p->tables.n + 1, sizeof(struct row_filter *));
	uint32_t only = 0;
	int rc = spec->event ? select_table(p, spec->event, &only, err) : 0;
	for (uint32_t t = 0; !rc && t < p->tables.n; t++)
		if (spec->event ? t == only : !table_kind(p->tables.p[t].id)->is_on_request)
			rc = select_compile(&s->arena, p, t, spec, &s->by_table[t], err);
	return rc;
}

static int write_script(const struct script_opts *o, const struct profile *p, struct row_filters *s,
			struct err *err)
{
	CLEANUP(out_release) struct out out = {.fd = -1};
	TRY(out_open(&out, o->output ? o->output : "-", 0666, err));
	struct format_output to = {.file = &out};
	struct format_options options = {.perfscript = {.has = is_selected, .ctx = s}};
	int rc = perfscript_write(&to, p, &options, err);
	if (!rc)
		rc = format_flush(&to, err);
	buf_release(&to.buf);
	return rc ? rc : out_commit(&out, err);
}

static int write_waits(const struct script_opts *o, const struct profile *p,
		       const struct select_spec *spec, struct err *err)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct output_opts out = {.path = o->output, .form = o->form};
	out.form.has_limit = true; /* not a page: all rows, unless --rows is given */
	TRY(waitlist_report(r, p, spec, err));
	return output_report(&out, r);
}

static int script(const struct script_opts *o, const struct filter_opts *filter,
		  const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(row_filters_release) struct row_filters row_filters = {0};
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(inputs_release) struct inputs in = {0};
	if (inputs_find(&in, args, &err) || inputs_confine(in.paths, in.nr, o->output, &err) ||
	    inputs_load(&p, in.paths, in.nr, &(struct load_options){.dumps = filter->dumps}, &err))
		return cmd_fail(&err);
	if (inputs_need_events(p, "script", &err))
		return cmd_fail(&err);
	inputs_note_incomplete(p);
	uint64_t nr_lost = p->losses.nr[LOSS_LOST];
	if (nr_lost)
		log_note("lost while recording: %s", num_noun(nr_lost, "samples").s);
	struct select_spec spec = filter->spec;
	if (o->has_waits) {
		int status = write_waits(o, p, &spec, &err);
		return status < 0 ? cmd_refuse(&err) : status;
	}
	enum heap_weight weight;
	bool is_heap = filter->weight && views_find(p, &spec)->has_weights &&
		       heap_weight_from_key(filter->weight, &weight);
	if (is_heap && heapweights_set(p, weight, &spec.event, &err))
		return cmd_refuse(&err);
	if (filter_weigh(filter, p, &err) || compile(&row_filters, p, &spec, &err))
		return cmd_refuse(&err);
	int rc = write_script(o, p, &row_filters, &err);
	if (!rc)
		return EXIT_OK;
	return rc == -EPIPE ? EXIT_FAILED
			    : cmd_fail(&err); /* no message if the reader closed the pipe */
}

int cmd_script(int argc, char **argv)
{
	struct script_opts o = {0};
	CLEANUP(filter_release) struct filter_opts filter = {0};
	const struct opt_cmd cmd = {
		.name = "script",
		.usage = {"[OPTION...] [FILE...]"},
		.details = details,
		.examples = examples,
		.groups = {FILTER_GROUPS(&filter), {&script_group, &o}, {&renderer_group, &o.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (!o.has_waits && !renderer_is_text(&o.form))
		return cmd_usage("script", "--json, --md and --csv need --waits");
	if (filter_finish(&filter, &err))
		return cmd_refuse(&err);
	return script(&o, &filter, &args);
}
