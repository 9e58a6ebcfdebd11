/*
 * Commands, and the functions that all of them use: parsing, errors, exit codes, output.
 *
 * To add a command: write cmd_<name>.c in src/cmd/capture, read or manage, with its option table
 * and `int cmd_<name>(int argc, char **argv)`; declare it below; add its row to cmd_table in cmd.c,
 * with what it
 * needs of kernel and user; a page in docs/man/ and a golden test of its --help. argv[0] is the name of the command.
 *
 *	int cmd_ls(int argc, char **argv)
 *	{
 *		struct ls_opts o = {0};
 *		const struct opt_cmd cmd = {.name = "ls", ..., .groups = {{&ls_group, &o}}};
 *		CLEANUP(opt_args_release) struct opt_args args = {0};
 *		int status;
 *		if (!cmd_parse(&args, &cmd, argc, argv, &status))
 *			return status;
 *		...
 *	}
 */
#ifndef ASSAY_CMD_CMD_H
#define ASSAY_CMD_CMD_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "base/process/term.h"
#include "model/rights.h"

/* Exit codes, the same for every command (docs/man/assay.1.md). */
enum cmd_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOTHING = 3,        /* nothing was recorded */
	EXIT_THRESHOLD = 4,      /* a limit given by the user was exceeded */
	EXIT_INCONCLUSIVE = 5,   /* the change is within its confidence interval */
	EXIT_INVALID = 6,        /* the measurement says nothing */
	EXIT_ASSAY_FAILED = 125, /* with -- CMD: assay itself failed */
};

/* The question that a command answers; `assay help` lists the commands by it. */
enum cmd_group {
	CMD_GROUP_ALL,
	CMD_GROUP_CPU,
	CMD_GROUP_WAIT,
	CMD_GROUP_MEMORY,
	CMD_GROUP_COMPARE,
	CMD_GROUP_READ,
	CMD_GROUP_MANAGE,
};

#define CMD_USES_MAX 2

struct cmd {
	const char *name;
	enum cmd_group group;
	const char *summary; /* also the first line of its --help */
	int (*run)(int argc, char **argv);
	/* What it needs of kernel and user, for `assay doctor`: by use, where uses differ. */
	struct rights_needs needs[CMD_USES_MAX];
	bool is_live; /* shows a target and records nothing */
};

/* Runs the command that argv[1] names. Returns the exit status of the process. */
int cmd_main(int argc, char **argv);

/*
 * Parses the settings (settings.h), the options of @cmd and the common ones (-h, -q, -v, --dir ...),
 * applies the common ones, and takes the summary from the command table. Returns false when the command is over: help
 * was printed, or a usage error; *ret_status is then the exit status.
 */
bool cmd_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	       int *ret_status);
/*
 * Whether -q was given: errors are printed, and what the command is for (report, ls, a JSON output
 * that was asked for), but not the first page of a capture nor the list of what was done.
 */
bool cmd_is_quiet(void);
/* Returns the folder of the recordings, borrowed; NULL: the default, ./profiling. */
const char *cmd_recordings_dir(void);
/* The settings that cmd_parse read. */
struct settings;
const struct settings *cmd_settings(void);
/* Returns the value of --color, TERM_AUTO without it. */
enum term_when cmd_color(void);

/* opt_first_operand with the options that all commands have. */
int cmd_first_operand(const struct opt_cmd *cmd, int argc, char **argv);
/*
 * Sets the hint with the command line that starts the first operand, if that is a program: "assay
 * cpu ./server" instead of "assay cpu -- ./server".
 */
void cmd_hint_launch(struct err *err, const struct opt_args *args);
/* Prints the error. Returns EXIT_FAILED. */
int cmd_fail(const struct err *err);
/*
 * Prints the error. Returns EXIT_USAGE for -EINVAL, a wrong command line, with the hint "assay NAME
 * --help" if the error has none; else EXIT_FAILED.
 */
int cmd_refuse(const struct err *err);
/* Prints a usage error with the hint "assay NAME --help". Returns EXIT_USAGE. */
int cmd_usage(const char *name, const char *fmt, ...) PRINTF(2, 3);
/*
 * Writes the result to stdout and flushes. Returns EXIT_OK, or EXIT_FAILED after an error message;
 * no message where the reader closed the pipe.
 */
int cmd_print(const struct buf *b);

/* The commands, by name. Each returns the exit status. */
int cmd_all(int argc, char **argv);
/* The same, its page is the diagnosis. @file: also the name of a file, which is noted; or NULL. */
int cmd_all_diagnosed(int argc, char **argv, const char *file);
/* The first operand behind options of that command; NULL: there is none, or "--" comes first. */
const char *cmd_all_operand(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_cpu(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_faults(int argc, char **argv);
int cmd_heap(int argc, char **argv);
int cmd_flame(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_io(int argc, char **argv);
int cmd_latency(int argc, char **argv);
int cmd_limit(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_offcpu(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_watch(int argc, char **argv);

#endif
