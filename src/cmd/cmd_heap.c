/* assay heap: who allocates, what stays, what leaks. */
#include "base/base.h"

#include "base/opt.h"
#include "plan/heapplan.h"
#include "cmd/cmd.h"
#include "cmd/heap_dump.h"
#include "cmd/heap_run.h"
#include "cmd/targetopts.h"

static const struct opt_choice tier_choices[] = {
	{"prof", HEAP_TIER_PROF, "jemalloc's own profiling"},
	{"hooks", HEAP_TIER_HOOKS, "hooks of jemalloc 5.2 to 5.3.1"},
	{"patch", HEAP_TIER_PATCH, "the allocator's functions are patched"},
	{"uprobes", HEAP_TIER_UPROBES, "programs in the kernel, nothing in the process"},
	{"growth", HEAP_TIER_GROWTH, "page faults: what grows, not what is allocated"},
	{0},
};

static const struct opt heap_table_of_options[] = {
	OPT_FLAG(0, "every", struct heap_run_opts, is_every,
		 "every allocation instead of a sample: exact, peak and temporary blocks too"),
	OPT_SIZE(0, "sample", struct heap_run_opts, interval_bytes, "SIZE",
		 "bytes between samples, on average (default 512K); blocks of that size and more "
		 "are all seen"),
	OPT_ENUM(0, "tier", struct heap_run_opts, tier, tier_choices, "NAME",
		 "how (default: the best that is possible, "
		 "which is told)"),
	OPT_STR(0, "older-than", struct heap_run_opts, older_than, "TIME",
		"blocks that live at the end and are older count as leaked (default: half of the "
		"capture)"),
	OPT_STR(0, "suppress", struct heap_run_opts, suppress, "FILE",
		"leaks that are known, not to be shown"),
	OPT_DURATION(0, "spacing", struct heap_run_opts, spacing_ns, "TIME",
		     "between readings of RSS and its parts (default 1s)"),
	OPT_DURATION('D', "delay", struct heap_run_opts, delay_ns, "TIME",
		     "a running target: wait this long before it starts"),
	OPT_FLAG(0, "no-inlines", struct heap_run_opts, has_no_inlines, "physical functions only"),
	OPT_FLAG(0, "hashes", struct heap_run_opts, has_hashes,
		 "keep hashes and disambiguators in Rust names"),
	OPT_LIST(0, "debug-dir", struct heap_run_opts, debug_dirs, "DIR",
		 "look for debug files here, too"),
	OPT_END,
};
static const struct opt_group heap_group = {"Heap", heap_table_of_options};

static const struct opt output_table[] = {
	OPT_STR('o', "output", struct heap_run_opts, output, "FILE",
		"name of the recording; pictures share its stem (default "
		"profiling/TARGET/heap-TIME.assay)"),
	OPT_FLAG(0, "all-pictures", struct heap_run_opts, has_all_pictures,
		 "a flame graph of each weight that there is, not of the usual ones alone"),
	OPT_FLAG(0, "no-pictures", struct heap_run_opts, has_no_pictures,
		 "write the recording only, no flame graphs"),
	OPT_END,
};
static const struct opt_group output_group_heap = {"Output", output_table};

static const char details[] =
	"Who allocates memory, how much and how often, what of it lives, what leaks, what lived at\n"
	"the peak, what was freed at once. Works on running processes and launched commands, with\n"
	"glibc, musl, jemalloc (static and prefixed too), tcmalloc, mimalloc; how it gets at the\n"
	"allocator is chosen by what the process has and told, with the reason.\n"
	"\n"
	"By default a sample is taken every 512 KiB of allocated bytes, at random, which costs next\n"
	"to nothing; numbers are estimates then, with their 95 % intervals. --every records all.\n"
	"Live is what was allocated in the capture and not freed; leaked is what lives at the end\n"
	"and is older than half of the capture (--older-than). Frees of blocks from before the\n"
	"capture are counted apart.\n"
	"\n"
	"A small recorder is put into the process for the capture; it unwinds there and writes to\n"
	"memory that is shared with assay. Without assay it falls silent after two seconds. Nothing\n"
	"of it is active afterwards; what stays mapped is its code, some 100 kB, for the next time.\n"
	"TARGET is a process name (see also -p, --match). SECONDS is 60 for a running target; a\n"
	"launched CMD is followed to its end. Ctrl-C stops early and still writes everything.\n"
	"\n"
	"--dump, --dump-every and --stats ask a jemalloc for what it knows itself.";

static const char examples[] =
	"assay heap myserver 30\tthirty seconds of a running service, sampled\n"
	"assay heap --every -- ./program\tevery allocation from start to end\n"
	"assay heap --sample 64K -p 4242 60\tfiner samples\n"
	"assay heap --older-than 10s myserver\twhat lives for ten seconds counts as leaked\n"
	"assay heap --dump-every +1GiB-rss myserver 3600\tdumps of jemalloc's profile as it grows\n"
	"assay heap --stats myserver\tjemalloc's statistics, now\n";

static int run(struct heap_run_opts *o, const struct heap_dump_opts *dump,
	       const struct chosen_target *t, const struct opt_args *args)
{
	if (heap_dump_is_asked(dump))
		return t->has_target ? heap_dump_run(dump, t, o->output)
				     : cmd_usage("heap", "--dump, --dump-every and --stats need a "
							 "running target");
	if (o->delay_ns && !t->has_target)
		return cmd_usage("heap", "--delay needs a running target: start the command, then "
					 "profile it by name");
	if (t->has_target && t->target.is_system)
		return cmd_usage("heap", "-a: heaps are recorded process by process, name some");
	if (t->has_target && t->target.tids.pids.n)
		return cmd_usage("heap",
				 "-t: a heap belongs to the whole process, name it with -p");
	o->is_json = dump->is_json;
	return heap_run(o, t, args);
}

int cmd_heap(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct heap_run_opts o = {.interval_bytes = HEAP_RUN_INTERVAL};
	struct heap_dump_opts dump = {0};
	const struct opt_cmd cmd = {
		.name = "heap",
		.usage = {"[options] TARGET [SECONDS]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "who allocates memory, what lives, what leaks",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target},
			   {&heap_group, &o},
			   {&heap_dump_group, &dump},
			   {&output_group_heap, &o}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status) &&
	    target_opts_choose(&target, &o.target, &args, &status))
		status = run(&o, &dump, &target, &args);
	target_opts_release(&o.target);
	opt_list_release(&o.debug_dirs);
	return status;
}
