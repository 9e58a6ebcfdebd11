/* What counters mean; see countermetrics.h. */
#include "base/base.h"
#include "analyze/bench/countermetrics.h"

#include <math.h>

#include "base/buf.h"
#include "base/text/num.h"

#define RATIO_MIN_EVENTS 1000 /* of what is divided by: below, a miss rate is chance */
#define TURNS_PCT        99.5 /* counted for less of the time: events took turns */

/* Which counter a role is divided by. */
static const struct {
	enum counter_role role;
	enum counter_role by;
	double factor;
	const char *unit;
} ratios[] = {
	{COUNTER_CYCLES, COUNTER_CLOCK, 1, "GHz"},
	{COUNTER_INSTRUCTIONS, COUNTER_CYCLES, 1, "insn per cycle"},
	{COUNTER_BRANCH_MISSES, COUNTER_BRANCHES, 100, "of all branches"},
	{COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES, 100, "of all cache refs"},
	{COUNTER_L1D_MISSES, COUNTER_L1D_LOADS, 100, "of all L1-dcache accesses"},
	{COUNTER_LLC_MISSES, COUNTER_LLC_LOADS, 100, "of all LL-cache accesses"},
	{COUNTER_DTLB_MISSES, COUNTER_DTLB_LOADS, 100, "of all dTLB cache accesses"},
	{COUNTER_ITLB_MISSES, COUNTER_ITLB_LOADS, 100, "of all iTLB cache accesses"},
};

double counter_of(const struct counter_row *rows, size_t nr, enum counter_role role)
{
	for (size_t i = 0; i < nr; i++)
		if (rows[i].role == role && rows[i].state == COUNTER_COUNTED)
			return rows[i].value;
	return NAN;
}

static void set_rate(struct counter_row *r, double per_s)
{
	static const struct {
		double least;
		double factor;
		const char *unit;
	} units[] = {
		{1e9, 1e-9, "G/sec"}, {1e6, 1e-6, "M/sec"}, {1e3, 1e-3, "K/sec"}, {0, 1, "/sec"}};
	size_t i = 0;
	while (per_s < units[i].least)
		i++;
	r->metric = per_s * units[i].factor;
	r->metric_unit = units[i].unit;
}

/*
 * The base of the run queue's share is the CPU time that stands beside it, from which schedstat's may
 * differ by some percent. The latter is the base if threads ended before their run queue was read, since
 * task-clock has theirs.
 */
static void set_queue_share(struct counter_row *r, double clock_ns)
{
	double ran_ns = (double)r->running_ns;
	bool has_all = clock_ns > 0 && ran_ns >= COUNTER_QUEUE_COVERED_PCT / 100 * clock_ns;
	double base_ns = has_all ? clock_ns : ran_ns;
	if (!(base_ns + r->value > 0))
		return;
	r->metric = 100 * r->value / (base_ns + r->value);
	r->metric_unit = has_all ? "of task-clock + run-queue"
				 : "of time running or queued, of the threads read";
}

static void set_own(struct counter_row *r, double clock_ns, double elapsed_ns)
{
	if (r->role == COUNTER_RUN_QUEUE)
		set_queue_share(r, clock_ns);
	if (r->role == COUNTER_STOLEN && elapsed_ns > 0) {
		r->metric = r->value / elapsed_ns;
		r->metric_unit = "CPUs by the hypervisor";
	}
}

static bool set_ratio(struct counter_row *r, const struct counter_row *rows, size_t nr)
{
	for (size_t i = 0; i < ARRAY_LEN(ratios); i++) {
		double by;
		if (r->role != ratios[i].role)
			continue;
		by = counter_of(rows, nr, ratios[i].by);
		if (!(by > 0))
			continue;
		r->metric = ratios[i].factor * r->value / by;
		r->metric_unit = ratios[i].unit;
		return true;
	}
	return false;
}

void counter_metrics(struct counter_row *rows, size_t nr, double elapsed_ns)
{
	double clock_ns = counter_of(rows, nr, COUNTER_CLOCK);
	for (size_t i = 0; i < nr; i++) {
		struct counter_row *r = &rows[i];
		r->metric = NAN;
		r->metric_unit = "";
		if (r->state != COUNTER_COUNTED)
			continue;
		if (r->is_own) {
			set_own(r, clock_ns, elapsed_ns);
		} else if (r->role == COUNTER_CLOCK) {
			r->metric = elapsed_ns > 0 ? r->value / elapsed_ns : NAN;
			r->metric_unit = "CPUs utilized";
		} else if (!set_ratio(r, rows, nr) && clock_ns > 0) {
			set_rate(r, r->value / (clock_ns / 1e9));
		}
	}
}

/* ---- sentences -------------------------------------------------------------------------------- */

/* What is usual: IPC as in most guides; miss rates beyond these cost more than a tenth of the cycles. */
static const struct {
	enum counter_role role;
	enum counter_role by;
	double factor;
	double low;  /* below: the first text; NAN: none */
	double high; /* above: the second text */
	const char *name;
	const char *low_text;
	const char *high_text;
} judged[] = {
	{COUNTER_INSTRUCTIONS, COUNTER_CYCLES, 1, 1.0, 2.0, "instructions per cycle",
	 "below 1: the CPU mostly waits, for memory or after mispredicted branches",
	 "above 2: the CPU is well used; fewer instructions make it faster"},
	{COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES, 100, NAN, 10.0,
	 "% of cache references miss", NULL,
	 "above 10: data that are used together lie apart, or do not fit in the cache"},
	{COUNTER_BRANCH_MISSES, COUNTER_BRANCHES, 100, NAN, 5.0, "% of branches are mispredicted",
	 NULL, "above 5: branches depend on data; each costs about 15 to 20 cycles"},
	{COUNTER_L1D_MISSES, COUNTER_L1D_LOADS, 100, NAN, 10.0, "% of L1 data loads miss", NULL,
	 "above 10: data are used in an order that the cache does not serve"},
	{COUNTER_DTLB_MISSES, COUNTER_DTLB_LOADS, 100, NAN, 1.0, "% of data TLB look-ups miss",
	 NULL, "above 1: many pages are used; huge pages help"},
};

static size_t judge(const char **ret, struct arena *a, const struct counter_row *rows, size_t nr)
{
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(judged); i++) {
		double v = counter_of(rows, nr, judged[i].role);
		double by = counter_of(rows, nr, judged[i].by);
		double ratio = judged[i].factor * v / by;
		const char *text = ratio < judged[i].low    ? judged[i].low_text
				   : ratio > judged[i].high ? judged[i].high_text
							    : NULL;
		if (by >= RATIO_MIN_EVENTS && text)
			ret[n++] = arena_fmt(a, "%s %s, %s", num_double(ratio, 2).s, judged[i].name,
					     text);
	}
	return n;
}

static const char *turns_note(struct arena *a, const struct counter_row *rows, size_t nr)
{
	CLEANUP(buf_release) struct buf names = {0};
	double least = 100;
	for (size_t i = 0; i < nr; i++) {
		if (rows[i].state != COUNTER_COUNTED || rows[i].is_own || !rows[i].running_ns ||
		    rows[i].running_pct >= TURNS_PCT)
			continue;
		buf_addf(&names, "%s%s", names.n ? ", " : "", rows[i].name);
		least = MIN(least, rows[i].running_pct);
	}
	if (!names.n)
		return NULL;
	return arena_fmt(
		a,
		"more events than counters: they took turns, each counted for the share of "
		"the time in parentheses (at least %s %%) and scaled: %s",
		num_pct(least).s, buf_str(&names));
}

/* The names of the rows with this state; empty: none. */
static void add_names(struct buf *to, const struct counter_row *rows, size_t nr,
		      enum counter_state state)
{
	for (size_t i = 0; i < nr; i++)
		if (rows[i].state == state && !rows[i].is_own)
			buf_addf(to, "%s%s", to->n ? ", " : "", rows[i].name);
}

size_t counter_notes(const char **ret, struct arena *a, const struct counter_row *rows, size_t nr,
		     bool has_pmu)
{
	static const char *const texts[] = {
		[COUNTER_NOT_COUNTED] =
			"not counted, since other programs use the CPU's counters, or "
			"it ran too briefly: ",
		[COUNTER_NOT_SUPPORTED] = "not supported by this machine: ",
		[COUNTER_NOT_PERMITTED] = "not permitted (kernel.perf_event_paranoid): ",
	};
	size_t n = judge(ret, a, rows, nr);
	const char *turns = turns_note(a, rows, nr);
	if (turns)
		ret[n++] = turns;
	for (size_t s = COUNTER_NOT_COUNTED; s < ARRAY_LEN(texts) && n < COUNTER_NOTES_MAX; s++) {
		CLEANUP(buf_release) struct buf names = {0};
		add_names(&names, rows, nr, (enum counter_state)s);
		if (!names.n)
			continue;
		if (s == COUNTER_NOT_SUPPORTED && !has_pmu)
			ret[n++] = "no hardware counters (PMU) on this machine, as on most virtual "
				   "machines: cycles, instructions and their like are not counted";
		else
			ret[n++] = arena_fmt(a, "%s%s", texts[s], buf_str(&names));
	}
	return n;
}
