/* assay help [COMMAND], assay --help, assay --version: prints help and the version. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <zlib.h>
#include <zstd.h>

#include "cmd/cmd_table.h"

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "0.1.0"
#endif

struct help_opts {
	bool wants_version;
};

static const struct opt help_opts[] = {
	OPT_FLAG('V', "version", struct help_opts, wants_version,
		 "print the version and the built-in features"),
	OPT_END,
};
static const struct opt_group help_group = {"Help", help_opts};

static int print_version(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "assay %s\n", ASSAY_VERSION);
#if defined(__x86_64__)
	buf_add_str(&b, "machine: x86_64\n");
#elif defined(__aarch64__)
	buf_add_str(&b, "machine: arm64\n");
#endif
	buf_addf(
		&b,
		"built in: perf events, DWARF unwinding and names, recordings (zstd %s), zlib %s\n",
		ZSTD_versionString(), zlibVersion());
	return cmd_print(&b);
}

static const char examples[] =
	"assay redis-server 30\teverything about a running service, for 30 seconds\n"
	"assay cpu redis-server 10\tsample its CPU time\n"
	"assay offcpu -p 4242 10\twhat process 4242 waits for\n"
	"assay heap -- ./server\tits allocations, from start to end\n"
	"assay report\tthe newest recording again\n";

static int print_commands(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, "assay: profile CPU time, waiting time and memory of a Linux program\n\n"
			"usage: assay TARGET [SECONDS]\n"
			"       assay COMMAND [OPTION...] [TARGET] [SECONDS]\n"
			"       assay COMMAND [OPTION...] -- CMD [ARG...]\n");
	for (size_t i = 0; i < nr_cmds; i++) {
		const struct cmd *c = &cmd_table[i];
		if (!i || c->group != c[-1].group)
			buf_addf(&b, "\n%s\n", cmd_group_titles[c->group]);
		buf_addf(&b, "  %-10s %s\n", c->name, c->summary);
	}
	opt_add_examples(&b, examples);
	buf_add_str(&b,
		    "\n"
		    "TARGET is a process name, or -p PID. A capture takes SECONDS (60), or until\n"
		    "Ctrl-C; it prints its result and writes a recording below ./profiling, which\n"
		    "report, flame and diff read.\n"
		    "\n"
		    "Options and examples of a command: assay COMMAND --help\n"
		    "What works on this machine:        assay doctor\n"
		    "Version and built-in features:     assay --version\n");
	return cmd_print(&b);
}

int cmd_start(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b,
		    "assay: profile CPU time, waiting time and memory of a Linux program\n\n"
		    "  assay redis-server 30       CPU, waiting, memory and I/O of a process\n"
		    "  assay cpu redis-server 10   where it spends its CPU time\n"
		    "  assay offcpu -p 4242 10     what process 4242 waits for\n"
		    "  assay heap -- ./server      allocations of a program, from start to end\n"
		    "  assay report                the newest recording again\n"
		    "  assay doctor                what works on this machine, and what to do\n"
		    "\nall commands: assay help; options of one: assay cpu --help\n");
	int status = cmd_print(&b);
	return status == EXIT_OK ? EXIT_USAGE : status;
}

int cmd_help(int argc, char **argv)
{
	struct help_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "help",
		.usage = {"[COMMAND]"},
		.details = "Without COMMAND, lists the commands by the question that they answer.",
		.examples = "assay help\tlist the commands\n"
			    "assay help cpu\tthe same as assay cpu --help\n",
		.groups = {{&help_group, &o}},
	};
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return print_commands();
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (o.wants_version)
		return print_version();
	if (!args.operands.n)
		return print_commands();
	const struct cmd *c = cmd_find(args.operands.p[0]);
	if (!c)
		return cmd_unknown(2, (char *[]){argv[0], args.operands.p[0], NULL});
	char help[] = "--help";
	char *help_argv[] = {args.operands.p[0], help, NULL};
	return c->run(2, help_argv);
}
