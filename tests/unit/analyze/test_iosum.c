/* analyze/iosum: what the figures of sync calls count. */
#include "base/base.h"
#include "tap.h"

#include <sys/syscall.h>

#include "analyze/io/iosum.h"
#include "madewaits.h"

#define STACK "main app;commit app;fdatasync libc.so.6"

/* 100 calls of 20 ms each; of their time, @blocked_ms waited for the disk. */
static struct profile *synced(int64_t blocked_ms)
{
	struct profile *p = madewaits_new(3);
	struct tag tag = {.syscall = SYS_fdatasync,
			  .log2_ns = 24,
			  .object = profile_cstr(p, "/srv/log"),
			  .detail = profile_cstr(p, "fsync")};
	const struct madewait w = {.comm = "app",
				   .tid = 2,
				   .stack = STACK,
				   .reason = WAIT_FSYNC,
				   .nr = 100,
				   .ms = blocked_ms};
	if (blocked_ms)
		madewait(p, &w);
	uint32_t io = tables_add(p, TABLE_IO, 0);
	profile_tagged_sample(p, io, MADEWAITS_START_NS, 0,
			      profile_task(p, 1, 2, profile_cstr(p, "app"), MADEWAITS_START_NS), -1,
			      profile_tag(p, &tag), (int64_t[]){100, 0, 2000000000, 20000000});
	profile_fact(p, FACT_IO_SYNCS_ONLY, "not recorded");
	profile_seal(p);
	return p;
}

static void check(int64_t blocked_ms, const char *want)
{
	CLEANUP(profile_free_p) struct profile *p = synced(blocked_ms);
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK(!iosum_add(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	CHECK(r->notes.n == 1); /* what was done is a note of a page of everything */
	CHECK_STR(r->notes.p[0], want);
}

#define CALLS \
	"2.00 s in sync calls, 100 % of it in fdatasync (100 calls, 20.0 ms on average); most (100 %) with /srv/log"

TEST(iosum_says_how_much_of_the_time_in_sync_calls_was_blocked)
{
	check(500,
	      CALLS "; from call to return: blocked for 500 ms of it (fsync in the thread time "
		    "breakdown), on CPU or runnable in the rest");
	check(0, CALLS); /* waits are not recorded */
}
