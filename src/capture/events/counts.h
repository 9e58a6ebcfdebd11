/*
 * Counting events by name, in the kernel: every hit is counted, by second, thread, outcome and
 * stack. What comes out:
 *
 *	EVENT_AGGREGATE   spec = first_spec + index into the set; values: hits, and the amount where the
 *	              event has one. With keeps_singles a row a hit, its arguments as the object.
 *	EVENT_STACK   through the engine
 *
 * Hits that are nobody's (in interrupts, in threads that are no targets, of machine-wide events)
 * have the task COUNTS_ELSEWHERE, which is named on start.
 *
 * Stacks are limited by their cost, an event and CPU, the counts never. Where the kernel had no
 * room for another row, hits are counted under COUNTS_NO_ROOM.
 */
#ifndef ASSAY_CAPTURE_EVENTS_COUNTS_H
#define ASSAY_CAPTURE_EVENTS_COUNTS_H

#include "base/base.h"
#include "capture/events/set.h"
#include "capture/source.h"

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

extern const struct source counts_source;

#endif
