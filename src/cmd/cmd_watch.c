/* assay watch: the memory of a program, live. */
#include "base/base.h"
#include "cmd/cmd.h"

#include "base/clock.h"
#include "cmd/watch_run.h"

#define EVERY_MIN_NS (10 * NS_PER_MS)

static const struct opt table[] = {
	OPT_DURATION(0, "every", struct watch_opts, every_ns, "TIME",
		     "time from one reading to the next (default 1s, 10ms at least)"),
	OPT_FLAG(
		0, "allocator", struct watch_opts, asks_allocator,
		"ask the allocator (jemalloc) what is in use: borrows a thread for a moment, once a "
		"second"),
	OPT_FLAG(0, "mappings", struct watch_opts, shows_mappings,
		 "show every mapping, as pmap -x does"),
	OPT_END,
};
static const struct opt_group watch_group = {"What is read", table};

static const struct opt out_table[] = {
	OPT_FLAG(0, "csv", struct watch_opts, is_csv, "one line of CSV a reading; bytes are plain"),
	OPT_FLAG(0, "json", struct watch_opts, is_json,
		 "one object a line for each reading, a last one with the summary"),
	OPT_U64(0, "limit", struct watch_opts, limit, "N",
		"rows of the tables at the end, 0 for all (default 15)"),
	OPT_STR(0, "chart", struct watch_opts, chart, "FILE",
		"draw memory over time (SVG) to FILE at the end"),
	OPT_STR('o', "output", struct watch_opts, output, "FILE",
		"record it, for assay report and flame"),
	OPT_END,
};
static const struct opt_group out_group = {"Output", out_table};

static const char details[] =
	"Shows what the kernel says of a program's memory, once a second: RSS and what it is made of\n"
	"(anonymous memory, pages of mapped files, shared memory), PSS, swap, page faults, growth; its\n"
	"memory cgroup's usage and how long threads waited for memory. On a terminal as a page that\n"
	"is kept up to date (q ends it, m shows mappings, space reads now), else as lines.\n"
	"\n"
	"At the end: how fast each part grew, with its 95 % interval; a verdict with its evidence\n"
	"(leak, fragmentation, page-cache, bloat, steady, inconclusive: see assay-watch(1)); and what\n"
	"the RSS consists of: heap, stacks, code, files by name, and what nobody can name.\n"
	"\n"
	"Nothing of the target is stopped or changed. Of several processes the numbers are added up:\n"
	"PSS is right then, RSS counts what they share once for each.";

static const char examples[] =
	"assay watch redis-server\tuntil q or Ctrl-C\n"
	"assay watch -p 4242 600 --csv > memory.csv\tten minutes, for a spreadsheet\n"
	"assay watch postgres --all-matching --every 10s -o day.assay 86400\ta day of all of them\n"
	"assay watch --mappings -p 4242 1\twhat is mapped, like pmap -x\n"
	"assay watch -- ./load\ta program from its start to its end\n";

int cmd_watch(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	struct watch_opts o = {.every_ns = NS_PER_SEC, .limit = 15};
	const struct opt_cmd cmd = {
		.name = "watch",
		.usage = {"[options] TARGET [SECONDS]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "the memory of a program, live: what it is, how it grows",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target}, {&watch_group, &o}, {&out_group, &o}},
	};
	int status;
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		if (o.is_csv && o.is_json)
			status = cmd_usage("watch", "--csv and --json are two kinds of output");
		else if (o.every_ns < EVERY_MIN_NS)
			status = cmd_usage("watch", "--every: readings are 10ms apart at least");
		else if (o.target.is_system)
			status = cmd_usage("watch", "the whole system has no one memory to watch: "
						    "name processes, --match with --all-matching");
		else if (target_opts_choose(&target, &o.target, &args, &status))
			status = watch_run(&o, &target, &args);
	}
	target_opts_release(&o.target);
	return status;
}
