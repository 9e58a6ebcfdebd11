/* The list of single waits. */
#include "base/base.h"
#include "analyze/wait/waitlist.h"
#include "tap.h"

#include "base/clock.h"

#define START (100 * NS_PER_SEC)

static void add(struct profile *p, uint32_t table, uint64_t at_us, enum wait_reason reason,
		int32_t waker)
{
	const int64_t values[INTERVAL_COLUMNS] = {1, 5000, 2000, 700, 300};
	str_id comm = profile_cstr(p, "t");
	struct tag tag = {.reason = (uint8_t)reason,
			  .log2_ns = LOG2_NONE,
			  .syscall = -1,
			  .object = profile_cstr(p, "lock 0x10"),
			  .other = waker ? profile_task(p, 1, waker, comm, START) : 0};
	profile_tagged_sample(p, table, START + at_us * 1000, 0, profile_task(p, 1, 5, comm, START),
			      0, profile_tag(p, &tag), values);
}

TEST(waitlist_has_a_row_for_each_interval_that_passes_the_filters)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	p->start_ns = START;
	uint32_t table = tables_add(p, TABLE_INTERVALS, 0);
	add(p, table, 20, WAIT_POLL, 0);
	add(p, table, 10, WAIT_LOCK, 6);
	add(p, table, 30, WAIT_FSYNC, 0);
	profile_seal(p);
	CHECK(!waitlist_report(r, p, &(struct select_spec){.reason = "lock,poll"}, &err));
	const struct report_table *t = &r->tables.p[0];
	CHECK_U64(t->nr_rows, 2); /* idle waits, too; in order of time */
	const union cell *row = t->cells;
	CHECK_U64(row[0].u, 10000);
	CHECK_U64(row[2].u, 5);
	CHECK_STR(row[3].text, "lock");
	CHECK_U64(row[4].u, 3000);
	CHECK_U64(row[5].u, 2000);
	CHECK_U64(row[6].u, 700);
	CHECK_STR(row[7].text, "lock 0x10");
	CHECK_STR(row[8].text, "t 6");
	CHECK_STR(row[t->nr_columns + 3].text, "poll");
	/* durations are exact: each is 5,000 ns long */
	CHECK(!waitlist_report(r, p, &(struct select_spec){.min_duration = "5us"}, &err));
	CHECK_U64(r->tables.p[1].nr_rows, 3);
	CHECK(!waitlist_report(r, p, &(struct select_spec){.min_duration = "5001ns"}, &err));
	CHECK_U64(r->tables.p[2].nr_rows, 0);
	CHECK(!waitlist_report(r, p, &(struct select_spec){.max_duration = "4999ns"}, &err));
	CHECK_U64(r->tables.p[3].nr_rows, 0);
}

TEST(waitlist_refuses_what_it_cannot_show)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK(waitlist_report(r, p, &(struct select_spec){0}, &err) < 0);
	add(p, tables_add(p, TABLE_INTERVALS, 0), 1, WAIT_LOCK, 0);
	CHECK(waitlist_report(r, p, &(struct select_spec){.min_duration = "1x"}, &err) < 0);
	CHECK_U64(r->tables.n, 0);
}
