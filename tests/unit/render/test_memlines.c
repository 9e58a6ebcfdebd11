/* render/memlines: the head of the live page says what is refused, and nothing of what is read later. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "render/memlines.h"

static bool head_has(const struct memlines *l, const char *text)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct memreading t = {.m.nr_processes = 1, .m.nr_threads = 1};
	memlines_head(&b, l, &t, "name", 7);
	return strstr(buf_str(&b), text) != NULL;
}

TEST(memlines_say_what_is_refused_and_the_remedy)
{
	const struct memlines refused = {.refused = -EACCES};
	CHECK(head_has(&refused, "no PSS and mappings: Permission denied (needs root or"));
	/* page tables are walked less often than the counters are read */
	const struct memlines later = {0};
	CHECK(!head_has(&later, "PSS"));
}
