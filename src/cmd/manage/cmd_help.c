/* assay help [COMMAND], assay --help, assay --version: prints help and the version. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <zlib.h>
#include <zstd.h>
#ifndef ASSAY_NO_BPF
#include <bpf/libbpf.h>
#endif
#ifndef ASSAY_NO_CAPSTONE
#include <capstone/capstone.h>
#endif
#ifndef ASSAY_NO_ISAL
#include <isa-l.h>
#endif

#include "cmd/cmd_table.h"
#include "version.h" /* written by the build */

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

struct help_opts {
	bool wants_version;
};

static const struct opt help_opts[] = {
	OPT_FLAG('V', "version", struct help_opts, wants_version,
		 "print the version and the built-in features"),
	OPT_END,
};
static const struct opt_group help_group = {"Help", help_opts};

#ifdef ASSAY_NO_BPF
#define BPF_HAS ""
#define BPF_NOT ", BPF programs"
#else
#define BPF_HAS                                                              \
	", BPF programs (libbpf " TEXT_OF(LIBBPF_MAJOR_VERSION) "." TEXT_OF( \
		LIBBPF_MINOR_VERSION) ")"
#define BPF_NOT ""
#endif
#ifdef ASSAY_NO_ISAL
#define ISAL_HAS ""
#define ISAL_NOT ", ISA-L (zlib inflates)"
#else
#define ISAL_HAS ", ISA-L " TEXT_OF(ISAL_MAJOR_VERSION) "." TEXT_OF(ISAL_MINOR_VERSION)
#define ISAL_NOT ""
#endif
#ifdef ASSAY_NO_CAPSTONE
#define CAPSTONE_HAS ""
#define CAPSTONE_NOT ", disassembler"
#else
#define CAPSTONE_HAS \
	", disassembler (capstone " TEXT_OF(CS_VERSION_MAJOR) "." TEXT_OF(CS_VERSION_MINOR) ")"
#define CAPSTONE_NOT ""
#endif

static int print_version(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "assay %s (commit %s, %s)\n", ASSAY_VERSION, ASSAY_COMMIT, ASSAY_DATE);
#if defined(__x86_64__)
	buf_add_str(&b, "machine: x86_64\n");
#elif defined(__aarch64__)
	buf_add_str(&b, "machine: arm64\n");
#endif
	buf_addf(&b, "built in: zstd %s, zlib %s%s\n", ZSTD_versionString(), zlibVersion(),
		 BPF_HAS ISAL_HAS CAPSTONE_HAS);
	static const char missing[] = BPF_NOT ISAL_NOT CAPSTONE_NOT;
	if (*missing)
		buf_addf(&b, "not built in: %s\n", missing + 2);
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

/* The commands, as opt_words has the options. */
static int print_command_words(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < nr_cmds; i++)
		buf_addf(&b, "%s\t%s\n", cmd_table[i].name, cmd_table[i].summary);
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
	if (argc == 2 && !strcmp(argv[1], "--help=words") && print_command_words() != EXIT_OK)
		return EXIT_FAILED;
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
