/*
 * Counting events by name, in the kernel: every hit is counted, by second, thread, outcome and
 * stack. What comes out:
 *
 *	EVENT_TALLY   spec = first_spec + index into the set; values: hits, and the amount where the
 *	              event has one. With keeps_singles a row a hit, its arguments as the object.
 *	EVENT_STACK   through the engine
 *
 * Hits that are nobody's (in interrupts, in threads that are no targets, of machine-wide events)
 * have the task COUNTS_ELSEWHERE, which is named on start.
 *
 * Stacks are limited by their cost, an event and CPU, the counts never. Where the kernel had no
 * room for another row, hits are counted under COUNTS_NO_ROOM.
 *
 * Life: counts_open between engine_open and engine_load, counts_attach after that; counts_start;
 * counts_collect each second; counts_stop, which detaches and delivers the rest; counts_free. Used
 * by one thread.
 */
#ifndef ASSAY_CAPTURE_COUNTS_H
#define ASSAY_CAPTURE_COUNTS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "capture/eventset.h"
#include "model/event.h"

#define COUNTS_ELSEWHERE      (-1) /* pid and tid */
#define COUNTS_ELSEWHERE_NAME "[elsewhere]"
#define COUNTS_NO_ROOM        "[no room]"

struct counts_spec {
	const struct event_set *set; /* resolved; must outlive the source */
	uint32_t first_spec;
	bool keeps_singles;
	bool has_no_stacks;
	uint32_t stack_budget_pct; /* of a CPU's time, an event; 0 = no limit */
	uint64_t single_bytes_max; /* of rows kept singly, uncompressed; 0 = no limit */
};

#define COUNTS_STACK_BUDGET_PCT 5

struct counts_total {
	uint64_t nr;        /* hits */
	uint64_t nr_stacks; /* of them: with a stack */
	uint64_t nr_no_room;
	uint64_t nr_singles;
};

struct counts;

int counts_open(struct counts **ret_c, struct engine *e, const struct counts_spec *spec,
		struct err *err);
/* To each event; nothing is counted yet. */
int counts_attach(struct counts *c, struct err *err);
/* Counting begins. @start_ns (CLOCK_MONOTONIC): when rows of second 0 begin. */
int counts_start(struct counts *c, uint64_t start_ns, const struct event_sink *sink,
		 struct err *err);
/* Delivers the seconds that are over. */
int counts_collect(struct counts *c, uint64_t now_ns, const struct event_sink *sink,
		   struct err *err);
int counts_stop(struct counts *c, const struct event_sink *sink, struct err *err);
const struct counts_spec *counts_spec_of(const struct counts *c);
struct counts_total counts_total(const struct counts *c, size_t event_idx);
/*
 * Hits of all processes that the kernel did not tell, because they came while a program of ours
 * ran on that CPU.
 */
uint64_t counts_nr_missed(const struct counts *c);
/* When hits were no longer kept singly because of single_bytes_max; 0 = never. */
uint64_t counts_singles_end_ns(const struct counts *c);
void counts_free(struct counts *c);

#endif
