/* assay heap: records allocations. */
#include "base/base.h"

#include <errno.h>

#include "analyze/memory/leaks.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/text/num.h"
#include "base/opt/opt.h"
#include "base/process/progress.h"
#include "cmd/capture/capture_command.h"
#include "cmd/cmd.h"
#include "cmd/capture/heap_dump.h"
#include "cmd/capture/heap_capture.h"
#include "plan/heapplan.h"
#include "session/prof_capture.h"

#define SUPPRESS_MAX ((size_t)1 << 20)

struct heap_opts {
	struct heap_capture heap;
	struct heap_dump_opts dump;
	const char *older_than;
	const char *suppress_path;
	bool has_all_flames;
	struct buf suppress; /* text of the suppressions */
};

static const struct opt heap_table[] = {
	OPT_STR(0, "older-than", struct heap_opts, older_than, "TIME",
		"memory live at the end counts as leaked if it is at least this old (default: half "
		"of the capture; any age if the program has exited)"),
	OPT_STR(0, "suppress", struct heap_opts, suppress_path, "FILE",
		"show known leaks as one row: lines leak:PATTERN, as for LeakSanitizer"),
	OPT_FLAG(0, "all-pictures", struct heap_opts, has_all_flames,
		 "write a flame graph (SVG) of every weight, not only of those of --svg"
		 " (allocated, peak, live, leaked)"),
	OPT_END,
};
static const struct opt_group heap_group = {"Leaks and flame graphs", heap_table};

static const char details[] =
	"Records allocations and frees with their call stacks: how much and how often a program "
	"allocates, what is live, what leaks, what was live at the peak, what was freed "
	"before the next allocation. Works on running processes and launched commands, with glibc, musl, jemalloc "
	"(also static, and with prefixed names), tcmalloc and mimalloc. How allocations are recorded "
	"depends on the allocator; the method is printed with the reason.\n"
	"\n"
	"Methods (--method): prof: jemalloc's own profiler; hooks: allocation hooks of jemalloc "
	"5.2 to 5.3.1; patch: the allocator's functions are patched in memory; uprobes: BPF "
	"programs on uprobes, no code in the process; growth: page faults, that is growth of "
	"memory, not allocations.\n"
	"\n"
	"By default, allocations are sampled at random, one per 512 KiB of allocated bytes on "
	"average, which costs little. The numbers are then estimates and have 95 % "
	"confidence intervals. --all-allocations records all. A launched command is recorded in "
	"full at first, and sampled when that costs more than 50 ms and 2 % of the time, or when "
	"32768 recorded blocks are live; the page says when. With --sample it is sampled from the "
	"start.\n"
	"\n"
	"Live: allocated during the capture and not freed. Leaked: live at the end and older "
	"than half of the capture (--older-than), or of any age if the program has ended. Frees "
	"of blocks allocated before the capture are counted separately.\n"
	"\n"
	"A small recorder is loaded into the process for the capture; it unwinds there and "
	"writes to memory that it shares with assay. If assay is killed, a second process "
	"(assay-cleanup) ends the capture in the target. "
	"After the capture the recorder is inactive. Its code, about 100 kB, stays mapped "
	"for the next capture. The address range of the shared memory stays reserved without "
	"pages: VmSize stays up to 1.2 GiB larger (4.8 GiB with --all-allocations), RSS does not.\n"
	"\n"
	"TARGET is a process name, or one of the target options below. SECONDS is 60 by default; a "
	"launched CMD is recorded until it ends. Ctrl-C stops early and still writes "
	"everything. With CMD, the page is printed to stderr, and a second Ctrl-C ends the wait for "
	"a CMD that goes on: it is left running.\n"
	"\n"
	"--dump, --dump-every and --stats read statistics and profiles of jemalloc itself, and write no "
	"recording.";

static const char examples[] =
	"assay heap myserver 30\ta running service, sampled\n"
	"assay heap -- ./program\ta program: in full, then sampled when that costs\n"
	"assay heap --all-allocations -- ./program\tevery allocation, from start to end\n"
	"assay heap --sample 64K -p 4242 60\tmore samples\n"
	"assay heap --older-than 10s myserver\tleaked: live for 10 seconds\n"
	"assay heap --dump-every +1GiB-rss myserver 3600\tjemalloc dumps while it grows\n"
	"assay heap --stats myserver\tjemalloc's statistics\n";

static int check(struct capture_job *job, struct err *err)
{
	const struct heap_opts *o = job->own;
	uint64_t ns;
	if (o->older_than)
		TRY(leaks_check(o->older_than, &ns, err));
	return heap_capture_check(&o->heap, job, err);
}

/* ---- jemalloc's own profiling, not a recorder of ours -------------------------------------- */

static void print_profiler_state(const struct prof_capture *p)
{
	CLEANUP(buf_release) struct buf walk = {0};
	prof_capture_add_unwinder(p, &walk);
	log_note(
		"%s; %s%s", p->plan.allocator_text,
		p->is_reset
			? "its profiler was reset to the requested rate; earlier samples are discarded"
		: p->has_enabled ? "its profiler was off and runs now"
				 : "its profiler runs already",
		buf_str(&walk));
}

static void wait_for_end(struct prof_capture *p, uint64_t end_ns)
{
	struct progress bar;
	progress_init(&bar, "sampling");
	while (prof_capture_wait(p, end_ns))
		if (progress_due(&bar))
			progress_text(&bar, "%" PRIu64 " s left",
				      (uint64_t)((end_ns - MIN(clock_mono_ns(), end_ns) +
						  NS_PER_SEC - 1) /
						 NS_PER_SEC));
	progress_release(&bar);
}

static int run_prof(struct capture_job *job, struct outputs *out, struct capture_result *ret_r,
		    struct err *err)
{
	const struct heap_opts *o = job->own;
	struct prof_capture p = {.target = job->options.target,
				 .interval_bytes = o->heap.interval_bytes,
				 .kept_fd = -1};
	int rc = prof_capture_begin(&p, err);
	if (!rc) {
		print_profiler_state(&p);
		wait_for_end(&p, p.start_ns + job->options.duration_ns);
		rc = prof_capture_end(&p, &out->place, out->recording_fd, ret_r, err);
	}
	if (!rc && p.is_partial)
		log_warn(
			"the target ended before the last dump: the profile is of %s after the start, "
			"%s before the end, and what was allocated later is lost",
			num_ns(p.kept_ns - p.start_ns).s,
			num_ns(ret_r->duration_ns - MIN(ret_r->duration_ns, p.kept_ns - p.start_ns))
				.s);
	if (p.stays_on)
		log_warn("cannot disable the profiler of jemalloc again");
	prof_capture_release(&p);
	return rc;
}

static int prepare_prof(struct capture_job *job, struct err *err)
{
	const struct chosen_target *t = &job->target;
	if (!t->has_target || t->target.pids.pids.n != 1 || job->args.command)
		return err_set(
			err, -EINVAL,
			"--method prof needs one running process; to start one with profiling: assay env --jemalloc-prof -- CMD");
	job->run = run_prof;
	return 0;
}

/* ---- any heap ------------------------------------------------------------------------------ */

static int prepare(struct capture_job *job, struct err *err)
{
	struct heap_opts *o = job->own;
	o->dump.form = job->common.form;
	if (heap_dump_is_asked(&o->dump)) {
		if (!job->target.has_target)
			return err_set(err, -EINVAL,
				       "--dump, --dump-every and --stats need a running target");
		job->is_done = true;
		job->status = heap_dump_run(&o->dump, &job->target, job->common.output);
		return 0;
	}
	if (o->suppress_path)
		TRY(file_read_named(&o->suppress, o->suppress_path, SUPPRESS_MAX, err));
	job->spec.heap.older_than = o->older_than;
	job->spec.heap.suppress = o->suppress_path ? buf_str(&o->suppress) : NULL;
	job->flame_flags = o->has_all_flames ? VIEW_PICTURES_ALL : 0;
	return o->heap.method == HEAP_METHOD_PROF ? prepare_prof(job, err)
						  : heap_capture_prepare(&o->heap, job, err);
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "allocations are sampled by bytes, with --sample SIZE"},
	{"all", NULL,
	 "heaps are recorded process by process, name one or several with --all-matching"},
	{"tid", NULL, "a heap belongs to the whole process, name it with -p PID"},
	{0},
};

static const struct capture_command command = {
	.name = "heap",
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&heap_capture_group, offsetof(struct heap_opts, heap)},
		   {&heap_group, 0},
		   {&heap_dump_group, offsetof(struct heap_opts, dump)}},
	.view = VIEW_HEAP,
	.nr_rows = 12,
	.noun = "allocations",
	.nothing = "nothing was recorded",
	.add_reason = heap_capture_add_reason,
	.check = check,
	.prepare = prepare,
	.print_notes = heap_capture_print_losses,
};

int cmd_heap(int argc, char **argv)
{
	struct heap_opts o = {0};
	int status = capture_command(&command, &o, argc, argv);
	heap_capture_release(&o.heap);
	buf_release(&o.suppress);
	return status;
}
