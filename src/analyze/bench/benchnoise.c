/* Causes of noise; see benchnoise.h. */
#include "base/base.h"
#include "analyze/bench/benchnoise.h"

#include <math.h>

#include "base/mem.h"
#include "base/text/num.h"

#define STOLEN_PCT       1.0 /* of the wall time of all runs */
#define THROTTLED_PCT    1.0
#define RUN_QUEUE_PCT    5.0
#define AUTOCORRELATION  0.3
#define SHORT_NS         5e6  /* of what a shell starts: its own time varies by as much */
#define DISK_RUN_PCT     5.0  /* of the runs have major faults, and others none */
#define OUTLIER_DISTANCE 3.0  /* interquartile ranges beyond the quartiles */
#define MIGRATIONS_HZ    20.0 /* after each, caches are cold for about 100 us */
#define MIN_RUNS         10

struct sums {
	double wall_ns;
	double queue_ns;
	double stolen_ns;
	double nr_migrations;
	size_t nr_runs;
	size_t nr_with_major;
};

static struct sums sum_runs(const struct bench_data *d)
{
	struct sums s = {0};
	for (size_t i = 0; i < d->nr_subjects; i++)
		for (size_t k = 0; k < d->subjects[i].nr_runs; k++) {
			const uint64_t *v = d->subjects[i].runs[k].v;
			s.wall_ns += (double)v[BENCH_WALL];
			s.queue_ns +=
				v[BENCH_RUN_QUEUE] == UINT64_MAX ? 0 : (double)v[BENCH_RUN_QUEUE];
			s.stolen_ns += (double)v[BENCH_STOLEN];
			s.nr_migrations +=
				v[BENCH_MIGRATIONS] == UINT64_MAX ? 0 : (double)v[BENCH_MIGRATIONS];
			s.nr_with_major += v[BENCH_MAJOR_FAULTS] > 0;
			s.nr_runs++;
		}
	return s;
}

static void add_machine(struct report *r, const struct bench_data *d, const struct sums *s)
{
	double stolen = 100 * s->stolen_ns / s->wall_ns;
	double throttled = 100 * (double)d->throttled_ns / s->wall_ns;
	double queue = 100 * s->queue_ns / s->wall_ns;
	if (throttled >= THROTTLED_PCT)
		report_note(
			r,
			"noise: the CPU quota of the cgroup held the runs back for %s (%s %% of their time)",
			num_ns(d->throttled_ns).s, num_pct(throttled).s);
	if (stolen >= STOLEN_PCT)
		report_note(
			r,
			"noise: the hypervisor took %s of CPU time from this machine during the runs (%s %% of their time)",
			num_ns((uint64_t)s->stolen_ns).s, num_pct(stolen).s);
	if (queue >= RUN_QUEUE_PCT)
		report_note(
			r,
			"noise: the commands waited for a free CPU for %s %% of their time: other programs run on this machine",
			num_pct(queue).s);
	double migrations_hz = s->nr_migrations / (s->wall_ns / 1e9);
	if (migrations_hz >= MIGRATIONS_HZ)
		report_note(
			r,
			"noise: the commands were moved to another CPU %s times a second: taskset -c 1 keeps them on one, if they have one thread",
			num_double(migrations_hz, 0).s);
	if (s->nr_with_major && s->nr_with_major < s->nr_runs &&
	    100.0 * (double)s->nr_with_major / (double)s->nr_runs >= DISK_RUN_PCT)
		report_note(
			r,
			"noise: %zu of %zu runs read pages from disk (major faults), the others found them in memory: --warmup or --prepare makes them alike",
			s->nr_with_major, s->nr_runs);
	if (d->governor && strcmp(d->governor, "performance") != 0)
		report_detail(r, "the CPU frequency is not fixed (governor %s)", d->governor);
}

static void add_series(struct report *r, const struct bench_data *d, size_t subject)
{
	const struct bench_subject_data *s = &d->subjects[subject];
	CLEANUP(free_p) double *v = NULL;
	size_t n = bench_series(&v, d, subject, BENCH_WHOLE);
	if (n < MIN_RUNS)
		return;
	double lag = bench_autocorrelation(v, n);
	if (lag >= AUTOCORRELATION && lag * sqrt((double)n) > 2) /* beyond chance, too */
		report_note(
			r,
			"noise: successive runs of '%s' are alike (autocorrelation %s): the machine's speed drifts, so the interval is too narrow",
			s->name, num_double(lag, 2).s);
	struct bench_summary sum;
	bench_summarize(&sum, v, n);
	double fence = OUTLIER_DISTANCE * (sum.q3 - sum.q1);
	size_t nr_far = 0;
	for (size_t i = 0; i < n; i++)
		nr_far += v[i] > sum.q3 + fence || v[i] < sum.q1 - fence;
	if (nr_far)
		report_note(r,
			    "noise: %zu of %zu %s of '%s' are far outside (3 interquartile ranges)",
			    nr_far, n, d->has_each ? "values" : "runs", s->name);
	if (s->shell && !d->has_each && sum.median < SHORT_NS)
		report_note(
			r,
			"'%s' takes less than 5 ms: without the shell (-N, or after --) its time varies less",
			s->name);
}

void bench_noise(struct report *r, const struct bench_data *d)
{
	struct sums s = sum_runs(d);
	if (!(s.wall_ns > 0))
		return;
	add_machine(r, d, &s);
	for (size_t i = 0; i < d->nr_subjects; i++)
		add_series(r, d, i);
}
