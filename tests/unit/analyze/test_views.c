/* The registry of views. */
#include "base/base.h"
#include "analyze/views.h"
#include "tap.h"

#include <string.h>

#include "base/buf.h"
#include "made.h"
#include "madeheap.h"
#include "madewaits.h"
#include "model/profile.h"

static const char *found(const struct profile *p, const char *event)
{
	return views_find(p, &(struct select_spec){.event = event})->key;
}

TEST(views_are_found_by_the_event_or_by_what_the_profile_holds)
{
	CLEANUP(profile_free_p) struct profile *both = madewaits_service(true);
	CLEANUP(profile_free_p) struct profile *waits = madewaits_service(false);
	CLEANUP(profile_free_p) struct profile *heap = madeheap_server(0);
	CLEANUP(profile_free_p) struct profile *nothing = profile_new();
	CHECK_STR(found(both, NULL), "thread-time");
	CHECK_STR(found(both, "thread-time"), "thread-time");
	CHECK_STR(found(both, "off-cpu"), "waits");
	CHECK_STR(found(both, "cpu-clock"), "cpu");
	CHECK_STR(found(waits, NULL), "waits");
	CHECK_STR(found(waits, "blame"), "cpu"); /* stacks like any other */
	CHECK_STR(found(heap, NULL), "heap");
	CHECK_STR(found(heap, "live"), "heap");
	CHECK_STR(found(heap, "memory"), "memory");
	CHECK_STR(found(nothing, NULL), "cpu");
	CHECK_STR(found(nothing, "io"), "io");
}

static void check_pictures(const struct profile *p, enum view_id id, unsigned flags,
			   const char *wanted)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	struct view_pictures pictures =
		views_at(id)->pictures(&a, views_at(id), p, &(struct select_spec){0}, flags);
	for (size_t i = 0; i < pictures.n; i++)
		buf_addf(&b, "%s%s", i ? " " : "", pictures.p[i].suffix);
	CHECK_STR(buf_str(&b), wanted);
}

TEST(views_have_the_pictures_that_are_not_empty)
{
	CLEANUP(profile_free_p) struct profile *both = madewaits_service(true);
	CLEANUP(profile_free_p) struct profile *heap = madeheap_server(0);
	check_pictures(both, VIEW_CPU, 0, ".svg");
	check_pictures(both, VIEW_THREAD_TIME, 0, ".svg");
	check_pictures(
		both, VIEW_THREAD_TIME, VIEW_PICTURES_BY_REASON,
		".svg -run_queue.svg -lock.svg -park.svg -fsync.svg -file_read.svg -poll.svg");
	check_pictures(both, VIEW_IO, 0, "");
	check_pictures(heap, VIEW_HEAP, 0, "-allocated.svg -peak.svg -live.svg -leaked.svg");
	check_pictures(heap, VIEW_HEAP, VIEW_PICTURES_ALL,
		       "-allocated.svg -peak.svg -live.svg -leaked.svg -calls.svg -temporary.svg");
}

TEST(views_name_the_pictures_of_a_second_table_and_of_events_by_them)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table switches = {.event = profile_cstr(p, "sched:sched_switch"),
				 .nr_columns = 1,
				 .has_tags = true,
				 .columns = {{.name = profile_cstr(p, "events")}}};
	uint32_t idx[] = {tables_add(p, TABLE_IO, 0), tables_add(p, TABLE_BLOCK, 0),
			  profile_table(p, &switches)};
	uint32_t tag = profile_tag(p, &(struct tag){0});
	stack_id stack = made_stack(p, "main;read [k]");
	for (size_t i = 0; i < ARRAY_LEN(idx); i++) {
		int64_t values[4] = {1, i ? 4096 : 0, 1000}; /* calls that moved no bytes */
		profile_tagged_sample(p, idx[i], 1, stack, 0, 0, tag, values);
	}
	profile_seal(p);
	check_pictures(p, VIEW_IO, 0, ".block.svg");
	check_pictures(p, VIEW_EVENTS, 0, ".sched.sched_switch.svg");
	CHECK_STR(found(p, NULL), "io");
	CHECK_STR(found(p, "sched:sched_switch"), "cpu");
}

static bool has_shares(const struct profile *p, const char *event)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct selection sel;
	if (select_run(&a, p, &(struct select_spec){.event = event}, &sel, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	return view_has_shares(&sel);
}

static struct profile *with_samples(const char *event, int64_t nr, int64_t period)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, event, 2);
	for (int64_t i = 0; i < nr; i++)
		made_sample(p, t,
			    &(struct made){.stack = "main;a", .nr = 1, .ns = 1 + (uint64_t)i});
	for (size_t i = 0; i < p->tables.p[t].n; i++)
		p->tables.p[t].values[i * 2 + 1] = period;
	profile_seal(p);
	return p;
}

TEST(views_show_shares_of_100_samples_or_of_counted_events)
{
	CLEANUP(profile_free_p) struct profile *few = with_samples("cycles", 99, 1000);
	CLEANUP(profile_free_p) struct profile *many = with_samples("cycles", 100, 1000);
	CLEANUP(profile_free_p) struct profile *counted = with_samples("sched:sched_switch", 5, 1);
	CLEANUP(profile_free_p) struct profile *tick = with_samples("cpu-clock:u", 5, 1);
	CLEANUP(profile_free_p) struct profile *waits = madewaits_service(false);
	CHECK(!has_shares(few, NULL) && has_shares(many, NULL));
	CHECK(has_shares(counted, NULL) && !has_shares(tick, NULL));
	CHECK(has_shares(waits, NULL));
}

TEST(views_count_frames_without_a_name_by_weight)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct selection sel;
	uint32_t t = made_table(p, "cycles", 1);
	made_sample(p, t, &(struct made){.stack = "main;named", .nr = 50, .ns = 1});
	made_sample(p, t, &(struct made){.stack = "main;x!fn_12 x;leaf", .nr = 150, .ns = 2});
	vec_foreach(f, &p->functions)
		if (strstr(profile_text(p, f->name), "!fn_"))
			f->flags |= FUNC_GUESSED;
	profile_seal(p);
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	view_begin(r, &sel, "");
	CHECK_U64((uint64_t)r->frames.all, 2 * 50 + 3 * 150);
	CHECK_U64((uint64_t)r->frames.unnamed, 150);
	CHECK_U64(losses_unsymbolized(&r->losses), 0); /* all leaves have names */
	CHECK_STR(report_unnamed(&a, r),
		  "unsymbolized frames: 27.3 % of all frames, by weight, most in x");
}

TEST(views_do_not_count_idle_cpus_as_in_use)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	uint32_t t = made_table(p, "cycles", 1);
	made_sample(p, t, &(struct made){.stack = "main;busy", .nr = 30, .ns = 1});
	made_sample(p, t,
		    &(struct made){.stack = "idle [k]", .comm = "swapper", .nr = 70, .ns = 2});
	p->tasks.p[p->tasks.n - 1].pid = p->tasks.p[p->tasks.n - 1].tid = 0;
	profile_seal(p);
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	CHECK_U64(view_all(&sel).nr_samples, 100);
	CHECK_U64(view_busy(&sel).nr_samples, 30);
}

TEST(views_call_a_small_part_one_of_many)
{
	CHECK_STR(view_most(80), "most");
	CHECK_STR(view_most(50), "the largest part");
	CHECK_STR(view_largest(80), "the largest part");
	CHECK_STR(view_most(1.8), "the largest of many parts");
	CHECK_STR(view_largest(1.8), "the largest of many parts");
}
