/* capture/heaptwin: which functions throw, and what is called in their place. */
#include "base/base.h"
#include "tap.h"

#include "remote/patch/nothrow.h"

static const char *twin_of(const struct heap_plan *plan, size_t i)
{
	const struct heap_site *s = heaptwin_find(plan, &plan->sites.p[i]);
	return s ? s->name : "";
}

TEST(heaptwin_is_the_one_with_nothrow_of_the_same_arguments)
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
		vec_push(&plan.sites, (struct heap_site){.addr = 0x1000 + i * 64,
							 .shape = HEAP_ALLOC_0,
							 .name = (char *)(uintptr_t)names[i]});
	CHECK(heaptwin_throws("_Znwm") && heaptwin_throws("_ZnamSt11align_val_t"));
	CHECK(heaptwin_throws("mi_new") && heaptwin_throws("mi_new_n"));
	CHECK(!heaptwin_throws("_ZnwmRKSt9nothrow_t") && !heaptwin_throws("_ZdlPv"));
	CHECK(!heaptwin_throws("malloc") && !heaptwin_throws("mi_new_nothrow"));
	CHECK_STR(twin_of(&plan, 0), "_ZnwmRKSt9nothrow_t");
	CHECK_STR(twin_of(&plan, 2), "_ZnamSt11align_val_tRKSt9nothrow_t");
	CHECK_STR(twin_of(&plan, 5), "mi_new_nothrow");
	CHECK_STR(twin_of(&plan, 7), "");
	CHECK_STR(twin_of(&plan, 8), "");
	CHECK_STR(twin_of(&plan, 9), "_ZnamRKSt9nothrow_t");
	/* Of another binary it is not. */
	plan.sites.p[0].path = (char *)(uintptr_t) "/a";
	plan.sites.p[1].path = (char *)(uintptr_t) "/b";
	CHECK_STR(twin_of(&plan, 0), "");
	vec_release(&plan.sites);
}
