/* remote/patch/nothrow: which functions throw, and which nothrow variant is called instead. */
#include "base/base.h"
#include "tap.h"

#include "remote/patch/nothrow.h"

static const char *nothrow_of(const struct heap_plan *plan, size_t i)
{
	const struct heap_function *s = nothrow_find(plan, &plan->functions.p[i]);
	return s ? s->name : "";
}

TEST(nothrow_variant_takes_the_same_arguments)
{
	static const char *const names[] = {
		"_Znwm",
		"_ZnwmRKSt9nothrow_t",
		"_ZnamSt11align_val_t",
		"_ZnamRKSt9nothrow_t",
		"_ZnamSt11align_val_tRKSt9nothrow_t",
		"mi_new",
		"mi_new_nothrow",
		"mi_new_n",
		"malloc",
		"_Znam",
	};
	struct heap_plan plan = {0};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		vec_push(&plan.functions,
			 (struct heap_function){.addr = 0x1000 + i * 64,
						.shape = HEAP_ALLOC_0,
						.name = (char *)(uintptr_t)names[i]});
	CHECK(nothrow_is_needed("_Znwm") && nothrow_is_needed("_ZnamSt11align_val_t"));
	CHECK(nothrow_is_needed("mi_new") && nothrow_is_needed("mi_new_n"));
	CHECK(!nothrow_is_needed("_ZnwmRKSt9nothrow_t") && !nothrow_is_needed("_ZdlPv"));
	CHECK(!nothrow_is_needed("malloc") && !nothrow_is_needed("mi_new_nothrow"));
	CHECK_STR(nothrow_of(&plan, 0), "_ZnwmRKSt9nothrow_t");
	CHECK_STR(nothrow_of(&plan, 2), "_ZnamSt11align_val_tRKSt9nothrow_t");
	CHECK_STR(nothrow_of(&plan, 5), "mi_new_nothrow");
	CHECK_STR(nothrow_of(&plan, 7), "");
	CHECK_STR(nothrow_of(&plan, 8), "");
	CHECK_STR(nothrow_of(&plan, 9), "_ZnamRKSt9nothrow_t");
	/* Of another binary it is not. */
	plan.functions.p[0].path = (char *)(uintptr_t) "/a";
	plan.functions.p[1].path = (char *)(uintptr_t) "/b";
	CHECK_STR(nothrow_of(&plan, 0), "");
	vec_release(&plan.functions);
}
