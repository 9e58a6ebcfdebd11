/* From measurements to analysis and exports; see benchresults.h. */
#include "base/base.h"
#include "cmd/bench/benchresults.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/bench/benchphases.h"
#include "base/file/file.h"
#include "base/mem.h"

/* The analysis' view of the results. */
struct data {
	struct bench_data d;
	struct bench_subject_data *subjects;
	struct bench_printed *printed; /* of each command, by each pattern */
	struct bench_phase *phases;
	struct buf governor;
	struct counter_row counters[COUNTRUN_ROWS_MAX];
};

static void data_release(struct data *d)
{
	free(d->subjects);
	free(d->printed);
	free(d->phases);
	buf_release(&d->governor);
}

/* Of complete runs only: a stop may have come in the middle. */
static struct bench_printed printed_of(const struct bench_values *v, size_t nr_runs)
{
	struct bench_printed ret = {
		.v = v->values.p,
		.run = v->runs.p,
		.has_plain = v->has_plain,
		.nr_at_once = v->nr_at_once,
		.nr_unopened = v->nr_unopened,
		.nr_unended = v->nr_unended,
		.counts = v->counts.p,
		.nr_counts = MIN(v->counts.n, nr_runs),
	};
	while (ret.n < v->values.n && ret.run[ret.n] < nr_runs)
		ret.n++;
	return ret;
}

static void read_governor(struct buf *to)
{
	if (!file_read(to, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", 64, NULL) &&
	    to->n && to->p[to->n - 1] == '\n')
		to->p[--to->n] = 0;
}

/* @printed: one for each pattern. */
static void fill_subject(struct bench_subject_data *to, struct bench_printed *printed,
			 const struct bench_results *r, size_t i)
{
	const struct bench_subject *s = &r->commands->subjects.p[i];
	const struct bench_lines *lines = &r->lines[i];
	const struct bench_baseline_row *row =
		r->baseline ? bench_baseline_find(r->baseline, s->name, r->commands->subjects.n)
			    : NULL;
	size_t nr = lines->patterns->n;
	for (size_t k = 0; k < nr; k++)
		printed[k] = printed_of(&lines->values[k], s->runs.n);
	*to = (struct bench_subject_data){
		.name = s->name,
		.runs = s->runs.p,
		.nr_runs = s->runs.n,
		.cold = s->has_cold ? &s->cold : NULL,
		.shell = r->shell,
		.nr_failed = s->nr_failed,
		.machine = &r->machines[i],
		.baseline = row ? &row->session : NULL,
		.nr_unknown_marks = lines->nr_unknown,
		.unknown_marks = (const char *const *)lines->unknown.p,
		.nr_unknown_names = lines->unknown.n,
		.phases = printed,
	};
	if (r->has_each)
		to->each = printed[nr - 1];
}

static void data_init(struct data *ret, const struct bench_results *r)
{
	size_t nr = r->commands->subjects.n;
	const struct bench_patterns *patterns = r->lines[0].patterns;
	size_t nr_phases = patterns->n - r->has_each;
	bool has_time = true;
	*ret = (struct data){
		.subjects = xcalloc(nr, sizeof(*ret->subjects)),
		.printed = xcalloc(nr * patterns->n, sizeof(*ret->printed)),
		.phases = xcalloc(nr_phases, sizeof(*ret->phases)),
	};
	for (size_t k = 0; k < nr_phases; k++)
		ret->phases[k] = (struct bench_phase){patterns->p[k].name, !patterns->p[k].re,
						      patterns->p[k].function};
	for (size_t i = 0; i < nr; i++) {
		fill_subject(&ret->subjects[i], &ret->printed[i * patterns->n], r, i);
		has_time &= !ret->subjects[i].each.has_plain;
	}
	read_governor(&ret->governor);
	static const struct counter_value none[COUNTERS_MAX];
	size_t nr_counters =
		countrun_rows(ret->counters, r->counters, none, UINT64_MAX, 0, UINT64_MAX);
	ret->d = (struct bench_data){
		.counters = ret->counters,
		.nr_counters = nr_counters,
		.subjects = ret->subjects,
		.nr_subjects = nr,
		.has_each = r->has_each,
		.each_is_time = has_time,
		.phases = ret->phases,
		.nr_phases = nr_phases,
		.work = r->work,
		.unit = r->unit,
		.least = r->least,
		.nr_blocks = r->nr_blocks,
		.has_early_looks = r->has_early_looks,
		.is_stopped = r->is_stopped,
		.has_failed = r->has_failed,
		.throttled_ns = r->throttled_ns,
		.governor = ret->governor.n ? buf_str(&ret->governor) : NULL,
		.rss_bound_bytes = r->bound_bytes,
		.nr_lost_hits = r->nr_lost_hits,
	};
}

/* A phase that cannot be compared waits for nothing. */
static bool is_phase_open(const struct bench_data *d, size_t subject, size_t phase,
			  size_t nr_blocks)
{
	struct bench_outcome o;
	bench_outcome(&o, d, subject, phase, nr_blocks);
	return o.ratio.nr_blocks && o.verdict == BENCH_INCONCLUSIVE;
}

bool bench_results_decided(const struct bench_results *r, size_t nr_blocks)
{
	CLEANUP(data_release) struct data data;
	data_init(&data, r);
	for (size_t i = 1; i < data.d.nr_subjects; i++) {
		struct bench_outcome o;
		bench_outcome(&o, &data.d, i, BENCH_WHOLE, nr_blocks);
		if (o.verdict == BENCH_INCONCLUSIVE)
			return false;
		for (size_t k = 0; k < data.d.nr_phases; k++)
			if (is_phase_open(&data.d, i, k, nr_blocks))
				return false;
	}
	return true;
}

static const char *why_not(const struct bench_ratio *r)
{
	return isnan(r->interval.low) || !r->nr_blocks ? "too few runs for a verdict"
						       : "the runs differ too much for a verdict";
}

enum bench_verdict bench_results_verdict(const struct bench_results *r, const char **ret_why)
{
	CLEANUP(data_release) struct data data;
	enum bench_verdict worst = BENCH_SAME;
	data_init(&data, r);
	for (size_t i = 1; i < data.d.nr_subjects; i++) {
		struct bench_outcome o;
		bench_outcome(&o, &data.d, i, BENCH_WHOLE, SIZE_MAX);
		if (o.verdict == BENCH_INCONCLUSIVE)
			*ret_why = why_not(&o.ratio);
		worst = o.verdict == BENCH_SLOWER ? BENCH_SLOWER : worst;
	}
	for (size_t i = 0; i < data.d.nr_subjects; i++) {
		struct bench_against a;
		if (!data.subjects[i].baseline)
			continue;
		bench_outcome_against(&a, &data.d, i);
		if (a.verdict == BENCH_INCONCLUSIVE)
			*ret_why = a.reason ?: why_not(&a.ratio);
		worst = a.verdict == BENCH_SLOWER ? BENCH_SLOWER : worst;
	}
	return worst;
}

const char *bench_results_invalid(const struct bench_results *r, struct arena *a)
{
	CLEANUP(data_release) struct data data;
	data_init(&data, r);
	return bench_invalid(a, &data.d);
}

struct report *bench_results_report(const struct bench_results *r)
{
	CLEANUP(data_release) struct data data;
	data_init(&data, r);
	return bench_report(&data.d);
}

/* ---- exports ---------------------------------------------------------------------------------- */

/* What a row of the export borrows. */
struct row {
	double *times_s;
	double *each;
	struct bench_export_change change;
	struct bench_export_change against;
	struct bench_export_phase *phases;
	double **phase_times;
	struct bench_export_change *phase_changes;
};

static void row_release(struct row *row, const struct bench_data *d)
{
	for (size_t k = 0; k < d->nr_phases; k++)
		free(row->phase_times[k]);
	free(row->phase_times);
	free(row->phases);
	free(row->phase_changes);
	free(row->times_s);
	free(row->each);
}

static double mean_s(const struct bench_subject_data *s, enum bench_metric m)
{
	CLEANUP(free_p) double *v = xmalloc(MAX(s->nr_runs, (size_t)1) * sizeof(*v));
	bench_metric_values(v, s, m);
	return stat_mean(v, s->nr_runs) / 1e9;
}

static struct bench_export_change change_of(enum bench_verdict verdict, const struct bench_ratio *r,
					    uint64_t nr_runs)
{
	return (struct bench_export_change){
		.verdict = bench_verdict_name(verdict),
		.ratio = exp(r->median),
		.low = exp(r->interval.low),
		.high = exp(r->interval.high),
		.floor = expm1(r->floor),
		.spread = expm1(r->spread),
		.nr_runs = nr_runs,
	};
}

/* The comparison with the first command; NULL: there is none. */
static const struct bench_export_change *compare(struct bench_export_change *to,
						 const struct bench_data *d, size_t i, size_t phase)
{
	struct bench_outcome o;
	if (!i)
		return NULL;
	bench_outcome(&o, d, i, phase, SIZE_MAX);
	if (!o.ratio.nr_blocks)
		return NULL;
	*to = change_of(o.verdict, &o.ratio, 2 * o.ratio.nr_blocks);
	return to;
}

/* @v in ns becomes the caller's in seconds. */
static void fill_times(struct bench_export_times *to, struct bench_summary *sum, double *v,
		       size_t n)
{
	*to = (struct bench_export_times){v, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (!n)
		return;
	bench_summarize(sum, v, n);
	for (size_t i = 0; i < n; i++)
		v[i] /= 1e9;
	*to = (struct bench_export_times){
		.values_s = v,
		.nr = n,
		.mean_s = sum->mean / 1e9,
		.stddev_s = sum->stddev / 1e9,
		.median_s = sum->median / 1e9,
		.min_s = sum->min / 1e9,
		.max_s = sum->max / 1e9,
		.median_low_s = sum->interval.low / 1e9,
		.median_high_s = sum->interval.high / 1e9,
	};
}

static void fill_against(struct row *row, struct bench_export *e, const struct bench_data *d,
			 size_t i)
{
	struct bench_against a;
	bench_outcome_against(&a, d, i);
	row->against = change_of(a.verdict, &a.ratio, a.ratio.nr_blocks);
	e->against = &row->against;
}

static void fill_phases(struct row *row, struct bench_export *e, const struct bench_data *d,
			size_t i)
{
	row->phases = xcalloc(d->nr_phases, sizeof(*row->phases));
	row->phase_changes = xcalloc(d->nr_phases, sizeof(*row->phase_changes));
	row->phase_times = xcalloc(d->nr_phases, sizeof(*row->phase_times));
	for (size_t k = 0; k < d->nr_phases; k++) {
		struct bench_export_phase *to = &row->phases[k];
		struct bench_summary sum;
		size_t n = bench_series(&row->phase_times[k], d, i, k);
		to->name = d->phases[k].name;
		to->share = bench_phase_share(d, i, k) / 100;
		to->counts = d->subjects[i].phases[k].counts;
		to->nr_counts = d->subjects[i].phases[k].nr_counts;
		fill_times(&to->times, &sum, row->phase_times[k], n);
		to->change = compare(&row->phase_changes[k], d, i, k);
	}
	e->phases = row->phases;
	e->nr_phases = d->nr_phases;
}

static void fill_export(struct bench_export *e, struct row *row, const struct bench_results *r,
			const struct bench_data *d, size_t i)
{
	const struct bench_subject_data *s = &d->subjects[i];
	struct bench_summary sum;
	row->times_s = xmalloc(s->nr_runs * sizeof(*row->times_s));
	bench_metric_values(row->times_s, s, BENCH_WALL);
	double shell = s->shell ? (double)s->shell->v[BENCH_WALL] : 0;
	struct bench_export_times times;
	fill_times(&times, &sum, row->times_s, s->nr_runs);
	*e = (struct bench_export){
		.command = s->name,
		.times = times,
		.mad_s = sum.mad / 1e9,
		.user_s = mean_s(s, BENCH_USER),
		.system_s = mean_s(s, BENCH_SYSTEM),
		.p90_s = sum.percentile[BENCH_P90] / 1e9,
		.p95_s = sum.percentile[BENCH_P95] / 1e9,
		.p99_s = sum.percentile[BENCH_P99] / 1e9,
		.cold_s = s->cold ? MAX((double)s->cold->v[BENCH_WALL] - shell, 0.0) / 1e9 : NAN,
		.runs = s->runs,
		.parameters = r->commands->parameters.p[i],
		.nr_parameters = r->commands->nr_parameters,
	};
	if (d->has_each) {
		e->each = row->each = NULL;
		e->nr_each = bench_series(&row->each, d, i, BENCH_WHOLE);
		e->each = row->each;
		e->each_is_time = d->each_is_time;
	}
	e->counters = d->counters;
	e->nr_counters = d->nr_counters;
	e->machine = s->machine;
	fill_phases(row, e, d, i);
	if (s->baseline)
		fill_against(row, e, d, i);
	e->change = compare(&row->change, d, i, BENCH_WHOLE);
}

void bench_results_export(const struct bench_results *r, struct buf *to,
			  void (*write)(struct buf *, const struct bench_export *, size_t))
{
	CLEANUP(data_release) struct data data;
	data_init(&data, r);
	size_t nr = data.d.nr_subjects;
	CLEANUP(free_p) struct bench_export *e = xcalloc(nr, sizeof(*e));
	CLEANUP(free_p) struct row *rows = xcalloc(nr, sizeof(*rows));
	size_t nr_filled = 0;
	for (size_t i = 0; i < nr; i++)
		if (data.subjects[i].nr_runs) {
			fill_export(&e[nr_filled], &rows[nr_filled], r, &data.d, i);
			nr_filled++;
		}
	write(to, e, nr_filled);
	for (size_t i = 0; i < nr_filled; i++)
		row_release(&rows[i], &data.d);
}
