/* A span's waits: what lies before its begin is not its own. */
#include "base/base.h"
#include "tap.h"

#include <linux/types.h>

#include "../../bpf/span_state.bpf.h"

#define REASON WAIT_SLEEP

static struct span_interval interval(__u64 start_ns, __u64 woken_ns, __u64 end_ns)
{
	return (struct span_interval){.start_ns = start_ns,
				      .woken_ns = woken_ns,
				      .end_ns = end_ns,
				      .user_ref = 7,
				      .kernel_ref = 8,
				      .waker_tid = 9,
				      .reason = REASON};
}

static void add(struct span_state *s, __u64 start_ns, __u64 woken_ns, __u64 end_ns)
{
	struct span_interval v = interval(start_ns, woken_ns, end_ns);
	span_add_wait(s, &v);
}

/* Time of a reason in all places of the span. */
static uint64_t ns_of(const struct span_state *s, unsigned reason)
{
	uint64_t ns = s->rest_ns[reason];
	for (unsigned i = 0; i < s->nr_kept; i++)
		ns += s->waits[i].reason == reason ? s->waits[i].ns : 0;
	return ns;
}

TEST(waits_inside_a_span_count_completely)
{
	struct span_state s = {.start_ns = 1000};
	add(&s, 1100, 1500, 1600);
	CHECK_U64(ns_of(&s, REASON), 400);
	CHECK_U64(ns_of(&s, WAIT_RUN_QUEUE), 100);
	CHECK_U64(s.nr_waits, 1);
	CHECK_U64(s.waits[0].user_ref, 7);
	CHECK_U64(s.waits[0].kernel_ref, 8);
}

TEST(a_wait_that_began_before_the_span_counts_from_its_begin)
{
	struct span_state s = {.start_ns = 1000};
	add(&s, 200, 1500, 1600);
	CHECK_U64(ns_of(&s, REASON), 500);
	CHECK_U64(ns_of(&s, WAIT_RUN_QUEUE), 100);
	CHECK_U64(s.longest.ns, 600);

	struct span_state queued = {.start_ns = 1000};
	add(&queued, 200, 300, 1600);
	CHECK_U64(ns_of(&queued, REASON), 0);
	CHECK_U64(ns_of(&queued, WAIT_RUN_QUEUE), 600);
}

TEST(a_wait_that_ended_before_the_span_is_not_counted)
{
	struct span_state s = {.start_ns = 1000};
	add(&s, 200, 300, 900);
	add(&s, 200, 300, 1000);
	CHECK_U64(s.nr_kept + s.nr_waits, 0);

	struct span_state none = {0};
	add(&none, 200, 300, 900);
	CHECK_U64(none.nr_waits, 0);
}

TEST(the_longest_wait_of_a_span_includes_the_run_queue)
{
	struct span_state s = {.start_ns = 1000};
	add(&s, 1000, 1300, 1310); /* blocked longer */
	add(&s, 1400, 1500, 2400); /* off the CPU longer */
	add(&s, 2500, 2700, 2800);
	CHECK_U64(s.longest.ns, 1000);
	CHECK_U64(s.longest.queue_ns, 900);
	CHECK_U64(s.longest.reason, REASON);
	CHECK_U64((uint64_t)s.longest.waker_tid, 9);

	struct span_state preempted = {.start_ns = 1000};
	struct span_interval v = interval(1100, 1100, 1900);
	v.reason = WAIT_RUN_QUEUE;
	span_add_wait(&preempted, &v);
	CHECK_U64(preempted.longest.ns, 800);
	CHECK_U64(preempted.longest.queue_ns, 0);
}

TEST(waits_of_a_span_are_kept_by_stack_and_all_others_by_reason)
{
	struct span_state s = {.start_ns = 1000};
	for (unsigned i = 0; i < 3 * SPAN_WAITS; i++) {
		struct span_interval v = interval(1000 + 10 * i, 1010 + 10 * i, 1010 + 10 * i);
		v.user_ref = i;
		span_add_wait(&s, &v);
		span_add_wait(&s, &v);
	}
	CHECK_U64(s.nr_kept, SPAN_WAITS);
	CHECK_U64(s.waits[SPAN_WAITS - 1].ns, 20);
	CHECK_U64(s.rest_ns[REASON], 20 * 2 * SPAN_WAITS);
	CHECK_U64(ns_of(&s, REASON), 20 * 3 * SPAN_WAITS);
}

TEST(a_futex_wait_with_a_lock_word_is_kept_apart_from_one_without)
{
	struct span_state s = {.start_ns = 1000};
	struct span_interval v = interval(1000, 1100, 1100);
	v.reason = WAIT_SYNC;
	span_add_wait(&s, &v);
	v.evidence = EVIDENCE_LOCK_WORD | EVIDENCE_BY_IRQ;
	span_add_wait(&s, &v);
	CHECK_U64(s.nr_kept, 2);
	CHECK_U64(s.waits[1].evidence, EVIDENCE_LOCK_WORD);
}
