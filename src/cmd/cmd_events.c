/* assay events: counts events by name. */
#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/stop.h"
#include "capture/counts.h"
#include "capture/eventset.h"
#include "cmd/cmd.h"
#include "cmd/event_outputs.h"
#include "cmd/targetopts.h"
#include "host/cachedir.h"
#include "host/limits.h"
#include "session/capture.h"
#include "session/store.h"
#include "model/tables.h"

#define SECONDS_DEFAULT  60
#define MAX_SIZE_DEFAULT ((uint64_t)256 << 20)

struct events_opts {
	struct target_opts target;
	struct opt_list events;
	struct opt_list sets;
	struct opt_list files;
	uint64_t delay_ns;
	uint64_t max_bytes;
	uint64_t stack_pct;
	bool is_each;
	bool has_no_stacks;
	bool has_no_bpf;
	bool has_no_pictures;
	const char *output;
	struct opt_list debug_dirs;
};

static const struct opt events_table[] = {
	OPT_LIST('e', "event", struct events_opts, events, "EVENT[,EVENT]",
		 "count these: tracepoints, software events, patterns ('vmscan:*')"),
	OPT_LIST(0, "set", struct events_opts, sets, "NAME",
		 "a ready set: default, context-switches, io-bandwidth, page-faults"),
	OPT_LIST('f', "file", struct events_opts, files, "FILE",
		 "names of events from a file, one a line, # begins a comment"),
	OPT_FLAG(0, "each-event", struct events_opts, is_each,
		 "keep every single event with its time, CPU, thread, arguments and stack"),
	OPT_SIZE(0, "max-size", struct events_opts, max_bytes, "SIZE",
		 "of single events, uncompressed; what comes after is only counted (default 256M)"),
	OPT_U64_IN(0, "stack-budget", struct events_opts, stack_pct, 0, 100, "PERCENT",
		   "of a CPU's time, for taking the stacks of one event; beyond it only some hits "
		   "get one; 0: no limit (default 5)"),
	OPT_FLAG(0, "no-stacks", struct events_opts, has_no_stacks, "counts only"),
	OPT_DURATION('D', "delay", struct events_opts, delay_ns, "TIME",
		     "a running target: wait this long before counting starts"),
	OPT_FLAG(0, "no-bpf", struct events_opts, has_no_bpf,
		 "load no programs into the kernel: counts by thread, no outcomes, no stacks"),
	OPT_LIST(0, "debug-dir", struct events_opts, debug_dirs, "DIR",
		 "look for debug files here, too"),
	OPT_END,
};
static const struct opt_group events_group = {"Events", events_table};

static const struct opt output_table[] = {
	OPT_STR('o', "output", struct events_opts, output, "FILE",
		"name of the recording; pictures share its stem (default "
		"profiling/TARGET/events-TIME.assay)"),
	OPT_FLAG(0, "no-pictures", struct events_opts, has_no_pictures,
		 "write the recording only, no flame graphs"),
	OPT_END,
};
static const struct opt_group output_group_events = {"Output", output_table};

static const char details[] =
	"Counts events by name, every one of them, in the kernel: by second, thread, outcome and\n"
	"whole stack. Writes a recording and a flame graph of each event. TARGET and SECONDS are as\n"
	"in assay cpu; a FILE of event names may follow them. Without -e, --set and FILE the set\n"
	"\"default\" is counted. assay list events shows what there is.\n"
	"\n"
	"Counts are exact. Stacks are limited by what they cost (--stack-budget), and the share of\n"
	"events that have one is printed. Events of interrupts and of other threads that the kernel\n"
	"lets work for everybody (block:, writeback:, kswapd) are counted for the whole machine,\n"
	"with the stack only where the target itself caused them. Counting a system call costs\n"
	"every system call of every process some 25 ns, so none is counted that was not asked for.";

static const char examples[] =
	"assay events redis-server 10\tlocks, syncs, block requests, switches, faults\n"
	"assay events redis-server 60 ./my-events.conf\tevents named in a file\n"
	"assay events -e major-faults,'vmscan:*' -p 4242 30\t\n"
	"assay events --set io-bandwidth -- ./server\t\n"
	"assay events --each-event -e syscalls:sys_enter_fsync postgres 5\tsingle events; then\n"
	"assay script --event syscalls:sys_enter_fsync\tprint them\n";

/* ---- which events ------------------------------------------------------------------------- */

static bool is_file_word(const char *word, size_t idx)
{
	struct stat st;
	if (word[0] >= '0' && word[0] <= '9' && !strchr(word, '/') && !strchr(word, '.'))
		return false;
	if (strchr(word, '/') || sv_has_suffix(sv_from_str(word), SV(".conf")))
		return true;
	return idx > 0 && !stat(word, &st) && S_ISREG(st.st_mode);
}

/* A file of event names may stand among the words: TARGET SECONDS FILE. */
static void take_files(struct events_opts *o, struct opt_args *args)
{
	size_t kept = 0;
	for (size_t i = 0; i < args->operands.n; i++) {
		char *word = args->operands.p[i];
		if (!is_file_word(word, i)) {
			args->operands.p[kept++] = word;
			continue;
		}
		vec_push(&o->files, word);
	}
	args->operands.n = kept;
}

static int add_words(struct event_set *set, const struct events_opts *o, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < o->events.n; i++)
		rc = event_set_add_list(set, o->events.p[i], err);
	for (size_t i = 0; !rc && i < o->sets.n; i++)
		rc = event_set_add_ready(set, o->sets.p[i], err);
	for (size_t i = 0; !rc && i < o->files.n; i++)
		rc = event_set_add_file(set, o->files.p[i], err);
	if (!rc && !set->words.n)
		rc = event_set_add_ready(set, "default", err);
	return rc;
}

/* What was asked for by name and can be dear. */
static void warn_of_cost(const struct event_set *set)
{
	CLEANUP(buf_release) struct buf names = {0};
	size_t nr = 0;
	vec_foreach(e, &set->events) {
		if (e->cost != EVENT_COST_HIGH)
			continue;
		if (nr++ < 4)
			buf_addf(&names, "%s%s", names.n ? ", " : "", e->name);
	}
	if (!nr)
		return;
	if (nr > 4)
		buf_addf(&names, " and %zu more", nr - 4);
	log_note("these can come very often: %s; every one is counted, stacks are limited by their "
		 "cost",
		 buf_str(&names));
}

static int choose_events(struct event_set *set, const struct events_opts *o)
{
	CLEANUP(err_release) struct err err = {0};
	int rc = add_words(set, o, &err);
	rc = rc ? rc : event_set_resolve(set, &err);
	/* A ready set knows what may be missing; the user's own list is told what was. */
	bool is_own = o->events.n || o->files.n;
	bool is_root = host_is_root();
	vec_foreach(note, &set->notes)
		if (is_own || rc || !is_root)
			log_note("%s", *note);
	if (rc) {
		log_err(&err);
		return rc == -EINVAL || rc == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
	}
	if (is_own || o->sets.n)
		warn_of_cost(set);
	return EXIT_OK;
}

/* ---- capture ------------------------------------------------------------------------------ */

struct events_progress {
	struct progress bar;
};

static void show_status(void *ctx, const struct capture_status *s)
{
	struct events_progress *p = ctx;
	if (!progress_due(&p->bar))
		return;
	CLEANUP(buf_release) struct buf text = {0};
	num_add_count(&text, s->losses->nr[LOSS_WRITTEN]);
	buf_add_str(&text, " events");
	if (s->is_naming)
		buf_addf(&text, ", naming %" PRIu64 " of %" PRIu64 " addresses", s->nr_named,
			 s->nr_to_name);
	else if (s->left_ns != UINT64_MAX)
		buf_addf(&text, ", %" PRIu64 " s left", (s->left_ns + 999999999u) / 1000000000u);
	else
		buf_addf(&text, ", %" PRIu64 " s", s->elapsed_ns / 1000000000u);
	progress_text(&p->bar, "%s", buf_str(&text));
}

struct events_run {
	const struct events_opts *o;
	const struct chosen_target *t;
	const struct opt_args *args;
	const struct event_set *set;
	struct store_place place;
	int recording_fd;
};

static void events_run_release(struct events_run *run)
{
	if (!run->place.stem)
		return;
	close_p(&run->recording_fd);
	store_place_release(&run->place);
}

static struct capture_options options_from(const struct events_run *run,
					   const struct counts_spec *counts)
{
	const struct events_opts *o = run->o;
	struct capture_options c = {
		.kind = "events",
		.programs = ENGINE_COUNTS,
		.flags = o->has_no_bpf ? CAPTURE_NO_BPF : 0,
		.counts = counts,
		.target = run->t->has_target ? &run->t->target : NULL,
		.command = run->args->command,
		.duration_ns = run->t->duration_ns,
		.delay_ns = o->delay_ns,
		.debug_dirs = o->debug_dirs.p,
		.nr_debug_dirs = o->debug_dirs.n,
	};
	if (!c.duration_ns && !c.command)
		c.duration_ns = (uint64_t)SECONDS_DEFAULT * 1000000000u;
	return c;
}

static int failed_status(const struct capture_result *r, bool has_command)
{
	if (r->has_exit_code)
		return r->exit_code;
	return has_command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

static void say_accuracy(const struct events_run *run, const struct capture_result *r)
{
	if (r->has_engine || !r->no_engine.code)
		return;
	log_warn("counts by thread only, without outcomes and stacks: %s", err_msg(&r->no_engine));
	if (r->no_engine.hint)
		log_hint("%s", r->no_engine.hint);
	if (run->o->is_each)
		log_warn("--each-event needs programs in the kernel: no single events were kept");
}

static int capture(struct events_run *run)
{
	bool has_command = run->args->command != NULL;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result result = {0};
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct events_progress progress = {0};
	struct counts_spec counts = {.set = run->set,
				     .first_spec = TABLE_EVENTS,
				     .keeps_singles = run->o->is_each,
				     .has_no_stacks = run->o->has_no_stacks,
				     .stack_budget_pct = (uint32_t)run->o->stack_pct,
				     .single_bytes_max = run->o->max_bytes};
	struct capture_options c = options_from(run, &counts);
	c.status = show_status;
	c.ctx = &progress;
	c.cache_dir = cache_dir;
	int rc = stop_install(&err);
	if (!rc) {
		c.recording_fd = take_fd(&run->recording_fd);
		progress_init(&progress.bar, "events");
		rc = capture_run(&result, &c, &err);
		progress_release(&progress.bar);
	}
	if (rc) {
		log_err(&err);
		store_abandon(&run->place);
		return failed_status(&result, has_command);
	}
	say_accuracy(run, &result);
	bool skips_pictures = run->o->has_no_pictures || stop_count() > 1;
	int status = event_outputs_finish(&run->place, &result, skips_pictures, has_command);
	if (!result.has_exit_code)
		return status;
	/* Our own failure must not pass for a good run of the command. */
	bool has_failed = status == EXIT_FAILED && !result.exit_code;
	return has_failed ? EXIT_ASSAY_FAILED : result.exit_code;
}

static int run(const struct events_opts *o, const struct chosen_target *t,
	       const struct opt_args *args)
{
	CLEANUP(event_set_release) struct event_set set = {0};
	CLEANUP(err_release) struct err err = {0};
	int failed = args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
	if (o->delay_ns && !t->has_target)
		return cmd_usage("events", "--delay needs a running target: start the command, "
					   "then count its events by name");
	int status = choose_events(&set, o);
	if (status)
		return status == EXIT_FAILED ? failed : status;
	CLEANUP(events_run_release)
	struct events_run r = {.o = o, .t = t, .args = args, .set = &set, .recording_fd = -1};
	const char *name = t->has_target ? t->target.name : path_base(args->command[0]);
	int rc = o->output ? store_place_at(&r.place, &r.recording_fd, o->output, &err)
			   : store_place_new(&r.place, &r.recording_fd, NULL, name, "events",
					     clock_real_ns(), &err);
	if (!rc)
		return capture(&r);
	log_err(&err);
	return failed;
}

int cmd_events(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct events_opts o = {.max_bytes = MAX_SIZE_DEFAULT,
				.stack_pct = COUNTS_STACK_BUDGET_PCT};
	const struct opt_cmd cmd = {
		.name = "events",
		.usage = {"[options] TARGET [SECONDS] [FILE]",
			  "[options] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.summary = "count events by name, exactly, with their stacks",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target},
			   {&events_group, &o},
			   {&output_group_events, &o}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		take_files(&o, &args);
		if (target_opts_choose(&target, &o.target, &args, &status))
			status = run(&o, &target, &args);
	}
	target_opts_release(&o.target);
	opt_list_release(&o.events);
	opt_list_release(&o.sets);
	opt_list_release(&o.files);
	opt_list_release(&o.debug_dirs);
	return status;
}
