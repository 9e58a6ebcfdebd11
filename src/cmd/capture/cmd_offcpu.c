/* assay offcpu: records what threads wait for. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "base/opt/opt.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"

struct offcpu_opts {
	bool has_no_wakers;
	unsigned capture_flags; /* enum capture_flags */
	unsigned flame_flags;   /* enum view_pictures_flags */
	bool has_idle;
};

static const struct opt offcpu_table[] = {
	OPT_FLAG(0, "idle", struct offcpu_opts, has_idle,
		 "include idle waits (for work or for a timer) in the flame graphs"),
	OPT_BITS(
		0, "by-reason", struct offcpu_opts, flame_flags, VIEW_PICTURES_BY_REASON,
		"also write flame graphs (SVG), of all waits and of each reason: STEM.svg, STEM-lock.svg "
		"..."),
	OPT_FLAG(0, "no-wakers", struct offcpu_opts, has_no_wakers,
		 "do not record which thread ended each wait: costs less, no lock holders"),
	OPT_BITS(0, "no-stacks", struct offcpu_opts, capture_flags, CAPTURE_NO_WAIT_STACKS,
		 "record durations and reasons, no call stacks: costs least"),
	OPT_END,
};
static const struct opt_group offcpu_group = {"Waiting", offcpu_table};

static const char details[] =
	"Records every context switch of a program's threads: how long each thread ran, waited "
	"in the run queue and was blocked, on what, in which function, and which thread ended "
	"the wait.\n"
	"\n"
	"Prints the thread time breakdown, whose parts add up to the total thread time, and the "
	"longest waits by reason and function. Writes a recording, an HTML page (assay view) and "
	"folded stacks, with the wait reason as the leaf of each stack. Idle waits (for work or for "
	"a timer) are counted separately and left out of flame graphs. The "
	"reason park is a wait on a condition variable, a semaphore or a channel, or in "
	"thread::park.\n"
	"\n"
	"TARGET is a process name, or one of the target options below. SECONDS is 60 by default; a "
	"launched CMD is recorded until it ends. Ctrl-C stops early and still writes "
	"everything. With CMD, the page is printed to stderr, and a second Ctrl-C ends the wait for "
	"a CMD that goes on: it is left running.";

static const char examples[] =
	"assay offcpu redis-server 10\ta running service, for 10 seconds\n"
	"assay offcpu -- ./server --port 80\ta program, from start to end\n"
	"assay offcpu postgres --all-matching -- pgbench -T 20\tall postgres processes, while a load runs\n"
	"assay offcpu -p 4242 --by-reason\talso a flame graph per reason\n"
	"assay offcpu -p 4242 --no-stacks 5\tbreakdown only, lowest overhead\n";

static int prepare(struct capture_job *job, struct err *err)
{
	const struct offcpu_opts *o = job->own;
	(void)err;
	job->options.tables = o->has_no_wakers ? WAIT_TABLES & ~TABLE_SET(BLAME) : WAIT_TABLES;
	job->options.flags |= o->capture_flags;
	job->flame_flags = o->flame_flags;
	job->draws_idle = o->has_idle;
	return 0;
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL,
	 "every context switch is recorded, none is sampled; assay cpu --offcpu does both"},
	{0},
};

static const struct capture_command command = {
	.name = "offcpu",
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&offcpu_group, 0}},
	.view = VIEW_WAITS,
	.nr_rows = 12,
	.noun = "waits",
	.nothing = "nothing was recorded",
	.folded = CAPTURE_FOLDED_WEIGHTS,
	.prepare = prepare,
	.print_notes = capture_job_print_no_bpf,
};

int cmd_offcpu(int argc, char **argv)
{
	struct offcpu_opts o = {0};
	return capture_command(&command, &o, argc, argv);
}
