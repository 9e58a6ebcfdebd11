/* assay limit: runs a command under a memory limit and reports what it costs. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "analyze/memory/limitreport.h"
#include "base/log.h"
#include "cmd/capture/capture_command.h"
#include "cmd/capture/heap_capture.h"
#include "host/memory/limitgroup.h"
#include "plan/heapplan.h"

#define MEMORY_BYTES_MIN   65536
#define SAMPLES_IN_LIMIT   4096
#define INTERVAL_BYTES_MIN 8192
#define MEMORY_SPACING_NS  100000000u /* the command may reach the limit and end soon */

struct limit_opts {
	struct limit_spec spec;
	bool has_heap;
	bool has_rlimit;
	struct heap_capture heap;
	struct limitgroup *group;
	struct capture_hooks hooks;
};

static const struct opt limit_table[] = {
	OPT_SIZE('m', "memory", struct limit_opts, spec.memory_bytes, "SIZE",
		 "memory limit of CMD and all that it starts: 512M, 2G"),
	OPT_SIZE(0, "swap", struct limit_opts, spec.swap_bytes, "SIZE",
		 "swap limit in addition, 0 for no swap (default: no limit)"),
	OPT_FLAG(0, "rlimit", struct limit_opts, has_rlimit,
		 "without a cgroup: limit what each process may allocate (RLIMIT_DATA)"),
	OPT_FLAG(0, "heap", struct limit_opts, has_heap,
		 "also record the heap: live memory by call stack at the OOM kill"),
	OPT_END,
};
static const struct opt_group limit_group = {"Limit", limit_table};

static const char details[] =
	"Runs CMD in a memory cgroup of its own, version 1 or 2. At the end it prints how near "
	"CMD came to the limit and what that cost: the peak, how often the limit was reached, "
	"direct reclaim, pages read again, major faults, pressure, swap, and whether the kernel "
	"killed it. assay itself is outside of the cgroup. The exit status is that of CMD: 137 "
	"if it was killed.\n"
	"\n"
	"Page cache counts towards the limit: a program that reads files soon reaches its limit, and that alone "
	"does no harm. What costs time is pages read again, direct reclaim, and anonymous "
	"memory near the limit.\n"
	"\n"
	"The cgroup is removed at the end, even if assay is killed; processes that CMD left "
	"running then continue without a limit.\n"
	"\n"
	"With -o, a recording of direct reclaim by call stack is written. With --heap, a "
	"recording of the heap until the OOM kill is always written. The note about the kill "
	"names the killed process and what allocated most of what it held; a child's memory "
	"is 'held at exit', that of CMD itself is live at the end.\n"
	"\n"
	"Needs root (the command still runs as the user who called sudo), or a cgroup that was "
	"delegated to you. --rlimit needs neither: it limits what each process allocates, not "
	"what it uses.";

static const char examples[] =
	"sudo assay limit --memory 2G -- ./server\tdoes it run in 2 GiB?\n"
	"sudo assay limit -m 2G --heap -- ./server\twhat is live when it is full?\n"
	"sudo assay limit -m 512M --swap 0 --json -- ./job\tno swap, result as JSON\n";

/* ---- hooks of the capture ----------------------------------------------------------------- */

static int on_before_exec(void *ctx, int32_t pid, struct err *err)
{
	struct limit_opts *o = ctx;
	return limitgroup_put(o->group, pid, err);
}

static void on_poll(void *ctx)
{
	struct limit_opts *o = ctx;
	limitgroup_sample(o->group);
}

static void close_group(struct limit_opts *o)
{
	CLEANUP(err_release) struct err err = {0};
	if (limitgroup_close(o->group, &err)) {
		log_err(&err);
		log_hint("to remove it after its last process has ended: assay clean --groups");
	}
}

static void on_facts(void *ctx, struct profile *p)
{
	struct limit_opts *o = ctx;
	close_group(o);
	limit_facts(p, &o->spec, limitgroup_outcome(o->group));
	limit_rows(p, &o->spec, limitgroup_outcome(o->group));
}

/* ---- the capture -------------------------------------------------------------------------- */

static int page(struct capture_job *job, const struct capture_result *r, struct report *report,
		struct err *err)
{
	const struct limit_opts *o = job->own;
	const struct limit_result end = {.spec = &o->spec,
					 .outcome = limitgroup_outcome(o->group),
					 .command = job->args.command[0],
					 .profile = r->profile,
					 .has_reclaim = r->has_engine,
					 .exit_code = r->has_exit_code ? r->exit_code : 0};
	(void)err;
	limit_report(report, &end,
		     renderer_is_text(&job->common.form) ? capture_job_limits(job).max_rows : 0);
	return 0;
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct limit_opts *o = job->own;
	if (o->has_heap)
		heap_capture_print_losses(job, r);
}

static int run(struct capture_job *job, struct outputs *out, struct capture_result *ret_r,
	       struct err *err)
{
	struct limit_opts *o = job->own;
	TRY(limitgroup_open(&o->group, &o->spec, err));
	o->hooks = (struct capture_hooks){.before_exec = on_before_exec,
					  .poll = on_poll,
					  .facts = on_facts,
					  .fd = limitgroup_fd(o->group),
					  .ctx = o};
	job->options.hooks = &o->hooks;
	if (!limitgroup_path(
		    o->group)) /* without a cgroup, reclaim cannot be attributed to the command */
		job->options.flags |= CAPTURE_NO_BPF;
	return capture_job_run(job, out, ret_r, err);
}

static int check(struct capture_job *job, struct err *err)
{
	struct limit_opts *o = job->own;
	const struct heap_capture *h = &o->heap;
	if (o->spec.memory_bytes < MEMORY_BYTES_MIN)
		return err_set(err, -EINVAL,
			       o->spec.memory_bytes
				       ? "--memory: no program runs in less than 64 KiB"
				       : "missing limit: --memory SIZE");
	if (o->has_rlimit && o->spec.swap_bytes != MEMGROUP_NO_LIMIT)
		return err_set(err, -EINVAL,
			       "--swap excludes --rlimit: a swap limit needs a cgroup");
	if (!o->has_heap &&
	    (h->is_all || h->method != HEAP_METHOD_NONE || h->interval_bytes || h->every_ns))
		return err_set(err, -EINVAL,
			       "--all-allocations, --sample, --method and --every need --heap");
	return heap_capture_check(h, job, err);
}

/* Returns an interval at which memory up to the limit gives some thousand samples. */
static uint64_t interval_of(uint64_t memory_bytes)
{
	uint64_t fit = MAX(memory_bytes / SAMPLES_IN_LIMIT, (uint64_t)INTERVAL_BYTES_MIN);
	return MIN(fit, HEAP_CAPTURE_INTERVAL);
}

static int prepare_heap(struct capture_job *job, struct err *err)
{
	struct limit_opts *o = job->own;
	struct heap_capture *h = &o->heap;
	h->interval_bytes =
		h->interval_bytes ? h->interval_bytes : interval_of(o->spec.memory_bytes);
	h->every_ns = h->every_ns ? h->every_ns : MEMORY_SPACING_NS;
	job->common.target.takes_children = true;
	job->view = views_at(VIEW_HEAP);
	job->has_two_pages = true;
	return heap_capture_prepare(h, job, err);
}

static int prepare(struct capture_job *job, struct err *err)
{
	struct limit_opts *o = job->own;
	o->spec.flags = o->has_rlimit ? LIMIT_RLIMIT : 0;
	job->run = run;
	job->is_unrecorded = !o->has_heap && !job->common.output;
	if (o->has_heap)
		TRY(prepare_heap(job, err));
	job->options.tables |= TABLE_SET(RECLAIM) | (o->has_heap ? TABLE_SET(GROWTH) : 0);
	return 0;
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "allocations are sampled by bytes, with --sample SIZE"},
	{"when", NULL, "the command is recorded from its start"},
	{"delay", NULL, "the command is recorded from its start"},
	{"method", "prof", "it records one running process, not a command"},
	{0},
};

static const struct capture_command command = {
	.name = "limit",
	.usage = {"--memory SIZE [OPTION...] -- CMD [ARG...]"},
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&limit_group, 0}, {&heap_capture_group, offsetof(struct limit_opts, heap)}},
	.view = VIEW_NR,
	.nr_rows = 12,
	.noun = "rows",
	.nothing = "nothing was recorded",
	.add_reason = heap_capture_add_reason,
	.has_no_target = true,
	.check = check,
	.prepare = prepare,
	.page = page,
	.print_notes = print_notes,
};

int cmd_limit(int argc, char **argv)
{
	struct limit_opts o = {.spec.swap_bytes = MEMGROUP_NO_LIMIT};
	int status = capture_command(&command, &o, argc, argv);
	if (o.group)
		close_group(&o);
	limitgroup_free(o.group);
	heap_capture_release(&o.heap);
	return status;
}
