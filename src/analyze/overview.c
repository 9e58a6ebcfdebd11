/* The first page; see overview.h. */
#include "base/base.h"
#include "analyze/overview.h"

#include <math.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/stacks/skid.h"
#include "analyze/stacks/threads.h"
#include "analyze/stacks/top.h"
#include "analyze/wait/breakdown.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/num.h"
#include "base/stat.h"

#define FEW_CPUS 0.1 /* below: why there are few samples; the threads may sleep, wait or queue */
#define UNSEEN   3   /* 95 % limit of a Poisson count of 0 */
#define SHORT_NS (2 * NS_PER_SEC)

static struct num_text cpus_text(double cpus)
{
	return num_double(cpus, cpus < 0.1 ? 4 : 2);
}

static void add_facts(struct report *r, const struct selection *sel)
{
	double cpus = view_cpus(sel, view_busy(sel));
	report_fact_duration(r, view_duration_ns(sel));
	if (cpus >= 0 && sel->nr_samples)
		report_fact(r, FACT_CPUS_IN_USE,
			    view_of_selection(r, sel,
					      arena_fmt(&r->arena, "%s on average",
							cpus_text(cpus).s)));
}

/*
 * CPUs in use as the page shows them: measured from switch to switch, else at most what the samples allow for.
 * Negative: not known.
 */
static double most_cpus(struct arena *a, const struct selection *sel)
{
	struct weight busy = view_busy(sel);
	struct weight most = {.weight = busy.weight, .nr_samples = busy.nr_samples + UNSEEN};
	struct breakdown l;
	if (tables_has_rows(sel->p, TABLE_ON_CPU) &&
	    !breakdown_make(a, sel->p, &(struct select_spec){0}, &l, NULL) && l.window_ns)
		return (double)l.total.ns[WAIT_ON_CPU] / (double)l.window_ns;
	return view_cpus(sel, busy) >= 0 ? view_cpus(sel, most) : -1;
}

/* Returns the likely cause of few samples and what would help, or "". */
static const char *few_samples_cause(struct arena *a, const struct selection *sel, double effective)
{
	uint64_t ns = view_duration_ns(sel);
	if (view_nr_out(sel)) /* what is said of the selection is not so of the target */
		return "; the filters removed the others";
	CLEANUP(buf_release) struct buf b = {0};
	double cpus = ns ? most_cpus(a, sel) : -1;
	if (cpus >= 0 && cpus < FEW_CPUS)
		buf_addf(&b, "; the target used less than %s CPUs on average over %s",
			 num_double(FEW_CPUS, 1).s, num_ns(ns).s);
	else if (ns && ns < SHORT_NS)
		buf_addf(&b, "; the capture lasted only %s", num_ns(ns).s);
	/* rows of a heap that another format gave are no samples by time */
	bool is_by_time = view_is_cpu_time(sel) || (sel->table < sel->p->tables.n &&
						    sel->p->tables.p[sel->table].freq_hz > 0);
	if (is_by_time && ns && effective > 0 && effective < VIEW_FEW_SAMPLES)
		buf_addf(&b,
			 "; for %s samples record about %s, or a higher rate (-F) in proportion",
			 num_count(OVERVIEW_FEW_SAMPLES).s,
			 num_ns((uint64_t)((double)ns * OVERVIEW_FEW_SAMPLES / effective)).s);
	return arena_strdup(a, buf_str(&b));
}

static void note_few_samples(struct report *r, const struct selection *sel)
{
	uint64_t n = sel->nr_samples;
	double effective = view_effective(sel, view_all(sel));
	if (effective >= OVERVIEW_FEW_SAMPLES || view_is_exact(sel))
		return;
	const char *cause = few_samples_cause(&r->arena, sel, effective);
	if (!n) {
		report_note(r, "no samples to show%s", cause);
		return;
	}
	const char *what = sel->effective > 0 && ceil(effective) < (double)n
				   ? arena_fmt(&r->arena,
					       "%s samples of varying periods are as exact as %.0f "
					       "of equal ones",
					       num_count(n).s, ceil(effective))
				   : arena_fmt(&r->arena, "only %s", num_noun(n, "samples").s);
	report_note(r, "%s%s: the 95 %% confidence interval of a 50 %% share is +-%s points%s",
		    what, effective < VIEW_FEW_SAMPLES ? ", too few for percentages" : "",
		    num_pct(stat_share_pct_error(effective / 2, effective)).s, cause);
}

static void note_idle_threads(struct report *r, const struct selection *sel)
{
	struct weight all = view_all(sel);
	struct weight busy = view_busy(sel);
	if (busy.weight < all.weight && view_is_cpu_time(sel))
		report_note(
			r,
			"%s %% of the samples are of idle CPUs (swapper): they count in the "
			"tables, not as CPUs in use; to leave them out: --thread '^(?!swapper)'",
			num_pct(view_pct(all.weight - busy.weight, all.weight)).s);
}

static void note_other_events(struct report *r, const struct selection *sel)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (uint32_t i = 0; i < sel->p->tables.n; i++) {
		const struct table *t = &sel->p->tables.p[i];
		if (i == sel->table || !t->n)
			continue;
		buf_addf(&b, "%s%s", b.n ? ", " : "", profile_text(sel->p, t->event));
	}
	if (hotcold_exists(sel->p) && sel->id != TABLE_THREAD_TIME)
		buf_addf(&b, "%s%s", b.n ? ", " : "", table_key(TABLE_THREAD_TIME));
	if (b.n)
		report_detail(r, "other events in this profile (--event): %s", buf_str(&b));
}

void overview_begin(struct report *r, const struct selection *sel)
{
	if (heapweights_is_memory(sel)) {
		heapsum_begin(r, sel->p, sel);
		return;
	}
	view_begin(r, sel, view_title(&r->arena, sel));
	add_facts(r, sel);
	if (sel->table >= sel->p->tables.n || !sel->p->tables.p[sel->table].has_tags)
		note_few_samples(r, sel);
	skid_note(r, sel);
	note_idle_threads(r, sel);
	note_other_events(r, sel);
}

bool overview_add_regex(struct buf *to, const char *name)
{
	if (strpbrk(name, "\\\n"))
		return false;
	bool is_plain = !strpbrk(name, "^$.*+?()[]{}|");
	buf_addf(to, is_plain ? "^%s$" : "^\\Q%s\\E$", name);
	return true;
}

static void add_hints(struct report *r, const struct report_table *functions, const char *input)
{
	report_hint(r, &(struct report_hint){HINT_FLAME, input, {{0}}});
	report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_TREE, NULL}}});
	if (!functions->nr_rows)
		return;
	for (size_t c = 0; c < functions->nr_columns; c++) {
		CLEANUP(buf_release) struct buf b = {0};
		if (strcmp(functions->columns[c].key, "function") != 0 ||
		    !overview_add_regex(&b, functions->cells[c].text))
			continue;
		report_hint(r, &(struct report_hint){
				       HINT_REPORT, input, {{HINT_CALLERS, buf_str(&b)}}});
	}
}

void overview_report(struct report *r, const struct selection *sel, const struct select_spec *spec,
		     const char *input, const struct view_limits *limits)
{
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, OVERVIEW_ROWS) : 0;
	if (view_is_cpu_time(sel)) {
		CLEANUP(measures_free_p) struct measures *m = measures_new(sel->p, spec, input);
		measures_give_cpu(m, sel);
		diagnose_page(r, m, 1u << MEASURE_CPU, 0, 0);
		skid_note_cost(r, sel);
	}
	top_report(r, sel, BY_FUNCTION, limits);
	top_report(r, sel, BY_CRATE, &few);
	thread_groups_report(r, sel, &few);
	/* Where waits follow, they are more than a second grouping of the same samples. */
	for (size_t i = 1; i < r->tables.n; i++)
		r->tables.p[i].is_detail = hotcold_exists(sel->p) && sel->id == TABLE_SAMPLES;
	if (input && sel->nr_samples)
		add_hints(r, &r->tables.p[0], input);
}
