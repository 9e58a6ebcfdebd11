/* host/mempressure.c: cgroup paths and counts from the kernel's text. */
#include "base/base.h"

#include "host/mempressure.h"

#include <string.h>

#include "tap.h"

static bool is_group(const char *text, const char *expected)
{
	CLEANUP(buf_release) struct buf b = {0};
	bool has = mempressure_group_path(&b, sv_from_str(text), "/cg");
	return expected ? has && !strcmp(buf_str(&b), expected) : !has;
}

TEST(mempressure_finds_the_memory_cgroup_of_either_version)
{
	CHECK(is_group("5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n", "/cg/memory/b/c"));
	CHECK(is_group("0::/user.slice/x\n", "/cg/user.slice/x"));
	CHECK(is_group("5:cpu,cpuacct:/a\n", NULL));
	CHECK(is_group("", NULL));
	CHECK(is_group("no colons\n1:one colon", NULL));
}

TEST(mempressure_reads_values_by_whole_keys)
{
	struct sv text =
		sv_from_str("low 0\nmax 17\nmaximum 3\noom 99999999999999999999999\nbad\n");
	CHECK_U64(mempressure_value(text, "max"), 17);
	CHECK_U64(mempressure_value(text, "low"), 0);
	CHECK_U64(mempressure_value(text, "absent"), 0);
	CHECK_U64(mempressure_value(text, "bad"), 0);
}

TEST(mempressure_says_what_came_between)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct mempressure before = {.has_group = true, .nr_at_limit = 5, .nr_refaults = 100};
	struct mempressure after = {
		.has_group = true, .nr_at_limit = 12, .nr_refaults = 90, .limit_bytes = 32u << 20};
	mempressure_add_group(&b, &before, &after);
	CHECK_STR(buf_str(&b), "limit 32.0 MiB, 7 times at it, 0 pages read again");
	buf_clear(&b);
	after.has_group = false;
	mempressure_add_group(&b, &before, &after);
	CHECK(!b.n);
}
