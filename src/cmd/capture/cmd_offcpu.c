/* assay offcpu: where the time of threads goes that do not run, and why. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "base/opt/opt.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"

struct offcpu_opts {
	bool has_no_wakers;
	unsigned capture_flags; /* enum capture_flags */
	unsigned picture_flags; /* enum view_pictures_flags */
	bool has_idle;
};

static const struct opt offcpu_table[] = {
	OPT_FLAG(0, "no-wakers", struct offcpu_opts, has_no_wakers,
		 "do not ask who ended a wait: costs less, no owners of locks"),
	OPT_BITS(0, "no-stacks", struct offcpu_opts, capture_flags, CAPTURE_NO_WAIT_STACKS,
		 "durations and reasons only: costs least"),
	OPT_BITS(0, "by-reason", struct offcpu_opts, picture_flags, VIEW_PICTURES_BY_REASON,
		 "besides the flame graph of all, one a reason: STEM-lock.svg, STEM-fsync.svg ..."),
	OPT_FLAG(0, "idle", struct offcpu_opts, has_idle,
		 "keep waits for something to do in the pictures"),
	OPT_END,
};
static const struct opt_group offcpu_group = {"Waiting", offcpu_table};

static const char details[] =
	"Follows every switch of a program's threads: how long each ran, waited for a CPU, waited\n"
	"for what and in which function, and who ended the wait. Prints the ledger of the threads'\n"
	"time, which adds up, and writes a recording, a flame graph of the waiting time (SVG) with\n"
	"the reason on top of each stack, and folded stacks. Waiting for something to do (idle\n"
	"workers, timers) is told apart and left out of the pictures. TARGET is a process name (see\n"
	"also -p, -t, --match, -a). SECONDS is 60 for a running target; a launched CMD is followed\n"
	"to its end. Ctrl-C stops early and still writes everything.";

static const char examples[] =
	"assay offcpu redis-server 10\tten seconds of a running service\n"
	"assay offcpu -- ./server --port 80\ta program from start to end\n"
	"assay offcpu postgres --all-matching -- pgbench -T 20\tall its processes while a load runs\n"
	"assay offcpu -p 4242 --by-reason\tone flame graph a reason\n"
	"assay offcpu -p 4242 --no-stacks 5\tthe ledger alone, at the least cost\n";

static int prepare(struct capture_job *job, struct err *err)
{
	const struct offcpu_opts *o = job->own;
	(void)err;
	job->options.tables = o->has_no_wakers ? WAIT_TABLES & ~TABLE_SET(BLAME) : WAIT_TABLES;
	job->options.flags |= o->capture_flags;
	job->picture_flags = o->picture_flags;
	job->draws_idle = o->has_idle;
	return 0;
}

static const struct capture_command command = {
	.name = "offcpu",
	.summary = "what the threads of a program wait for",
	.details = details,
	.examples = examples,
	.groups = {{&offcpu_group, 0}},
	.view = VIEW_WAITS,
	.nr_rows = 12,
	.noun = "waits",
	.nothing = "nothing was recorded: the target has ended, or ended at once",
	.folded = CAPTURE_FOLDED_WEIGHTS,
	.no_freq = "every switch is followed, none is sampled; assay cpu --offcpu samples as well",
	.prepare = prepare,
	.say = capture_job_say_accuracy,
};

int cmd_offcpu(int argc, char **argv)
{
	struct offcpu_opts o = {0};
	return capture_command(&command, &o, argc, argv);
}
