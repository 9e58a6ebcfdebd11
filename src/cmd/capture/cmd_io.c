/* assay io: what a program reads, writes and syncs. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "cmd/capture/capture_command.h"

struct io_opts {
	bool has_no_block;
};

static const struct opt io_table[] = {
	OPT_FLAG(0, "no-block", struct io_opts, has_no_block,
		 "leave requests of block devices out; they are of the whole machine"),
	OPT_END,
};
static const struct opt_group io_group = {"Input and output", io_table};

static const char details[] =
	"Counts every call of a program that reads, writes or syncs: bytes that the call returned\n"
	"(not those that it asked for), time from entry to return, by file or peer, by function and\n"
	"by stack, exactly. Files have names although they were open for a moment only. Requests of\n"
	"block devices are counted for the whole machine, with the process that issued each and the\n"
	"file that it was for: writes are issued later, by a worker of the file system.\n"
	"\n"
	"Calls: read, write and their vectors and positions, send and receive, sendfile, splice,\n"
	"copy_file_range, fsync, fdatasync, sync_file_range, msync, sync, syncfs; requests of io_uring.\n"
	"libaio: the calls that hand requests in, not what each moves. Memory that is mapped from a file is\n"
	"read by page faults instead: see assay faults.\n"
	"\n"
	"While it runs, each of these calls costs about half a microsecond more in the target and some\n"
	"150 ns in other processes; every other system call of the machine some 20 ns. Needs root, or\n"
	"CAP_BPF, CAP_PERFMON and the trace file system.";

static const char examples[] = "assay io redis-server 10\tten seconds of a running service\n"
			       "assay io -- ./import data.csv\ta program from start to end\n"
			       "assay io postgres 30 --all-matching --json\tfor a script\n"
			       "assay report --event io --by function\tits recording again\n";

static int prepare(struct capture_job *job, struct err *err)
{
	const struct io_opts *o = job->own;
	(void)err;
	job->options.tables = TABLE_SET(IO) | (o->has_no_block ? 0 : TABLE_SET(BLOCK));
	return 0;
}

static const struct capture_command command = {
	.name = "io",
	.summary = "what a program reads, writes and syncs, by file and function",
	.details = details,
	.examples = examples,
	.groups = {{&io_group, 0}},
	.view = VIEW_IO,
	.nr_rows = 15,
	.nothing = "no reads, writes or syncs in this window",
	.no_freq = "every call is counted, none is sampled",
	.no_bpf = "calls are counted by BPF programs, there is no other way",
	.prepare = prepare,
};

int cmd_io(int argc, char **argv)
{
	struct io_opts o = {0};
	return capture_command(&command, &o, argc, argv);
}
