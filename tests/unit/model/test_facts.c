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
