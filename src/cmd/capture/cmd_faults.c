/* assay faults: counts page faults and direct reclaim. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "cmd/capture/capture_command.h"

static const char details[] =
	"Counts every page fault of a program: major faults, for which a page had to be read, "
	"and minor ones, with the file or kind of memory that is mapped there, by function and "
	"by call stack, with the time they took. Numbers are exact. Reads of memory mapped from "
	"files appear here; assay io does not see them.\n"
	"\n"
	"Also counts direct reclaim: the program's own threads had to free memory because the "
	"machine (direct), its memory cgroup (memcg) or one NUMA node (node) had too little, "
	"with time and pages. Wake-ups of kswapd are printed for the whole machine; they say "
	"nothing about this program.\n"
	"\n"
	"Needs root, or CAP_BPF and CAP_PERFMON.";

static const char examples[] = "assay faults lmdb-server 10\ta running service, for 10 seconds\n"
			       "assay faults -- ./load\ta program, from start to end\n"
			       "assay faults -p 4242 30 --json\tthe result as JSON\n";

static int prepare(struct capture_job *job, struct err *err)
{
	(void)err;
	job->options.tables = TABLE_SET(FAULTS) | TABLE_SET(RECLAIM);
	return 0;
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "every page fault is counted, none is sampled"},
	{"no-bpf", NULL, "page faults are counted by BPF programs, there is no other way"},
	{0},
};

static const struct capture_command command = {
	.name = "faults",
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.view = VIEW_FAULTS,
	.nr_rows = 15,
	.nothing = "no page faults during the capture",
	.prepare = prepare,
};

int cmd_faults(int argc, char **argv)
{
	return capture_command(&command, NULL, argc, argv);
}
