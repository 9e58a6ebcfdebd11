/* The table of commands and the code that all commands share; see cmd.h. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/progress.h"
#include "base/text/escape.h"
#include "base/text/suggest.h"
#include "cmd/cmd_table.h"
#include "cmd/otherwords.h"
#include "cmd/settings.h"
#include "host/reader/hostfile.h"
#include "session/store.h"

#define CAP_BIT(cap) ((uint64_t)1 << (cap))
#define NEEDS(bits, caps)                          \
	{                                          \
		{                                  \
			(bits), (caps), NULL, NULL \
		}                                  \
	}
#define NEEDS_NOTHING NEEDS(RIGHTS_NOTHING, 0)

/* In the order of the help. */
const struct cmd cmd_table[] = {
	{"all",
	 CMD_GROUP_ALL,
	 "CPU time, waiting, memory and I/O in one capture (also without this word)",
	 cmd_all,
	 {{.bits = RIGHTS_PARTS, .parts = "cpu offcpu watch io faults"}}},

	{"cpu", CMD_GROUP_CPU, "sample where a program spends its CPU time", cmd_cpu,
	 NEEDS(RIGHTS_PERF, RIGHTS_STACKS)},
	{"top", CMD_GROUP_CPU, "hottest functions and waits now, refreshed each second", cmd_top,
	 NEEDS(RIGHTS_PERF, RIGHTS_STACKS), .is_live = true},
	{"stat", CMD_GROUP_CPU, "counters of a program: CPU time, switches, faults, instructions",
	 cmd_stat, NEEDS(RIGHTS_PERF | RIGHTS_ONLY_COUNTS, CAP_BIT(HOST_CAP_PERFMON)),
	 .is_live = true},

	{"offcpu", CMD_GROUP_WAIT, "what threads wait for: locks, I/O, timers, a free CPU",
	 cmd_offcpu, NEEDS(RIGHTS_PERF | RIGHTS_FALLS_TO_PROC, RIGHTS_STACKS)},
	{"latency", CMD_GROUP_WAIT, "how long calls of a function take, and what they wait for",
	 cmd_latency,
	 NEEDS(RIGHTS_BPF | RIGHTS_UPROBES | RIGHTS_HAS_NO_SYSTEM,
	       RIGHTS_STACKS | CAP_BIT(CAP_SYS_ADMIN))},
	{"io", CMD_GROUP_WAIT, "read, write and sync calls by file and function", cmd_io,
	 NEEDS(RIGHTS_BPF | RIGHTS_TRACEPOINTS, RIGHTS_STACKS | CAP_BIT(CAP_DAC_READ_SEARCH))},
	{"events",
	 CMD_GROUP_WAIT,
	 "count tracepoints and software events, with call stacks",
	 cmd_events,
	 {{RIGHTS_PERF | RIGHTS_FALLS_TO_COUNTS, RIGHTS_STACKS, NULL, NULL},
	  {RIGHTS_PERF | RIGHTS_TRACEPOINTS | RIGHTS_FALLS_TO_COUNTS,
	   RIGHTS_STACKS | CAP_BIT(CAP_DAC_READ_SEARCH), "tracepoints", NULL}}},

	{"heap", CMD_GROUP_MEMORY, "allocations by call stack: live bytes, peak, leaks", cmd_heap,
	 NEEDS(RIGHTS_PTRACE | RIGHTS_HAS_NO_SYSTEM, CAP_BIT(CAP_SYS_PTRACE))},
	{"watch", CMD_GROUP_MEMORY, "RSS and its parts over time, live, with their growth",
	 cmd_watch, NEEDS(RIGHTS_MEMORY | RIGHTS_HAS_NO_SYSTEM, CAP_BIT(CAP_SYS_PTRACE))},
	{"limit", CMD_GROUP_MEMORY, "run a command under a memory limit and show what it costs",
	 cmd_limit, NEEDS(RIGHTS_CGROUP | RIGHTS_IS_ALONE, 0)},
	{"faults", CMD_GROUP_MEMORY, "page faults by file and function, and memory pressure",
	 cmd_faults, NEEDS(RIGHTS_BPF, RIGHTS_STACKS)},

	{"bench", CMD_GROUP_COMPARE, "repeat a command, or compare several: times, memory, faults",
	 cmd_bench, NEEDS_NOTHING},
	{"diff", CMD_GROUP_COMPARE, "compare two profiles: what grew, what shrank", cmd_diff,
	 NEEDS_NOTHING},

	{"diagnose", CMD_GROUP_READ,
	 "what slows the program down: findings with their proof, by rules", cmd_diagnose,
	 NEEDS_NOTHING},
	{"report", CMD_GROUP_READ, "tables and call trees of a recording", cmd_report,
	 NEEDS_NOTHING},
	{"view", CMD_GROUP_READ, "write the HTML page of a recording: time axis and all views",
	 cmd_view, NEEDS_NOTHING},
	{"flame", CMD_GROUP_READ, "draw a flame graph (SVG)", cmd_flame, NEEDS_NOTHING},
	{"script", CMD_GROUP_READ, "print samples one by one, in the format of perf script",
	 cmd_script, NEEDS_NOTHING},
	{"convert", CMD_GROUP_READ, "write perf.data, folded stacks, speedscope and other formats",
	 cmd_convert, NEEDS_NOTHING},
	{"ls", CMD_GROUP_READ, "list recordings", cmd_ls, NEEDS_NOTHING},

	{"doctor", CMD_GROUP_MANAGE, "check what this machine permits, and how to permit more",
	 cmd_doctor, NEEDS_NOTHING},
	{"list", CMD_GROUP_MANAGE, "list the events that can be counted", cmd_list,
	 NEEDS(RIGHTS_TRACEPOINTS | RIGHTS_IS_ALONE, CAP_BIT(CAP_DAC_READ_SEARCH))},
	{"config", CMD_GROUP_MANAGE, "show the settings, and where each value comes from",
	 cmd_config, NEEDS_NOTHING},
	{"mark", CMD_GROUP_MANAGE, "mark the start of a phase in running captures", cmd_mark,
	 NEEDS_NOTHING},
	{"env", CMD_GROUP_MANAGE, "run a command with jemalloc profiling enabled", cmd_env,
	 NEEDS_NOTHING},
	{"clean", CMD_GROUP_MANAGE, "remove old recordings", cmd_clean, NEEDS_NOTHING},
	{"help", CMD_GROUP_MANAGE, "show help for a command", cmd_help, NEEDS_NOTHING},
};
const size_t nr_cmds = ARRAY_LEN(cmd_table);

const char *const cmd_group_titles[] = {
	[CMD_GROUP_ALL] = "Everything at once",
	[CMD_GROUP_CPU] = "Where does CPU time go?",
	[CMD_GROUP_WAIT] = "What does the program wait for?",
	[CMD_GROUP_MEMORY] = "Where is the memory?",
	[CMD_GROUP_COMPARE] = "Compare",
	[CMD_GROUP_READ] = "Look at a recording",
	[CMD_GROUP_MANAGE] = "Manage",
};

struct common_opts {
	bool wants_help;
	const char *help_form; /* NULL: text; "man", "words" */
	bool is_quiet;
	int nr_verbose;
	const char *debug;
	const char *dir;
	int color;
	int progress;
};

/* Set once by cmd_parse, before any thread. */
static enum term_when color_when;
static const char *recordings_dir;
static struct settings settings; /* its texts are used until the end */
static const char *command_name = "";

static const struct opt_choice when_choices[] = {
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

static const struct opt common_opts[] = {
	{.kind = OPT_KIND_CALL,
	 .short_name = 'h',
	 .long_name = "help",
	 .call = want_help,
	 .arg = "FORM",
	 .flags = OPT_ARG_OPTIONAL,
	 .help = "show this help; FORM: man (Markdown), words (shell completion)"},
	OPT_FLAG(
		'q', "quiet", struct common_opts, is_quiet,
		"print only errors and requested results: no messages, no first page of a capture"),
	OPT_COUNT('v', "verbose", struct common_opts, nr_verbose,
		  "print more messages; -vv: debug messages"),
	OPT_STR(0, "debug", struct common_opts, debug, "DOMAIN[:N],...",
		"debug messages of these domains, N from 1 to 3: perf, bpf, unwind, symbol, "
		"ingest, format, session, host, all"),
	OPT_STR(0, "dir", struct common_opts, dir, "DIR",
		"folder of the recordings (default ./" STORE_BASE ")"),
	OPT_ENUM(0, "color", struct common_opts, color, when_choices, "WHEN",
		 "use colours on the terminal (default auto)"),
	OPT_ENUM(0, "progress", struct common_opts, progress, when_choices, "WHEN",
		 "print progress (default auto: on a terminal, after one second)"),
	OPT_END,
};
const struct opt_group common_group = {"General", common_opts};

static void print_help(const struct opt_cmd *cmd, const char *form)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!form)
		opt_help(&b, cmd);
	else if (!strcmp(form, "man"))
		opt_man(&b, cmd);
	else
		opt_words(&b, cmd);
	(void)cmd_print(&b); /* a closed pipe is no failure of --help */
}

/* Returns the usage line with "-- CMD" or "-- AFTER..."; NULL: nothing follows "--". */
static const char *usage_with_dashes(const struct opt_cmd *cmd)
{
	for (size_t i = 0; i < OPT_USAGE_MAX && cmd->usage[i]; i++)
		if (strstr(cmd->usage[i], "-- "))
			return cmd->usage[i];
	return NULL;
}

/* Checks what follows "--". */
static int check_command(const struct opt_cmd *cmd, const struct opt_args *args, struct err *err)
{
	if (!args->command)
		return 0;
	const char *usage = usage_with_dashes(cmd);
	const char *first = args->nr_command ? args->command[0] : "";
	if (!usage)
		return err_set(err, -EINVAL, "unexpected '--%s%s': assay %s runs no command",
			       *first ? " " : "", first, cmd->name);
	if (*first)
		return 0;
	if (args->nr_command)
		return opt_refuse_empty(err, "the word after '--'");
	err_set(err, -EINVAL, "missing %s after '--'",
		strstr(usage, "-- CMD") ? "command" : "operands");
	return err_hint(err, "usage: assay %s %s", cmd->name, usage);
}

static void print_settings_notes(void)
{
	vec_foreach(n, &settings.notes) {
		log_note("%s", n->text);
		if (n->hint)
			log_hint("%s", n->hint);
	}
}

/* Applies the common options. */
static int apply_common(const struct common_opts *o, struct err *err)
{
	if (o->debug)
		TRY(log_set_debug(o->debug, err));
	log_set_level(o->is_quiet         ? LOG_ERROR
		      : o->nr_verbose > 1 ? LOG_DEBUG
		      : o->nr_verbose     ? LOG_INFO
					  : LOG_NOTE);
	color_when = (enum term_when)o->color;
	recordings_dir = o->dir;
	progress_set_when((enum term_when)o->progress);
	return 0;
}

const struct settings *cmd_settings(void)
{
	return &settings;
}

const char *cmd_recordings_dir(void)
{
	return recordings_dir;
}

static struct opt_cmd with_common(const struct opt_cmd *cmd, struct common_opts *common)
{
	struct opt_cmd all = *cmd;
	size_t g = 0;
	while (g < OPT_GROUPS_MAX && all.groups[g].group)
		g++;
	ASSERT(g < OPT_GROUPS_MAX);
	all.groups[g] = (struct opt_bind){&common_group, common};
	return all;
}

int cmd_first_operand(const struct opt_cmd *cmd, int argc, char **argv)
{
	struct common_opts common = {0};
	const struct opt_cmd all = with_common(cmd, &common);
	return opt_first_operand(&all, argc, argv);
}

bool cmd_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	       int *ret_status)
{
	struct common_opts common = {0};
	struct opt_cmd all = with_common(cmd, &common);
	settings_read(&settings);
	all.others = other_options;
	all.presets = settings.presets.p;
	all.nr_presets = settings.presets.n;

	const struct cmd *row = cmd_find(cmd->name);
	if (row)
		all.summary = row->summary;
	log_set_command(cmd->name);
	command_name = cmd->name;
	CLEANUP(err_release) struct err err = {0};
	int rc = opt_parse(ret_args, &all, argc, argv, &err);
	if (common.wants_help) {
		print_help(&all, common.help_form);
		*ret_status = EXIT_OK;
		return false;
	}
	if (rc && !err.hint && usage_with_dashes(cmd)) /* mostly an option of the program */
		(void)hint_launch(&err, cmd->name, argc, argv, opt_first_operand(&all, argc, argv));
	rc = rc ? rc : check_command(cmd, ret_args, &err);
	rc = rc ? rc : apply_common(&common, &err);
	if (rc) {
		*ret_status = cmd_refuse(&err);
		return false;
	}
	print_settings_notes();
	return true;
}

bool cmd_is_quiet(void)
{
	return log_get_level() == LOG_ERROR;
}

enum term_when cmd_color(void)
{
	return color_when;
}

void cmd_hint_launch(struct err *err, const struct opt_args *args)
{
	int first = 1;
	while (first < args->argc &&
	       (!args->operands.n || args->argv[first] != args->operands.p[0]))
		first++;
	(void)hint_launch(err, command_name, args->argc, args->argv, first);
}

int cmd_fail(const struct err *err)
{
	log_err(err);
	return EXIT_FAILED;
}

int cmd_refuse(const struct err *err)
{
	bool is_usage = err->code == -EINVAL;
	log_err(err);
	if (is_usage && !err->hint)
		log_hint("assay %s --help", command_name);
	return is_usage ? EXIT_USAGE : EXIT_FAILED;
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

int cmd_unknown(int argc, char **argv)
{
	CLEANUP(err_release) struct err err = {0};
	struct suggest s = suggest_for(sv_from_str(argv[1]));
	for (size_t i = 0; i < nr_cmds; i++)
		suggest_offer(&s, sv_from_str(cmd_table[i].name));
	other_offer(&s);
	log_set_command(NULL);
	if (!*argv[1])
		(void)opt_refuse_empty(&err, "the command");
	else if (word_is_of_other_tool(argv[1]) || word_is_running(argv[1]))
		err_set(&err, -EINVAL, "unknown command '%s'", argv[1]);
	else
		err_set(&err, -EINVAL,
			"'%s' is no command, and no container or process has this name", argv[1]);
	bool has_hint = err.hint || hint_first_word(&err, argc, argv);
	if (!has_hint && s.best.n && !cmd_find(s.best.p)) /* a misspelt word of another tool */
		(void)hint_first_word(&err, 2, (char *[]){argv[0], (char *)s.best.p, NULL});
	else if (!has_hint && s.best.n)
		err_hint(&err, "did you mean '%.*s'? to list all commands: assay help",
			 SV_ARGS(s.best));
	if (!err.hint)
		err_hint(
			&err,
			"to list the commands: assay help; processes: ps -eo pid,comm; one by a part of "
			"its command line: assay --match REGEX");
	log_err(&err);
	return EXIT_USAGE;
}

/* Whether it is, or resembles, an option of assay itself; all others belong to a command. */
static bool help_takes(const char *option)
{
	static const char *const own[] = {"help", "version", "verbose", "quiet", "debug", "color"};
	if (option[1] != '-')
		return option[1] && strchr("hVqv", option[1]) != NULL;
	struct sv left = sv_from_str(option + 2);
	struct suggest s = suggest_for(sv_split(&left, '='));
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		suggest_offer(&s, sv_from_str(own[i]));
	return s.best.n != 0;
}

/*
 * Whether the line is one of assay all without that word: "assay redis-server 30", "assay -p 42". "--"
 * forces a target that has the name of a command, or of another tool ("perf").
 */
static bool is_of_target(int argc, char **argv)
{
	if (argv[1][0] == '-')
		return !help_takes(argv[1]) || (!strcmp(argv[1], "--") && argc > 2);
	return !word_is_of_other_tool(argv[1]) && word_is_running(argv[1]);
}

/* The command of the line; its arguments, of which the first is a name, begin at *ret_first. */
static const struct cmd *find_command(int argc, char **argv, int *ret_first)
{
	const struct cmd *c = argc < 2 ? NULL : cmd_find(argv[1]);
	*ret_first = 1;
	if (c || argc < 2 || !is_of_target(argc, argv))
		return c;
	*ret_first = !strcmp(argv[1], "--");
	return cmd_find("all");
}

int cmd_main(int argc, char **argv)
{
	int first;
	const struct cmd *c = find_command(argc, argv, &first);
	/* Commands that read profiles start it without rights (inputs_confine). */
	if (c && c->group != CMD_GROUP_READ && c->group != CMD_GROUP_COMPARE)
		hostfile_start(argc, argv);
	if (argc < 2)
		return cmd_start();
	if (!c && argv[1][0] == '-')
		return cmd_help(argc, argv);
	if (!c)
		return cmd_unknown(argc, argv);
	log_set_command(c->name);
	return c->run(argc - first, argv + first);
}
