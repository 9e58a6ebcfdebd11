/* analyze/memory/leaktable.c: growing sites come first and are noted, however small. */
#include "base/base.h"
#include "tap.h"

#include "analyze/memory/heapsum.h"
#include "analyze/report.h"
#include "madeheap.h"

#define SECONDS   40
#define NR_STEADY 20 /* sites that hold much, and gain nothing */

/* Sites "keepN" hold 50 MiB and more from the first second on; "drip" gains 2 KiB a second. */
static struct profile *make_profile(void)
{
	struct profile *p = madeheap_new(SECONDS, 0);
	char names[NR_STEADY][64];
	for (unsigned i = 0; i < NR_STEADY; i++) {
		snprintf(names[i], sizeof(names[i]), "main;keep%u;malloc libc.so.6", i);
		struct madeheap m = {.table = TABLE_ALLOCATED,
				     .stack = names[i],
				     .size = (50 + i) << 20,
				     .nr = 1};
		madeheap(p, &m);
		m.table = TABLE_LIVE;
		madeheap(p, &m);
	}
	for (unsigned s = 0; s < SECONDS; s++) {
		struct madeheap m = {.table = TABLE_ALLOCATED,
				     .second = s,
				     .stack = "main;drip;malloc libc.so.6",
				     .size = 2048,
				     .nr = 1};
		madeheap(p, &m);
		m.table = TABLE_LIVE;
		madeheap(p, &m);
	}
	profile_seal(p);
	return p;
}

TEST(leaktable_shows_what_grows_before_what_is_large)
{
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	const struct view_limits limits = {.max_rows = 3};
	CHECK(!heapsum_table(r, p, &(struct select_spec){0}, &limits, HEAPSUM_LEAKS, &err));
	const struct report_table *t = &r->tables.p[0];
	CHECK_STR(t->key, "leaks");
	CHECK_U64(t->nr_rows, 4); /* three, and all others */
	CHECK_U64(t->nr_rows_total, NR_STEADY + 1);
	const union cell *first = t->cells;
	CHECK_STR(first[4].text, "grows");
	CHECK_STR(first[5].text, "drip");
	CHECK(first[3].estimate.change == 60 * 2048);
	CHECK_STR(t->cells[t->nr_columns + 5].text, "keep19");
	CHECK_STR(t->cells[3 * t->nr_columns + 5].text, "<other>");
	CHECK(t->cells[3 * t->nr_columns].estimate.value == ((18ull * 50 + 153) << 20));
	CHECK_U64(r->notes.n, 1);
	CHECK(strstr(r->notes.p[0], "drip grows by 120 KiB/min (95 %: 120 KiB to 120 KiB)"));
}
