/* base/process/spawn.c: whose peak of memory the kernel's count may be. */
#include "base/base.h"

#include "base/process/spawn.h"

#include "tap.h"

static bool is_own_peak(const char *script)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
	struct spawn s;
	CHECK(!spawn_open(&s, argv, NULL, NULL));
	CHECK(!spawn_exec(&s, argv[0], NULL));
	while (!spawn_wait(&s))
		;
	CHECK(s.peak_rss_bytes > 0);
	spawn_release(&s);
	return s.peak_is_own;
}

TEST(a_peak_is_not_known_to_be_own_after_a_child_was_waited_for)
{
	CHECK(is_own_peak("exit 3"));
	CHECK(!is_own_peak("/bin/true; exit 3"));
}
