/* assay all: CPU time, waiting, memory, I/O and page faults of one program in one capture. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stddef.h>

#include "analyze/diagnose/diagnosis.h"
#include "base/log.h"
#include "capture/io/io.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"
#include "cmd/capture/heap_capture.h"
#include "cmd/capture/span_capture.h"
#include "cmd/diagnoserules.h"

struct all_opts {
	bool has_calls;
	bool has_heap;
	struct heap_capture heap;
	struct span_capture spans;
	struct diagnose_rules rules; /* of diagnose */
	const char *file;            /* that the name of the target also is; NULL: none */
};

static const struct opt all_table[] = {
	OPT_FLAG(0, "heap", struct all_opts, has_heap,
		 "also record allocations, by a recorder in the target (assay heap)"),
	OPT_FLAG(0, "io", struct all_opts, has_calls,
		 "also record every read, write and minor page fault: 1 to 2 us each"),
	OPT_END,
};
static const struct opt_group all_group = {"What is recorded", all_table};

static const char details[] =
	"Records at once, with one clock, where the CPU time of a program goes, what its threads "
	"wait for and who ends their waits, its memory over time, its sync calls and block device "
	"requests, and its page faults. Prints one page, and writes one recording and one HTML "
	"page with all of it. assay NAME is the same as assay all NAME.\n"
	"\n"
	"Nothing is written into a running program. Memory is RSS by part and the growth of "
	"memory by call stack; --heap adds allocations, frees and leaks by call stack, for which a "
	"recorder is loaded into the program (assay heap). Sync calls (fsync, msync and similar) are "
	"recorded one by one, reads and writes as the kernel's totals of the process; --io "
	"records each of them, too. Waits for files and sockets are recorded in any case. --span "
	"measures the calls of a function, by a breakpoint that the kernel sets in it (assay "
	"latency).\n"
	"\n"
	"What this machine or user does not permit is named, with what would permit it; the rest is "
	"recorded.\n"
	"\n"
	"TARGET is a process name, or one of the target options below. SECONDS is 60 by default; a "
	"launched CMD is recorded until it ends. Ctrl-C stops early and still writes "
	"everything. With CMD, the page is printed to stderr, and a second Ctrl-C ends the wait for "
	"a CMD that goes on: it is left running.";

static const char examples[] =
	"assay redis-server 30\tthe same as assay all redis-server 30\n"
	"assay all -p 4242 10\ta running process, for 10 seconds\n"
	"assay all -- ./server --port 80\ta program, from start to end\n"
	"assay all redis-server -- redis-benchmark -q\tredis-server while a load runs\n"
	"assay all --heap myserver 60\talso its allocations\n"
	"assay all --span Database::commit myserver 30\talso the calls of a function\n";

#define ALL_TABLES                                                                                 \
	(TABLE_SET(SAMPLES) | WAIT_TABLES | TABLE_SET(IO) | TABLE_SET(BLOCK) | TABLE_SET(FAULTS) | \
	 TABLE_SET(RECLAIM) | TABLE_SET(MEMORY))

static int check(struct capture_job *job, struct err *err)
{
	struct all_opts *o = job->own;
	if (job->command->page)
		TRY(diagnose_rules_read(&o->rules, err));
	if (o->file)
		log_note("'%s' is taken as the running process; the file: assay diagnose ./%s",
			 o->file, o->file);
	if (o->has_heap)
		return heap_capture_check(&o->heap, job, err);
	if (o->heap.is_all || o->heap.interval_bytes || o->heap.method)
		return err_set(err, -EINVAL,
			       "--all-allocations, --sample and --method are for --heap");
	return 0;
}

/* Growth of memory is recorded in any case: without --heap, or where it is all that can be. */
static int prepare_heap(struct all_opts *o, struct capture_job *job, struct err *err)
{
	job->options.tables = GROWTH_TABLES;
	job->options.takes_children = job->common.target.takes_children;
	job->options.memory_spacing_ns = o->heap.every_ns;
	if (!o->has_heap)
		return 0;
	TRY(heap_capture_prepare(&o->heap, job, err));
	if (o->heap.choice.method != HEAP_METHOD_GROWTH)
		return 0;
	job->options.heap = NULL;
	job->options.tables = GROWTH_TABLES;
	return 0;
}

static int prepare(struct capture_job *job, struct err *err)
{
	struct all_opts *o = job->own;
	struct capture_options *c = &job->options;
	TRY(prepare_heap(o, job, err));
	c->tables |= ALL_TABLES;
	c->freq_hz = capture_freq_hz(&job->common, c->duration_ns);
	c->flags |= o->has_calls ? 0u : CAPTURE_SYNCS_ONLY;
	return o->spans.names.n ? span_capture_prepare(&o->spans, job, err) : 0;
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct all_opts *o = job->own;
	capture_job_print_no_bpf(job, r);
	if (o->has_heap)
		heap_capture_print_losses(job, r);
	if (o->spans.names.n)
		span_capture_print_notes(&o->spans, job, r);
}

static const struct capture_command command = {
	.name = "all",
	.details = details,
	.examples = examples,
	.groups = {{&all_group, 0},
		   {&heap_capture_group, offsetof(struct all_opts, heap)},
		   {&span_capture_group, offsetof(struct all_opts, spans)}},
	.view = VIEW_ALL,
	.nr_rows = 15,
	.noun = "samples",
	.nothing = "nothing was recorded",
	.folded = CAPTURE_FOLDED_WEIGHTS,
	.check = check,
	.prepare = prepare,
	.print_notes = print_notes,
};

static int run(const struct capture_command *c, const char *file, int argc, char **argv)
{
	struct all_opts o = {.file = file};
	int status = capture_command(c, &o, argc, argv);
	diagnose_rules_release(&o.rules);
	heap_capture_release(&o.heap);
	span_capture_release(&o.spans);
	return status;
}

int cmd_all(int argc, char **argv)
{
	return run(&command, NULL, argc, argv);
}

static int diagnosis_page(struct capture_job *job, const struct capture_result *r,
			  struct report *report, struct err *err)
{
	const struct all_opts *o = job->own;
	(void)err;
	diagnosis_report(report, r->profile, &job->spec, &o->rules.all, job->recording,
			 diagnose_rules_flags(&o->rules));
	return 0;
}

static struct capture_command diagnosed(void)
{
	struct capture_command c = command;
	c.page = diagnosis_page;
	c.is_whole = true;
	c.groups[3] =
		(struct capture_own_group){&diagnose_rules_group, offsetof(struct all_opts, rules)};
	return c;
}

const char *cmd_all_operand(int argc, char **argv)
{
	const struct capture_command c = diagnosed();
	struct all_opts o = {0};
	int i = capture_command_operand(&c, &o, argc, argv);
	return i < argc && strcmp(argv[i], "--") != 0 ? argv[i] : NULL;
}

int cmd_all_diagnosed(int argc, char **argv, const char *file)
{
	const struct capture_command c = diagnosed();
	return run(&c, file, argc, argv);
}
