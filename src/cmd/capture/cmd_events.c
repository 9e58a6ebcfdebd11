/* assay events: counts events by name. */
#include "base/base.h"

#include <sys/stat.h>

#include "analyze/io/eventsum.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/opt/opt.h"
#include "capture/events/counts.h"
#include "capture/events/set.h"
#include "cmd/capture/capture_command.h"
#include "cmd/cmd.h"
#include "host/bpfrights.h"
#include "host/limits.h"
#include "model/tables.h"

#define MAX_SIZE_DEFAULT ((uint64_t)256 << 20)

struct events_opts {
	struct opt_list events;
	struct opt_list sets;
	struct opt_list files;
	uint64_t max_bytes;
	uint64_t stack_pct;
	bool is_each;
	bool has_no_stacks;
	struct event_set set;
	struct counts_spec counts;
};

static const struct opt events_table[] = {
	OPT_LIST('e', "event", struct events_opts, events, "EVENT[,EVENT]",
		 "count these events: tracepoints, software events, patterns ('vmscan:*')"),
	OPT_LIST(0, "set", struct events_opts, sets, "NAME",
		 "count a predefined set of events: default, context-switches, io-bandwidth, "
		 "page-faults (default: default)"),
	OPT_LIST('f', "file", struct events_opts, files, "FILE",
		 "count the events named in FILE, one name a line, # starts a comment"),
	OPT_FLAG(0, "no-stacks", struct events_opts, has_no_stacks,
		 "count only, without call stacks"),
	OPT_U64_IN(0, "stack-budget", struct events_opts, stack_pct, 0, 100, "PERCENT",
		   "CPU time that the call stacks of one event may cost, in percent of one CPU; "
		   "above it only some events get a stack; 0: no limit (default 5)"),
	OPT_FLAG(0, "each-event", struct events_opts, is_each,
		 "record each single event: time, CPU, thread, arguments, call stack"),
	OPT_SIZE(0, "max-size", struct events_opts, max_bytes, "SIZE",
		 "with --each-event: bytes of single events, uncompressed; later ones are only "
		 "counted (default 256M)"),
	OPT_END,
};
static const struct opt_group events_group = {"Events", events_table};

static const char details[] =
	"Counts events by name in the kernel, by second, thread, outcome and call stack. Writes "
	"a recording and an HTML page with a flame graph of each event. Without -e, --set and FILE it counts the "
	"set \"default\". assay list events prints the names of events.\n"
	"\n"
	"TARGET is a process name, or one of the target options below. SECONDS is 60 by default; a "
	"launched CMD is recorded until it ends. A FILE with names of events may follow.\n"
	"\n"
	"Counts are exact. Call stacks are limited by what they cost (--stack-budget), and the "
	"share of events that have one is printed. Events of interrupts and of kernel threads "
	"that work for all processes (block:, writeback:, kswapd) are counted for the whole "
	"machine, with a stack only where the target itself caused them. Counting a system call "
	"costs every system call of every process about 25 ns, so none is counted unless asked "
	"for.";

static const char examples[] =
	"assay events redis-server 10\tlocks, syncs, block I/O, switches, faults\n"
	"assay events redis-server 60 ./my-events.conf\tevents named in a file\n"
	"assay events -e major-faults,'vmscan:*' -p 4242 30\tthese events only\n"
	"assay events --set io-bandwidth -- ./server\ta predefined set\n"
	"assay events --each-event -e syscalls:sys_enter_fsync postgres 5\tsingle events\n"
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

/* Moves files of event names out of the operands: TARGET SECONDS FILE. */
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
		rc = event_set_add_predefined(set, o->sets.p[i], err);
	for (size_t i = 0; !rc && i < o->files.n; i++)
		rc = event_set_add_file(set, o->files.p[i], err);
	if (!rc && !set->words.n)
		rc = event_set_add_predefined(set, "default", err);
	return rc;
}

/* Notes events that were asked for by name and may be frequent. Only BPF programs record stacks. */
static void warn_of_cost(const struct event_set *set, const struct capture_job *job)
{
	const struct events_opts *o = job->own;
	bool has_stacks = !o->has_no_stacks && !job->common.has_no_bpf &&
			  !host_bpf_rights(HOST_BTF_PATH, NULL);
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
	log_note("these events may be very frequent: %s; each one is counted%s", buf_str(&names),
		 has_stacks
			 ? ", call stacks are recorded for a limited share of them (--stack-budget)"
			 : "");
}

static int choose_events(struct event_set *set, const struct capture_job *job, struct err *err)
{
	const struct events_opts *o = job->own;
	int rc = add_words(set, o, err);
	rc = rc ? rc : event_set_resolve(set, err);
	/* A predefined set may lack events of this kernel; for the user's own list, print which. */
	bool is_own = o->events.n || o->files.n;
	bool is_root = host_is_root();
	vec_foreach(note, &set->notes)
		if (is_own || rc || !is_root)
			log_note("%s", *note);
	if (!rc && (is_own || o->sets.n))
		warn_of_cost(set, job);
	return rc;
}

/* ---- capture ------------------------------------------------------------------------------ */

static int check(struct capture_job *job, struct err *err)
{
	(void)err;
	take_files(job->own, &job->args);
	return 0;
}

static int prepare(struct capture_job *job, struct err *err)
{
	struct events_opts *o = job->own;
	TRY(choose_events(&o->set, job, err));
	o->counts = (struct counts_spec){.set = &o->set,
					 .first_spec = TABLE_EVENTS,
					 .keeps_singles = o->is_each,
					 .has_no_stacks = o->has_no_stacks,
					 .stack_budget_pct = (uint32_t)o->stack_pct,
					 .single_bytes_max = o->max_bytes};
	job->options.tables = TABLE_SET(EVENTS);
	job->options.counts = &o->counts;
	return 0;
}

/* The first page omits the most frequent stacks of each event; assay report prints them. */
static int page(struct capture_job *job, const struct capture_result *r, struct report *report,
		struct err *err)
{
	struct view_limits limits = capture_job_limits(job);
	return eventsum_report(report, r->profile, &job->spec, NULL, &limits, 0, err);
}

/* Do rows have outcomes? Context switches counted from /proc do: blocked, preempted. */
static bool has_outcomes(const struct profile *p)
{
	for (size_t i = 1; i < p->tags.n; i++)
		if (p->tags.p[i].detail)
			return true;
	return false;
}

static void print_notes(const struct capture_job *job, const struct capture_result *r)
{
	const struct events_opts *o = job->own;
	if (r->has_engine || !r->no_engine.code)
		return;
	log_warn("counts by thread only, without %s: %s",
		 has_outcomes(r->profile) ? "stacks" : "outcomes and stacks",
		 err_msg(&r->no_engine));
	if (r->no_engine.hint)
		log_hint("%s", r->no_engine.hint);
	if (o->is_each)
		log_warn("--each-event needs BPF programs: no single events were recorded");
}

static const struct opt_exclusion excluded[] = {
	{"freq", NULL, "every event is counted, none is sampled"},
	{0},
};

static const struct capture_command command = {
	.name = "events",
	.usage = {"[OPTION...] TARGET [SECONDS] [FILE]",
		  "[OPTION...] [TARGET] [SECONDS] -- CMD [ARG...]"},
	.details = details,
	.examples = examples,
	.excluded = excluded,
	.groups = {{&events_group, 0}},
	.view = VIEW_EVENTS,
	.nr_rows = 5,
	.noun = "events",
	.nothing = "none of these events occurred during the capture",
	.check = check,
	.prepare = prepare,
	.page = page,
	.print_notes = print_notes,
};

int cmd_events(int argc, char **argv)
{
	struct events_opts o = {.max_bytes = MAX_SIZE_DEFAULT,
				.stack_pct = COUNTS_STACK_BUDGET_PCT};
	int status = capture_command(&command, &o, argc, argv);
	event_set_release(&o.set);
	return status;
}
