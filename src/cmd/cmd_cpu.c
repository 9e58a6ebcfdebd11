/* assay cpu: where the CPU time of a program goes. */
#include "base/base.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/cpu_outputs.h"
#include "cmd/cpu_runs.h"
#include "cmd/recording.h"
#include "cmd/targetopts.h"
#include "cmd/wait_outputs.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#define FREQ_DEFAULT 999 /* not a round number: programs have round periods */
#define FREQ_MAX     100000
#define RUNS_MAX     1000

struct cpu_opts {
	struct target_opts target;
	uint64_t freq_hz;
	const char *event;
	uint64_t delay_ns;
	uint64_t nr_runs; /* 0 = one, without more words */
	int call_graph;
	bool is_user_only;
	bool wants_graph; /* -g, as perf has it: it is always on */
	bool has_no_inlines;
	bool has_no_pictures;
	bool has_hashes;
	bool has_no_bpf;
	bool has_waits;
	bool has_no_wakers;
	const char *output;
	struct opt_list debug_dirs;
};

enum { CALL_GRAPH_AUTO, CALL_GRAPH_FP, CALL_GRAPH_NONE };

static const struct opt_choice call_graphs[] = {
	{"auto", CALL_GRAPH_AUTO, "unwind tables, frame pointers where there are none"},
	{"fp", CALL_GRAPH_FP, "frame pointers, in the kernel"},
	{"none", CALL_GRAPH_NONE, "only where it hit"},
	{0},
};

static const struct opt cpu_table[] = {
	OPT_U64_IN('F', "freq", struct cpu_opts, freq_hz, 1, FREQ_MAX, "HZ",
		   "samples a second of CPU time (default 999)"),
	OPT_STR('e', "event", struct cpu_opts, event, "EVENT",
		"what to count: cycles, cpu-clock, task-clock, instructions (default: the best)"),
	OPT_DURATION('D', "delay", struct cpu_opts, delay_ns, "TIME",
		     "a running target: wait this long before sampling starts"),
	OPT_U64_IN(0, "runs", struct cpu_opts, nr_runs, 2, RUNS_MAX, "N",
		   "capture N times, a recording each, and show each function's spread"),
	OPT_FLAG('u', "user", struct cpu_opts, is_user_only, "leave the kernel out"),
	OPT_ENUM(0, "call-graph", struct cpu_opts, call_graph, call_graphs, "HOW",
		 "how stacks are taken"),
	OPT_FLAG(0, "no-bpf", struct cpu_opts, has_no_bpf,
		 "load no programs into the kernel: copy stacks and unwind them outside"),
	OPT_FLAG('g', NULL, struct cpu_opts, wants_graph, "call stacks; always on"),
	OPT_FLAG(0, "no-inlines", struct cpu_opts, has_no_inlines, "physical functions only"),
	OPT_FLAG(0, "hashes", struct cpu_opts, has_hashes,
		 "keep hashes and disambiguators in Rust names"),
	OPT_FLAG(0, "offcpu", struct cpu_opts, has_waits,
		 "record what threads wait for as well: one graph of all their time"),
	OPT_FLAG(0, "no-wakers", struct cpu_opts, has_no_wakers,
		 "with --offcpu: do not ask who ended a wait, costs less"),
	OPT_LIST(0, "debug-dir", struct cpu_opts, debug_dirs, "DIR",
		 "look for debug files here, too"),
	OPT_END,
};
static const struct opt_group cpu_group = {"Sampling", cpu_table};

static const struct opt output_table[] = {
	OPT_STR('o', "output", struct cpu_opts, output, "FILE",
		"name of the recording; pictures share its stem (default "
		"profiling/TARGET/cpu-TIME.assay)"),
	OPT_FLAG(0, "no-pictures", struct cpu_opts, has_no_pictures,
		 "write the recording only, no flame graph and no folded stacks"),
	OPT_END,
};
static const struct opt_group output_group_cpu = {"Output", output_table};

static const char details[] =
	"Samples where a program spends its CPU time, with whole stacks, and writes a recording, a\n"
	"flame graph (SVG) and folded stacks. TARGET is a process name (see also -p, -t, --match,\n"
	"-a). SECONDS is 60 for a running target; a launched CMD is profiled to its end. With both\n"
	"a target and CMD, the target is profiled exactly while CMD runs. Ctrl-C stops early and\n"
	"still writes everything.";

static const char examples[] =
	"assay cpu redis-server 10\tten seconds of a running service\n"
	"assay cpu -- ./server --port 80\ta program from start to end\n"
	"assay cpu -p 4242 -F 4999 5\tmore samples\n"
	"assay cpu redis-server -- redis-benchmark -q\twhile a load runs\n"
	"sudo assay cpu -a 10\tthe whole machine\n"
	"assay cpu --offcpu redis-server 10\trunning and waiting in one graph\n"
	"assay cpu --runs 5 -- ./bench\thow much the shares vary\n";

static void say_what_was_chosen(const struct cpu_opts *o, const struct capture_result *r)
{
	const struct sampler_info *i = &r->info;
	if (r->no_engine.code)
		log_note("stacks are copied and unwound outside the kernel: %s",
			 err_msg(&r->no_engine));
	if (i->is_software && !o->event)
		log_note("no hardware counters on this machine: sampling by %s", i->event);
	if (i->is_refused_kernel)
		log_note("kernel frames are not permitted here (kernel.perf_event_paranoid): user "
			 "code only");
	if (i->is_filtering)
		log_note("too many threads for one event each: sampling all CPUs, keeping the "
			 "target's");
}

struct cpu_run {
	const struct cpu_opts *o;
	const struct chosen_target *t;
	const struct opt_args *args;
};

static int finish(void *ctx, struct outputs *out, const struct capture_result *r)
{
	const struct cpu_opts *o = ctx;
	say_what_was_chosen(o, r);
	return o->has_waits ? wait_outputs_finish(out, r, o->has_no_bpf ? WAIT_OUTPUTS_NO_BPF : 0)
			    : cpu_outputs_finish(out, r);
}

/* One capture into a place that is open; an exit status. */
static int capture_into(void *ctx, struct outputs *out)
{
	struct cpu_run *run = ctx;
	const struct cpu_opts *o = run->o;
	struct cpu_opts own = *o;
	struct recording rec = {
		.options = {.kind = "cpu",
			    .programs = ENGINE_CPU | (o->has_waits ? ENGINE_WAITS : 0) |
					(o->has_no_wakers ? ENGINE_NO_WAKERS : 0),
			    .flags = o->has_no_bpf ? CAPTURE_NO_BPF : 0,
			    .delay_ns = o->delay_ns,
			    .event = o->event,
			    .freq_hz = (uint32_t)o->freq_hz,
			    .debug_dirs = o->debug_dirs.p,
			    .nr_debug_dirs = o->debug_dirs.n,
			    .recording_fd = -1,
			    .symbolizer_flags = o->has_no_inlines ? SYMBOLIZER_NO_INLINES : 0,
			    .demangle_flags = o->has_hashes ? DEMANGLE_HASHES : 0,
			    .sampler_flags =
				    (o->is_user_only ? PERFOPEN_USER_ONLY : 0) |
				    (o->call_graph == CALL_GRAPH_FP     ? PERFOPEN_FP
				     : o->call_graph == CALL_GRAPH_NONE ? PERFOPEN_NO_STACKS
									: 0)},
		.count_name = o->has_waits ? "samples and waits" : "samples",
		.skips_pictures = o->has_no_pictures,
		.finish = finish,
		.ctx = &own,
	};
	recording_target(&rec, run->t, run->args);
	return recording_into(&rec, out);
}

static int run(const struct cpu_opts *o, const struct chosen_target *t, const struct opt_args *args)
{
	if (o->delay_ns && !t->has_target)
		return cmd_usage("cpu", "--delay needs a running target: start the command, then "
					"profile it by name");
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(outputs_release) struct outputs out = {0};
	struct cpu_run one = {o, t, args};
	const char *name = recording_target_name(t, args);
	if (o->nr_runs)
		return cpu_runs(&(struct cpu_runs){.nr_runs = o->nr_runs,
						   .output = o->output,
						   .target_name = name,
						   .has_command = args->command != NULL,
						   .capture = capture_into,
						   .ctx = &one});
	if (!outputs_open(&out, o->output, name, "cpu", &err))
		return capture_into(&one, &out);
	log_err(&err);
	return args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

static bool is_event_known(const char *event)
{
	if (!event)
		return true;
	struct suggest near = suggest_for(sv_from_str(event));
	CLEANUP(buf_release) struct buf all = {0};
	const char *name;
	for (size_t i = 0; (name = perfopen_event_name(i)); i++) {
		if (!strcmp(name, event))
			return true;
		suggest_offer(&near, sv_from_str(name));
		buf_addf(&all, "%s%s", i ? ", " : "", name);
	}
	const char *colon = strrchr(event, ':');
	if (colon && colon[1] && strspn(colon + 1, "ukhpGHPSDIWe") == strlen(colon + 1)) {
		log_error("'%s': events take no modifiers", event);
		log_hint("-e %.*s%s; `assay report -U` and `-K` show either part later",
			 (int)(colon - event), event,
			 strchr(colon, 'k') ? "" : " -u leaves the kernel out");
		return false;
	}
	log_error("unknown event '%s'", event);
	if (near.best.n)
		log_hint("did you mean '%.*s'?", SV_ARGS(near.best));
	else
		log_hint("CPU time is sampled by: %s", buf_str(&all));
	return false;
}

int cmd_cpu(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct cpu_opts o = {.freq_hz = FREQ_DEFAULT};
	const struct opt_cmd cmd = {
		.name = "cpu",
		.usage = {"[options] TARGET [SECONDS]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "where the CPU time of a program goes",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target}, {&cpu_group, &o}, {&output_group_cpu, &o}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		if (!is_event_known(o.event))
			status = EXIT_USAGE;
		else if (target_opts_choose(&target, &o.target, &args, &status))
			status = run(&o, &target, &args);
	}
	target_opts_release(&o.target);
	opt_list_release(&o.debug_dirs);
	return status;
}
