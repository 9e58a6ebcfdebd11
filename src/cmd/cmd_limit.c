/* assay limit: a command with a limit of memory, and what that did to it. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <unistd.h>

#include "analyze/limitreport.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/stop.h"
#include "capture/heapsource.h"
#include "capture/io.h"
#include "cmd/heap_outputs.h"
#include "cmd/heap_run.h"
#include "cmd/heap_way.h"
#include "plan/heapchoice.h"
#include "capture/heapplanner.h"
#include "cmd/optgroups.h"
#include "cmd/recording.h"
#include "host/cachedir.h"
#include "host/limitgroup.h"
#include "render/jsonout.h"
#include "render/text.h"

#define MEMORY_BYTES_MIN   65536
#define SAMPLES_IN_LIMIT   4096
#define INTERVAL_BYTES_MIN 8192
#define MEMORY_SPACING_NS  100000000u /* it may be over soon */

struct limit_opts {
	uint64_t memory_bytes;
	uint64_t swap_bytes;
	uint64_t nr_rows;
	bool has_heap;
	bool is_every;
	uint64_t interval_bytes;
	const char *tier;
	bool has_rlimit;
	bool has_no_bpf;
	bool is_json;
	const char *output;
};

static const struct opt limit_table[] = {
	OPT_SIZE('m', "memory", struct limit_opts, memory_bytes, "SIZE",
		 "most memory that CMD and all that it starts may use: 512M, 2G"),
	OPT_SIZE(0, "swap", struct limit_opts, swap_bytes, "SIZE",
		 "most swap beside it, 0 for none (default: as much as there is)"),
	OPT_FLAG(0, "rlimit", struct limit_opts, has_rlimit,
		 "without cgroups: limit what each process may ask for (RLIMIT_DATA)"),
	OPT_FLAG(0, "no-bpf", struct limit_opts, has_no_bpf,
		 "load no programs into the kernel: no stacks and times of reclaim"),
	OPT_END,
};
static const struct opt_group limit_group = {"Limit", limit_table};

static const struct opt heap_table[] = {
	OPT_FLAG(0, "heap", struct limit_opts, has_heap,
		 "record the heap as well: what lived when the kernel killed, by stack"),
	OPT_FLAG(0, "every", struct limit_opts, is_every,
		 "with --heap: every allocation instead of a sample"),
	OPT_SIZE(
		0, "sample", struct limit_opts, interval_bytes, "SIZE",
		"with --heap: bytes between samples, on average (default: a 4096th of the limit, at "
		"most 512K)"),
	OPT_STR(0, "tier", struct limit_opts, tier, "NAME",
		"with --heap: how, as for assay heap (default: the best that is possible)"),
	OPT_END,
};
static const struct opt_group limit_heap_group = {"Heap", heap_table};

static const struct opt output_table[] = {
	OPT_U64(0, "limit", struct limit_opts, nr_rows, "N",
		"rows of memory over time, 0 for all (default 12)"),
	OPT_FLAG('j', "json", struct limit_opts, is_json, "the summary as JSON"),
	OPT_STR('o', "output", struct limit_opts, output, "FILE",
		"keep a recording: reclaim by stack (with --heap there is one anyway)"),
	OPT_END,
};
static const struct opt_group limit_output_group = {"Output", output_table};

static const char details[] =
	"Runs CMD in a memory cgroup of its own, version 1 or 2, and says at the end how near it came\n"
	"to the limit and what that cost: the peak, how often it was at the limit, reclaim by its own\n"
	"threads, pages read again, major faults, pressure, swap, and whether the kernel killed.\n"
	"assay itself stays outside of the group. The exit status is CMD's: 137 when it was killed.\n"
	"\n"
	"Page cache counts: a program that reads files is at its limit soon, and that alone is no\n"
	"harm. What hurts is pages read again, time in reclaim, and anonymous memory near the limit.\n"
	"\n"
	"The group is removed at the end, also when assay is killed; what CMD left running then goes\n"
	"on without a limit.\n"
	"\n"
	"With --heap there is a recording of the heap up to the kill, whose \"live\" is what the program\n"
	"had then, and the sentence about the kill names the largest allocators.\n"
	"\n"
	"Needs root (the command still runs as the user who called sudo), or a group that was given\n"
	"to you. --rlimit does without: it limits what each process asks for, not what it uses.";

static const char examples[] =
	"sudo assay limit --memory 2G -- ./server\tdoes it live in 2 GiB?\n"
	"sudo assay limit -m 2G --heap -- ./server\twhat is in it when it is full?\n"
	"sudo assay limit -m 512M --swap 0 --json -- ./job\tfor a script\n";

struct run {
	const struct limit_opts *o;
	struct limit_spec spec;
	struct limitgroup *group;
	struct capture_gate gate;
	char **command;
	struct heaptargets *targets; /* with --heap */
	struct heapsource_spec heap;
	struct heap_way way;
};

/* ---- at the gate -------------------------------------------------------------------------- */

static int gate_put(void *ctx, int32_t pid, struct err *err)
{
	struct run *run = ctx;
	return limitgroup_put(run->group, pid, err);
}

static void gate_look(void *ctx)
{
	struct run *run = ctx;
	limitgroup_look(run->group);
}

static void close_group(struct run *run)
{
	CLEANUP(err_release) struct err err = {0};
	if (limitgroup_close(run->group, &err)) {
		log_err(&err);
		log_hint("it goes when its last process has ended; assay clean --groups removes "
			 "it, too");
	}
}

static void gate_facts(void *ctx, struct profile *p)
{
	struct run *run = ctx;
	close_group(run);
	limit_facts(p, &run->spec, limitgroup_story(run->group));
}

/* ---- the end ------------------------------------------------------------------------------ */

static int tell(const struct run *run, const struct capture_result *r)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(buf_release) struct buf text = {0};
	const struct limit_end end = {.spec = &run->spec,
				      .story = limitgroup_story(run->group),
				      .command = run->command[0],
				      .profile = r->profile,
				      .has_reclaim = r->has_engine,
				      .exit_code = r->has_exit_code ? r->exit_code : 0};
	limit_report(report, &end, run->o->is_json ? 0 : run->o->nr_rows);
	if (run->o->is_json) {
		jsonout_render(&text, report);
		return cmd_print(&text);
	}
	struct text_style style = output_style(STDERR_FILENO);
	text_render(&text, report, &style);
	(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	return EXIT_OK;
}

static int finish(void *ctx, struct outputs *out, const struct capture_result *r)
{
	const struct run *run = ctx;
	if (run->o->has_heap) {
		int status = tell(run, r);
		int heap = heap_outputs_finish(out, r, NULL);
		return status == EXIT_OK ? heap : status;
	}
	outputs_say_disk(out, r);
	int status = tell(run, r);
	outputs_say_cost(r);
	outputs_say_files(out, r, false);
	return r->disk.code ? EXIT_FAILED : status;
}

/* ---- the run ------------------------------------------------------------------------------ */

static void say_refused(void *ctx, int32_t pid, const struct err *why)
{
	(void)ctx;
	log_warn("the heap of process %d is not recorded: %s", pid, err_msg(why));
	if (why->hint)
		log_hint("%s", why->hint);
}

/* So that what fills the limit is some thousand samples. */
static uint64_t interval_of(const struct limit_opts *o)
{
	uint64_t fit = MAX(o->memory_bytes / SAMPLES_IN_LIMIT, (uint64_t)INTERVAL_BYTES_MIN);
	return o->interval_bytes ? o->interval_bytes : MIN(fit, HEAP_RUN_INTERVAL);
}

/* The heap's sources beside that of reclaim. */
static void add_heap(struct run *run, struct capture_options *c)
{
	run->heap = (struct heapsource_spec){.targets = run->targets,
					     .forced = run->way.tier,
					     .is_every = run->o->is_every,
					     .interval_bytes = interval_of(run->o),
					     .follows_children = true,
					     .on_refused = say_refused};
	unsigned programs = c->programs;
	unsigned parts = c->io_parts;
	heap_way_apply(&run->way, c, &run->heap);
	c->programs |= programs;
	c->io_parts |= parts;
	c->heap = &run->heap;
	c->memory_spacing_ns = MEMORY_SPACING_NS;
}

static struct capture_options options_of(struct run *run)
{
	run->gate = (struct capture_gate){.put = gate_put,
					  .look = gate_look,
					  .facts = gate_facts,
					  .fd = limitgroup_fd(run->group),
					  .ctx = run};
	bool has_no_group = !limitgroup_path(run->group); /* nobody's reclaim but the machine's */
	struct capture_options c = {.kind = "limit",
				    .programs = ENGINE_IO,
				    .io_parts = IO_PART_RECLAIM,
				    .flags =
					    run->o->has_no_bpf || has_no_group ? CAPTURE_NO_BPF : 0,
				    .command = run->command,
				    .gate = &run->gate,
				    .recording_fd = -1};
	if (run->o->has_heap)
		add_heap(run, &c);
	return c;
}

static int run_unrecorded(struct run *run)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result result = {0};
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct capture_options c = options_of(run);
	c.cache_dir = cache_dir;
	int rc = stop_install(&err);
	rc = rc ? rc : capture_run(&result, &c, &err);
	if (rc) {
		log_err(&err);
		return result.has_exit_code ? result.exit_code : EXIT_ASSAY_FAILED;
	}
	int status = tell(run, &result);
	if (!result.has_exit_code)
		return status;
	return status == EXIT_FAILED && !result.exit_code ? EXIT_ASSAY_FAILED : result.exit_code;
}

static int run_recorded(struct run *run)
{
	struct recording rec = {
		.options = options_of(run), .count_name = "rows", .finish = finish, .ctx = run};
	return recording_run(&rec, run->o->output, path_base(run->command[0]));
}

static int limit(const struct limit_opts *o, enum heap_tier tier, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	struct run run = {.o = o,
			  .command = args->command,
			  .spec = {.memory_bytes = o->memory_bytes,
				   .swap_bytes = o->swap_bytes,
				   .flags = o->has_rlimit ? LIMIT_RLIMIT : 0}};
	if (limitgroup_open(&run.group, &run.spec, &err)) {
		log_err(&err);
		return EXIT_ASSAY_FAILED;
	}
	if (o->has_heap) {
		run.targets = heapplanner_new();
		heap_way_choose(&run.way, run.targets, tier, NULL);
		run.way.tier = tier;
	}
	int status = o->output || o->has_heap ? run_recorded(&run) : run_unrecorded(&run);
	close_group(&run);
	limitgroup_free(run.group);
	heap_way_release(&run.way);
	heaptargets_free(run.targets);
	return status;
}

int cmd_limit(int argc, char **argv)
{
	struct limit_opts o = {.swap_bytes = MEMGROUP_NO_LIMIT, .nr_rows = 12, .interval_bytes = 0};
	const struct opt_cmd cmd = {
		.name = "limit",
		.usage = {"--memory SIZE [options] -- CMD [ARG...]"},
		.summary = "run a command under a limit of memory, and see what that costs",
		.details = details,
		.examples = examples,
		.groups = {{&limit_group, &o}, {&limit_heap_group, &o}, {&limit_output_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.operands.n)
		return cmd_usage("limit", "unexpected '%s': the command follows --",
				 args.operands.p[0]);
	if (!args.command)
		return cmd_usage("limit", "say what to run: -- CMD");
	if (o.memory_bytes < MEMORY_BYTES_MIN)
		return cmd_usage("limit", o.memory_bytes ? "no program runs in less than 64 KiB"
							 : "say how much: --memory SIZE");
	if (o.has_rlimit && o.swap_bytes != MEMGROUP_NO_LIMIT)
		return cmd_usage("limit", "--swap needs a cgroup, --rlimit does without");
	enum heap_tier tier = HEAP_TIER_NONE;
	if (!o.has_heap && (o.is_every || o.tier || o.interval_bytes))
		return cmd_usage("limit", "--every, --sample and --tier go with --heap");
	if (o.tier && (!heapchoice_tier_from_name(o.tier, &tier) || tier == HEAP_TIER_PROF))
		return cmd_usage("limit", "'%s' is not one of hooks, patch, uprobes, growth",
				 o.tier);
	return limit(&o, tier, &args);
}
