/* assay latency: measures the duration of calls and where their time goes. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "base/log.h"
#include "base/text/num.h"
#include "capture/wait/spans.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"
#include "kernel_span.h"
#include "plan/spanprobes.h"

#define SLOWEST 10

struct latency_opts {
	struct opt_list spans;
	bool has_no_waits;
	struct span_probes probes;
	struct spans_spec spec; /* borrows from the probes */
};

static const struct opt latency_table[] = {
	OPT_LIST(0, "span", struct latency_opts, spans, "FUNCTION",
		 "measure from entry to return of FUNCTION, a name or a pattern with * and ?; "
		 "A..B: from entry of A to entry of B, which may be static probes (USDT), "
		 "PROVIDER:PROBE; may be repeated"),
	OPT_FLAG(0, "no-waits", struct latency_opts, has_no_waits,
		 "measure durations only, not what the calls waited for"),
	OPT_END,
};
static const struct opt_group latency_group = {"Spans", latency_table};

static const char details[] =
	"Measures every call of a function: the number of calls, their duration (mean, p50, "
	"p99, longest, histogram) and where their time went: on a CPU, in the run queue, in "
	"each kind of wait. These parts add up to the duration. The ten slowest calls are "
	"printed one by one, each with its longest wait and the stack of that wait.\n"
	"\n"
	"Function names are those that assay report prints. If a name exists several times "
	"(generics, several libraries), all of them are measured. Recursive calls count once, "
	"from the outermost entry. A thread is in one span at a time: a measured function "
	"called within another measured one is not measured. For an async function, each poll "
	"is a call.\n"
	"\n"
	"The kernel writes a breakpoint into the function, only in the target processes. Each "
	"call then takes 1 to 2 microseconds longer if the kernel can emulate the function's "
	"first instruction, and 10 to 20 if it must single-step it; the capture prints which. "
	"Do not measure functions that are called more than about 100,000 times a second.\n"
	"\n"
	"Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.";

static const char examples[] =
	"assay latency --span Database::commit myserver 10\tone function\n"
	"assay latency --span 'engine::*' -p 4242 30\tall that match\n"
	"assay latency --span parse..execute myserver 10\tentry of parse to entry of execute\n"
	"assay latency --span 'postgresql:query__start..postgresql:query__done' -p 4242\tbetween two static probes (USDT)\n"
	"assay latency --span handle_request -- ./server\ta program, from start to end\n";

static int check(struct capture_job *job, struct err *err)
{
	const struct latency_opts *o = job->own;
	return o->spans.n ? 0 : err_set(err, -EINVAL, "missing function: --span FUNCTION");
}

/* Notes what each call costs, and warns about functions that are not measured. */
static void print_probes(const struct span_probes *p)
{
	size_t nr_cheap = p->nr_points - p->nr_stepped;
	CLEANUP(buf_release) struct buf text = {0};
	vec_foreach(e, &p->unknown) {
		log_warn("not measured: %s", err_msg(e));
		log_hint("%s", e->hint);
	}
	if (nr_cheap)
		buf_addf(&text, "%s of about 2 us per call", num_noun(nr_cheap, "probes").s);
	if (p->nr_stepped)
		buf_addf(
			&text,
			"%s%s of 10 to 20 us per call, because the kernel must single-step the first instruction",
			nr_cheap ? ", " : "", num_noun(p->nr_stepped, "probes").s);
	log_note("measuring %s: %s; the measured times include a part of this",
		 num_noun(p->list.n, "spans").s, buf_str(&text));
	if (p->nr_more)
		log_warn("not measured: %s that match; the maximum is %d",
			 num_noun(p->nr_more, "more functions").s, SPANS_MAX);
}

static int prepare(struct capture_job *job, struct err *err)
{
	struct latency_opts *o = job->own;
	TRY(span_probes_find(&o->probes, o->spans.p, o->spans.n, job->options.target,
			     job->args.command, err));
	print_probes(&o->probes);
	o->spec = (struct spans_spec){.probes = o->probes.list.p,
				      .nr_probes = o->probes.list.n,
				      .pids = o->probes.pids.p,
				      .nr_pids = o->probes.pids.n,
				      .nr_slowest = SLOWEST};
	job->options.tables = SPAN_TABLES | (o->has_no_waits ? 0 : WAIT_TABLES);
	job->options.spans = &o->spec;
	return 0;
}

static void add_reason(struct buf *to, const struct capture_job *job,
		       const struct capture_result *r)
{
	const char *never_called = profile_get_fact(r->profile, FACT_NEVER_CALLED);
	(void)job;
	if (never_called)
		buf_addf(to, "never called: %s", never_called);
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct latency_opts *o = job->own;
	uint64_t nr_unfinished = r->profile->losses.nr[LOSS_SPANS_UNFINISHED];
	if (nr_unfinished)
		log_note(
			"%s did not return during the capture: still running, or left by an exception or longjmp",
			num_noun(nr_unfinished, "calls").s);
	else if (!views_has(job->view, r->profile) && o->probes.similar)
		log_hint("functions with similar names: %s", o->probes.similar);
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "every call is measured, none is sampled"},
	{"no-bpf", NULL, "calls are measured by BPF programs, there is no other way"},
	{"all", NULL, "calls are measured in processes, name one or several with --all-matching"},
	{0},
};

static const struct capture_command command = {
	.name = "latency",
	.usage = {"--span FUNCTION [OPTION...] TARGET [SECONDS]",
		  "--span FUNCTION [OPTION...] [TARGET] -- CMD [ARG...]"},
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&latency_group, 0}},
	.view = VIEW_SPANS,
	.nr_rows = 10,
	.nothing = "no call returned during the capture",
	.check = check,
	.prepare = prepare,
	.add_reason = add_reason,
	.print_notes = print_notes,
};

int cmd_latency(int argc, char **argv)
{
	struct latency_opts o = {0};
	int status = capture_command(&command, &o, argc, argv);
	span_probes_release(&o.probes);
	return status;
}
