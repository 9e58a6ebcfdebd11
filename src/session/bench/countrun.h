/*
 * Counts the events of a target or a launched command (capture/perf/counters.h), and what the kernel
 * keeps for each thread: the time in the run queue.
 *
 * Counters are inherited by the threads and processes that counted ones create. COUNTRUN_THREADS: each
 * thread has its own instead, opened when it is first seen. The time in the run queue is read from
 * /proc at each poll, so what a thread did after the last one is missing; ran_ns says how much CPU time
 * the threads had that were read.
 *
 *	countrun_open(&r, &set, target, child, 0, &err);
 *	countrun_start(&r);
 *	countrun_poll(&r);                  many times
 *	countrun_read(&r, &part);           since the last read
 */
#ifndef ASSAY_SESSION_BENCH_COUNTRUN_H
#define ASSAY_SESSION_BENCH_COUNTRUN_H

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/perf/counters.h"
#include "host/target.h"

enum countrun_flags { COUNTRUN_THREADS = 1 << 0 };

struct countrun_task {
	int32_t pid; /* -1: a CPU */
	int32_t tid;
	bool has_counters;
	bool has_ended;
	uint64_t queue_ns; /* as last read */
	uint64_t ran_ns;
	uint64_t new_queue_ns;  /* since the last countrun_read */
	uint64_t new_ran_ns;    /* likewise */
	uint64_t part_queue_ns; /* of the last countrun_read, as are values */
	uint64_t part_ran_ns;
	char name[16];
	struct counter_fds fds;
	struct counter_value values[COUNTERS_MAX];
};

/* Since the last countrun_read. */
struct countrun_part {
	uint64_t at_ns; /* CLOCK_MONOTONIC; a caller may set it to the end of a command */
	uint64_t elapsed_ns;
	struct counter_value values[COUNTERS_MAX];
	uint64_t queue_ns;
	uint64_t ran_ns; /* CPU time of the threads whose run queue was read */
	bool has_queue;
	uint64_t stolen_ns;
};

struct countrun {
	const struct counter_set *set; /* borrowed, as is target */
	struct target *target;         /* NULL: a command */
	int32_t child;                 /* 0: none */
	unsigned flags;
	VEC(struct countrun_task *) tasks;
	struct map by_tid; /* tid -> index + 1 */
	struct target_family family;
	uint64_t read_ns; /* of the last countrun_read */
	uint64_t stolen_ns;
	uint64_t next_poll_ns;
	uint64_t nr_unopened; /* threads whose counters could not be opened */
	struct countrun_part part;
};

void countrun_release(struct countrun *r);
/* @child waits before its exec. -ESRCH: all threads have ended. */
int countrun_open(struct countrun *r, const struct counter_set *set, struct target *target,
		  int32_t child, unsigned flags, struct err *err);
/* Counts from now on; what a child does counts from its exec on. */
void countrun_start(struct countrun *r);
/* Finds new threads and processes; so rarely that it takes 1/50 of the time, unless @is_last. */
void countrun_poll(struct countrun *r, bool is_last);
void countrun_read(struct countrun *r, struct countrun_part *ret);

/* The most rows of countrun_rows. */
#define COUNTRUN_ROWS_MAX (COUNTERS_MAX + 2)
/*
 * Rows of the events of the set, then, if known, those of run queue and stolen time. Without metrics.
 * @queue_ns, @stolen_ns: UINT64_MAX: no row; @ran_ns: CPU time of the threads of @queue_ns. Returns their number; names belong to the set.
 */
size_t countrun_rows(struct counter_row *ret, const struct counter_set *set,
		     const struct counter_value *values, uint64_t queue_ns, uint64_t ran_ns,
		     uint64_t stolen_ns);

#endif
