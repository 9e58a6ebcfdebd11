/*
 * The table of commands. To add one: write src/cmd/cmd_<name>.c with its option table and
 * `int cmd_<name>(int argc, char **argv)`, declare it below, add its row in cmd.c, its page in
 * docs/man/, a golden test of its --help. argv[0] is the command's name.
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

/* Exit codes, the same for every command (docs/man/assay.1.md). */
enum cmd_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOTHING = 3,   /* nothing recorded */
	EXIT_THRESHOLD = 4, /* slower, over a limit */
	EXIT_INCONCLUSIVE = 5,
	EXIT_INVALID = 6,
	EXIT_ASSAY_FAILED = 125, /* with -- CMD: assay itself failed */
};

struct cmd {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
};

int cmd_main(int argc, char **argv);

/*
 * Parses with the common options (-h, -q, -v, --debug, --color) added, and acts on those. False:
 * the command ends with *ret_status (help was printed, or a usage error was told).
 */
bool cmd_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	       int *ret_status);
/* --color, by default TERM_AUTO. */
enum term_when cmd_color(void);
/* Tells the error; EXIT_FAILED, or EXIT_USAGE for cmd_usage, which adds "see assay X --help". */
int cmd_fail(const struct err *err);
/* The same, where -EINVAL says that the command line is wrong: EXIT_USAGE. */
int cmd_refuse(const struct err *err);
int cmd_usage(const char *name, const char *fmt, ...) PRINTF(2, 3);
/* Writes the result to stdout and flushes; EXIT_OK, quiet EXIT_FAILED when the reader left. */
int cmd_print(const struct buf *b);

/* One line a command, by name. */
int cmd_clean(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_cpu(int argc, char **argv);
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
int cmd_watch(int argc, char **argv);

#endif
