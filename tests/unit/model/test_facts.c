/* The keys of facts. */
#include "base/base.h"
#include "model/facts.h"
#include "tap.h"

#include <string.h>

#include "model/profile.h"

TEST(facts_have_each_a_key_of_its_own)
{
	for (enum fact_id id = 0; id < FACT_NR; id++) {
		CHECK(fact_key(id) && fact_key(id)[0]);
		CHECK_U64(fact_from_key(fact_key(id)), id);
	}
	CHECK_U64(fact_from_key("perf hostname"), FACT_NR);
}

TEST(facts_are_found_by_id_and_by_key)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_fact_text(p, "host", "old"); /* as a file has it */
	CHECK_STR(profile_get_fact(p, FACT_HOST), "old");
	profile_fact(p, FACT_HOST, "new");
	CHECK_STR(profile_get_fact_text(p, "host"), "new");
	CHECK_U64(p->facts.n, 1);
	CHECK(profile_get_fact(p, FACT_KERNEL) == NULL);
}

TEST(facts_about_the_recorder_are_details)
{
	CHECK(fact_is_detail("heap check", ""));
	CHECK(fact_is_detail("heap sampling", "524288"));
	CHECK(!fact_is_detail("heap sampling", "every allocation"));
	CHECK(fact_is_detail("heap processes", "1"));
	CHECK(fact_is_detail("memory pressure", "some threads stalled for 0 ns, all threads for 0 "
						"ns (whole machine)"));
	CHECK(!fact_is_detail("memory pressure", "some threads stalled for 1.20 ms, all threads "
						 "for 0 ns (whole machine)"));
	CHECK(fact_is_detail("memory cgroup", "no limit, times at a limit: 0, pages refaulted: 0"));
	CHECK(!fact_is_detail("memory cgroup",
			      "no limit, times at a limit: 0, pages refaulted: 7"));
	CHECK(!fact_is_detail("memory cgroup", "limit 1.00 GiB, times at a limit: 0, pages "
					       "refaulted: 0"));
	CHECK(!fact_is_detail("heap processes", "12"));
	CHECK(!fact_is_detail("perf hostname", "x"));
}

TEST(losses_have_each_a_key_of_its_own)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		CHECK(loss_key(k) && loss_text(k));
		for (enum loss_kind other = 0; other < k; other++)
			CHECK(strcmp(loss_key(k), loss_key(other)) != 0);
	}
	profile_lose(p, LOSS_SPANS_UNFINISHED, 20);
	CHECK(!losses_has_samples(&p->losses));
	profile_lose(p, LOSS_WRITTEN, 1);
	CHECK(losses_has_samples(&p->losses));
}

TEST(losses_count_one_in_the_singular)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct losses one = {0};
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (loss_class(k) == LOSS_CLASS_OTHER)
			one.nr[k] = 1;
	losses_add_other(&b, &one);
	CHECK(sv_has_prefix(buf_sv(&b),
			    SV("missing or incomplete: 1 heap event (ring full or too")));
	CHECK(strstr(buf_str(&b), ", 1 page fault counted without a mapping, "));
	CHECK(strstr(buf_str(&b), ", 1 ns of wait time not recorded (table full), "));
	CHECK(strstr(buf_str(&b), ", 1 process whose heap could not be recorded, "));
	CHECK(strstr(buf_str(&b), ", 1 stack of allocations (table full), "));
	buf_clear(&b);
	one = (struct losses){.nr[LOSS_EVENTS_NO_ROW] = 2};
	losses_add_other(&b, &one);
	CHECK_STR(buf_str(&b), "missing or incomplete: 2 events without stack (table full)");
}

TEST(losses_that_cannot_be_true_are_ignored)
{
	static const uint64_t second_ns = 1000000000;
	struct losses l = {{[LOSS_SEEN] = 1532201064171987414,
			    [LOSS_WRITTEN] = 10,
			    [LOSS_LOST] = 1532201064171987404,
			    [LOSS_HEAP_DROPPED] = 3}};
	CHECK_U64(losses_ignore_implausible(&l, 0), 1);
	CHECK_U64(l.nr[LOSS_SEEN], 10);
	CHECK_U64(l.nr[LOSS_LOST], 0);
	CHECK_U64(l.nr[LOSS_HEAP_DROPPED], 3);
	l.nr[LOSS_EVENTS_MISSED] = 1000 * second_ns; /* in one second */
	CHECK_U64(losses_ignore_implausible(&l, second_ns), 1);
	CHECK_U64(l.nr[LOSS_EVENTS_MISSED], 0);
	l.nr[LOSS_EVENTS_MISSED] = 1000 * second_ns;
	CHECK_U64(losses_ignore_implausible(&l, 1000 * second_ns), 0);
	l.nr[LOSS_SEEN] = UINT64_MAX;
	CHECK_U64(losses_ignore_implausible(&l, second_ns * second_ns), 1);
	CHECK_U64(l.nr[LOSS_SEEN], 10);
	CHECK_U64(losses_ignore_implausible(&l, UINT64_MAX), 0);
}

TEST(losses_stop_at_the_largest_number)
{
	struct losses l = {{[LOSS_LOST] = UINT64_MAX - 1}};
	losses_add(&l, LOSS_LOST, 5);
	CHECK_U64(l.nr[LOSS_LOST], UINT64_MAX);
	struct losses sum = {{[LOSS_LOST] = 7, [LOSS_DISK] = 1}};
	losses_merge(&sum, &l);
	CHECK_U64(sum.nr[LOSS_LOST], UINT64_MAX);
	CHECK_U64(sum.nr[LOSS_DISK], 1);
	struct losses cut = {{[LOSS_TRUNC_COPY] = UINT64_MAX, [LOSS_TRUNC_JIT] = 2}};
	CHECK_U64(losses_truncated(&cut), UINT64_MAX);
}
