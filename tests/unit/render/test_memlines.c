/*
 * render/memlines: the head of the live page says what is refused, and nothing of what is read later;
 * lines fit the width.
 */
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

/* The titles that fit @columns, and a line of a process with 24,000 MiB. */
static void check_line(unsigned columns, const char *titles, const char *line)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct memlines l = {
		.columns = columns, .has_group = true, .machine_bytes = 1ull << 36};
	const struct memreading t = {.time_ns = 2500000000,
				     .m.rss_bytes = 24000ull << 20,
				     .m.anon_bytes = 5 << 20,
				     .m.virtual_bytes = 1ull << 45,
				     .has_rates = true,
				     .rss_per_s = -2048,
				     .has_group = true,
				     .group.usage_bytes = 100 << 10};
	memlines_add(&b, &l, NULL);
	CHECK_STR(buf_str(&b), titles);
	buf_clear(&b);
	memlines_add(&b, &l, &t);
	CHECK_STR(buf_str(&b), line);
}

TEST(memlines_have_the_columns_that_matter_most)
{
	check_line(40, " time s   RSS MiB  anon MiB growth KiB/s\n",
		   "    2.5    24,000      5.00           -2\n");
	check_line(
		80,
		" time s   RSS MiB  anon MiB  file MiB   PSS MiB majflt/s growth KiB/s cgroup MiB\n",
		"    2.5    24,000      5.00      0.00         -        0           -2       0.10\n");
	for (unsigned columns = 60; columns < 160; columns++) {
		CLEANUP(buf_release) struct buf b = {0};
		memlines_add(&b, &(struct memlines){.columns = columns, .has_allocator = true},
			     NULL);
		CHECK(b.n <= columns + 1 && b.n + 14 > MIN(columns, 120u));
	}
}
