/* assay view: writes the HTML page of a recording. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "base/file/file.h"
#include "cmd/capture/outputs.h"
#include "cmd/optgroups.h"
#include "cmd/read/htmlpage.h"
#include "cmd/read/inputs.h"

struct view_opts {
	const char *output;
	struct share_opts share;
};

static const struct opt view_opts[] = {
	OPT_STR('o', "output", struct view_opts, output, "FILE",
		"write to FILE, '-' for standard output (default: beside the first input, .html)"),
	OPT_END,
};
static const struct opt_group view_group = {"Output", view_opts};

static const char details[] =
	"Writes one HTML file: time axis, flame graph, functions, waits, memory. It needs no other "
	"file and no network, opens in any browser of the last years, and can be mailed or kept "
	"with a build's results.\n"
	"\n"
	"FILE is a recording, perf.data, perf script output, folded stacks or another profile; "
	"also compressed (.gz, .xz, .zst); '-' is standard input. Several files are added up. "
	"Without FILE, the newest recording below ./profiling is read.";

static const char examples[] = "assay view\tthe newest recording\n"
			       "assay view redis.assay\twrites redis.html\n"
			       "assay view -o busy.html perf.data\ta recording of perf\n";

static int write_page(const struct view_opts *o, const struct profile *p, const char *input,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf html = {0};
	CLEANUP(buf_release) struct buf path = {0};
	TRY(htmlpage_make(&html, p, input, err));
	if (o->output && !strcmp(o->output, "-"))
		return cmd_print(&html) == EXIT_OK ? 0 : -EPIPE; /* cmd_print printed the error */
	if (o->output)
		buf_add_str(&path, o->output);
	else
		inputs_add_output(&path, input, ".html");
	if (!o->output && !strcmp(buf_str(&path), input)) {
		err_set(err, -EINVAL, "the page would replace its input '%s'", input);
		return err_hint(err, "-o FILE");
	}
	TRY(out_file(buf_str(&path), 0644, &html, err));
	buf_add_ch(&path, '\n');
	if (!cmd_is_quiet())
		(void)cmd_print(
			&path); /* the file is written, even if its path cannot be printed */
	return 0;
}

static int view(const struct view_opts *o, const struct opt_args *args, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(inputs_release) struct inputs in = {0};
	if (o->output)
		TRY(outputs_check_name("-o", o->output, ".html", "an HTML file", err));
	TRY(inputs_find(&in, args, err));
	TRY(inputs_confine(in.paths, in.nr, o->output ? o->output : in.paths[0], err));
	TRY(inputs_load(&p, in.paths, in.nr, &(struct load_options){0}, err));
	share_apply(&o->share, &p);
	return write_page(o, p, in.paths[0], err);
}

int cmd_view(int argc, char **argv)
{
	struct view_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "view",
		.usage = {"[OPTION...] [FILE...]"},
		.details = details,
		.examples = examples,
		.groups = {{&view_group, &o}, {&share_group, &o.share}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	int rc = view(&o, &args, &err);
	if (!rc)
		return EXIT_OK;
	return rc == -EPIPE ? EXIT_FAILED : cmd_fail(&err);
}
