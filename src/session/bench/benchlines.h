/*
 * What the lines that a program prints say: values, and when its phases begin.
 *
 * A pattern with a group takes a value from each line that matches: the number is the first group, and
 * the unit is what follows it: ns, us, ms, s or min make it a time. A pattern without a group is a
 * boundary: its phase begins when such a line is read, and ends when the next line of a boundary is
 * read, or with the run; the time between is the value. What was counted in it is read at the same time.
 *
 * A phase without a pattern is marked by the program itself: "NAME begin" and "NAME end" (benchmarks.h).
 * It ends with its mark or with the run. A mark may be followed by its time, in seconds of
 * CLOCK_MONOTONIC; else it is the time at which it was read.
 *
 *	bench_lines_add(l, p, n, now)     the output of a run, in pieces
 *	bench_lines_add_marks(...)        likewise, its marks
 *	bench_lines_end(l, end)           the run has ended
 *	l->run_idx = ...                  of the next run
 */
#ifndef ASSAY_SESSION_BENCH_BENCHLINES_H
#define ASSAY_SESSION_BENCH_BENCHLINES_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text/regex.h"
#include "base/vec.h"
#include "model/benchrun.h"

/* Execution times of blocks in the log of ethrex, in both of its forms. */
#define BENCH_METRIC_PATTERN                                         \
	"\\[METRIC\\] BLOCK (?:EXECUTION THROUGHPUT.*?TIME SPENT: |" \
	"[0-9]+ \\| [0-9.]+ [KMGT]?gas/s \\| )([0-9.]+) ms"

#define BENCH_LINE_MAX    65536 /* longer lines are cut */
#define BENCH_UNKNOWN_MAX 6     /* marks that are kept for messages */
#define BENCH_UNKNOWN_CUT 80    /* bytes */

struct bench_pattern {
	const char *name; /* of the phase; NULL: that of --each */
	struct regex *re; /* NULL: marked */
	bool is_boundary;
	const char *
		function; /* whose calls are the marks (phasefuncs.h); NULL: the program marks itself */
};

struct bench_patterns {
	struct bench_pattern *p;
	size_t n;
	size_t cap;
};

void bench_patterns_release(struct bench_patterns *p);
/* @text: NAME=REGEX, or NAME: marked; the name is put into the arena. */
int bench_patterns_add_phase(struct bench_patterns *p, struct arena *a, const char *text,
			     struct err *err);
/* @text: NAME=FUNCTION. */
int bench_patterns_add_function(struct bench_patterns *p, struct arena *a, const char *text,
				struct err *err);
int bench_patterns_add_each(struct bench_patterns *p, const char *regex, struct err *err);
/* Whether one reads the output; whether one is marked. */
bool bench_patterns_has_lines(const struct bench_patterns *p);
bool bench_patterns_has_marks(const struct bench_patterns *p);
/* Whether the beginning and end of one are seen as they happen, so that counters can be read then. */
bool bench_patterns_has_bounds(const struct bench_patterns *p);

/* Of a pattern, in one command's output. */
struct bench_values {
	VEC(double) values; /* times in ns */
	VEC(size_t) runs;   /* of each value: run_idx */
	bool has_time;      /* a value had a unit of time */
	bool has_plain;     /* a value had none */
	uint64_t nr_not_numbers;
	uint64_t nr_at_once;  /* the boundary at the end was read together with that at the start */
	uint64_t nr_unopened; /* marks of an end without a begin */
	uint64_t nr_unended;  /* runs that ended in a phase with marks */
	uint64_t open_ns;     /* when the phase that has not ended began; 0: it has */
	VEC(struct bench_counts)
	counts; /* of each run, if it is a phase with boundaries or marks */
	bool has_start;
	struct counter_value start[BENCH_COUNTERS_MAX]; /* when it began */
};

/* Reads what the running command has been counted; false: nothing. (bench_runner_count) */
typedef bool (*bench_count_fn)(void *ctx, struct counter_value *ret);

struct bench_lines {
	const struct bench_patterns *patterns; /* borrowed */
	struct bench_values *values;           /* of each pattern */
	struct buf line;                       /* begun, not ended yet */
	struct buf mark;                       /* likewise */
	size_t run_idx;                        /* of the values that come; the caller counts */
	uint64_t end_ns;                       /* of the last run: no mark is earlier */
	uint64_t nr_unknown;                   /* marks that no phase has */
	VEC(char *) unknown;                   /* some of them, each once */
	bench_count_fn count; /* NULL: phases have no counts; the caller sets both */
	void *count_ctx;
};

void bench_lines_init(struct bench_lines *l, const struct bench_patterns *patterns);
void bench_lines_release(struct bench_lines *l);
/* Takes a piece of the output, of any size, read at @at_ns. */
void bench_lines_add(struct bench_lines *l, const char *p, size_t n, uint64_t at_ns);
/* The same of marks, one a line. */
void bench_lines_add_marks(struct bench_lines *l, const char *p, size_t n, uint64_t at_ns);
/* The run ended at @end_ns: the last line may have no newline. */
void bench_lines_end(struct bench_lines *l, uint64_t end_ns);
/* Forgets all values. */
void bench_lines_clear(struct bench_lines *l);

#endif
