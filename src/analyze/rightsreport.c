/* Tables of `assay doctor` on privileges; see rightsreport.h. */
#include "base/base.h"
#include "analyze/rightsreport.h"

#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/num.h"

#define BIT(n)   (1u << (n))
#define ANYTHING "anything"

static const char *const verdicts[] = {"works", "degrades", "refused", "not tried"};
static const char *const whose_names[] = {"own processes", "other users' processes",
					  "whole system"};
static const char *const whose_short[] = {"own", "other users'", "system"};

/* Appends "events (tracepoints)". */
static void add_use(struct buf *to, const struct rights_row *row)
{
	buf_add_str(to, row->command);
	if (row->needs->form)
		buf_addf(to, " (%s)", row->needs->form);
}

/* ---- one screen: uses of commands with the same result in one row ----------------------------- */

struct group {
	struct rights_result result;
	unsigned whose;   /* bits of enum rights_whose, ALL_WHOSE; 0: no target */
	struct buf names; /* of the uses: "cpu, io" */
	size_t nr;
};

/* Every kind of target that the command has: latency has no whole system. */
#define ALL_WHOSE (BIT(RIGHTS_WHOSE_NR) - 1)

struct screen {
	const struct rights_page *page;
	VEC(struct group) groups;
	unsigned remedies; /* of all groups */
	uint64_t caps;
};

static void screen_release(struct screen *s)
{
	vec_foreach(g, &s->groups) {
		rights_result_release(&g->result);
		buf_release(&g->names);
	}
	vec_release(&s->groups);
}

static bool is_same_result(struct rights_result *a, struct rights_result *b)
{
	return a->verdict == b->verdict && a->remedies == b->remedies &&
	       !strcmp(buf_str(&a->why), buf_str(&b->why));
}

/*
 * Of what does not work, the first reason is enough for a screen, without its cause: the remedies are
 * those of all.
 */
static void shorten(struct rights_result *res)
{
	size_t n = strcspn(buf_str(&res->why), ";(");
	if (res->verdict != RIGHTS_REFUSED || n >= res->why.n)
		return;
	res->why.n = n && res->why.p[n] == '(' ? n - 1 : n;
	res->why.p[res->why.n] = 0;
}

/* Moves the result into the group of its like. */
static void add_to_group(struct screen *s, struct rights_result *res, unsigned whose,
			 const struct rights_row *row)
{
	struct group *to = NULL;
	vec_foreach(g, &s->groups)
		if (!to && g->whose == whose && is_same_result(&g->result, res))
			to = g;
	s->remedies |= res->remedies;
	s->caps |= res->caps;
	if (!to) {
		to = vec_add(&s->groups);
		*to = (struct group){.whose = whose, .result = *res};
	} else {
		rights_result_release(res);
	}
	buf_add_str(&to->names, to->nr++ ? ", " : "");
	add_use(&to->names, row);
}

/* Adds a use: kinds of targets with the same result together. */
static void judge_row(struct screen *s, const struct rights_row *row)
{
	const struct rights_page *p = s->page;
	unsigned nr = rights_nr_whose(row->needs);
	unsigned all = nr == 1 ? BIT(RIGHTS_OWN) : (BIT(nr) - 1) & p->whose;
	struct rights_result of[RIGHTS_WHOSE_NR] = {0};
	unsigned done = 0;
	for (unsigned w = 0; w < nr; w++) {
		if (!(all & BIT(w)))
			continue;
		rights_judge(&of[w], p->rows, p->nr_rows, row, w, p->features);
		shorten(&of[w]);
	}
	for (unsigned w = 0; w < nr; w++) {
		unsigned whose = 0;
		if (!(all & BIT(w)) || done & BIT(w))
			continue;
		for (unsigned k = w; k < nr; k++)
			if (all & BIT(k) && is_same_result(&of[w], &of[k]))
				whose |= BIT(k);
		done |= whose;
		for (unsigned k = w + 1; k < nr; k++)
			if (whose & BIT(k))
				rights_result_release(&of[k]);
		add_to_group(s, &of[w], nr == 1 ? 0 : whose == all ? ALL_WHOSE : whose, row);
	}
}

/* Those that need no target last, and not on the page of a target. */
static void judge_all(struct screen *s)
{
	for (int pass = 0; pass < (s->page->is_one_target ? 1 : 2); pass++)
		for (size_t i = 0; i < s->page->nr_rows; i++)
			if ((rights_nr_whose(s->page->rows[i].needs) == 1) == pass)
				judge_row(s, &s->page->rows[i]);
}

enum { WITH_TARGETS = 1 };

static const struct report_column good_columns[] = {
	{"target", "processes", CELL_TEXT, NULL, .when = WITH_TARGETS, .is_prose = true},
	{"commands", "commands", CELL_TEXT, .is_prose = true},
};
static const struct report_column lacking_columns[] = {
	{"target", "processes", CELL_TEXT, NULL, .when = WITH_TARGETS, .is_prose = true},
	{"commands", "commands", CELL_TEXT, .is_prose = true},
	{"because", "because", CELL_TEXT, .is_prose = true},
	{"remedy", "remedy", CELL_TEXT, "numbers in the table of remedies"},
};

static const char *targets_text(struct arena *a, unsigned whose)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (unsigned w = 0; w < RIGHTS_WHOSE_NR; w++)
		if (whose & BIT(w))
			buf_addf(&b, "%s%s", b.n ? ", " : "", whose_short[w]);
	return !whose ? "none needed" : whose == ALL_WHOSE ? "all" : arena_strdup(a, buf_str(&b));
}

/* The number of a remedy: its place among those that are needed. */
static unsigned number_of(unsigned all, unsigned kind)
{
	return (unsigned)__builtin_popcount(all & (BIT(kind) - 1)) + 1;
}

static const char *remedy_numbers(struct arena *a, unsigned all, unsigned remedies)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (unsigned k = 0; k < RIGHTS_REMEDY_NR; k++)
		if (remedies & BIT(k))
			buf_addf(&b, "(%u)", number_of(all, k));
	return arena_strdup(a, buf_str(&b));
}

/* Adds the groups with the verdict, if there are any. */
static void add_groups(struct screen *s, enum rights_verdict v, const char *key, const char *title)
{
	struct report *r = s->page->report;
	bool is_good = v == RIGHTS_WORKS;
	struct report_table *t = NULL;
	vec_foreach(g, &s->groups) {
		if (g->result.verdict != v)
			continue;
		if (!t)
			t = report_add_table_of(
				r, key, title, is_good ? good_columns : lacking_columns,
				is_good ? ARRAY_LEN(good_columns) : ARRAY_LEN(lacking_columns),
				s->page->is_one_target ? 0 : WITH_TARGETS);
		const union cell cells[] = {
			{.text = targets_text(&r->arena, g->whose)},
			{.text = buf_str(&g->names)},
			{.text = buf_str(&g->result.why)},
			{.text = remedy_numbers(&r->arena, s->remedies, g->result.remedies)},
		};
		report_add_row(r, t, cells);
	}
}

static const struct report_column remedy_columns[] = {
	{"number", "no.", CELL_TEXT, NULL},
	{"remedy", "remedy", CELL_TEXT, .is_prose = true},
};

static void add_remedies(struct screen *s)
{
	struct report *r = s->page->report;
	if (!s->remedies)
		return;
	struct report_table *t =
		report_add_table(r, "remedies",
				 s->page->has_details ? "remedies"
						      : "remedies (least privileges of each "
							"command: --details)",
				 remedy_columns, ARRAY_LEN(remedy_columns));
	for (unsigned k = 0; k < RIGHTS_REMEDY_NR; k++) {
		CLEANUP(buf_release) struct buf text = {0};
		if (!(s->remedies & BIT(k)))
			continue;
		rights_add_remedy(&text, k, s->caps, s->page->features);
		report_add_texts(r, t, arena_fmt(&r->arena, "(%u)", number_of(s->remedies, k)),
				 buf_str(&text));
	}
}

static void add_host_notes(const struct rights_page *p)
{
	const struct features *f = p->features;
	if (f->pmu && !p->is_one_target)
		report_note(p->report, "no hardware counters (%s): CPU time by the CPU clock",
			    f->pmu == -ENOENT ? "not on this machine" : strerror(-f->pmu));
	if (!p->is_one_target && f->perf_others == FEATURES_NOT_TRIED)
		report_note(p->report, "other users' processes: not tried, none is running");
}

bool rights_report(const struct rights_page *p)
{
	CLEANUP(screen_release) struct screen s = {.page = p};
	bool has_refused = false;
	judge_all(&s);
	add_groups(&s, RIGHTS_WORKS, "works", "works");
	add_groups(&s, RIGHTS_DEGRADES, "degraded", "works in part");
	add_groups(&s, RIGHTS_REFUSED, "refused", "does not work");
	add_remedies(&s);
	add_host_notes(p);
	vec_foreach(g, &s.groups)
		has_refused |= g->result.verdict == RIGHTS_REFUSED;
	return !has_refused;
}

/* ---- details: a row for each command and target ------------------------------------------------ */

static const struct report_column command_columns[] = {
	{"command", "command", CELL_TEXT, .is_prose = true},
	{"target", "target", CELL_TEXT, NULL},
	{"verdict", "verdict", CELL_TEXT, "works, degrades, refused, not tried"},
	{"because", "because", CELL_TEXT, .is_prose = true},
	{"remedy", "remedy", CELL_TEXT, .is_prose = true},
};

static void add_row(const struct rights_page *p, struct report_table *t, const char *command,
		    const char *of, struct rights_result *res)
{
	CLEANUP(buf_release) struct buf remedy = {0};
	for (unsigned k = 0; k < RIGHTS_REMEDY_NR; k++) {
		if (!(res->remedies & BIT(k)))
			continue;
		buf_add_str(&remedy, remedy.n ? "; " : "");
		rights_add_remedy(&remedy, k, res->caps, p->features);
	}
	report_add_texts(p->report, t, command, of, verdicts[res->verdict], buf_str(&res->why),
			 buf_str(&remedy));
}

/* Adds one row per kind of target, or a single row if all are equal. */
static void add_command(const struct rights_page *p, struct report_table *t,
			const struct rights_row *row)
{
	struct rights_result of[RIGHTS_WHOSE_NR] = {0};
	unsigned nr = rights_nr_whose(row->needs);
	bool is_alike = true;
	CLEANUP(buf_release) struct buf name = {0};
	add_use(&name, row);
	for (unsigned w = 0; w < nr; w++) {
		rights_judge(&of[w], p->rows, p->nr_rows, row, w, p->features);
		is_alike &= of[w].verdict == of[0].verdict &&
			    !strcmp(buf_str(&of[w].why), buf_str(&of[0].why));
	}
	if (is_alike) /* the remedy of the last one covers the others */
		add_row(p, t, buf_str(&name), nr == 1 ? "-" : ANYTHING, &of[nr - 1]);
	else
		for (unsigned w = 0; w < nr; w++)
			add_row(p, t, buf_str(&name), whose_names[w], &of[w]);
	for (unsigned w = 0; w < RIGHTS_WHOSE_NR; w++)
		rights_result_release(&of[w]);
}

static const struct report_column least_columns[] = {
	{"command", "command", CELL_TEXT, .is_prose = true},
	{"capabilities", "capabilities", CELL_TEXT, .is_prose = true},
	{"container", "container flags", CELL_TEXT, .is_prose = true},
};

/* Capabilities of a use, with those of its parts. */
static uint64_t caps_of(const struct rights_page *p, const struct rights_row *row)
{
	uint64_t caps = row->needs->caps;
	for (struct sv left = sv_from_str(row->needs->parts ? row->needs->parts : ""); left.n;) {
		struct sv name = sv_split(&left, ' ');
		for (size_t i = 0; i < p->nr_rows; i++)
			if (sv_eq_str(name, p->rows[i].command) && !p->rows[i].needs->form)
				caps |= p->rows[i].needs->caps;
	}
	return caps;
}

void rights_add_flags(struct buf *to, uint64_t caps, unsigned needs)
{
	buf_add_str(to, "--cap-drop ALL");
	rights_add_cap_flags(to, caps);
	buf_add_str(to, " --security-opt seccomp=assay-seccomp.json");
	if (!(needs & RIGHTS_IS_ALONE))
		buf_add_str(to, " --pid=host");
	if (needs & RIGHTS_TRACEPOINTS)
		buf_add_str(to, " -v /sys/kernel/tracing:/sys/kernel/tracing");
}

static void add_least(const struct rights_page *p)
{
	struct report_table *t =
		report_add_table(p->report, "least",
				 "least privileges for the full function of each command",
				 least_columns, ARRAY_LEN(least_columns));
	t->note = "other users' processes also need SYS_PTRACE if their files are not "
		  "reachable by path (containers) or if this kernel does not let CAP_PERFMON "
		  "read /proc/PID/maps";
	for (size_t i = 0; i < p->nr_rows; i++) {
		const struct rights_row *row = &p->rows[i];
		CLEANUP(buf_release) struct buf name = {0};
		CLEANUP(buf_release) struct buf caps = {0};
		CLEANUP(buf_release) struct buf flags = {0};
		uint64_t own = caps_of(p, row);
		bool is_targeted = rights_nr_whose(row->needs) > 1;
		add_use(&name, row);
		rights_add_caps(&caps, own);
		if (row->needs->bits & RIGHTS_CGROUP)
			buf_add_str(&caps, ", but a memory cgroup that it may write");
		if (own)
			rights_add_flags(&flags,
					 own | (is_targeted ? ((uint64_t)1 << CAP_SYS_PTRACE) : 0),
					 row->needs->bits);
		report_add_texts(p->report, t, buf_str(&name), buf_str(&caps), buf_str(&flags));
	}
}

void rights_detail_report(const struct rights_page *p)
{
	struct report_table *t = report_add_table(p->report, "commands", "commands on this host",
						  command_columns, ARRAY_LEN(command_columns));
	for (size_t i = 0; i < p->nr_rows; i++)
		add_command(p, t, &p->rows[i]);
	add_least(p);
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
	rights_add_caps(&caps, f->caps);
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
		{"kernel", f->release, ""},
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
