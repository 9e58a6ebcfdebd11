/* assay cpu: samples CPU time. */
#include "base/base.h"

#include <errno.h>

#include "base/log.h"
#include "base/text/num.h"
#include "base/opt/opt.h"
#include "base/text/suggest.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"
#include "cmd/cmd.h"
#include "cmd/otherwords.h"

#define RUNS_MAX            1000
#define CUT_MIN_SHARE       0.05 /* of samples; the first copies may be short, before they grow */
#define UNSAMPLED_MIN_NS    20000000 /* a smaller gap may be chance */
#define UNSAMPLED_MIN_SHARE 0.25     /* threads that wake up often lose about 10 % */

struct cpu_opts {
	const char *event;
	uint64_t nr_runs;       /* 0 = one capture, without the spread of runs */
	int call_graph;         /* enum perfopen_flags, or 0 */
	unsigned sampler_flags; /* enum perfopen_flags */
	bool has_waits;
	bool has_no_wakers;
};

static const struct opt_choice call_graphs[] = {
	{"auto", 0, "unwind tables; frame pointers for code without them"},
	{"fp", PERFOPEN_FP, "frame pointers, read by the kernel"},
	{"none", PERFOPEN_NO_STACKS, "no call stacks, only the sampled function"},
	{0},
};

static const struct opt cpu_table[] = {
	OPT_STR('e', "event", struct cpu_opts, event, "EVENT",
		"event to sample: cycles, cpu-clock, task-clock, instructions (default: cycles, "
		"without hardware counters cpu-clock)"),
	OPT_BITS('u', "user", struct cpu_opts, sampler_flags, PERFOPEN_USER_ONLY,
		 "sample user mode only"),
	OPT_FLAG(0, "offcpu", struct cpu_opts, has_waits,
		 "also record off-CPU time: one picture of all thread time"),
	OPT_FLAG(0, "no-wakers", struct cpu_opts, has_no_wakers,
		 "with --offcpu: do not record which thread ended each wait; costs less"),
	OPT_U64_IN(
		0, "runs", struct cpu_opts, nr_runs, 2, RUNS_MAX, "N",
		"capture N times, one recording each, and print how much the share of each function varies"),
	OPT_ENUM(0, "call-graph", struct cpu_opts, call_graph, call_graphs, "HOW",
		 "how call stacks are unwound (default auto)"),
	OPT_BITS('g', NULL, struct cpu_opts, sampler_flags, 0,
		 "accepted for compatibility with perf: call stacks are always recorded"),
	OPT_END,
};
static const struct opt_group cpu_group = {"Sampling", cpu_table};

static const char details[] =
	"Samples CPU time with full call stacks. Prints the hottest functions, and writes a "
	"recording, an HTML page (assay view) and folded stacks.\n"
	"\n"
	"TARGET is a process name, or one of the target options below. SECONDS is 60 by default; a "
	"launched CMD is recorded until it ends. Ctrl-C stops early and still writes "
	"everything. With CMD, the page is printed to stderr, and a second Ctrl-C ends the wait for "
	"a CMD that goes on: it is left running. With both a target and CMD, the target is recorded while CMD runs.";

static const char examples[] =
	"assay cpu redis-server 10\ta running service, for 10 seconds\n"
	"assay cpu -- ./server --port 80\ta program, from start to end\n"
	"assay cpu -p 4242 -F 4999 5\tmore samples per second\n"
	"assay cpu redis-server -- redis-benchmark -q\tredis-server while a load runs\n"
	"sudo assay cpu -a 10\tthe whole system\n"
	"assay cpu --offcpu redis-server 10\tCPU and off-CPU time in one graph\n"
	"assay cpu --runs 5 -- ./bench\thow much the shares vary\n";

/* Checks the name of the event. */
static int check(struct capture_job *job, struct err *err)
{
	const struct cpu_opts *o = job->own;
	if (!o->event)
		return 0;
	struct suggest near = suggest_for(sv_from_str(o->event));
	CLEANUP(buf_release) struct buf all = {0};
	const char *name;
	for (size_t i = 0; (name = perfopen_event_name(i)); i++) {
		if (!strcmp(name, o->event))
			return 0;
		suggest_offer(&near, sv_from_str(name));
		buf_addf(&all, "%s%s", i ? ", " : "", name);
	}
	const char *colon = strrchr(o->event, ':');
	if (colon && colon[1] && strspn(colon + 1, "ukhpGHPSDIWe") == strlen(colon + 1)) {
		err_set(err, -EINVAL, "event '%s': modifiers are not supported", o->event);
		return err_hint(
			err,
			"use -e %.*s%s; assay report -U or -K selects user or kernel samples "
			"later",
			(int)(colon - o->event), o->event, strchr(colon, 'k') ? "" : " -u");
	}
	err_set(err, -EINVAL, "unknown event '%s'", o->event);
	const struct opt_cmd cpu = {.name = "cpu", .others = other_options};
	if (opt_hint_other(err, &cpu, SV("--event"), sv_from_str(o->event)))
		return -EINVAL;
	if (colon)
		return err_hint(err, "tracepoints are counted: assay events -e %s", o->event);
	if (near.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(near.best));
	return err_hint(err, "known events: %s", buf_str(&all));
}

static int prepare(struct capture_job *job, struct err *err)
{
	const struct cpu_opts *o = job->own;
	struct capture_options *c = &job->options;
	(void)err;
	c->tables = TABLE_SET(SAMPLES);
	if (o->has_waits)
		c->tables |= o->has_no_wakers ? WAIT_TABLES & ~TABLE_SET(BLAME) : WAIT_TABLES;
	c->event = o->event;
	c->freq_hz = capture_freq_hz(&job->common, c->duration_ns);
	c->sampler_flags = o->sampler_flags | (unsigned)o->call_graph;
	job->nr_runs = o->nr_runs;
	if (o->has_waits) {
		job->view = views_at(VIEW_THREAD_TIME);
		job->folded = CAPTURE_FOLDED_WEIGHTS;
	}
	return 0;
}

static void print_sampler_notes(const struct cpu_opts *o, const struct capture_result *r)
{
	const struct sampler_info *i = &r->info;
	if (r->no_engine.code)
		log_note("stacks are copied and unwound outside the kernel: %s",
			 err_msg(&r->no_engine));
	if (i->is_software && !o->event)
		log_note("no hardware counters on this machine: sampling '%s'; kernel code that "
			 "runs with interrupts disabled is counted where they are enabled again",
			 i->event);
	if (i->is_refused_kernel)
		log_note("kernel frames are not permitted here (kernel.perf_event_paranoid): user "
			 "code only");
	if (i->is_filtering)
		log_note(
			"too many threads for one event each: sampling all CPUs and keeping only the target's samples");
}

/*
 * Warns if the samples cover much less than the CPU time that the kernel counted. A thread gets its
 * first sample after a whole period of its own CPU time, so many short threads or processes may get
 * none.
 */
static void warn_of_unsampled(const struct capture_result *r)
{
	const struct profile *p = r->profile;
	double freq_hz = p->tables.n ? p->tables.p[0].freq_hz : 0;
	if (!freq_hz || r->info.is_user_only || !r->info.cpu_ns)
		return;
	double sampled_ns = (double)p->losses.nr[LOSS_SEEN] * 1e9 / freq_hz;
	double missing_ns = (double)r->info.cpu_ns - sampled_ns;
	if (missing_ns < UNSAMPLED_MIN_NS ||
	    missing_ns < UNSAMPLED_MIN_SHARE * (double)r->info.cpu_ns)
		return;
	log_warn("samples cover only %.0f %% of the target's CPU time of %s",
		 100.0 * sampled_ns / (double)r->info.cpu_ns, num_ns(r->info.cpu_ns).s);
	log_hint(
		"a thread that runs for less than one sampling period has no sample of its own event; %suse a higher rate (-F 9999), or sample the whole system (-a)",
		r->has_engine ? "" : "BPF programs (sudo) sample CPUs instead and miss none; ");
}

/* Warns if many stacks are larger than what the kernel copies, with what records them whole. */
static void warn_of_cut_stacks(const struct capture_job *job, const struct capture_result *r)
{
	const uint64_t *nr = r->profile->losses.nr;
	double share = (double)nr[LOSS_TRUNC_COPY] / (double)MAX(nr[LOSS_WRITTEN], (uint64_t)1);
	if (share < CUT_MIN_SHARE)
		return;
	log_warn("%.0f %% of the stacks are cut off: the kernel copies at most 64 KiB of a stack",
		 100 * share);
	log_hint("BPF programs unwind stacks of any size: %s\n"
		 "if the program has frame pointers: --call-graph fp",
		 job->common.has_no_bpf ? "omit --no-bpf"
					: "run with sudo, or give assay CAP_BPF and CAP_PERFMON");
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct cpu_opts *o = job->own;
	print_sampler_notes(o, r);
	warn_of_cut_stacks(job, r);
	if (o->has_waits) {
		capture_job_print_no_bpf(job, r);
		return;
	}
	if (!r->profile->losses.nr[LOSS_WRITTEN] && r->info.cpu_ns < UNSAMPLED_MIN_NS)
		log_hint("the target used no CPU time: profile it under load, for longer, or see "
			 "what it waits for (assay offcpu)");
	warn_of_unsampled(r);
}

static const struct capture_command command = {
	.name = "cpu",
	.details = details,
	.examples = examples,
	.groups = {{&cpu_group, 0}},
	.view = VIEW_CPU,
	.nr_rows = 15,
	.noun = "samples",
	.nothing = "no samples during the capture",
	.folded = CAPTURE_FOLDED_COUNTS,
	.check = check,
	.prepare = prepare,
	.print_notes = print_notes,
};

int cmd_cpu(int argc, char **argv)
{
	struct cpu_opts o = {0};
	return capture_command(&command, &o, argc, argv);
}
