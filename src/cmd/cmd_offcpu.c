/* assay offcpu: where the time of threads goes that do not run, and why. */
#include "base/base.h"

#include <errno.h>

#include "analyze/waittables.h"
#include "base/log.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/recording.h"
#include "cmd/targetopts.h"
#include "cmd/wait_outputs.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

struct offcpu_opts {
	struct target_opts target;
	uint64_t delay_ns;
	bool has_no_wakers;
	bool has_no_stacks;
	bool has_no_bpf;
	bool has_no_inlines;
	bool has_hashes;
	bool has_no_pictures;
	bool is_by_reason;
	bool has_idle;
	const char *output;
	struct opt_list debug_dirs;
};

static const struct opt offcpu_table[] = {
	OPT_DURATION('D', "delay", struct offcpu_opts, delay_ns, "TIME",
		     "a running target: wait this long before it starts"),
	OPT_FLAG(0, "no-wakers", struct offcpu_opts, has_no_wakers,
		 "do not ask who ended a wait: costs less, no owners of locks"),
	OPT_FLAG(0, "no-stacks", struct offcpu_opts, has_no_stacks,
		 "durations and reasons only: costs least"),
	OPT_FLAG(0, "no-bpf", struct offcpu_opts, has_no_bpf,
		 "load no programs into the kernel: perf's switch records, or /proc"),
	OPT_FLAG(0, "no-inlines", struct offcpu_opts, has_no_inlines, "physical functions only"),
	OPT_FLAG(0, "hashes", struct offcpu_opts, has_hashes,
		 "keep hashes and disambiguators in Rust names"),
	OPT_LIST(0, "debug-dir", struct offcpu_opts, debug_dirs, "DIR",
		 "look for debug files here, too"),
	OPT_END,
};
static const struct opt_group offcpu_group = {"Waiting", offcpu_table};

static const struct opt output_table[] = {
	OPT_STR('o', "output", struct offcpu_opts, output, "FILE",
		"name of the recording; pictures share its stem (default "
		"profiling/TARGET/offcpu-TIME.assay)"),
	OPT_FLAG(0, "by-reason", struct offcpu_opts, is_by_reason,
		 "besides the flame graph of all, one a reason: STEM-lock.svg, STEM-fsync.svg ..."),
	OPT_FLAG(0, "idle", struct offcpu_opts, has_idle,
		 "keep waits for something to do in the pictures"),
	OPT_FLAG(0, "no-pictures", struct offcpu_opts, has_no_pictures,
		 "write the recording only, no flame graph and no folded stacks"),
	OPT_END,
};
static const struct opt_group output_group_offcpu = {"Output", output_table};

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

static int finish(void *ctx, struct outputs *out, const struct capture_result *r)
{
	const struct offcpu_opts *o = ctx;
	return wait_outputs_finish(out, r,
				   (o->is_by_reason ? WAIT_OUTPUTS_BY_REASON : 0) |
					   (o->has_idle ? WAIT_OUTPUTS_IDLE : 0) |
					   (o->has_no_bpf ? WAIT_OUTPUTS_NO_BPF : 0));
}

static int run(struct offcpu_opts *o, const struct chosen_target *t, const struct opt_args *args)
{
	if (o->delay_ns && !t->has_target)
		return cmd_usage("offcpu",
				 "--delay needs a running target: start the command, then profile "
				 "it by name");
	struct recording rec = {
		.options = {.kind = "offcpu",
			    .programs = ENGINE_WAITS | (o->has_no_wakers ? ENGINE_NO_WAKERS : 0) |
					(o->has_no_stacks ? ENGINE_NO_STACKS : 0),
			    .flags = o->has_no_bpf ? CAPTURE_NO_BPF : 0,
			    .delay_ns = o->delay_ns,
			    .debug_dirs = o->debug_dirs.p,
			    .nr_debug_dirs = o->debug_dirs.n,
			    .recording_fd = -1,
			    .symbolizer_flags = o->has_no_inlines ? SYMBOLIZER_NO_INLINES : 0,
			    .demangle_flags = o->has_hashes ? DEMANGLE_HASHES : 0},
		.count_name = "waits",
		.skips_pictures = o->has_no_pictures,
		.finish = finish,
		.ctx = o,
	};
	recording_target(&rec, t, args);
	return recording_run(&rec, o->output, recording_target_name(t, args));
}

int cmd_offcpu(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct offcpu_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "offcpu",
		.usage = {"[options] TARGET [SECONDS]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "what the threads of a program wait for",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target},
			   {&offcpu_group, &o},
			   {&output_group_offcpu, &o}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status) &&
	    target_opts_choose(&target, &o.target, &args, &status))
		status = run(&o, &target, &args);
	target_opts_release(&o.target);
	opt_list_release(&o.debug_dirs);
	return status;
}
