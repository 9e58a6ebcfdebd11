/* assay faults: page faults and memory pressure. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "cmd/capture/capture_command.h"

static const char details[] =
	"Counts every page fault of a program, exactly: major ones, for which a page had to be read,\n"
	"and minor ones, with the file or the kind of memory that is mapped there, by function and by\n"
	"stack, with the time they took. This is where reads of memory mapped from files show, which\n"
	"assay io does not see.\n"
	"\n"
	"Beside it, what memory pressure cost: reclaim that the program's own threads had to do, for\n"
	"want of memory in the machine (direct), at the limit of its memory cgroup (memcg), or of one\n"
	"NUMA node (node), with time and pages. Wake-ups of kswapd are the machine's and say nothing\n"
	"about this program.\n"
	"\n"
	"Needs root, or CAP_BPF and CAP_PERFMON.";

static const char examples[] = "assay faults lmdb-server 10\tten seconds of a running service\n"
			       "assay faults -- ./load\ta program from start to end\n"
			       "assay faults -p 4242 30 --json\tfor a script\n";

static int prepare(struct capture_job *job, struct err *err)
{
	(void)err;
	job->options.tables = TABLE_SET(FAULTS) | TABLE_SET(RECLAIM);
	return 0;
}

static const struct capture_command command = {
	.name = "faults",
	.summary = "page faults by mapped file and function, and memory pressure",
	.details = details,
	.examples = examples,
	.view = VIEW_FAULTS,
	.nr_rows = 15,
	.nothing = "no page faults in this window",
	.no_freq = "every page fault is counted, none is sampled",
	.no_bpf = "page faults are counted by BPF programs, there is no other way",
	.prepare = prepare,
};

int cmd_faults(int argc, char **argv)
{
	return capture_command(&command, NULL, argc, argv);
}
