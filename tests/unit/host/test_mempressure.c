/* host/memory/pressure.c: what came between two readings. */
#include "base/base.h"

#include "host/memory/pressure.h"

#include <string.h>

#include "tap.h"

TEST(mempressure_says_what_came_between)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct mempressure before = {.has_group = true,
				     .numbers = {.nr_at_limit = 5, .nr_refault_file = 100}};
	struct mempressure after = {
		.has_group = true,
		.numbers = {.nr_at_limit = 12, .nr_refault_file = 90, .limit_bytes = 32u << 20}};
	mempressure_add_group(&b, &before, &after);
	CHECK_STR(buf_str(&b), "limit 32.0 MiB, times at a limit: 7, pages refaulted: 0");
	buf_clear(&b);
	after.has_group = false;
	mempressure_add_group(&b, &before, &after);
	CHECK(!b.n);
}
