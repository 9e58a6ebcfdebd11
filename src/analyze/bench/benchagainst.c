/* Compares runs with those of a baseline; see benchagainst.h. */
#include "base/base.h"
#include "analyze/bench/benchagainst.h"

#include <math.h>

#include "analyze/bench/benchstat.h"
#include "base/mem.h"
#include "base/text/num.h"

#define BENCH_BUSY 0.01 /* more waiting than this is said */

/* Logarithms in ascending order. */
static double *sorted_logs(const double *v, size_t n)
{
	double *logs = xmalloc(n * sizeof(*logs));
	for (size_t i = 0; i < n; i++)
		logs[i] = log(MAX(v[i], 1e-300));
	bench_sort(logs, n);
	return logs;
}

static double median_log(const double *v, size_t n)
{
	CLEANUP(free_p) double *logs = sorted_logs(v, n);
	return bench_quantile_sorted(logs, n, 0.5);
}

static double drift(const struct bench_session *s)
{
	size_t half = s->nr / 2;
	return half ? fabs(median_log(s->values + half, s->nr - half) - median_log(s->values, half))
		    : 0;
}

double bench_busy(const struct bench_sums *s)
{
	double queue = isnan(s->queue) ? MAX(s->wall - s->cpu - s->stolen, 0.0) : s->queue;
	return s->wall > 0 ? (queue + s->stolen) / s->wall : 0;
}

/* By how much the runs would have been faster without waiting, as a logarithm. */
static double waiting(const struct bench_session *s)
{
	return s->busy > 0 ? -log(1 - MIN(s->busy, 0.99)) : 0;
}

static enum bench_verdict judge(const struct bench_ratio *r, double least)
{
	double margin = log1p(MAX(least, BENCH_AGAINST_FLOOR));
	if (r->interval.low > 0 && r->median > r->floor)
		return BENCH_SLOWER;
	if (r->interval.high < 0 && r->median < -r->floor)
		return BENCH_FASTER;
	bool is_within = r->interval.low > -margin && r->interval.high < margin;
	return is_within && r->floor <= 2 * margin ? BENCH_SAME : BENCH_INCONCLUSIVE;
}

void bench_against(struct bench_against *ret, const struct bench_session *base,
		   const struct bench_session *now, double least)
{
	*ret = (struct bench_against){.verdict = BENCH_INCONCLUSIVE};
	ASSERT(base->nr && now->nr);
	CLEANUP(free_p) double *a = sorted_logs(base->values, base->nr);
	CLEANUP(free_p) double *b = sorted_logs(now->values, now->nr);
	double a_mid = bench_quantile_sorted(a, base->nr, 0.5);
	double b_mid = bench_quantile_sorted(b, now->nr, 0.5);
	struct stat_interval a_in = bench_median_interval(a, base->nr, 0.05);
	struct stat_interval b_in = bench_median_interval(b, now->nr, 0.05);
	double spread = MAX(drift(base), drift(now));
	ret->ratio = (struct bench_ratio){
		.nr_blocks = MIN(base->nr, now->nr),
		.median = b_mid - a_mid,
		.interval = {.low = b_mid - a_mid - hypot(b_mid - b_in.low, a_in.high - a_mid),
			     .high = b_mid - a_mid + hypot(b_in.high - b_mid, a_mid - a_in.low)},
		.spread = spread,
		.floor = MAX(log1p(MAX(least, BENCH_AGAINST_FLOOR)), spread) + waiting(base) +
			 waiting(now),
	};
	if (strcmp(base->machine.cpu, now->machine.cpu) != 0)
		ret->reason = "the baseline is of another CPU";
	if (!ret->reason && !isnan(a_in.low) && !isnan(b_in.low))
		ret->verdict = judge(&ret->ratio, least);
}

static void add_difference(struct report *r, const char *what, const char *then, const char *now)
{
	if (then[0] && now[0] && strcmp(then, now) != 0)
		report_note(r, "the baseline has another %s: %s, now %s", what, then, now);
}

static const char *at_most(const struct bench_session *s)
{
	return s->busy_is_bound ? "at most " : "";
}

void bench_against_report(struct report *r, const char *name, const struct bench_against *a,
			  const struct bench_session *base, const struct bench_session *now)
{
	double change = expm1(a->ratio.median) * 100;
	const char *in = "";
	if (isnan(a->ratio.interval.low))
		in = "too few runs for an interval";
	else
		in = arena_fmt(&r->arena, "interval %+.1f to %+.1f %%, floor %.1f %%",
			       expm1(a->ratio.interval.low) * 100,
			       expm1(a->ratio.interval.high) * 100, bench_floor_pct(&a->ratio));
	double wait = waiting(base) + waiting(now);
	report_note(
		r,
		"floor: %.1f %% (the most of 5 %%, --floor, and what halves of either runs "
		"differ by), times %.2f for the time in which the runs of both waited for a CPU",
		expm1(a->ratio.floor - wait) * 100, exp(wait));
	if (waiting(base) + waiting(now) > log1p(BENCH_BUSY))
		report_note(
			r,
			"the runs waited for a CPU for %s%s %% of their time, those of the baseline for "
			"%s%s %%; the floor is higher by that%s",
			at_most(now), num_pct(100 * now->busy).s, at_most(base),
			num_pct(100 * base->busy).s,
			now->busy_is_bound || base->busy_is_bound
				? " (not known of children and further threads: the time without a "
				  "CPU)"
				: "");
	const char *when = base->machine.when[0] ? base->machine.when : "an unknown time";
	if (a->verdict == BENCH_SLOWER || a->verdict == BENCH_FASTER)
		report_finding(r, "'%s' is %.1f %% %s than in the baseline of %s (%s)", name,
			       fabs(change), a->verdict == BENCH_SLOWER ? "slower" : "faster", when,
			       in);
	else if (a->verdict == BENCH_SAME)
		report_finding(r,
			       "'%s' takes the same time as in the baseline of %s (%+.1f %%; %s)",
			       name, when, change, in);
	else
		report_finding(
			r,
			"inconclusive%s%s: '%s' against the baseline of %s measured %+.1f %% (%s)",
			a->reason ? ", " : "", a->reason ? a->reason : "", name, when, change, in);
	if (base->instructions > 0 && now->instructions > 0)
		report_note(r, "'%s' executes %+.2f %% instructions compared with the baseline",
			    name, 100 * (now->instructions / base->instructions - 1));
	add_difference(r, "host", base->machine.host, now->machine.host);
	add_difference(r, "CPU", base->machine.cpu, now->machine.cpu);
	add_difference(r, "kernel", base->machine.kernel, now->machine.kernel);
	add_difference(r, "frequency governor", base->machine.governor, now->machine.governor);
	if (base->machine.build_id[0] && !strcmp(base->machine.build_id, now->machine.build_id))
		report_note(r, "'%s' is the same binary as in the baseline (build-id %s)", name,
			    base->machine.build_id);
	report_note(
		r,
		"the baseline was measured at another time: a difference of the machine since then is "
		"in the ratio; old and new in one command (--vs) are compared more surely");
}
