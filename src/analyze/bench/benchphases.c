/* Values and phases that programs print; see benchphases.h. */
#include "base/base.h"
#include "analyze/bench/benchphases.h"

#include <math.h>

#include "analyze/bench/benchcounters.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "base/text/suggest.h"

#define SHARE_SLACK_PCT 0.5 /* printed times are rounded */

size_t bench_printed_series(double *to, const struct bench_printed *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++) {
		bool is_first = !i || p->run[i] != p->run[i - 1];
		bool has_next = i + 1 < p->n && p->run[i + 1] == p->run[i];
		if (!is_first || !has_next)
			to[n++] = p->v[i];
	}
	return n;
}

void bench_printed_medians(double *to, size_t nr_runs, const struct bench_printed *p)
{
	CLEANUP(free_p) double *scratch = xmalloc(MAX(p->n, (size_t)1) * sizeof(*scratch));
	size_t at = 0;
	for (size_t i = 0; i < nr_runs; i++) {
		size_t first = at;
		while (at < p->n && p->run[at] == i)
			at++;
		first += at - first > 1;
		size_t n = at - first;
		if (n)
			memcpy(scratch, p->v + first, n * sizeof(*scratch));
		bench_sort(scratch, n);
		to[i] = n ? bench_quantile_sorted(scratch, n, 0.5) : NAN;
	}
}

void bench_printed_sums(double *to, size_t nr_runs, const struct bench_printed *p)
{
	for (size_t i = 0; i < nr_runs; i++)
		to[i] = NAN;
	for (size_t i = 0; i < p->n; i++)
		to[p->run[i]] = isnan(to[p->run[i]]) ? p->v[i] : to[p->run[i]] + p->v[i];
}

double bench_phase_share(const struct bench_data *d, size_t subject, size_t phase)
{
	CLEANUP(free_p) double *part = NULL;
	CLEANUP(free_p) double *whole = NULL;
	size_t nr = bench_series(&part, d, subject, phase);
	size_t nr_whole = bench_series(&whole, d, subject, BENCH_WHOLE);
	double all = stat_mean(whole, nr_whole) * (double)nr_whole;
	if (!nr || !(all > 0) || (d->has_each && (!d->each_is_time || nr != nr_whole)))
		return NAN;
	return 100 * stat_mean(part, nr) * (double)nr / all;
}

static void add_marks(struct buf *to, const struct bench_subject_data *s)
{
	for (size_t i = 0; i < s->nr_unknown_names; i++)
		buf_addf(to, "%s'%s'", i ? ", " : "", s->unknown_marks[i]);
}

/* Of a mark without "begin" or "end" and its time. */
static struct sv name_of_mark(const char *mark)
{
	static const char *const ends[] = {" begin", " end"};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const char *end = strstr(mark, ends[i]);
		if (end)
			return sv_from(mark, (size_t)(end - mark));
	}
	return sv_from_str(mark);
}

/* "; its marks are 'laod begin', 'laod end'; did you mean --phase laod?" */
static const char *seen_marks(struct arena *a, const struct bench_data *d, size_t phase)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct suggest near = suggest_for(sv_from_str(d->phases[phase].name));
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const struct bench_subject_data *s = &d->subjects[i];
		for (size_t k = 0; k < s->nr_unknown_names; k++)
			suggest_offer(&near, name_of_mark(s->unknown_marks[k]));
		if (s->nr_unknown_names && !text.n) {
			buf_addf(&text, "; marks of '%s' that are no phase: ", s->name);
			add_marks(&text, s);
		}
	}
	if (near.best.n)
		buf_addf(&text, "; did you mean --phase '%.*s'?", SV_ARGS(near.best));
	return arena_strndup(a, buf_str(&text), text.n);
}

const char *bench_phases_invalid(struct arena *a, const struct bench_data *d)
{
	for (size_t k = 0; k < d->nr_phases; k++) {
		size_t nr = 0;
		for (size_t i = 0; i < d->nr_subjects; i++) {
			const struct bench_printed *p = &d->subjects[i].phases[k];
			nr += p->n;
			if (p->has_plain)
				return arena_fmt(a,
						 "phase '%s': '%s' prints a number without a unit "
						 "of time (ns, us, ms, s, min) behind it",
						 d->phases[k].name, d->subjects[i].name);
		}
		if (!nr && d->phases[k].function)
			return arena_fmt(a, "phase '%s': no run calls '%s'", d->phases[k].name,
					 d->phases[k].function);
		if (!nr)
			return d->phases[k].is_marked
				       ? arena_fmt(a, "no run has the mark '%s begin'%s",
						   d->phases[k].name, seen_marks(a, d, k))
				       : arena_fmt(a, "no line of a run matches the phase '%s'",
						   d->phases[k].name);
	}
	return NULL;
}

static union cell ns_cell(double v)
{
	return (union cell){.u = isnan(v) ? CELL_NS_NONE : (uint64_t)llround(MAX(v, 0.0))};
}

/* Only printed times can be more than the run has. */
static void add_share_note(struct report *r, const struct bench_data *d, size_t subject,
			   size_t phase)
{
	double pct = bench_phase_share(d, subject, phase);
	const char *of = d->has_each ? "the times that --each reads: it is no part of them, or its"
				     : "the run: its printed";
	if (pct > 100 + SHARE_SLACK_PCT)
		report_note(
			r,
			"phase '%s' of '%s' is %s %% of %s times overlap, as those of threads do, "
			"or are CPU time",
			d->phases[phase].name, d->subjects[subject].name, num_double(pct, 0).s, of);
}

static void add_times(struct report *r, const struct bench_data *d)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		{.key = "phase", .title = "phase", .kind = CELL_TEXT},
		{.key = "share_pct",
		 .title = "% of run",
		 .kind = CELL_PERCENT,
		 .help = "share of the time of the runs, or of the values of --each"},
		{.key = "mean_ns", .title = "mean", .kind = CELL_NS},
		{.key = "stddev_ns",
		 .title = "stddev",
		 .kind = CELL_NS,
		 .help = "standard deviation of a sample"},
		{.key = "min_ns", .title = "min", .kind = CELL_NS},
		{.key = "median_ns", .title = "median", .kind = CELL_NS},
		{.key = "median_low_ns",
		 .title = "95 % from",
		 .kind = CELL_NS,
		 .help = "interval of the median"},
		{.key = "median_high_ns", .title = "to", .kind = CELL_NS},
		{.key = "max_ns", .title = "max", .kind = CELL_NS},
		{.key = "cpu_ns",
		 .title = "CPU time",
		 .kind = CELL_NS,
		 .when = BENCH_WHEN_COUNTED,
		 .help = "of all threads, in a run: the median"},
		{.key = "n", .title = "times", .kind = CELL_COUNT, .help = "runs or values"},
	};
	static const char *const hide_first[] = {"stddev_ns", "mean_ns", "n", NULL};
	unsigned when = (d->nr_subjects > 1 ? BENCH_WHEN_SEVERAL : 0) |
			(bench_has_counts(d, BENCH_WHOLE) ? BENCH_WHEN_COUNTED : 0);
	struct report_table *t =
		report_add_table_of(r, "phases", "phases", columns, ARRAY_LEN(columns), when);
	t->hide_first = hide_first;
	t->nr_first = d->nr_phases * d->nr_subjects;
	for (size_t k = 0; k < d->nr_phases; k++)
		for (size_t i = 0; i < d->nr_subjects; i++) {
			CLEANUP(free_p) double *v = NULL;
			struct bench_summary s;
			size_t n = bench_series(&v, d, i, k);
			if (!n)
				continue;
			bench_summarize(&s, v, n);
			add_share_note(r, d, i, k);
			report_add_row(
				r, t,
				(union cell[]){{.text = d->subjects[i].name},
					       {.text = d->phases[k].name},
					       {.d = bench_phase_share(d, i, k)},
					       ns_cell(s.mean),
					       ns_cell(s.stddev),
					       ns_cell(s.min),
					       ns_cell(s.median),
					       ns_cell(s.interval.low),
					       ns_cell(s.interval.high),
					       ns_cell(s.max),
					       ns_cell(bench_phase_cpu(d, &d->subjects[i], k)),
					       {.u = n}});
		}
}

static void add_changes(struct report *r, const struct bench_data *d)
{
	static const struct report_column columns[] = {
		{.key = "command", .title = "command", .kind = CELL_TEXT},
		{.key = "phase", .title = "phase", .kind = CELL_TEXT},
		{.key = "verdict", .title = "verdict", .kind = CELL_TEXT},
		{.key = "change_pct", .title = "change %", .kind = CELL_PERCENT},
		{.key = "low_pct",
		 .title = "from",
		 .kind = CELL_PERCENT,
		 .help = "interval of the change"},
		{.key = "high_pct", .title = "to", .kind = CELL_PERCENT},
		{.key = "floor_pct",
		 .title = "floor %",
		 .kind = CELL_PERCENT,
		 .help = "no smaller change is stated"},
		{.key = "runs", .title = "runs each", .kind = CELL_COUNT},
	};
	struct report_table *t =
		report_add_table(r, "phase_changes",
				 arena_fmt(&r->arena, "phases against '%s'", d->subjects[0].name),
				 columns, ARRAY_LEN(columns));
	t->nr_first = d->nr_phases * (d->nr_subjects - 1);
	for (size_t k = 0; k < d->nr_phases; k++)
		for (size_t i = 1; i < d->nr_subjects; i++) {
			struct bench_outcome o;
			bench_outcome(&o, d, i, k, SIZE_MAX);
			if (!o.ratio.nr_blocks) {
				report_note(r,
					    "phase '%s' of '%s' is not compared: not every run of "
					    "both has it",
					    d->phases[k].name, d->subjects[i].name);
				continue;
			}
			double floor = bench_floor_pct(&o.ratio);
			report_add_row(r, t,
				       (union cell[]){{.text = d->subjects[i].name},
						      {.text = d->phases[k].name},
						      {.text = bench_verdict_name(o.verdict)},
						      {.d = 100 * expm1(o.ratio.median)},
						      {.d = 100 * expm1(o.ratio.interval.low)},
						      {.d = 100 * expm1(o.ratio.interval.high)},
						      {.d = isfinite(floor) ? floor : NAN},
						      {.u = 2 * o.ratio.nr_blocks}});
		}
}

static void add_ends_note(struct report *r, const struct bench_phase *phase, const char *name,
			  uint64_t nr)
{
	if (phase->function)
		report_note(r,
			    "%s of '%s' ended in the phase '%s', which lasts to the exit then: in "
			    "'%s', or after it was left by an exception or longjmp",
			    num_noun(nr, "runs").s, name, phase->name, phase->function);
	else
		report_note(r,
			    "%s of '%s' did not mark '%s end': the phase lasts to the exit there",
			    num_noun(nr, "runs").s, name, phase->name);
}

static void add_notes(struct report *r, const struct bench_data *d)
{
	if (d->nr_lost_hits)
		report_note(r,
			    "%s of the functions of phases were lost, as too many came at once: "
			    "these phases are wrong",
			    num_noun(d->nr_lost_hits, "calls").s);
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const struct bench_subject_data *s = &d->subjects[i];
		uint64_t nr_at_once = 0;
		uint64_t nr = 0;
		for (size_t k = 0; k < d->nr_phases; k++) {
			nr_at_once += s->phases[k].nr_at_once;
			nr += s->phases[k].n;
			if (s->phases[k].nr_unended)
				add_ends_note(r, &d->phases[k], s->name, s->phases[k].nr_unended);
			if (!s->phases[k].n)
				report_note(r, "'%s' %s the phase '%s'", s->name,
					    d->phases[k].function ? "calls no function of"
					    : d->phases[k].is_marked
						    ? "does not mark"
						    : "prints no line that matches",
					    d->phases[k].name);
			if (s->phases[k].nr_unopened)
				report_note(r, "'%s' marks %s of the phase '%s' without its begin",
					    s->name, num_noun(s->phases[k].nr_unopened, "ends").s,
					    d->phases[k].name);
		}
		CLEANUP(buf_release) struct buf marks = {0};
		add_marks(&marks, s);
		if (s->nr_unknown_marks)
			report_note(
				r, "%s of '%s' %s not NAME begin or NAME end of a --phase NAME: %s",
				num_noun(s->nr_unknown_marks, "marks").s, s->name,
				s->nr_unknown_marks == 1 ? "is" : "are", buf_str(&marks));
		if (2 * nr_at_once >= MAX(nr, (uint64_t)1))
			report_note(
				r,
				"lines at start and end of phases of '%s' were read together: "
				"programs that write to a pipe keep lines back; stdbuf -oL CMD, "
				"or flushing after each line, prevents it",
				s->name);
	}
}

void bench_phases(struct report *r, const struct bench_data *d)
{
	if (!d->nr_phases)
		return;
	add_times(r, d);
	if (d->nr_subjects > 1)
		add_changes(r, d);
	bench_phase_counters(r, d);
	add_notes(r, d);
}
