/* assay view: writes the HTML page of a recording. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/spawn.h"
#include "cmd/capture/outputs.h"
#include "cmd/optgroups.h"
#include "cmd/read/htmlpage.h"
#include "cmd/read/inputs.h"
#include "host/privileges.h"

struct view_opts {
	const char *output;
	bool is_opened;
	struct share_opts share;
	struct source_opts source;
};

static const struct opt view_opts[] = {
	OPT_STR('o', "output", struct view_opts, output, "FILE",
		"write to FILE, '-' for standard output (default: beside the first input, .html)"),
	OPT_FLAG(0, "open", struct view_opts, is_opened,
		 "open it in the browser of the desktop (xdg-open); over ssh: print the line that "
		 "copies it"),
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
			       "assay view --open\tand opens it in a browser\n"
			       "assay view -o busy.html perf.data\ta recording of perf\n";

/* Where the page is written. */
static int choose_path(struct buf *to, const struct view_opts *o, const char *input,
		       struct err *err)
{
	if (o->output) {
		buf_add_str(to, o->output);
		return o->is_opened && !strcmp(o->output, "-")
			       ? err_set(err, -EINVAL, "--open needs a file: -o FILE")
			       : 0;
	}
	if (!strcmp(input, "-")) {
		err_set(err, -EINVAL, "missing name of the page: the input is standard input");
		return err_hint(err, "-o FILE, or -o - for standard output");
	}
	inputs_add_output(to, input, ".html");
	if (strcmp(buf_str(to), input) != 0)
		return 0;
	err_set(err, -EINVAL, "the page would replace its input '%s'", input);
	return err_hint(err, "-o FILE");
}

/* Forks what will open the page, while this process may still execute programs. */
static int prepare_browser(struct spawn *ret_s, const char *path, struct err *err)
{
	char program[] = "xdg-open";
	CLEANUP(free_p) char *dir = path[0] == '/' ? NULL : getcwd(NULL, 0);
	CLEANUP(free_p) char *name = xasprintf("%s%s%s", dir ? dir : "", dir ? "/" : "", path);
	char *args[] = {program, name, NULL};
	return spawn_open(ret_s, args, host_become_command_user, err);
}

/* The page is written: what fails here is a note. */
static void open_page(struct spawn *browser, const char *path)
{
	CLEANUP(err_release) struct err err = {0};
	if (!outputs_print_copy(path) && spawn_exec(browser, "xdg-open", &err))
		log_note("%s; open the page in a browser", err_msg(&err));
}

static int write_page(const struct profile *p, const char *input, const struct codefiles *code,
		      const char *path, struct err *err)
{
	CLEANUP(buf_release) struct buf html = {0};
	CLEANUP(buf_release) struct buf line = {0};
	TRY(htmlpage_make(&html, p, input, &code->access, err));
	if (!strcmp(path, "-"))
		return cmd_print(&html) == EXIT_OK ? 0 : -EPIPE; /* cmd_print printed the error */
	TRY(out_file(path, 0644, &html, err));
	buf_addf(&line, "%s\n", path);
	if (!cmd_is_quiet())
		(void)cmd_print(
			&line); /* the file is written, even if its path cannot be printed */
	return 0;
}

static int view(const struct view_opts *o, const struct opt_args *args, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(inputs_release) struct inputs in = {0};
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(spawn_release) struct spawn browser = {.start_fd = -1, .status_fd = -1};
	CLEANUP(codefiles_release) struct codefiles code = {0};
	if (o->output)
		TRY(outputs_check_name("-o", o->output, ".html", "an HTML file", err));
	TRY(inputs_find(&in, args, err));
	TRY(choose_path(&path, o, in.paths[0], err));
	if (o->is_opened)
		TRY(prepare_browser(&browser, buf_str(&path), err));
	TRY(source_open(&code, &o->source, err));
	TRY(inputs_confine(in.paths, in.nr, o->output ? o->output : in.paths[0], err));
	TRY(inputs_load(&p, in.paths, in.nr, &(struct load_options){0}, err));
	share_apply(&o->share, &p);
	codefiles_of(&code, p);
	TRY(write_page(p, in.paths[0], &code, buf_str(&path), err));
	source_print_note(&code);
	if (o->is_opened)
		open_page(&browser, buf_str(&path));
	return 0;
}

int cmd_view(int argc, char **argv)
{
	struct view_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "view",
		.usage = {"[OPTION...] [FILE...]"},
		.details = details,
		.examples = examples,
		.groups = {{&view_group, &o}, {&source_group, &o.source}, {&share_group, &o.share}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (source_is_refused(&o.source, &o.share))
		return cmd_usage("view", SOURCE_REFUSAL);
	int rc = view(&o, &args, &err);
	if (!rc)
		return EXIT_OK;
	return rc == -EPIPE ? EXIT_FAILED : cmd_fail(&err);
}
