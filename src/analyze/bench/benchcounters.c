/* Counters of the runs; see benchcounters.h. */
#include "base/base.h"
#include "analyze/bench/benchcounters.h"

#include <math.h>

#include "analyze/bench/countermetrics.h"
#include "base/mem.h"

double bench_counter(const struct bench_data *d, const struct bench_run *run, size_t idx)
{
	const struct counter_value *v = &run->counters[idx];
	bool is_never = v->enabled_ns && !v->running_ns;
	return d->counters[idx].state || is_never ? NAN : v->value;
}

/* Medians of the runs; an event that no run counted is not counted. */
static void medians(struct counter_row *rows, const struct bench_data *d,
		    const struct bench_subject_data *s)
{
	CLEANUP(free_p) double *v = xmalloc(MAX(s->nr_runs, (size_t)1) * sizeof(*v));
	double wall_ns = 0;
	for (size_t i = 0; i < d->nr_counters; i++) {
		struct counter_value sum = {0};
		size_t n = 0;
		rows[i] = d->counters[i];
		for (size_t k = 0; k < s->nr_runs; k++) {
			double one = bench_counter(d, &s->runs[k], i);
			if (!isnan(one))
				v[n++] = one;
			sum.enabled_ns += s->runs[k].counters[i].enabled_ns;
			sum.running_ns += s->runs[k].counters[i].running_ns;
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
	for (size_t k = 0; k < s->nr_runs; k++)
		wall_ns += (double)s->runs[k].v[BENCH_WALL] / (double)s->nr_runs;
	counter_metrics(rows, d->nr_counters, wall_ns);
}

double bench_counter_median(const struct bench_data *d, const struct bench_subject_data *s,
			    enum counter_role role)
{
	struct counter_row rows[BENCH_COUNTERS_MAX];
	medians(rows, d, s);
	return counter_of(rows, d->nr_counters, role);
}

/* Those that no other table has. */
static bool is_shown(const struct counter_row *row)
{
	return row->state == COUNTER_COUNTED && row->role != COUNTER_CLOCK &&
	       strcmp(row->name, "cpu-migrations") != 0;
}

static void add_rows(struct report *r, struct report_table **t, const struct bench_data *d,
		     const struct bench_subject_data *s, const struct counter_row *row)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		{.key = "event", .title = "counters, per run", .kind = CELL_TEXT},
		{.key = "median", .title = "median", .kind = CELL_FLOAT},
		{.key = "metric", .title = "", .kind = CELL_FLOAT},
		{.key = "metric_unit", .title = "", .kind = CELL_TEXT},
		{.key = "counted_pct",
		 .title = "counted %",
		 .kind = CELL_PERCENT,
		 .help = "of the time on a CPU; less than 100: events took turns, and were scaled"},
	};
	if (!is_shown(row))
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
		medians(&rows[i * BENCH_COUNTERS_MAX], d, &d->subjects[i]);
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
