/*
 * Values that a program prints, one for each line that matches a pattern; the first capturing group is
 * the number, and the unit is what follows it: ns, us, ms, s or min make it a time.
 */
#ifndef ASSAY_SESSION_BENCH_BENCHLINES_H
#define ASSAY_SESSION_BENCH_BENCHLINES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text/regex.h"
#include "base/vec.h"

/* Execution times of blocks in the log of ethrex, in both of its forms. */
#define BENCH_METRIC_PATTERN                                         \
	"\\[METRIC\\] BLOCK (?:EXECUTION THROUGHPUT.*?TIME SPENT: |" \
	"[0-9]+ \\| [0-9.]+ [KMGT]?gas/s \\| )([0-9.]+) ms"

#define BENCH_LINE_MAX 65536 /* longer lines are cut */

struct bench_lines {
	struct regex *re;   /* borrowed */
	struct buf line;    /* begun, not ended yet */
	size_t run_idx;     /* of the values that come; the caller counts */
	VEC(double) values; /* times in ns */
	VEC(size_t) runs;   /* of each value: run_idx */
	bool has_time;      /* a value had a unit of time */
	bool has_plain;     /* a value had none */
	uint64_t nr_not_numbers;
};

void bench_lines_release(struct bench_lines *l);
/* Takes a piece of the output, of any size. */
void bench_lines_add(struct bench_lines *l, const char *p, size_t n);
/* The output has ended: the last line may have no newline. */
void bench_lines_end(struct bench_lines *l);

#endif
