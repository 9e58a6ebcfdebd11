/*
 * The table of commands. To add one: write src/cmd/cmd_<name>.c with an option table and
 * `int cmd_<name>(int argc, char **argv)`, declare it here, add its row in cmd.c, its page in
 * docs/man/, a golden test of its --help. argv[0] is the command's name.
 */
#ifndef ASSAY_CMD_CMD_H
#define ASSAY_CMD_CMD_H

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

int cmd_help(int argc, char **argv);

#endif
