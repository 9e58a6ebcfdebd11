/* The first page of a recording of waits; see waittables.h. */
#include "base/base.h"
#include "analyze/wait/waittables.h"

#include <math.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/runtimes.h"
#include "base/clock.h"
#include "base/text/num.h"

#define CLOSES_PCT   0.5
#define PAGE_ROWS    10
#define DIFFER_SHARE 0.05 /* samples and on-CPU time: less is not worth a line */

struct page {
	struct report *r;
	const struct profile *p;
	const struct breakdown *l;
	const struct selection *sel;
	enum select_scope scope;
};

static struct num_text pct_text(double pct)
{
	return num_double(pct, pct < 10 ? 1 : 0);
}

/* ---- how far the numbers go ---------------------------------------------------------------- */

static void note_accuracy(const struct page *pg)
{
	const struct breakdown *l = pg->l;
	double covered = breakdown_covered_pct(&l->total);
	uint64_t off_ns = breakdown_sum_ns(&l->total) - l->total.ns[WAIT_ON_CPU];
	if (l->polled_ns)
		report_note(
			pg->r,
			"the wait reasons and stacks of %s %% of off-CPU time are from polls of "
			"/proc: those of short waits are estimates",
			pct_text(view_pct(l->polled_ns, off_ns)).s);
	if (covered < 100 - CLOSES_PCT) /* an excess is noted with the breakdown */
		report_note(pg->r, "the breakdown covers %s %% of total thread time",
			    pct_text(covered).s);
	uint64_t futex = 0;
	for (enum wait_reason w = WAIT_NONE; w < WAIT_NR; w++)
		futex += wait_is_of_futex(w) ? l->total.ns[w] : 0;
	double unreported = view_pct(l->total.ns[WAIT_SYNC], futex);
	if (unreported >= 10 && l->total.ns[WAIT_SYNC] >= 50 * NS_PER_MS)
		report_note(
			pg->r,
			"%s %% of futex wait time may be lock waits or parking: no known locking "
			"function is on those stacks",
			pct_text(unreported).s);
}

static void note_durations(const struct page *pg, const struct select_spec *spec)
{
	if (!spec->min_duration && !spec->max_duration)
		return;
	report_note(pg->r,
		    "durations are stored in power-of-two buckets: shown are waits of %s to "
		    "%s",
		    num_ns(pg->sel->min_ns).s,
		    pg->sel->max_ns ? num_ns(pg->sel->max_ns).s : "any length");
}

/*
 * Samples are of all that the timer interrupted; on-CPU time is from switch to switch. They differ by
 * a quarter if a thread switches every 40 us, so both stand on the page with what they cover.
 */
static void note_samples(const struct page *pg)
{
	const struct table *t = tables_find(pg->p, TABLE_SAMPLES);
	uint64_t nr = pg->r->nr_samples;
	bool is_of_samples = pg->r->noun && !strcmp(pg->r->noun, "samples");
	if (!is_of_samples || !nr || !t || !(t->freq_hz > 0) || pg->scope == SELECT_ROWS)
		return;
	double sampled_ns = (double)nr / t->freq_hz * NS_PER_SEC;
	double on_cpu_ns = (double)pg->l->total.ns[WAIT_ON_CPU];
	double noise_ns = 2 * sqrt((double)nr) / t->freq_hz * NS_PER_SEC;
	double differ_ns = fabs(sampled_ns - on_cpu_ns);
	if (differ_ns <= noise_ns || differ_ns <= DIFFER_SHARE * on_cpu_ns)
		return;
	report_note(
		pg->r,
		"%s at %s Hz stand for %s, an estimate; threads were on CPU for %s, counted from context "
		"switch to context switch: flame graphs of thread time scale the samples to that",
		num_noun(nr, "samples").s, num_count((uint64_t)t->freq_hz).s,
		num_ns((uint64_t)sampled_ns).s, num_ns((uint64_t)on_cpu_ns).s);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void add_facts(const struct page *pg)
{
	const struct breakdown_row *total = &pg->l->total;
	uint64_t nr = total->nr_voluntary + total->nr_involuntary;
	uint64_t nr_woken = pg->l->woken.nr_all;
	const char *sum = arena_fmt(&pg->r->arena, "%s", num_count(nr).s);
	if (nr_woken)
		sum = arena_fmt(&pg->r->arena, "%s (+ %s = %s)", sum,
				num_noun(nr_woken, "wake-up latencies").s,
				num_noun(nr + nr_woken, "waits").s);
	report_fact_duration(pg->r, pg->l->window_ns);
	if (pg->scope == SELECT_ROWS)
		return;
	report_fact(pg->r, FACT_CONTEXT_SWITCHES, view_of_selection(pg->r, pg->sel, sum));
	/* On the page of CPU samples too, the exact time replaces the one that is estimated from samples. */
	if (report_get_fact(pg->r, FACT_CPUS_IN_USE) && total->ns[WAIT_ON_CPU])
		report_fact(pg->r, FACT_CPUS_IN_USE,
			    view_of_selection(pg->r, pg->sel,
					      arena_fmt(&pg->r->arena, "%s on average",
							breakdown_cpus_text(pg->l).s)));
}

static void add_hints(struct report *r, const struct profile *p, const char *input)
{
	report_hint(r, &(struct report_hint){HINT_FLAME, input, {{0}}});
	report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_TREE, NULL}}});
	if (tables_has_rows(p, TABLE_BLAME))
		report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_BLAME, NULL}}});
	report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_BY, "thread"}}});
}

static int select_waits(struct arena *a, const struct profile *p, const struct select_spec *spec,
			struct selection *ret_sel, struct err *err)
{
	struct select_spec own = *spec;
	own.event = table_key(TABLE_OFF_CPU);
	return select_run(a, p, &own, ret_sel, err);
}

static void add_findings(struct report *r, const struct selection *sel,
			 const struct select_spec *spec, const struct breakdown *l)
{
	uint64_t active_ns = breakdown_sum_ns(&l->total) - breakdown_idle_ns(&l->total);
	CLEANUP(measures_free_p) struct measures *m = measures_new(sel->p, spec, NULL);
	measures_give_waits(m, sel, l, r);
	diagnose_page(r, m, 1u << MEASURE_WAITS, view_pct(l->total.ns[WAIT_ON_CPU], active_ns), 0);
}

static int fill_page(struct report *r, const struct select_spec *spec, const struct selection *sel,
		     const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct profile *p = sel->p;
	struct breakdown l;
	TRY(breakdown_make(&a, p, spec, &l, err));
	struct page pg = {.r = r, .p = p, .l = &l, .sel = sel, .scope = select_scope(spec)};
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, PAGE_ROWS) : 0;
	add_facts(&pg);
	breakdown_report(r, &l);
	waits_table(r, sel, WAITS_FUNCTIONS, limits);
	waits_table(r, sel, WAITS_EXECUTORS, &few);
	waits_locks(r, sel, spec, &few);
	waits_table(r, sel, WAITS_OBJECTS, &few);
	waits_table(r, sel, WAITS_RUN_QUEUE, &few);
	breakdown_threads_report(r, &l, BREAKDOWN_GROUPS, &few);
	if (pg.scope != SELECT_ROWS) /* sentences on the whole of threads' time */
		add_findings(r, sel, spec, &l);
	note_samples(&pg);
	note_accuracy(&pg);
	note_durations(&pg, spec);
	runtimes_note_waits(r, sel);
	return 0;
}

int waits_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(select_waits(&a, p, spec, &sel, err));
	view_note_filtered(r, &sel);
	return fill_page(r, spec, &sel, limits, err);
}

int waits_overview(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(select_waits(&a, p, spec, &sel, err));
	view_begin(r, &sel, "off-CPU time");
	if (view_nr_out(&sel)) /* all waits are counted with the context switches */
		r->noun = "waits shown";
	int rc = fill_page(r, spec, &sel, limits, err);
	if (!rc && input && sel.nr_samples)
		add_hints(r, p, input);
	return rc;
}
