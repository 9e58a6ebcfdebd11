/* The table of commands, and what all commands share; see cmd.h. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/suggest.h"
#include "cmd/cmd_table.h"

/* In the order of the help: capture, read, around. */
const struct cmd cmd_table[] = {
	{"cpu", "where the CPU time of a program goes", cmd_cpu},
	{"events", "count events by name, exactly, with their stacks", cmd_events},
	{"io", "what a program reads, writes and syncs", cmd_io},
	{"faults", "page faults and memory pressure", cmd_faults},
	{"offcpu", "what the threads of a program wait for", cmd_offcpu},
	{"latency", "how long calls of a function take, and why", cmd_latency},
	{"heap", "who allocates memory, what lives, what leaks", cmd_heap},
	{"limit", "run a command under a limit of memory, and see what that costs", cmd_limit},
	{"env", "run a command with jemalloc's profiling switched on", cmd_env},
	{"watch", "the memory of a program, live", cmd_watch},
	{"report", "where the time goes: tables and trees", cmd_report},
	{"flame", "draw a flame graph (SVG)", cmd_flame},
	{"diff", "compare two profiles: what grew, what shrank", cmd_diff},
	{"convert", "write a profile in another format", cmd_convert},
	{"script", "samples one by one, as perf script prints them", cmd_script},
	{"ls", "list recordings", cmd_ls},
	{"list", "what can be counted by name; recordings", cmd_list},
	{"clean", "remove old recordings", cmd_clean},
	{"mark", "set a phase boundary in running captures", cmd_mark},
	{"doctor", "what may be measured here, what not, and the remedy", cmd_doctor},
	{"help", "show help for a command", cmd_help},
};
const size_t nr_cmds = ARRAY_LEN(cmd_table);

struct common_opts {
	bool wants_help;
	const char *help_form; /* NULL: text; "man", "words" */
	bool is_quiet;
	int nr_verbose;
	const char *debug;
	int color;
};

/* Set once by cmd_parse, before any thread. */
static enum term_when color_when;

static const struct opt_choice color_choices[] = {
	{"auto", TERM_AUTO, NULL},
	{"always", TERM_ALWAYS, NULL},
	{"never", TERM_NEVER, NULL},
	{0},
};

static int want_help(void *to, const char *arg, struct err *err)
{
	struct common_opts *o = to;
	if (arg && strcmp(arg, "man") && strcmp(arg, "words"))
		return err_set(err, -EINVAL, "'%s' is not one of man, words", arg);
	o->wants_help = true;
	o->help_form = arg;
	return 0;
}

static int want_short_help(void *to, const char *arg, struct err *err)
{
	(void)arg;
	return want_help(to, NULL, err);
}

static const struct opt common_opts[] = {
	OPT_CALL_NO_ARG('h', NULL, want_short_help, "show this help"),
	{.kind = OPT_KIND_CALL,
	 .long_name = "help",
	 .call = want_help,
	 .arg = "FORM",
	 .flags = OPT_ARG_OPTIONAL,
	 .help = "the same; FORM man or words (for completion): in that form"},
	OPT_FLAG('q', "quiet", struct common_opts, is_quiet, "errors only"),
	OPT_COUNT('v', "verbose", struct common_opts, nr_verbose, "say more; twice: debug"),
	OPT_STR(0, "debug", struct common_opts, debug, "DOMAIN[:N],...",
		"debug messages of perf, bpf, unwind, symbol, ingest, format, session, host, all"),
	OPT_ENUM(0, "color", struct common_opts, color, color_choices, "WHEN",
		 "colours on the terminal"),
	OPT_END,
};
static const struct opt_group common_group = {"General", common_opts};

static void print_help(const struct opt_cmd *cmd, const char *form)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!form)
		opt_help(&b, cmd);
	else if (!strcmp(form, "man"))
		opt_man(&b, cmd);
	else
		opt_words(&b, cmd);
	(void)cmd_print(&b); /* a reader that leaves has seen enough */
}

bool cmd_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	       int *ret_status)
{
	struct common_opts common = {0};
	struct opt_cmd all = *cmd;
	size_t g = 0;
	while (g < OPT_GROUPS_MAX && all.groups[g].group)
		g++;
	ASSERT(g < OPT_GROUPS_MAX);
	all.groups[g] = (struct opt_bind){&common_group, &common};

	log_set_command(cmd->name);
	CLEANUP(err_release) struct err err = {0};
	int rc = opt_parse(ret_args, &all, argc, argv, &err);
	if (common.wants_help) {
		print_help(&all, common.help_form);
		*ret_status = EXIT_OK;
		return false;
	}
	if (!rc && common.debug)
		rc = log_set_debug(common.debug, &err);
	if (rc) {
		if (!err.hint)
			err_hint(&err, "assay %s --help", cmd->name ? cmd->name : "");
		log_err(&err);
		*ret_status = EXIT_USAGE;
		return false;
	}
	log_set_level(common.is_quiet         ? LOG_ERROR
		      : common.nr_verbose > 1 ? LOG_DEBUG
		      : common.nr_verbose     ? LOG_INFO
					      : LOG_NOTE);
	color_when = (enum term_when)common.color;
	return true;
}

enum term_when cmd_color(void)
{
	return color_when;
}

int cmd_fail(const struct err *err)
{
	log_err(err);
	return EXIT_FAILED;
}

int cmd_refuse(const struct err *err)
{
	log_err(err);
	return err->code == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

int cmd_usage(const char *name, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	log_error("%s", text);
	log_hint("assay %s --help", name);
	return EXIT_USAGE;
}

int cmd_print(const struct buf *b)
{
	CLEANUP(err_release) struct err err = {0};
	fflush(stdout);
	if (!file_write_all(STDOUT_FILENO, buf_str(b), b->n, &err))
		return EXIT_OK;
	if (err.code != -EPIPE)
		log_err(&err);
	return EXIT_FAILED;
}

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; i < nr_cmds; i++)
		if (!strcmp(cmd_table[i].name, name))
			return &cmd_table[i];
	return NULL;
}

int cmd_unknown(const char *name)
{
	struct suggest s = suggest_for(sv_from_str(name));
	for (size_t i = 0; i < nr_cmds; i++)
		suggest_offer(&s, sv_from_str(cmd_table[i].name));
	log_set_command(NULL);
	log_error("unknown command '%s'", name);
	if (s.best.n)
		log_hint("did you mean '%.*s'? `assay help` lists the commands", SV_ARGS(s.best));
	else
		log_hint("`assay help` lists the commands");
	return EXIT_USAGE;
}

int cmd_main(int argc, char **argv)
{
	if (argc < 2)
		return cmd_help(1, argv) == EXIT_OK ? EXIT_USAGE : EXIT_FAILED;
	if (argv[1][0] == '-')
		return cmd_help(argc, argv); /* --help, --version */
	const struct cmd *c = cmd_find(argv[1]);
	if (!c)
		return cmd_unknown(argv[1]);
	log_set_command(c->name);
	return c->run(argc - 1, argv + 1);
}
