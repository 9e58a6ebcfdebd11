/* Counters of the runs; see benchcounters.h. */
#include "base/base.h"
#include "analyze/bench/benchcounters.h"

#include <math.h>

#include "analyze/bench/countermetrics.h"
#include "base/mem.h"

#define PHASE_ROWS_FIRST 4 /* of each phase on the first page */

/* Of the tables of runs and of phases. */
#define EVENT_COLUMNS                                                      \
	{.key = "event", .title = "counters, per run", .kind = CELL_TEXT}, \
	{                                                                  \
		.key = "median", .title = "median", .kind = CELL_FLOAT     \
	}
#define METRIC_COLUMNS                                                                            \
	{.key = "metric", .title = "", .kind = CELL_FLOAT},                                       \
		{.key = "metric_unit", .title = "", .kind = CELL_TEXT},                           \
	{                                                                                         \
		.key = "counted_pct", .title = "counted %", .kind = CELL_PERCENT,                 \
		.help = "of the time on a CPU; less than 100: events took turns, and were scaled" \
	}

/* What was counted in a run, or in a phase of it; NULL: nothing. */
static const struct counter_value *counted(const struct bench_subject_data *s, size_t phase,
					   size_t run)
{
	if (phase == BENCH_WHOLE)
		return s->runs[run].counters;
	const struct bench_printed *p = &s->phases[phase];
	return run < p->nr_counts && p->counts[run].nr ? p->counts[run].v : NULL;
}

static double mean_ns(const struct bench_subject_data *s, size_t phase)
{
	double sum = 0;
	for (size_t k = 0; phase == BENCH_WHOLE && k < s->nr_runs; k++)
		sum += (double)s->runs[k].v[BENCH_WALL];
	for (size_t k = 0; phase != BENCH_WHOLE && k < s->phases[phase].n; k++)
		sum += s->phases[phase].v[k];
	return sum / (double)MAX(s->nr_runs, (size_t)1);
}

/* Medians of the runs; an event that no run counted is not counted. */
static void medians(struct counter_row *rows, const struct bench_data *d,
		    const struct bench_subject_data *s, size_t phase)
{
	CLEANUP(free_p) double *v = xmalloc(MAX(s->nr_runs, (size_t)1) * sizeof(*v));
	for (size_t i = 0; i < d->nr_counters; i++) {
		struct counter_value sum = {0};
		size_t n = 0;
		rows[i] = d->counters[i];
		for (size_t k = 0; k < s->nr_runs; k++) {
			const struct counter_value *one = counted(s, phase, k);
			if (!one)
				continue;
			if (!rows[i].state && !(one[i].enabled_ns && !one[i].running_ns))
				v[n++] = one[i].value;
			sum.enabled_ns += one[i].enabled_ns;
			sum.running_ns += one[i].running_ns;
		}
		if (!rows[i].state && !n && s->nr_runs)
			rows[i].state = COUNTER_NOT_COUNTED;
		bench_sort(v, n);
		rows[i].value = n ? bench_quantile_sorted(v, n, 0.5) : 0;
		rows[i].running_ns = sum.running_ns;
		rows[i].running_pct =
			sum.enabled_ns ? 100 * (double)sum.running_ns / (double)sum.enabled_ns
				       : 100;
	}
	counter_metrics(rows, d->nr_counters, mean_ns(s, phase));
}

double bench_counter_median(const struct bench_data *d, const struct bench_subject_data *s,
			    enum counter_role role)
{
	struct counter_row rows[BENCH_COUNTERS_MAX];
	medians(rows, d, s, BENCH_WHOLE);
	return counter_of(rows, d->nr_counters, role);
}

/* Those that no other table has: with phases these are counted although runs have them already. */
static bool is_shown(const struct bench_data *d, const struct counter_row *row)
{
	static const char *const of_phases[] = {"minor-faults", "major-faults", "context-switches"};
	bool is_other = row->role == COUNTER_CLOCK || !strcmp(row->name, "cpu-migrations");
	for (size_t i = 0; i < ARRAY_LEN(of_phases) && d->nr_phases; i++)
		is_other |= !strcmp(row->name, of_phases[i]);
	return row->state == COUNTER_COUNTED && !is_other;
}

static void add_rows(struct report *r, struct report_table **t, const struct bench_data *d,
		     const struct bench_subject_data *s, const struct counter_row *row)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		EVENT_COLUMNS,
		METRIC_COLUMNS,
	};
	if (!is_shown(d, row))
		return;
	if (!*t)
		*t = bench_add_table(r, d, "counters", "counters", columns, ARRAY_LEN(columns));
	report_add_row(r, *t,
		       (union cell[]){{.text = s->name},
				      {.text = row->name},
				      {.d = row->value},
				      {.d = row->metric},
				      {.text = row->metric_unit},
				      {.d = row->running_pct}});
}

static bool has_pmu(const struct bench_data *d)
{
	for (size_t i = 0; i < d->nr_counters; i++)
		if (d->counters[i].role == COUNTER_CYCLES)
			return d->counters[i].state != COUNTER_NOT_SUPPORTED;
	return true;
}

void bench_counters(struct report *r, const struct bench_data *d)
{
	CLEANUP(free_p)
	struct counter_row *rows = xcalloc(d->nr_subjects * BENCH_COUNTERS_MAX, sizeof(*rows));
	struct report_table *t = NULL;
	for (size_t i = 0; i < d->nr_subjects; i++)
		medians(&rows[i * BENCH_COUNTERS_MAX], d, &d->subjects[i], BENCH_WHOLE);
	for (size_t k = 0; k < d->nr_counters; k++)
		for (size_t i = 0; i < d->nr_subjects; i++)
			add_rows(r, &t, d, &d->subjects[i], &rows[i * BENCH_COUNTERS_MAX + k]);
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const char *notes[COUNTER_NOTES_MAX];
		size_t nr = counter_notes(notes, &r->arena, &rows[i * BENCH_COUNTERS_MAX],
					  d->nr_counters, has_pmu(d));
		for (size_t k = 0; k < nr; k++) {
			bool is_said = false;
			for (size_t n = 0; n < r->notes.n; n++)
				is_said |= !strcmp(r->notes.p[n], notes[k]);
			if (!is_said && d->nr_subjects > 1 && t)
				report_note(r, "'%s': %s", d->subjects[i].name, notes[k]);
			else if (!is_said)
				report_note(r, "%s", notes[k]);
		}
	}
}

/* ---- phases ----------------------------------------------------------------------------------- */

bool bench_has_counts(const struct bench_data *d, size_t phase)
{
	for (size_t k = 0; k < d->nr_phases; k++)
		for (size_t i = 0; i < d->nr_subjects; i++)
			if ((phase == BENCH_WHOLE || phase == k) &&
			    d->subjects[i].phases[k].nr_counts)
				return true;
	return false;
}

double bench_phase_cpu(const struct bench_data *d, const struct bench_subject_data *s, size_t phase)
{
	struct counter_row rows[BENCH_COUNTERS_MAX];
	medians(rows, d, s, phase);
	return counter_of(rows, d->nr_counters, COUNTER_CLOCK);
}

/* The rows of a phase: each event for each command, but for what no run has. */
static void add_phase(struct report *r, struct report_table *t, const struct bench_data *d,
		      size_t phase, const struct counter_row *whole)
{
	CLEANUP(free_p)
	struct counter_row *rows = xcalloc(d->nr_subjects * BENCH_COUNTERS_MAX, sizeof(*rows));
	for (size_t i = 0; i < d->nr_subjects; i++)
		medians(&rows[i * BENCH_COUNTERS_MAX], d, &d->subjects[i], phase);
	for (size_t k = 0; k < d->nr_counters; k++)
		for (size_t i = 0; i < d->nr_subjects; i++) {
			const struct counter_row *row = &rows[i * BENCH_COUNTERS_MAX + k];
			double all = whole[i * BENCH_COUNTERS_MAX + k].value;
			if (row->state || row->role == COUNTER_CLOCK || (!row->value && !all) ||
			    !d->subjects[i].phases[phase].nr_counts)
				continue;
			report_add_row(r, t,
				       (union cell[]){{.text = d->subjects[i].name},
						      {.text = d->phases[phase].name},
						      {.text = row->name},
						      {.d = row->value},
						      {.d = all > 0 ? 100 * row->value / all : NAN},
						      {.d = row->metric},
						      {.text = row->metric_unit},
						      {.d = row->running_pct}});
		}
}

void bench_phase_counters(struct report *r, const struct bench_data *d)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		{.key = "phase", .title = "phase", .kind = CELL_TEXT},
		EVENT_COLUMNS,
		{.key = "run_pct",
		 .title = "% of run",
		 .kind = CELL_PERCENT,
		 .help = "of the median of whole runs"},
		METRIC_COLUMNS,
	};
	static const char *const hide_first[] = {"counted_pct", NULL};
	if (!bench_has_counts(d, BENCH_WHOLE))
		return;
	CLEANUP(free_p)
	struct counter_row *whole = xcalloc(d->nr_subjects * BENCH_COUNTERS_MAX, sizeof(*whole));
	for (size_t i = 0; i < d->nr_subjects; i++)
		medians(&whole[i * BENCH_COUNTERS_MAX], d, &d->subjects[i], BENCH_WHOLE);
	struct report_table *t = bench_add_table(r, d, "phase_counters", "counters of phases",
						 columns, ARRAY_LEN(columns));
	t->hide_first = hide_first;
	t->nr_first = d->nr_phases * d->nr_subjects * PHASE_ROWS_FIRST;
	for (size_t k = 0; k < d->nr_phases; k++)
		add_phase(r, t, d, k, whole);
	report_detail(r, "CPU time and counters of a phase are read when assay reads the mark or "
			 "the line: what the command did until then is in them");
}
