/* assay latency: how long operations take, and where their time goes. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "analyze/spansum.h"
#include "base/log.h"
#include "base/num.h"
#include "capture/spans.h"
#include "cmd/tally_run.h"
#include "kernel_span.h"
#include "plan/spanprobes.h"

#define SLOWEST 10

struct latency_opts {
	struct tally_opts common;
	struct opt_list spans;
	bool has_no_waits;
};

static const struct opt latency_table[] = {
	OPT_LIST(0, "span", struct latency_opts, spans, "FUNCTION",
		 "from entry to return of FUNCTION, a name or a pattern with * and ?; A..B: from "
		 "entry of A to entry of B, where either may be a static probe (USDT), "
		 "PROVIDER:PROBE; several"),
	OPT_FLAG(0, "no-waits", struct latency_opts, has_no_waits,
		 "durations only, not what the calls waited for"),
	OPT_END,
};
static const struct opt_group latency_group = {"Spans", latency_table};

static const char details[] =
	"Measures every call of a function of a running program: how many, how long (mean, p50, p99,\n"
	"longest, histogram), where the time of the calls went: on a CPU, in the run queue, in each\n"
	"kind of waiting; these add up to the wall time. The ten slowest calls are shown singly, each\n"
	"with its longest wait and the stack of that.\n"
	"\n"
	"Names are those that assay report shows; of one that is there several times (generics,\n"
	"several libraries) all are measured. Recursion counts once, from the outermost entry. A thread\n"
	"is in one span at a time: calls of one measured function within another are not measured.\n"
	"An async function's calls are its polls.\n"
	"\n"
	"The kernel writes a breakpoint into the function, in the processes named and in no other. A\n"
	"call costs 1 to 2 microseconds more where the function begins with an instruction that the\n"
	"kernel can emulate, 10 to 20 where it has to step over it; the capture says which. Not for\n"
	"functions that are called more than some 100,000 times a second.\n"
	"\n"
	"Needs root, or CAP_BPF and CAP_PERFMON.";

static const char examples[] =
	"assay latency --span Database::commit myserver 10\tone operation\n"
	"assay latency --span 'engine::*' -p 4242 30\ta family of functions\n"
	"assay latency --span parse..execute myserver 10\tfrom one to another\n"
	"assay latency --span 'postgresql:query__start..postgresql:query__done' postgres "
	"--all-matching\tby static probes\n"
	"assay latency --span handle_request -- ./server\ta program from start to end\n";

static const char *const pictures[] = {"span-time", NULL};

static void say_unfinished(const struct capture_result *r)
{
	const char *unfinished = profile_get_fact(r->profile, "spans unfinished");
	if (unfinished)
		log_note("%s calls did not return in this window: still running, or left by an "
			 "exception or longjmp",
			 unfinished);
}

static const struct tally_kind kind = {
	.name = "latency",
	.pictures = pictures,
	.nothing = "no call ended in this window",
	.report = spansum_report,
	.say = say_unfinished,
};

/* What a hit costs, and what was left out. */
static void say_probes(const struct span_probes *p)
{
	size_t nr_cheap = p->list.n - MIN(p->nr_stepped, p->list.n);
	CLEANUP(buf_release) struct buf text = {0};
	if (nr_cheap)
		buf_addf(&text, "%zu at some 2 us a call", nr_cheap);
	if (p->nr_stepped)
		buf_addf(&text,
			 "%s%zu at 10 to 20 us, whose first instruction the kernel has to "
			 "step over",
			 nr_cheap ? ", " : "", p->nr_stepped);
	log_note("measuring %zu function%s: %s", p->list.n, p->list.n == 1 ? "" : "s",
		 buf_str(&text));
	if (p->nr_more)
		log_warn("%zu more functions match and are not measured: at most %d are",
			 p->nr_more, SPANS_MAX);
}

static int measure(const struct latency_opts *o, const struct chosen_target *t,
		   const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(span_probes_release) struct span_probes probes = {0};
	int rc = span_probes_find(&probes, o->spans.p, o->spans.n,
				  t->has_target ? &t->target : NULL, args->command, &err);
	if (rc) {
		log_err(&err);
		return args->command && rc != -ENOENT && rc != -EINVAL ? EXIT_ASSAY_FAILED
		       : rc == -ENOENT || rc == -EINVAL                ? EXIT_USAGE
								       : EXIT_FAILED;
	}
	say_probes(&probes);
	struct spans_spec spec = {.probes = probes.list.p,
				  .nr_probes = probes.list.n,
				  .pids = probes.pids.p,
				  .nr_pids = probes.pids.n,
				  .nr_slowest = SLOWEST};
	unsigned waits = o->has_no_waits ? 0 : ENGINE_WAITS;
	struct capture_options base = {.programs = ENGINE_SPANS | waits, .spans = &spec};
	return tally_run_on(&kind, &o->common, &base, t, args);
}

int cmd_latency(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct latency_opts o = {.common.limit = 10};
	const struct opt_cmd cmd = {
		.name = "latency",
		.usage = {"--span FUNCTION [options] TARGET [SECONDS]",
			  "--span FUNCTION [options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "how long calls of a function take, and why",
		.details = details,
		.examples = examples,
		.groups = {{&latency_group, &o},
			   {&target_group, &o.common.target},
			   {&tally_group, &o.common}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		if (!o.spans.n)
			status = cmd_usage("latency", "which function? name it with --span");
		else if (target_opts_choose(&target, &o.common.target, &args, &status))
			status = measure(&o, &target, &args);
	}
	tally_opts_release(&o.common);
	opt_list_release(&o.spans);
	return status;
}
