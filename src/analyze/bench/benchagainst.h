/*
 * Compares runs with those of a baseline, which were made at another time: there are no pairs, so the
 * machine's speed then and now is in the ratio. Hence the rule is coarser than that of benchcompare.h:
 *
 *	ratio     of the medians
 *	interval  of the logarithm, from the 95 % intervals of both medians (root of the sum of squares)
 *	floor     max(what the user calls too small; 5 %, by which a quiet machine differs from itself
 *	          over time; the drift within each series: its second half against the first), and on top
 *	          of it the time for which the runs of both waited for a CPU, which may be all of a
 *	          difference
 *
 * There is no verdict if the CPU is another one. docs/accuracy.md has the rates on recorded series.
 */
#ifndef ASSAY_ANALYZE_BENCH_BENCHAGAINST_H
#define ASSAY_ANALYZE_BENCH_BENCHAGAINST_H

#include "analyze/bench/benchcompare.h"
#include "analyze/report.h"
#include "base/base.h"
#include "model/benchrun.h"

#define BENCH_AGAINST_FLOOR 0.05

/* A series of runs, and what is known of the time in which they were made. */
struct bench_session {
	const double *values; /* in the order of the runs */
	size_t nr;
	double busy;         /* bench_busy */
	double instructions; /* median; NAN: not counted */
	struct bench_machine machine;
	bool busy_is_bound; /* busy is at most that: bench_sums.queue is not known */
};

/* Sums of a series of runs, in ns. */
struct bench_sums {
	double wall, cpu, stolen;
	double queue; /* NAN: not known of some run */
};

/*
 * The share of the runs' time in which they waited for a CPU, or the hypervisor had it; 0: no runs. If the
 * time in the run queue is not known, it is at most the time without a CPU.
 */
double bench_busy(const struct bench_sums *s);

struct bench_against {
	enum bench_verdict verdict;
	struct bench_ratio ratio;
	const char *
		reason; /* why there is no verdict; NULL: there is one, or the interval is too wide */
};

/* @least: the smallest change of interest. */
void bench_against(struct bench_against *ret, const struct bench_session *base,
		   const struct bench_session *now, double least);
/* Adds the finding and notes: what differs between the machines. */
void bench_against_report(struct report *r, const char *name, const struct bench_against *a,
			  const struct bench_session *base, const struct bench_session *now);

#endif
