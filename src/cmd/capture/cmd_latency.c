/* assay latency: measures the duration of calls and where their time goes. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stddef.h>

#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"
#include "cmd/capture/span_capture.h"

struct latency_opts {
	struct span_capture spans;
	bool has_no_waits;
};

static const struct opt latency_table[] = {
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
	"from the outermost entry. Functions of Python have no code to probe. A thread is in "
	"one span at a time: a measured function called within another measured one is not "
	"measured. For an async function, each poll is a call.\n"
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
	return o->spans.names.n ? 0 : err_set(err, -EINVAL, "missing function: --span FUNCTION");
}

static int prepare(struct capture_job *job, struct err *err)
{
	struct latency_opts *o = job->own;
	job->options.tables = o->has_no_waits ? 0 : WAIT_TABLES;
	return span_capture_prepare(&o->spans, job, err);
}

static void add_reason(struct buf *to, const struct capture_job *job,
		       const struct capture_result *r)
{
	const char *never_called = profile_get_fact(r->profile, FACT_NEVER_CALLED);
	(void)job;
	if (never_called)
		buf_addf(to, "not entered: %s", never_called);
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct latency_opts *o = job->own;
	span_capture_print_notes(&o->spans, job, r);
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
	.groups = {{&span_capture_group, offsetof(struct latency_opts, spans)},
		   {&latency_group, 0}},
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
	span_capture_release(&o.spans);
	return status;
}
