/* assay doctor: reports what this machine permits, with remedies. */
#include "base/base.h"

#include <unistd.h>

#include "analyze/memory/heapframes.h"
#include "analyze/rightsreport.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt/opt.h"
#include "capture/heap/planner.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "cmd/capture/targetopts.h"
#include "host/features.h"
#include "host/limits.h"
#include "host/proc.h"
#include "plan/binaries.h"
#include "plan/heapchoice.h"
#include "plan/jemallocenv.h"
#include "render/renderers.h"

struct doctor_opts {
	struct target_opts target;
	struct renderer_choice form;
	bool is_brief;
};

static const struct opt doctor_table[] = {
	OPT_FLAG('s', "short", struct doctor_opts, is_brief,
		 "print only the table of commands and the remedies"),
	OPT_END,
};
static const struct opt_group doctor_group = {"Output", doctor_table};

static const char details[] =
	"Tries what each command needs from this kernel, user and container: opens and closes "
	"events, loads a BPF program, reads files; changes nothing. Prints for each command "
	"whether it works, works with less, or is refused and why, with the remedy, and the "
	"least capabilities and container flags that it needs. With TARGET, also whether that "
	"process may be profiled, what its binaries lack, and the build flags that add it.";

static const char examples[] = "assay doctor\tthis machine and user\n"
			       "assay doctor redis-server\talso this process and its binaries\n"
			       "assay doctor --json\tthe result as JSON\n";

static const struct opt_exclusion excluded[] = {
	{"tid", NULL, "whole processes are examined, name one with -p PID"},
	{"all", NULL, "without TARGET the machine alone is examined"},
	{0},
};

/* ---- the binaries of a process -------------------------------------------------------------- */

static const struct report_column binary_columns[] = {
	{"binary", "binary", CELL_TEXT, NULL},
	{"symbols", "symbols", CELL_TEXT, "all, functions, exported, none"},
	{"debug_info", "debug info", CELL_TEXT, "inside, separate, none"},
	{"unwind_tables", "unwind tables", CELL_TEXT, NULL},
	{"frame_pointers", "frame pointers", CELL_TEXT, "yes, some, no; assay does not need them"},
	{"build_id", "build-id", CELL_TEXT, NULL},
};

/* Adds notes with build flags for the program itself, which the user can rebuild. */
static void add_advice(struct report *r, const struct binary_facts *b)
{
	const char *name = path_base(b->path);
	if (!strcmp(b->debug, "none"))
		report_note(r,
			    "%s: no debug information: functions without inlined ones, files and "
			    "lines. cargo: [profile.release] debug = \"line-tables-only\"; "
			    "cmake: -DCMAKE_BUILD_TYPE=RelWithDebInfo; make: CFLAGS='-O2 -g'; a "
			    "package of the distribution: its -dbgsym or -debuginfo package",
			    name);
	if (strcmp(b->symbols, "all"))
		report_note(r,
			    "%s: stripped: functions that are not exported have no names. cargo: "
			    "strip = false; cmake: make install without /strip; make: no "
			    "'strip', no '-s' in LDFLAGS",
			    name);
	if (!b->has_unwind_tables)
		report_note(r,
			    "%s: no unwind tables: stacks by frame pointers only. cargo: "
			    "RUSTFLAGS='-C force-unwind-tables=yes -C "
			    "force-frame-pointers=yes'; cmake and make: "
			    "CFLAGS='-fasynchronous-unwind-tables -fno-omit-frame-pointer'",
			    name);
}

/* Adds a row for each mapped binary: symbols, debug information, unwind tables. */
static void add_binaries(struct report *r, struct report_table *t, int32_t pid)
{
	CLEANUP(binaries_release) struct binaries all;
	uint64_t nr_closed = 0;
	const struct binary_facts *program = NULL;
	if (binaries_read(&all, pid, NULL))
		report_note(
			r,
			"cannot read the mappings of process %d: run with sudo, or give assay CAP_SYS_PTRACE",
			pid);
	vec_foreach(b, &all.list) {
		if (heapframes_is_recorder(path_base(b->path)))
			continue;
		nr_closed += b->is_unreadable;
		if (!program && (b->is_unreadable || b->symbols))
			program = b;
		if (b->symbols)
			report_add_texts(r, t, b->path, b->symbols, b->debug,
					 b->has_unwind_tables ? "yes" : "no", b->frames,
					 b->has_build_id ? "yes" : "no");
	}
	if (nr_closed)
		report_note(
			r,
			"%" PRIu64
			" binaries of process %d cannot be read: run with sudo, or give assay CAP_SYS_PTRACE (in a container --cap-add SYS_PTRACE)",
			nr_closed, pid);
	if (program && program->symbols)
		add_advice(r, program);
}

/* ---- its allocator -------------------------------------------------------------------------- */

static const struct report_column allocator_columns[] = {
	{"what", "memory", CELL_TEXT, NULL},
	{"is", "state", CELL_TEXT, NULL},
	{"note", "note", CELL_TEXT, .is_prose = true},
};

static void add_jemalloc(struct report *r, struct report_table *t, const struct heaptarget *h)
{
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (!m)
		return;
	const struct allocfind_jemalloc *j = &m->found->jemalloc;
	const char *variable = j->variable ? j->variable : "MALLOC_CONF";
	enum jemallocenv_setting word = jemallocenv_prof_setting(h->pid, variable);
	if (!j->has_prof) {
		report_add_texts(
			r, t, "jemalloc's own profiler", "not built in",
			"--enable-prof; tikv-jemallocator: features = [\"profiling\"]. `assay heap` "
			"does not need it, --dump does");
	} else if (word == JEMALLOCENV_ON) {
		report_add_texts(r, t, "jemalloc's own profiler", "on",
				 "`assay heap --dump` and --dump-every work");
	} else {
		char *how CLEANUP(free_p) =
			xasprintf("for --dump start it with %s=prof:true, as `assay env "
				  "--jemalloc-prof -- CMD` does; not needed by `assay heap`",
				  variable);
		report_add_texts(
			r, t, "jemalloc's own profiler",
			word == JEMALLOCENV_OFF
				? "built in, not enabled in its environment"
				: "built in; its environment is empty (overwritten?) or cannot be read",
			how);
	}
	report_add_texts(r, t, "allocator's statistics", j->mallctl ? "yes" : "no",
			 j->mallctl ? "`assay heap --stats`"
				    : "the functions of its jemalloc were not found");
}

static void add_allocator(struct report *r, int32_t pid)
{
	CLEANUP(err_release) struct err err = {0};
	struct heaptargets *known CLEANUP(heaptargets_free_p) = heapplanner_new();
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	if (heaptargets_inspect(known, pid, &h, &err) ||
	    heapchoice_plan(&h, HEAP_METHOD_NONE, NULL, &plan, &err)) {
		report_note(r, "cannot find its allocator: %s", err_msg(&err));
		return;
	}
	struct report_table *t = report_add_table(r, "allocator", "its allocator",
						  allocator_columns, ARRAY_LEN(allocator_columns));
	report_add_texts(r, t, "allocator", plan.allocator_text, "");
	report_add_texts(r, t, "assay heap", heapchoice_method_name(plan.method), plan.reason);
	add_jemalloc(r, t, &h);
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Adds the tables of a process. Returns false if it may not be profiled or has ended. */
static bool add_process(struct report *r, int32_t pid)
{
	CLEANUP(buf_release) struct buf title = {0};
	buf_addf(&title, "process %d: ", pid);
	if (proc_comm(&title, pid, pid, NULL)) {
		log_error("process %d has ended", pid);
		return false;
	}
	int rc = features_probe_process(pid);
	buf_addf(&title, ", %s%s", rc ? "may not be profiled: " : "may be profiled",
		 rc ? strerror(-rc) : "");
	if (rc) {
		CLEANUP(buf_release) struct buf remedy = {0};
		host_perf_remedy(&remedy, rc, pid);
		report_note(r, "%s", buf_str(&remedy));
	}
	struct report_table *t = report_add_table(r, "target", buf_str(&title), binary_columns,
						  ARRAY_LEN(binary_columns));
	add_binaries(r, t, pid);
	add_allocator(r, pid);
	return !rc;
}

static int examine(const struct doctor_opts *o, const struct chosen_target *t)
{
	struct features f;
	features_probe(&f);
	CLEANUP(report_free_p) struct report *r = report_new();
	r->title = "assay doctor";
	r->has_no_samples = true;
	if (!o->is_brief)
		rights_host_report(r, &f);
	bool is_good = rights_report(r, &f, !o->is_brief);
	vec_foreach(pid, &t->target.pids.pids)
		is_good &= add_process(r, *pid);
	CLEANUP(buf_release) struct buf b = {0};
	struct text_style style = output_style(&o->form, STDOUT_FILENO);
	style.max_lines = 0; /* every check counts */
	renderer_render(&o->form, &b, r, &style);
	int printed = cmd_print(&b);
	return printed != EXIT_OK ? printed : is_good ? EXIT_OK : EXIT_FAILED;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "doctor",
		.usage = {"[OPTION...] [TARGET]"},
		.details = details,
		.examples = examples,
		.excluded = excluded,
		.groups = {{&target_group, &o.target},
			   {&doctor_group, &o},
			   {&renderer_group, &o.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	const struct target_opts *t = &o.target;
	bool has_target =
		args.operands.n || t->pids.n || t->tids.n || t->names.n || t->match || t->is_system;
	if (has_target && !target_opts_choose(&target, t, &args, &status))
		return status;
	return examine(&o, &target);
}
