/*
 * Source: counts named events in the kernel by BPF programs (bpf/counts.bpf.h). Every hit is
 * counted, by second, thread, outcome and stack. It delivers:
 *
 *	EVENT_AGGREGATE   spec = first_spec + index of the event in the set; values: hits, and the
 *	                  amount if the event has one. With keeps_singles one row for each hit, with
 *	                  the arguments as its object
 *	EVENT_STACK       through the engine
 *
 * Hits that belong to no target thread (in interrupts, or of machine-wide events in other threads)
 * have pid and tid COUNTS_ELSEWHERE; at the start an EVENT_COMM names them COUNTS_ELSEWHERE_NAME.
 *
 * The cost of stacks is limited for each event and CPU; counts are never limited. Hits that found
 * no room for another row in the BPF map are in one row with the detail COUNTS_NO_ROOM.
 */
#ifndef ASSAY_CAPTURE_EVENTS_COUNTS_H
#define ASSAY_CAPTURE_EVENTS_COUNTS_H

#include "base/base.h"
#include "capture/events/set.h"
#include "capture/source.h"

#define COUNTS_ELSEWHERE      (-1) /* pid and tid */
#define COUNTS_ELSEWHERE_NAME "[outside the target]"
#define COUNTS_NO_ROOM        "[no room]"

struct counts_spec {
	const struct event_set *set; /* resolved; must outlive the source */
	uint32_t first_spec;
	bool keeps_singles; /* one row for each hit */
	bool has_no_stacks;
	uint32_t stack_budget_pct; /* share of a CPU's time for stacks of an event; 0 = no limit */
	uint64_t single_bytes_max; /* limit for single rows, uncompressed; 0 = no limit */
};

#define COUNTS_STACK_BUDGET_PCT 5

extern const struct source counts_source;

#endif
