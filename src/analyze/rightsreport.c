/* Tables of `assay doctor` on privileges; see rightsreport.h. */
#include "base/base.h"
#include "analyze/rightsreport.h"

#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/num.h"

#define BIT(cap) ((uint64_t)1 << (cap))

enum verdict { WORKS, DEGRADES, REFUSED, NOT_TRIED };
static const char *const verdicts[] = {"works", "degrades", "refused", "not tried"};

enum whose { OWN, OTHERS, SYSTEM, NR_WHOSE };
static const char *const whose_names[] = {"own processes", "other users' processes",
					  "whole system"};
#define ANYTHING "anything"

/* What a command needs, and its fallbacks. */
enum {
	NEEDS_PERF = 1 << 0, /* perf events are sufficient, without BPF programs */
	NEEDS_BPF = 1 << 1,  /* BPF programs are required */
	NEEDS_TRACEPOINTS = 1 << 2,
	NEEDS_UPROBES = 1 << 3,
	FALLS_TO_PROC = 1 << 4,   /* without perf events it polls /proc */
	FALLS_TO_COUNTS = 1 << 5, /* without BPF it has counts, but no stacks */
	IS_ALONE = 1 << 6,        /* does not need a target process */
	HAS_NO_SYSTEM = 1 << 7,
	NEEDS_PTRACE = 1 << 8, /* changes the target */
	READS_MEMORY = 1 << 9, /* reads the target's page tables and memory */
	NEEDS_CGROUP = 1 << 10,
};

/* For BPF programs and kernel symbols. */
#define STACKS (BIT(HOST_CAP_BPF) | BIT(HOST_CAP_PERFMON) | BIT(CAP_SYSLOG))

static const struct command {
	const char *name;
	unsigned needs;
	uint64_t caps; /* least privileges for its full function */
} commands[] = {
	{"cpu", NEEDS_PERF, STACKS},
	{"cpu --offcpu", NEEDS_PERF, STACKS},
	{"offcpu", NEEDS_PERF | FALLS_TO_PROC, STACKS},
	{"faults", NEEDS_BPF, STACKS},
	{"events (page-faults ...)", NEEDS_PERF | FALLS_TO_COUNTS, STACKS},
	{"events (tracepoints)", NEEDS_PERF | NEEDS_TRACEPOINTS | FALLS_TO_COUNTS,
	 STACKS | BIT(CAP_DAC_READ_SEARCH)},
	{"io", NEEDS_BPF | NEEDS_TRACEPOINTS, STACKS | BIT(CAP_DAC_READ_SEARCH)},
	{"latency", NEEDS_BPF | NEEDS_UPROBES | HAS_NO_SYSTEM, STACKS | BIT(CAP_SYS_ADMIN)},
	{"heap", NEEDS_PTRACE | HAS_NO_SYSTEM, BIT(CAP_SYS_PTRACE)},
	{"watch", READS_MEMORY | HAS_NO_SYSTEM, BIT(CAP_SYS_PTRACE)},
	{"limit", NEEDS_CGROUP | IS_ALONE, 0},
	{"list events", NEEDS_TRACEPOINTS | IS_ALONE, BIT(CAP_DAC_READ_SEARCH)},
	{"report, flame, script, convert, ls, clean, mark", IS_ALONE, 0},
};

static const struct {
	unsigned cap;
	const char *name; /* in the notation of setcap(8) and --cap-add */
} cap_names[] = {
	{HOST_CAP_BPF, "bpf"},          {HOST_CAP_PERFMON, "perfmon"},
	{CAP_SYSLOG, "syslog"},         {CAP_DAC_READ_SEARCH, "dac_read_search"},
	{CAP_SYS_PTRACE, "sys_ptrace"}, {CAP_SYS_ADMIN, "sys_admin"},
};

/* Appends the names: the first one preceded by @before, the others by @between. */
static void add_names(struct buf *to, uint64_t caps, const char *before, const char *between,
		      bool is_upper)
{
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++) {
		if (!(caps & BIT(cap_names[i].cap)))
			continue;
		buf_add_str(to, before);
		for (const char *c = cap_names[i].name; *c; c++)
			buf_add_ch(to, is_upper && *c != '_' ? (char)(*c - 32) : *c);
		before = between;
	}
}

static void add_caps(struct buf *to, uint64_t caps)
{
	if (caps)
		add_names(to, caps, "", ", ", true);
	else
		buf_add_str(to, "none");
}

static void add_cap_flags(struct buf *to, uint64_t caps)
{
	add_names(to, caps, " --cap-add ", " --cap-add ", true);
}

static bool is_contained(const struct features *f)
{
	return !f->is_init_pidns || f->seccomp == 2;
}

/*
 * Appends how to get the missing capabilities. If all are present, the seccomp filter or kernel
 * refuses.
 */
static void add_remedy(struct buf *to, const struct features *f, uint64_t caps, bool needs_tracefs)
{
	uint64_t missing = 0;
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++)
		if (caps & BIT(cap_names[i].cap) && !rights_permit(f->caps, cap_names[i].cap))
			missing |= BIT(cap_names[i].cap);
	if (!missing && needs_tracefs) {
		buf_add_str(to, is_contained(f)
					? "start the container with -v "
					  "/sys/kernel/tracing:/sys/kernel/tracing"
					: "sudo mount -t tracefs tracefs /sys/kernel/tracing");
		return;
	}
	if (!missing) {
		buf_add_str(to, is_contained(f) ? "--security-opt seccomp=assay-seccomp.json"
						: "privileges suffice, but the kernel was "
						  "built without it or is in lockdown mode");
		return;
	}
	if (is_contained(f)) {
		buf_add_str(to, "start the container with");
		add_cap_flags(to, missing);
		buf_add_str(to, " --security-opt seccomp=assay-seccomp.json");
		return;
	}
	buf_add_str(to, "sudo, or: sudo setcap ");
	add_names(to, caps, "cap_", ",cap_", false);
	buf_add_str(to, "+ep assay");
}

/* ---- judging ------------------------------------------------------------------------------- */

struct judgement {
	enum verdict verdict;
	struct buf why;
	struct buf remedy;
};

static void judgement_release(struct judgement *j)
{
	buf_release(&j->why);
	buf_release(&j->remedy);
}

static void find(struct judgement *j, enum verdict v, const char *why)
{
	if (v > j->verdict)
		j->verdict = v;
	buf_addf(&j->why, "%s%s", j->why.n ? "; " : "", why);
}

static int perf_refusal(const struct features *f, enum whose w)
{
	return w == OWN ? f->perf_own : w == OTHERS ? f->perf_others : f->perf_system;
}

static void judge_perf(struct judgement *j, const struct features *f, const struct command *c,
		       enum whose w)
{
	if (perf_refusal(f, w)) {
		if (c->needs & FALLS_TO_PROC) {
			find(j, DEGRADES, "polls /proc: times exact, wait reasons estimated");
		} else {
			find(j, REFUSED, "perf events are not permitted");
			if (f->seccomp == 2 && rights_permit(f->caps, HOST_CAP_PERFMON))
				buf_add_str(&j->why, " (by the container's seccomp filter)");
			else if (f->paranoid > (w == SYSTEM ? 0 : 2))
				buf_addf(&j->why, " (kernel.perf_event_paranoid is %" PRId64 ")",
					 f->paranoid);
		}
		return;
	}
	if (f->bpf)
		find(j, DEGRADES,
		     c->needs & FALLS_TO_COUNTS ? "counts by thread, no stacks"
		     : c->needs & FALLS_TO_PROC ? "no wakers, no --blame"
						: "user stacks are copied: higher overhead");
	if (f->perf_kernel)
		find(j, DEGRADES, "user code only");
}

static void judge_names(struct judgement *j, const struct features *f, enum whose w)
{
	if (j->verdict == REFUSED)
		return;
	if (!f->perf_kernel && !f->has_kernel_names)
		find(j, DEGRADES, "kernel functions unsymbolized");
	if (w != OWN && f->other_maps && f->other_maps != FEATURES_NOT_TRIED)
		find(j, DEGRADES, "mappings of other users' processes hidden");
	else if (w != OWN && f->other_root && f->other_root != FEATURES_NOT_TRIED)
		find(j, DEGRADES, "binaries in other users' containers unsymbolized");
}

/* Without CAP_SYS_PTRACE: own processes, and where Yama restricts it, only launched ones. */
static void judge_memory(struct judgement *j, const struct features *f, const struct command *c,
			 enum whose w)
{
	bool is_free = rights_permit(f->caps, CAP_SYS_PTRACE);
	bool is_restricted = w != OWN || f->ptrace_scope > 0;
	if (c->needs & NEEDS_CGROUP && f->limit)
		find(j, DEGRADES, "no memory cgroup can be created: only --rlimit works");
	if (is_free || !is_restricted)
		return;
	if (c->needs & READS_MEMORY)
		find(j, DEGRADES,
		     w == OWN ? "anonymous memory without owners" : "no PSS, no RSS breakdown");
	if (c->needs & NEEDS_PTRACE && w == OWN && f->ptrace_scope < 3)
		find(j, DEGRADES, "launched commands only");
	else if (c->needs & NEEDS_PTRACE)
		find(j, REFUSED, "ptrace is not permitted");
}

static uint64_t least_caps(const struct command *c, enum whose w)
{
	return c->caps | (w == OWN || c->needs & IS_ALONE ? 0 : BIT(CAP_SYS_PTRACE));
}

static void judge(struct judgement *j, const struct features *f, const struct command *c,
		  enum whose w)
{
	if (w == OTHERS && f->perf_others == FEATURES_NOT_TRIED) {
		find(j, NOT_TRIED, "no process of another user to test with");
		return;
	}
	if (c->needs & NEEDS_BPF && f->bpf)
		find(j, REFUSED, "BPF programs are not permitted");
	if (c->needs & NEEDS_TRACEPOINTS && f->tracepoints)
		find(j, c->needs & IS_ALONE ? DEGRADES : REFUSED,
		     c->needs & IS_ALONE ? "software events only" : "no access to tracefs");
	if (c->needs & NEEDS_UPROBES && f->uprobes)
		find(j, REFUSED, "uprobes are not permitted");
	if (c->needs & NEEDS_PERF && j->verdict != REFUSED)
		judge_perf(j, f, c, w);
	judge_memory(j, f, c, w);
	if (!(c->needs & (IS_ALONE | NEEDS_PTRACE | READS_MEMORY)))
		judge_names(j, f, w);
	if (j->verdict == WORKS)
		return;
	if (c->needs & NEEDS_CGROUP) {
		buf_add_str(&j->remedy, "sudo, or a cgroup that is delegated to you: systemd-run "
					"--user --scope -p Delegate=yes assay limit ...");
		return;
	}
	if (f->bpf == -ENOTSUP && !(f->has_btf && f->is_init_pidns))
		buf_add_str(&j->remedy, !f->has_btf
						? "a kernel with CONFIG_DEBUG_INFO_BTF (and /sys "
						  "mounted); also "
						: "run on the host or with --pid=host; also ");
	add_remedy(&j->remedy, f, least_caps(c, w), c->needs & NEEDS_TRACEPOINTS && f->tracepoints);
	if (w != SYSTEM && f->perf_own == -EACCES && f->paranoid > 2)
		buf_add_str(&j->remedy, "; for user code of own processes: sudo sysctl "
					"kernel.perf_event_paranoid=2");
}

/* ---- tables -------------------------------------------------------------------------------- */

static const struct report_column command_columns[] = {
	{"command", "command", CELL_TEXT, .is_prose = true},
	{"target", "target", CELL_TEXT, NULL},
	{"verdict", "verdict", CELL_TEXT, "works, degrades, refused, not tried"},
	{"remedy", "remedy", CELL_TEXT, "number in the table of remedies"},
	{"because", "because", CELL_TEXT, .is_prose = true},
};
static const struct report_column remedy_columns[] = {
	{"number", "no.", CELL_TEXT, NULL},
	{"remedy", "remedy", CELL_TEXT, .is_prose = true},
};

struct rights_page {
	struct report *r;
	const struct features *f;
	size_t commands; /* index: adding tables moves them */
	VEC(char *) remedies;
	bool is_refused;
};

static size_t number_of(struct rights_page *p, const struct buf *remedy)
{
	if (!remedy->n)
		return 0;
	for (size_t i = 0; i < p->remedies.n; i++)
		if (!strcmp(p->remedies.p[i], remedy->p))
			return i + 1;
	vec_push(&p->remedies, xstrdup(remedy->p));
	return p->remedies.n;
}

static void add_row(struct rights_page *p, const char *command, const char *of, struct judgement *j)
{
	p->is_refused |= j->verdict == REFUSED;
	(void)buf_str(&j->remedy);
	CLEANUP(buf_release) struct buf nr = {0};
	size_t n = number_of(p, &j->remedy);
	if (n)
		buf_addf(&nr, "(%zu)", n);
	report_add_texts(p->r, &p->r->tables.p[p->commands], command, of, verdicts[j->verdict],
			 buf_str(&nr), buf_str(&j->why));
}

/* Adds one row per kind of target, or a single row if all are equal. */
static void add_command(struct rights_page *p, const struct command *c)
{
	struct judgement of[NR_WHOSE] = {0};
	unsigned nr = c->needs & IS_ALONE ? 1 : c->needs & HAS_NO_SYSTEM ? 2 : NR_WHOSE;
	bool is_alike = true;
	for (unsigned w = 0; w < nr; w++) {
		judge(&of[w], p->f, c, w);
		is_alike &= of[w].verdict == of[0].verdict &&
			    !strcmp(buf_str(&of[w].why), buf_str(&of[0].why));
	}
	if (is_alike) /* the remedy of the last one covers the others */
		add_row(p, c->name, c->needs & IS_ALONE ? "-" : ANYTHING, &of[nr - 1]);
	else
		for (unsigned w = 0; w < nr; w++)
			add_row(p, c->name, whose_names[w], &of[w]);
	for (unsigned w = 0; w < NR_WHOSE; w++)
		judgement_release(&of[w]);
}

static const struct report_column least_columns[] = {
	{"command", "command", CELL_TEXT, .is_prose = true},
	{"capabilities", "capabilities", CELL_TEXT, .is_prose = true},
	{"container", "container flags", CELL_TEXT, .is_prose = true},
};

static void add_least(struct report *r)
{
	struct report_table *t =
		report_add_table(r, "least",
				 "least privileges for the full function of each command",
				 least_columns, ARRAY_LEN(least_columns));
	t->note = "other users' processes also need SYS_PTRACE if their files are not "
		  "reachable by path (containers) or if this kernel does not let CAP_PERFMON "
		  "read /proc/PID/maps";
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct command *c = &commands[i];
		CLEANUP(buf_release) struct buf caps = {0};
		CLEANUP(buf_release) struct buf flags = {0};
		add_caps(&caps, c->caps);
		if (c->needs & NEEDS_CGROUP)
			buf_add_str(&caps, ", but a memory cgroup that it may write");
		if (c->caps) {
			buf_add_str(&flags, "--cap-drop ALL");
			add_cap_flags(&flags, least_caps(c, OTHERS));
			buf_add_str(&flags, " --security-opt seccomp=assay-seccomp.json");
			if (!(c->needs & IS_ALONE))
				buf_add_str(&flags, " --pid=host");
			if (c->needs & NEEDS_TRACEPOINTS)
				buf_add_str(&flags, " -v /sys/kernel/tracing:/sys/kernel/tracing");
		}
		report_add_texts(r, t, c->name, buf_str(&caps), buf_str(&flags));
	}
}

bool rights_report(struct report *r, const struct features *f, bool has_least)
{
	struct rights_page p = {.r = r, .f = f, .commands = r->tables.n};
	(void)report_add_table(r, "commands", "commands on this host", command_columns,
			       ARRAY_LEN(command_columns));
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		add_command(&p, &commands[i]);
	if (p.remedies.n) {
		struct report_table *t = report_add_table(r, "remedies", "remedies", remedy_columns,
							  ARRAY_LEN(remedy_columns));
		for (size_t i = 0; i < p.remedies.n; i++) {
			CLEANUP(buf_release) struct buf nr = {0};
			buf_addf(&nr, "(%zu)", i + 1);
			report_add_texts(r, t, buf_str(&nr), p.remedies.p[i]);
			free_p(&p.remedies.p[i]);
		}
	}
	vec_release(&p.remedies);
	if (has_least)
		add_least(r);
	return !p.is_refused;
}

/* ---- the host ------------------------------------------------------------------------------ */

static const struct report_column host_columns[] = {
	{"feature", "feature", CELL_TEXT, NULL},
	{"state", "state", CELL_TEXT, .is_prose = true},
	{"meaning", "meaning", CELL_TEXT, .is_prose = true},
};

static const char *tried(struct arena *a, int rc)
{
	return !rc                        ? "yes"
	       : rc == FEATURES_NOT_TRIED ? "not tried"
					  : arena_strdup(a, strerror(-rc));
}

static const char *number(struct arena *a, int64_t v)
{
	return arena_fmt(a, "%" PRId64, v);
}

/* -1: /proc/sys has no such file, or it cannot be read. */
static const char *setting(struct arena *a, int64_t v)
{
	return v == -1 ? "not in /proc/sys" : number(a, v);
}

static const char *yes_no(bool is_so)
{
	return is_so ? "yes" : "no";
}

void rights_host_report(struct report *r, const struct features *f)
{
	struct arena *a = &r->arena;
	CLEANUP(buf_release) struct buf caps = {0};
	uint64_t have = 0;
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++)
		have |= f->caps & BIT(cap_names[i].cap);
	add_caps(&caps, have);
	const char *const rows[][3] = {
		{"capabilities", buf_str(&caps), "only those that assay uses are listed"},
		{"perf events, user code", tried(a, f->perf_own), "own processes"},
		{"perf events, kernel code", tried(a, f->perf_kernel), "own processes"},
		{"perf events, other users' processes", tried(a, f->perf_others), ""},
		{"perf events, whole system", tried(a, f->perf_system), ""},
		{"hardware counters (PMU)",
		 f->pmu == -ENOENT ? "none on this machine" : tried(a, f->pmu),
		 f->pmu ? "sampling is by cpu-clock" : "sampling is by cycles"},
		{"BPF programs", tried(a, f->bpf), "load and run"},
		{"BTF", yes_no(f->has_btf), "type information of the running kernel"},
		{"tracepoints by name", tried(a, f->tracepoints), "tracefs"},
		{"probes on user functions", tried(a, f->uprobes), "uprobes"},
		{"kernel symbols", f->has_kernel_names ? "yes" : "hidden", "/proc/kallsyms"},
		{"mappings of other users' processes", tried(a, f->other_maps), "/proc/PID/maps"},
		{"files of other users' processes", tried(a, f->other_root), "/proc/PID/root"},
		{"PID namespace", f->is_init_pidns ? "the host's" : "a container's",
		 f->is_init_pidns ? ""
				  : "PIDs differ from those that BPF programs see: --pid=host"},
		{"seccomp filter", f->seccomp < 0 ? "-" : yes_no(f->seccomp == 2), ""},
		{"no new privileges", yes_no(f->has_no_new_privs),
		 f->has_no_new_privs ? "sudo and setcap have no effect" : ""},
		{"cgroups",
		 f->has_cgroup_v1 ? (f->has_cgroup_v2 ? "v1 and v2" : "v1")
				  : (f->has_cgroup_v2 ? "v2" : "none"),
		 ""},
		{"kernel.perf_event_paranoid", number(a, f->paranoid),
		 "2: own processes, user code; 1: kernel code; 0: whole system"},
		{"kernel.kptr_restrict", setting(a, f->kptr_restrict),
		 "1: kernel symbols need CAP_SYSLOG; 2: hidden from everybody"},
		{"kernel.unprivileged_bpf_disabled", setting(a, f->unprivileged_bpf), ""},
		{"kernel.yama.ptrace_scope", setting(a, f->ptrace_scope), ""},
		{"kernel.perf_event_max_sample_rate", setting(a, f->max_sample_rate), "Hz"},
		{"kernel.perf_event_max_stack", setting(a, f->max_stack), "frames"},
		{"kernel.perf_event_mlock_kb", setting(a, f->mlock_kb),
		 "KiB of ring buffers per CPU and user"},
		{"open files", number(a, (int64_t)MIN(f->nofile, (uint64_t)INT64_MAX)),
		 "one per thread and CPU"},
		{"locked memory",
		 f->memlock == UINT64_MAX ? "no limit"
					  : arena_fmt(a, "%s", num_bytes(f->memlock).s),
		 "limits the size of ring buffers"},
	};
	struct report_table *t =
		report_add_table(r, "host", "features of this host, as tested for this user",
				 host_columns, ARRAY_LEN(host_columns));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		report_add_texts(r, t, rows[i][0], rows[i][1], rows[i][2]);
}
