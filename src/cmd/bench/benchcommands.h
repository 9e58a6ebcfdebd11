/*
 * The commands of a benchmark, from the command line: quoted ones, the words after "--", and one for
 * each combination of parameters ({VAR} in a command, as in hyperfine).
 */
#ifndef ASSAY_CMD_BENCH_BENCHCOMMANDS_H
#define ASSAY_CMD_BENCH_BENCHCOMMANDS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "base/vec.h"
#include "render/benchexport.h"
#include "session/bench/benchloop.h"

#define BENCH_COMMANDS_MAX 64

struct bench_words {
	struct opt_list prepare; /* one for all commands, or one for each */
	struct opt_list names;
	const char *setup;
	const char *cleanup;
	const char *versus;
	const char *shell; /* "sh" by default; "none" */
	bool has_no_shell;
	struct opt_list lists; /* "VAR VALUES" */
	struct opt_list scans; /* "VAR MIN MAX" */
	double step;           /* of scans; 0: 1 */
};

struct bench_commands {
	struct arena arena;
	VEC(struct bench_subject) subjects;
	VEC(const struct bench_export_parameter *) parameters; /* of each subject */
	size_t nr_parameters;
	bool has_shell;          /* the commands are run by it */
	char *const *shell_argv; /* with an empty command, to be calibrated */
};
void bench_commands_release(struct bench_commands *c);

/* -EINVAL: a wrong command line. */
int bench_commands_init(struct bench_commands *ret, const struct bench_words *w,
			const struct opt_args *args, struct err *err);
/* The words of a command, of one that a shell runs those of its text. In @a. */
int bench_command_words(char *const **ret, struct arena *a, char *const *argv, struct err *err);
/*
 * Joins the two words of -L and the three of -P to one, for opt_parse, which knows options with one
 * argument only. Returns the new number of arguments; @out has room for @argc + 1. In @a.
 */
int bench_join_words(struct arena *a, char **out, int argc, char **argv);

#endif
