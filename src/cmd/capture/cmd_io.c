/* assay io: counts read, write and sync calls. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "cmd/capture/capture_command.h"

struct io_opts {
	bool has_no_block;
};

static const struct opt io_table[] = {
	OPT_FLAG(0, "no-block", struct io_opts, has_no_block,
		 "leave out block device requests, which are those of the whole machine"),
	OPT_END,
};
static const struct opt_group io_group = {"Input and output", io_table};

static const char details[] =
	"Counts every call of a program that reads, writes or syncs: the bytes that the call "
	"returned (not the bytes requested), and its duration from entry to return, by file "
	"or socket, by function and by call stack. Numbers are exact. Files that were open only "
	"for a moment have names, too.\n"
	"\n"
	"Block device requests are counted for the whole machine, with the process that issued "
	"each request and the file. Buffered writes are issued later, by a kernel worker.\n"
	"\n"
	"Calls: read, write and their vectored and positioned forms, send and receive, "
	"sendfile, splice, copy_file_range, fsync, fdatasync, sync_file_range, msync, sync, "
	"syncfs; requests of io_uring. For libaio, the calls that submit requests are "
	"counted, not the bytes of each request. Files mapped into memory are read by page "
	"faults: see assay faults.\n"
	"\n"
	"While the capture runs, each of these calls costs about a microsecond more in the "
	"target and about 150 ns in other processes; every other system call of the machine "
	"about 20 ns.\n"
	"\n"
	"Needs root, or CAP_BPF, CAP_PERFMON and access to tracefs.";

static const char examples[] =
	"assay io redis-server 10\ta running service, for 10 seconds\n"
	"assay io -- ./import data.csv\ta program, from start to end\n"
	"assay io postgres 30 --all-matching --json\tall postgres processes, as JSON\n"
	"assay report --event io --by function\tits recording again, by function\n";

static int prepare(struct capture_job *job, struct err *err)
{
	const struct io_opts *o = job->own;
	(void)err;
	job->options.tables = TABLE_SET(IO) | (o->has_no_block ? 0 : TABLE_SET(BLOCK));
	return 0;
}

static void add_reason(struct buf *to, const struct capture_job *job,
		       const struct capture_result *r)
{
	const char *why = profile_get_fact(r->profile, FACT_IO_NOTHING);
	(void)job;
	buf_add_str(to, why ? why : "");
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "every call is counted, none is sampled"},
	{"no-bpf", NULL, "calls are counted by BPF programs, there is no other way"},
	{0},
};

static const struct capture_command command = {
	.name = "io",
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&io_group, 0}},
	.view = VIEW_IO,
	.nr_rows = 15,
	.nothing = "no reads, writes or syncs during the capture",
	.add_reason = add_reason,
	.prepare = prepare,
};

int cmd_io(int argc, char **argv)
{
	struct io_opts o = {0};
	return capture_command(&command, &o, argc, argv);
}
