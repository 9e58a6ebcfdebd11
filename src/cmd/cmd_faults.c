/* assay faults: page faults and memory pressure. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "analyze/faultsum.h"
#include "capture/io.h"
#include "cmd/tally_run.h"

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

static const char *const pictures[] = {"faults", "reclaim", NULL};

static const struct tally_kind kind = {
	.name = "faults",
	.pictures = pictures,
	.nothing = "no page faults in this window",
	.report = faultsum_report,
};

int cmd_faults(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct tally_opts o = {.limit = 15};
	const struct opt_cmd cmd = {
		.name = "faults",
		.usage = {"[options] TARGET [SECONDS]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "page faults by mapped file and function, and memory pressure",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target}, {&tally_group, &o}},
	};
	int status;
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		struct capture_options base = {.programs = ENGINE_IO,
					       .io_parts = IO_PART_FAULTS | IO_PART_RECLAIM};
		status = tally_run(&kind, &o, &base, &args);
	}
	tally_opts_release(&o);
	return status;
}
