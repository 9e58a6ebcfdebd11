/* The report of a benchmark; see benchreport.h. */
#include "base/base.h"
#include "analyze/bench/benchreport.h"

#include <math.h>

#include "analyze/bench/benchcounters.h"
#include "analyze/bench/benchnoise.h"
#include "analyze/bench/benchphases.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/num.h"

#define NR_BINS_MAX         12
#define BAR_WIDTH           40
#define LINE_WIDTH          72
#define BENCH_MIN_HISTOGRAM 10
#define BENCH_SEVERAL_CPUS  1.1 /* CPU time by ticks may be a little above the wall time */

/* ---- values --------------------------------------------------------------------------------- */

void bench_metric_values(double *to, const struct bench_subject_data *s, enum bench_metric m)
{
	bool is_time = m == BENCH_WALL || m == BENCH_USER || m == BENCH_SYSTEM;
	double shell = s->shell && is_time ? (double)s->shell->v[m] : 0;
	for (size_t i = 0; i < s->nr_runs; i++) {
		uint64_t v = s->runs[i].v[m];
		to[i] = v == UINT64_MAX ? NAN : MAX((double)v - shell, 0.0);
	}
}

static const struct bench_printed *printed_of(const struct bench_subject_data *s, size_t phase)
{
	return phase == BENCH_WHOLE ? &s->each : &s->phases[phase];
}

/* One value for each run; NAN: the run has none. */
static void run_values(double *to, const struct bench_data *d, size_t subject, size_t phase)
{
	const struct bench_subject_data *s = &d->subjects[subject];
	if (phase == BENCH_WHOLE && !d->has_each)
		bench_metric_values(to, s, BENCH_WALL);
	else
		(d->has_each ? bench_printed_medians : bench_printed_sums)(to, s->nr_runs,
									   printed_of(s, phase));
}

size_t bench_series(double **ret, const struct bench_data *d, size_t subject, size_t phase)
{
	const struct bench_subject_data *s = &d->subjects[subject];
	const struct bench_printed *p = printed_of(s, phase);
	double *v = *ret = xmalloc(MAX(MAX(s->nr_runs, p->n), (size_t)1) * sizeof(*v));
	size_t n = 0;
	if (d->has_each)
		return bench_printed_series(v, p);
	run_values(v, d, subject, phase);
	for (size_t i = 0; i < s->nr_runs; i++)
		if (!isnan(v[i]))
			v[n++] = v[i];
	return n;
}

const char *bench_invalid(struct arena *a, const struct bench_data *d)
{
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const struct bench_subject_data *s = &d->subjects[i];
		CLEANUP(free_p) double *v = xmalloc(MAX(s->nr_runs, (size_t)1) * sizeof(*v));
		run_values(v, d, i, BENCH_WHOLE);
		for (size_t k = 0; k < s->nr_runs; k++)
			if (isnan(v[k]))
				return arena_fmt(a, "run %zu of '%s' printed no value that matches",
						 k + 1, s->name);
		bench_sort(v, s->nr_runs);
		if (!s->nr_runs || bench_quantile_sorted(v, s->nr_runs, 0.5) > 0)
			continue;
		if (!s->shell || d->has_each)
			return arena_fmt(a, "the values of '%s' are 0 or less", s->name);
		return arena_fmt(a, "'%s' takes no longer than the shell that starts it (%s)",
				 s->name, num_ns(s->shell->v[BENCH_WALL]).s);
	}
	return bench_phases_invalid(a, d);
}

/* ---- comparison ------------------------------------------------------------------------------- */

const char *bench_verdict_name(enum bench_verdict v)
{
	static const char *const names[BENCH_VERDICT_NR] = {"inconclusive", "same", "faster",
							    "slower"};
	return names[v];
}

/* The verdict by values of the runs of the first command and another, with @nr_comparisons in all. */
static void outcome_of(struct bench_outcome *ret, const struct bench_data *d, const double *base,
		       const double *other, size_t nr_blocks, size_t nr_comparisons)
{
	CLEANUP(free_p) struct bench_block *blocks = xmalloc(nr_blocks * sizeof(*blocks));
	double least = d->has_each ? 1e-300 : 1; /* ns */
	for (size_t i = 0; i < nr_blocks; i++) {
		for (size_t k = 0; k < 2; k++) { /* a run may take less than the shell's median */
			blocks[i].base[k] = MAX(base[2 * i + k], least);
			blocks[i].other[k] = MAX(other[2 * i + k], least);
		}
	}
	struct bench_plan plan;
	bench_plan_init(&plan, MAX(d->nr_blocks, nr_blocks), nr_comparisons);
	if (!d->has_early_looks) {
		plan.blocks[0] = plan.blocks[plan.nr_looks - 1];
		plan.alpha[0] = 0.05 / (double)nr_comparisons;
		plan.nr_looks = 1;
	}
	bool is_over;
	ret->verdict = bench_decide(&ret->ratio, &is_over, &plan, blocks, nr_blocks, d->least);
	if (ret->verdict == BENCH_INCONCLUSIVE && !is_over) /* stopped between two looks */
		bench_compare(&ret->ratio, blocks, nr_blocks, plan.alpha[plan.nr_looks - 1],
			      d->least);
}

void bench_outcome(struct bench_outcome *ret, const struct bench_data *d, size_t subject,
		   size_t phase, size_t nr_blocks)
{
	size_t nr[] = {d->subjects[0].nr_runs, d->subjects[subject].nr_runs};
	CLEANUP(free_p) double *base = xmalloc(MAX(nr[0], (size_t)1) * sizeof(*base));
	CLEANUP(free_p) double *other = xmalloc(MAX(nr[1], (size_t)1) * sizeof(*other));
	size_t both = MIN(nr[0], nr[1]);
	nr_blocks = MIN(nr_blocks, both / 2);
	run_values(base, d, 0, phase);
	run_values(other, d, subject, phase);
	*ret = (struct bench_outcome){BENCH_INCONCLUSIVE, {0}};
	for (size_t i = 0; i < both; i++)
		if (isnan(base[i]) || isnan(other[i]))
			return;
	if (nr_blocks)
		outcome_of(ret, d, base, other, nr_blocks,
			   (d->nr_subjects - 1) * (phase == BENCH_WHOLE ? 1 : d->nr_phases));
}

static void session_of(struct bench_session *ret, const struct bench_data *d, size_t subject,
		       double *values, size_t nr)
{
	const struct bench_subject_data *s = &d->subjects[subject];
	struct bench_sums sum = {0};
	for (size_t i = 0; i < s->nr_runs; i++) {
		const uint64_t *v = s->runs[i].v;
		sum.wall += (double)v[BENCH_WALL];
		sum.cpu += (double)(v[BENCH_USER] + v[BENCH_SYSTEM]);
		sum.stolen += (double)v[BENCH_STOLEN];
		sum.queue += v[BENCH_RUN_QUEUE] == UINT64_MAX ? NAN : (double)v[BENCH_RUN_QUEUE];
	}
	*ret = (struct bench_session){
		.values = values,
		.nr = nr,
		.busy = bench_busy(&sum),
		.busy_is_bound = isnan(sum.queue),
		.instructions = bench_counter_median(d, s, COUNTER_INSTRUCTIONS),
		.machine = *s->machine,
	};
}

void bench_outcome_against(struct bench_against *ret, const struct bench_data *d, size_t subject)
{
	CLEANUP(free_p) double *v = NULL;
	struct bench_session now;
	size_t n = bench_series(&v, d, subject, BENCH_WHOLE);
	*ret = (struct bench_against){.verdict = BENCH_INCONCLUSIVE};
	session_of(&now, d, subject, v, n);
	if (n)
		bench_against(ret, d->subjects[subject].baseline, &now, d->least);
}

static void add_against(struct report *r, const struct bench_data *d, size_t subject)
{
	CLEANUP(free_p) double *v = NULL;
	struct bench_against a;
	struct bench_session now;
	size_t n = bench_series(&v, d, subject, BENCH_WHOLE);
	session_of(&now, d, subject, v, n);
	bench_outcome_against(&a, d, subject);
	bench_against_report(r, d->subjects[subject].name, &a, d->subjects[subject].baseline, &now);
}

/* ---- texts ------------------------------------------------------------------------------------ */

static struct num_text value_text(const struct bench_data *d, double v)
{
	if (isnan(v))
		return (struct num_text){"?"};
	if (!d->has_each || d->each_is_time)
		return num_ns((uint64_t)llround(MAX(v, 0.0)));
	return num_double(v, v < 10 ? 4 : 2);
}

/* "0.628 Ggas/s": the largest prefix with which the number is at least 0.1. */
static void add_rate(struct buf *to, double rate, const char *unit)
{
	static const struct {
		double factor;
		const char *prefix;
	} units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
	size_t i = 0;
	while (i + 1 < ARRAY_LEN(units) && rate < units[i].factor / 10)
		i++;
	double v = rate / units[i].factor;
	num_add_double(to, v, v < 10 ? 3 : v < 100 ? 2 : 1);
	buf_addf(to, " %s%s/s", units[i].prefix, unit);
}

static void add_summary(struct report *r, const struct bench_data *d, size_t subject,
			const struct bench_summary *s)
{
	static const char *const percents[BENCH_PERCENTILE_NR] = {"p90", "p95", "p99"};
	const struct bench_subject_data *subj = &d->subjects[subject];
	CLEANUP(buf_release) struct buf b = {0};
	if (d->nr_subjects > 1)
		buf_addf(&b, "'%s': ", subj->name);
	buf_addf(&b, "%s %s", d->has_each ? "median of the printed values" : "median",
		 value_text(d, s->median).s);
	if (!isnan(s->interval.low))
		buf_addf(&b, " (95 %% interval %s to %s)", value_text(d, s->interval.low).s,
			 value_text(d, s->interval.high).s);
	buf_addf(&b, ", mean %s", value_text(d, s->mean).s);
	if (!isnan(s->stddev))
		buf_addf(&b, " +- %s (standard deviation)", value_text(d, s->stddev).s);
	buf_addf(&b, ", %s", num_noun(s->n, d->has_each ? "values" : "runs").s);
	for (size_t p = 0; p < BENCH_PERCENTILE_NR; p++)
		if (!isnan(s->percentile[p]))
			buf_addf(&b, ", %s %s", percents[p], value_text(d, s->percentile[p]).s);
	if (d->work > 0 && (!d->has_each || d->each_is_time)) {
		buf_add_str(&b, "; throughput at the median ");
		add_rate(&b, d->work / (s->median / 1e9), d->unit ? d->unit : "units");
	}
	if (d->nr_subjects == 1)
		report_finding(r, "%s", buf_str(&b));
	else
		report_note(r, "%s", buf_str(&b));
}

static void add_cold(struct report *r, const struct bench_data *d, size_t subject, double median)
{
	const struct bench_subject_data *s = &d->subjects[subject];
	double cold = NAN;
	if (d->has_each && s->each.n > 1 && s->each.run[1] == s->each.run[0])
		cold = s->each.v[0];
	else if (!d->has_each && s->cold)
		cold = MAX((double)s->cold->v[BENCH_WALL] -
				   (s->shell ? (double)s->shell->v[BENCH_WALL] : 0),
			   0.0);
	if (isnan(cold) || !(median > 0))
		return;
	report_note(r, "first, cold %s%s%s%s: %s, %s times the median; not part of the numbers",
		    d->has_each ? "value" : "run", d->nr_subjects > 1 ? " of '" : "",
		    d->nr_subjects > 1 ? s->name : "", d->nr_subjects > 1 ? "'" : "",
		    value_text(d, cold).s, num_double(cold / median, 2).s);
}

/* Each run as a character from low to high, in order; several runs a character if there are many. */
static void add_line(struct report *r, const struct bench_data *d, const struct bench_summary *s,
		     const double *v, size_t n, const char *name)
{
	static const char levels[] = "_.-=+*#@";
	size_t each = (n + LINE_WIDTH - 1) / LINE_WIDTH;
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < n; i += each) {
		double sum = 0;
		size_t nr = MIN(each, n - i);
		for (size_t k = 0; k < nr; k++)
			sum += v[i + k];
		double at = s->max > s->min ? (sum / (double)nr - s->min) / (s->max - s->min) : 0;
		buf_add_ch(&b, levels[MIN((size_t)(at * 8), (size_t)7)]);
	}
	report_note(r, "in order%s%s%s, %s each, from _ = %s to @ = %s:  %s",
		    d->nr_subjects > 1 ? " for '" : "", d->nr_subjects > 1 ? name : "",
		    d->nr_subjects > 1 ? "'" : "",
		    num_noun(each, d->has_each ? "values" : "runs").s, value_text(d, s->min).s,
		    value_text(d, s->max).s, buf_str(&b));
}

static void add_comparison(struct report *r, const struct bench_data *d, size_t subject,
			   const struct bench_outcome *o)
{
	const char *base = d->subjects[0].name;
	const char *name = d->subjects[subject].name;
	double median = expm1(o->ratio.median) * 100;
	double floor = bench_floor_pct(&o->ratio);
	if (!o->ratio.nr_blocks) {
		report_finding(r, "'%s' and '%s' are not compared: no complete block of runs", name,
			       base);
		return;
	}
	CLEANUP(buf_release) struct buf in = {0};
	if (isnan(o->ratio.interval.low))
		buf_addf(&in, "%s of two runs each are too few for an interval",
			 num_noun(o->ratio.nr_blocks, "blocks").s);
	else
		buf_addf(&in, "interval %+.1f to %+.1f %%", expm1(o->ratio.interval.low) * 100,
			 expm1(o->ratio.interval.high) * 100);
	if (isfinite(floor))
		buf_addf(&in, ", floor %.1f %%", floor);
	buf_addf(&in, ", %s each", num_noun(2 * o->ratio.nr_blocks, "runs").s);
	switch (o->verdict) {
	case BENCH_SLOWER:
	case BENCH_FASTER:
		report_finding(r, "'%s' is %.1f %% %s than '%s' (%s)", name, fabs(median),
			       bench_verdict_name(o->verdict), base, buf_str(&in));
		break;
	case BENCH_SAME:
		report_finding(
			r,
			"'%s' and '%s' take the same time: no difference of %.1f %% or more (%+.1f %%; %s)",
			name, base, expm1(o->ratio.floor) * 100, median, buf_str(&in));
		break;
	case BENCH_INCONCLUSIVE:
	case BENCH_VERDICT_NR:
		report_finding(r, "inconclusive: '%s' against '%s' measured %+.1f %% (%s)", name,
			       base, median, buf_str(&in));
	}
}

/* ---- tables ----------------------------------------------------------------------------------- */

struct report_table *bench_add_table(struct report *r, const struct bench_data *d, const char *key,
				     const char *title, const struct report_column *columns,
				     size_t nr_columns)
{
	return report_add_table_of(r, key, title, columns, nr_columns,
				   d->nr_subjects > 1 ? BENCH_WHEN_SEVERAL : 0);
}

#define STATS(cells, of_kind)                                                         \
	BENCH_COMMAND_COLUMN, {.key = "what", .title = "per run", .kind = CELL_TEXT}, \
		{.key = "mean" of_kind, .title = "mean", .kind = (cells)},            \
		{.key = "stddev" of_kind,                                             \
		 .title = "stddev",                                                   \
		 .kind = (cells),                                                     \
		 .help = "standard deviation of a sample"},                           \
		{.key = "mad" of_kind,                                                \
		 .title = "MAD",                                                      \
		 .kind = (cells),                                                     \
		 .help = "median distance from the median"},                          \
		{.key = "min" of_kind, .title = "min", .kind = (cells)},              \
		{.key = "median" of_kind, .title = "median", .kind = (cells)},        \
	{                                                                             \
		.key = "max" of_kind, .title = "max", .kind = (cells)                 \
	}

static const struct report_column time_columns[] = {STATS(CELL_NS, "_ns")};
static const struct report_column memory_columns[] = {STATS(CELL_BYTES, "_bytes")};
static const struct report_column count_columns[] = {STATS(CELL_FLOAT, "")};

static const struct metric_row {
	enum bench_metric metric;
	enum cell_kind kind;
	const char *name;
} metric_rows[] = {
	{BENCH_WALL, CELL_NS, "wall time"},
	{BENCH_USER, CELL_NS, "user time"},
	{BENCH_SYSTEM, CELL_NS, "system time"},
	{BENCH_RUN_QUEUE, CELL_NS, "run queue"},
	{BENCH_PEAK_RSS, CELL_BYTES, "peak RSS"},
	{BENCH_MINOR_FAULTS, CELL_FLOAT, "minor faults"},
	{BENCH_MAJOR_FAULTS, CELL_FLOAT, "major faults"},
	{BENCH_VOLUNTARY_SWITCHES, CELL_FLOAT, "voluntary switches"},
	{BENCH_INVOLUNTARY_SWITCHES, CELL_FLOAT, "involuntary switches"},
	{BENCH_MIGRATIONS, CELL_FLOAT, "CPU migrations"},
	{BENCH_BLOCKS_IN, CELL_FLOAT, "blocks read"},
	{BENCH_BLOCKS_OUT, CELL_FLOAT, "blocks written"},
};

static union cell value_cell(enum cell_kind kind, double v)
{
	if (kind == CELL_FLOAT)
		return (union cell){.d = v};
	return (union cell){.u = isnan(v) ? UINT64_MAX : (uint64_t)llround(MAX(v, 0.0))};
}

static void add_metric(struct report *r, struct report_table *t, const struct bench_subject_data *s,
		       const struct metric_row *row)
{
	CLEANUP(free_p) double *v = xmalloc(s->nr_runs * sizeof(*v));
	const char *name = row->name;
	bench_metric_values(v, s, row->metric);
	for (size_t i = 0; i < s->nr_runs; i++)
		if (isnan(v[i])) /* not known of each run */
			return;
	for (size_t i = 0; i < s->nr_runs && row->metric == BENCH_PEAK_RSS; i++)
		if (s->runs[i].peak_is_bound)
			name = "peak RSS, at most";
	struct bench_summary sum;
	bench_summarize(&sum, v, s->nr_runs);
	const double shown[] = {sum.mean, sum.stddev, sum.mad, sum.min, sum.median, sum.max};
	union cell cells[2 + ARRAY_LEN(shown)] = {{.text = s->name}, {.text = name}};
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		cells[2 + i] = value_cell(row->kind, shown[i]);
	report_add_row(r, t, cells);
}

static void add_metrics(struct report *r, const struct bench_data *d, enum cell_kind kind,
			const char *key, const char *title, const struct report_column *columns)
{
	static const char *const hide_first[] = {"mad_ns",    "mad_bytes",    "mad",
						 "stddev_ns", "stddev_bytes", "stddev",
						 "mean_ns",   "mean_bytes",   "mean",
						 NULL};
	struct report_table *t =
		bench_add_table(r, d, key, title, columns, ARRAY_LEN(time_columns));
	t->nr_first = 2 * d->nr_subjects;
	t->hide_first = hide_first;
	for (size_t k = 0; k < ARRAY_LEN(metric_rows); k++)
		for (size_t i = 0; i < d->nr_subjects; i++)
			if (metric_rows[k].kind == kind && d->subjects[i].nr_runs)
				add_metric(r, t, &d->subjects[i], &metric_rows[k]);
}

static struct report_series *add_series(struct report *r, const struct bench_data *d,
					const struct bench_summary *s, const double *v, size_t n,
					const char *name)
{
	struct arena *a = &r->arena;
	struct report_series *to = vec_add(&r->series);
	double *values = arena_alloc(a, n * sizeof(*values));
	const char **texts = arena_alloc(a, n * sizeof(*texts));
	for (size_t i = 0; i < n; i++) {
		values[i] = v[i];
		texts[i] = arena_strdup(a, value_text(d, v[i]).s);
	}
	*to = (struct report_series){
		.name = arena_strdup(a, name),
		.noun = d->has_each ? "values" : "runs",
		.values = values,
		.texts = texts,
		.nr = n,
		.min = s->min,
		.median = s->median,
		.max = s->max,
		.min_text = arena_strdup(a, value_text(d, s->min).s),
		.median_text = arena_strdup(a, value_text(d, s->median).s),
		.max_text = arena_strdup(a, value_text(d, s->max).s),
	};
	return to;
}

static void add_histogram(struct report *r, const struct bench_data *d,
			  const struct bench_summary *s, const double *v, size_t n,
			  struct report_series *series)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		{.key = "from", .title = "from", .kind = CELL_TEXT},
		{.key = "to", .title = "to", .kind = CELL_TEXT},
		{.key = "runs", .title = "runs", .kind = CELL_COUNT},
		{.key = "bar", .title = "", .kind = CELL_TEXT},
	};
	size_t bins[NR_BINS_MAX];
	/* Sturges' rule: more bins are mostly empty */
	size_t nr_bins = MIN((size_t)ceil(log2((double)n)) + 1, (size_t)NR_BINS_MAX);
	if (n < BENCH_MIN_HISTOGRAM || !(s->max > s->min))
		return;
	/* values far outside would put all others into one bin: the last one is open */
	double high = MIN(s->max, s->q3 + 1.5 * (s->q3 - s->q1));
	high = high > s->min ? high : s->max;
	bench_histogram(bins, nr_bins, s->min, high, v, n);
	struct report_table *t =
		bench_add_table(r, d, "histogram",
				d->nr_subjects > 1 ? "distribution" : "distribution of the runs",
				columns, ARRAY_LEN(columns));
	t->nr_first = nr_bins;
	t->has_zeros = true;
	t->is_detail = d->nr_subjects > 1;
	size_t most = 1;
	for (size_t i = 0; i < nr_bins; i++)
		most = MAX(most, bins[i]);
	struct report_bin *shown = arena_alloc(&r->arena, nr_bins * sizeof(*shown));
	series->bins = shown;
	series->nr_bins = nr_bins;
	for (size_t i = 0; i < nr_bins; i++) {
		double step = (high - s->min) / nr_bins;
		CLEANUP(buf_release) struct buf bar = {0};
		buf_add_repeat(&bar, '#', (bins[i] * BAR_WIDTH + most - 1) / most);
		struct num_text from = value_text(d, s->min + (double)i * step);
		struct num_text to =
			value_text(d, i + 1 < nr_bins ? s->min + (double)(i + 1) * step : s->max);
		report_add_row(r, t,
			       (union cell[]){{.text = series->name},
					      {.text = from.s},
					      {.text = to.s},
					      {.u = bins[i]},
					      {.text = buf_str(&bar)}});
		shown[i] = (struct report_bin){arena_fmt(&r->arena, "%s to %s", from.s, to.s),
					       bins[i]};
	}
}

static void add_runs(struct report *r, const struct bench_data *d)
{
	static const struct report_column columns[] = {
		BENCH_COMMAND_COLUMN,
		{.key = "run", .title = "run", .kind = CELL_ID},
		{.key = "wall_ns", .title = "wall", .kind = CELL_NS},
		{.key = "user_ns", .title = "user", .kind = CELL_NS},
		{.key = "system_ns", .title = "system", .kind = CELL_NS},
		{.key = "run_queue_ns", .title = "run queue", .kind = CELL_NS},
		{.key = "stolen_ns", .title = "stolen", .kind = CELL_NS},
		{.key = "peak_rss_bytes", .title = "peak RSS", .kind = CELL_BYTES},
		{.key = "minor_faults", .title = "minor faults", .kind = CELL_COUNT},
		{.key = "major_faults", .title = "major faults", .kind = CELL_COUNT},
		{.key = "voluntary", .title = "voluntary switches", .kind = CELL_COUNT},
		{.key = "involuntary", .title = "involuntary switches", .kind = CELL_COUNT},
		{.key = "migrations", .title = "migrations", .kind = CELL_COUNT},
		{.key = "exit", .title = "exit", .kind = CELL_COUNT},
	};
	struct report_table *t = bench_add_table(r, d, "runs", "runs", columns, ARRAY_LEN(columns));
	t->is_detail = true;
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const struct bench_subject_data *s = &d->subjects[i];
		for (size_t k = 0; k < s->nr_runs; k++) {
			const uint64_t *v = s->runs[k].v;
			report_add_row(r, t,
				       (union cell[]){{.text = s->name},
						      {.u = k + 1},
						      {.u = v[BENCH_WALL]},
						      {.u = v[BENCH_USER]},
						      {.u = v[BENCH_SYSTEM]},
						      {.u = v[BENCH_RUN_QUEUE]},
						      {.u = v[BENCH_STOLEN]},
						      {.u = v[BENCH_PEAK_RSS]},
						      {.u = v[BENCH_MINOR_FAULTS]},
						      {.u = v[BENCH_MAJOR_FAULTS]},
						      {.u = v[BENCH_VOLUNTARY_SWITCHES]},
						      {.u = v[BENCH_INVOLUNTARY_SWITCHES]},
						      {.u = v[BENCH_MIGRATIONS]},
						      {.u = (uint64_t)s->runs[k].exit_code}});
		}
	}
}

/* Readers take user and system time above wall time for an error. */
static void add_cpus_note(struct report *r, const struct bench_data *d,
			  const struct bench_subject_data *s)
{
	double wall = 0;
	double cpu = 0;
	for (size_t k = 0; k < s->nr_runs; k++) {
		wall += (double)s->runs[k].v[BENCH_WALL];
		cpu += (double)(s->runs[k].v[BENCH_USER] + s->runs[k].v[BENCH_SYSTEM]);
	}
	if (wall > 0 && cpu > BENCH_SEVERAL_CPUS * wall)
		report_note(r,
			    "user and system time%s%s%s are %s times the wall time: threads or "
			    "processes ran at the same time on several CPUs",
			    d->nr_subjects > 1 ? " of '" : "", d->nr_subjects > 1 ? s->name : "",
			    d->nr_subjects > 1 ? "'" : "", num_double(cpu / wall, 1).s);
}

static void add_remarks(struct report *r, const struct bench_data *d)
{
	for (size_t i = 0; i < d->nr_subjects; i++) {
		const struct bench_subject_data *s = &d->subjects[i];
		size_t nr_bound = 0;
		for (size_t k = 0; k < s->nr_runs; k++)
			nr_bound += s->runs[k].peak_is_bound;
		if (nr_bound)
			report_note(
				r,
				"peak RSS of '%s': at most %s in %s (assay's helper that starts it has as much)",
				s->name, num_bytes(d->rss_bound_bytes).s,
				num_noun(nr_bound, "runs").s);
		if (s->shell)
			report_detail(
				r,
				"times of '%s' are without the shell's %s (%s of CPU time), the median of its runs with an empty command",
				s->name, num_ns(s->shell->v[BENCH_WALL]).s,
				num_ns(s->shell->v[BENCH_USER] + s->shell->v[BENCH_SYSTEM]).s);
		add_cpus_note(r, d, s);
		if (s->nr_failed)
			report_note(r, "%s of '%s' exited with another status than 0",
				    num_noun(s->nr_failed, "runs").s, s->name);
	}
}

struct report *bench_report(const struct bench_data *d)
{
	struct report *r = report_new();
	r->title = d->nr_subjects > 1 ? "comparison of commands" : "benchmark";
	r->has_no_samples = true;
	r->unit = UNIT_NS;
	const char *invalid = bench_invalid(&r->arena, d);
	if (invalid)
		report_finding(r, "invalid: %s", invalid);
	for (size_t i = 1; i < d->nr_subjects && !invalid; i++) {
		struct bench_outcome o;
		bench_outcome(&o, d, i, BENCH_WHOLE, SIZE_MAX);
		add_comparison(r, d, i, &o);
	}
	bench_noise(r, d); /* before what is cut on first pages */
	if (d->nr_subjects > 1 && !invalid)
		report_note(r,
			    "floor: no smaller change is called slower or faster: %s %%, or what "
			    "runs of '%s' differ from each other if that is more; block: two runs "
			    "of each command, in order and in reverse",
			    num_double(100 * d->least, 2).s, d->subjects[0].name);
	for (size_t i = 0; i < d->nr_subjects && !invalid; i++)
		if (d->subjects[i].baseline)
			add_against(r, d, i);
	bench_phases(r, d);
	add_metrics(r, d, CELL_NS, "times", "time", time_columns);
	add_metrics(r, d, CELL_BYTES, "memory", "memory", memory_columns);
	add_metrics(r, d, CELL_FLOAT, "counts", "counts", count_columns);
	for (size_t i = 0; i < d->nr_subjects; i++) {
		CLEANUP(free_p) double *v = NULL;
		size_t n = bench_series(&v, d, i, BENCH_WHOLE);
		if (!n)
			continue;
		struct bench_summary s;
		bench_summarize(&s, v, n);
		add_summary(r, d, i, &s);
		add_cold(r, d, i, s.median);
		if (n > 1)
			add_line(r, d, &s, v, n, d->subjects[i].name);
		add_histogram(r, d, &s, v, n, add_series(r, d, &s, v, n, d->subjects[i].name));
	}
	add_remarks(r, d);
	bench_counters(r, d);
	if (d->is_stopped)
		report_note(r, "stopped by a signal: these are the runs until then");
	if (d->has_failed)
		report_note(r, "ended by a command that failed: these are the runs until then");
	add_runs(r, d);
	return r;
}
