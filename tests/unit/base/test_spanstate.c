/* A span's waits: what lies before its begin is not its own. */
#include "base/base.h"
#include "tap.h"

#include <linux/types.h>

#include "../../bpf/span_state.bpf.h"

#define REASON WAIT_SLEEP

TEST(waits_inside_a_span_count_completely)
{
	struct span_state s = {.start_ns = 1000};
	span_add_wait(&s, REASON, 1100, 1500, 1600, 7, 8);
	CHECK_U64(s.by_reason_ns[REASON], 400);
	CHECK_U64(s.by_reason_ns[WAIT_RUN_QUEUE], 100);
	CHECK_U64(s.longest_ns, 400);
	CHECK_U64(s.longest_ref, 7);
	CHECK_U64(s.nr_waits, 1);
}

TEST(a_wait_that_began_before_the_span_counts_from_its_begin)
{
	struct span_state s = {.start_ns = 1000};
	span_add_wait(&s, REASON, 200, 1500, 1600, 0, 0);
	CHECK_U64(s.by_reason_ns[REASON], 500);
	CHECK_U64(s.by_reason_ns[WAIT_RUN_QUEUE], 100);

	struct span_state queued = {.start_ns = 1000};
	span_add_wait(&queued, REASON, 200, 300, 1600, 0, 0);
	CHECK_U64(queued.by_reason_ns[REASON], 0);
	CHECK_U64(queued.by_reason_ns[WAIT_RUN_QUEUE], 600);
}

TEST(a_wait_that_ended_before_the_span_is_not_counted)
{
	struct span_state s = {.start_ns = 1000};
	span_add_wait(&s, REASON, 200, 300, 900, 0, 0);
	span_add_wait(&s, REASON, 200, 300, 1000, 0, 0);
	CHECK_U64(s.by_reason_ns[REASON] + s.by_reason_ns[WAIT_RUN_QUEUE] + s.nr_waits, 0);

	struct span_state none = {0};
	span_add_wait(&none, REASON, 200, 300, 900, 0, 0);
	CHECK_U64(none.nr_waits, 0);
}
