/* assay help [CMD], assay --help, assay --version. */
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
		 "show the version and what is built in"),
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

static int print_commands(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(
		&b,
		"usage: assay COMMAND [OPTION...] [ARGUMENT...]\n\n"
		"A profiler: CPU time, waiting and memory of a running program.\n\nCommands:\n");
	for (size_t i = 0; i < nr_cmds; i++)
		buf_addf(&b, "  %-10s %s\n", cmd_table[i].name, cmd_table[i].summary);
	buf_add_str(
		&b,
		"\n`assay help COMMAND` explains one; `assay --version` lists what is built in.\n");
	return cmd_print(&b);
}

int cmd_help(int argc, char **argv)
{
	struct help_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "help",
		.usage = {"[COMMAND]"},
		.summary = "show help for a command, or list the commands",
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
		return cmd_unknown(args.operands.p[0]);
	char help[] = "--help";
	char *help_argv[] = {args.operands.p[0], help, NULL};
	return c->run(2, help_argv);
}
