/* Tests of model/threadnames: which numbers of a name are masked. */
#include "base/base.h"
#include "model/profile.h"
#include "model/threadnames.h"

#include "tap.h"

static void check_names(const char *const *names, const char *const *want, size_t n)
{
	CLEANUP(threadnames_release) struct threadnames t = {0};
	CLEANUP(buf_release) struct buf got = {0};
	for (size_t i = 0; i < n; i++)
		threadnames_add(&t, names[i]);
	for (size_t i = 0; i < n; i++) {
		threadnames_get(&t, names[i], &got);
		CHECK_STR(buf_str(&got), want[i]);
	}
}

TEST(threadnames_masks_only_numbers_in_which_threads_differ)
{
	static const char *const names[] = {"h2",
					    "h2",
					    "x86-worker-1",
					    "x86-worker-12",
					    "backend-7",
					    "pool-1-thread-2",
					    "pool-1-thread-30",
					    "q1-2",
					    "q2-2",
					    "q2-3",
					    "worker",
					    "",
					    "4",
					    "v8:1",
					    "v8:1x",
					    "007",
					    "7"};
	static const char *const want[] = {"h2",
					   "h2",
					   "x86-worker-#",
					   "x86-worker-#",
					   "backend-7",
					   "pool-1-thread-#",
					   "pool-1-thread-#",
					   "q#-#",
					   "q#-#",
					   "q#-#",
					   "worker",
					   "",
					   "#",
					   "v8:1",
					   "v8:1x",
					   "#",
					   "#"};
	check_names(names, want, ARRAY_LEN(names));
}

TEST(threadnames_masks_the_last_of_very_many_numbers)
{
	static const char many[] =
		"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1";
	char other[sizeof(many)];
	char want[sizeof(many)];
	memcpy(other, many, sizeof(many));
	other[sizeof(many) - 2] = '2';
	memcpy(want, many, sizeof(many));
	for (size_t i = 62; i < sizeof(many) - 1; i += 2)
		want[i] = '#';
	check_names((const char *const[]){many, other}, (const char *const[]){want, want}, 2);
}

TEST(threadnames_of_a_profile_are_those_of_all_its_threads)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	task_id h2 = profile_task(p, 10, 11, profile_cstr(p, "h2"), 0);
	task_id w1 = profile_task(p, 10, 12, profile_cstr(p, "w8-1"), 0);
	task_id w2 = profile_task(p, 20, 22, profile_cstr(p, "w8-2"), 0);
	(void)profile_task(p, 20, 23, profile_cstr(p, "h2"), 0);
	profile_seal(p);
	CHECK_STR(profile_thread_group(p, h2), "h2");
	CHECK_STR(profile_thread_group(p, w1), "w8-#");
	CHECK_STR(profile_thread_group(p, w2), "w8-#");
}
