/* analyze/page: the rows of a page add up to what reports show. */
#include "base/base.h"
#include "analyze/page/pagedata.h"
#include "tap.h"

#include <string.h>

#include "analyze/memory/limitreport.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "made.h"
#include "madeheap.h"
#include "madewaits.h"
#include "model/profile.h"

static struct page made_page(const struct profile *p)
{
	struct page page = {0};
	CHECK(!page_make(&page, p, "x.assay", NULL, NULL, NULL));
	return page;
}

static uint64_t total(const struct page_stream *s, bool with_idle, const struct page *page)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->n; i++)
		if (with_idle || !s->state || !page->states.p[s->state[i]].is_idle)
			sum += s->weight[i];
	return sum;
}

static uint64_t selected(const struct profile *p, const char *event, unsigned flags)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	const struct select_spec spec = {.event = event, .flags = flags};
	CHECK(!views_select(&a, p, &spec, &sel, NULL));
	return sel.weight;
}

TEST(pagedata_of_thread_time_adds_up_with_and_without_idle_time)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(true);
	CLEANUP(page_release) struct page page = made_page(p);
	const struct page_stream *s = &page.streams.p[0];
	CHECK_STR(s->key, "thread-time");
	CHECK(s->flags == (PAGE_HAS_TIMES | PAGE_HAS_STATES));
	CHECK_U64(s->slice_ms, 1000);
	CHECK_U64(total(s, false, &page), selected(p, "thread-time", 0));
	CHECK_U64(total(s, true, &page), selected(p, "thread-time", SELECT_IDLE));
	CHECK_U64(page.streams.n, 1); /* CPU samples and waits are in it */
}

TEST(pagedata_rows_are_in_order_of_time_and_in_range)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(true);
	CLEANUP(page_release) struct page page = made_page(p);
	const struct page_stream *s = &page.streams.p[0];
	for (size_t i = 0; i < s->n; i++) {
		CHECK(!i || s->time_ms[i - 1] <= s->time_ms[i]);
		CHECK(s->time_ms[i] < page.duration_ms);
		CHECK(s->node[i] && s->node[i] < page.tree->nr_nodes);
		CHECK(s->thread[i] && s->thread[i] < page.threads.n);
		CHECK(s->state[i] < page.states.n);
		bool is_wait = s->state[i] && s->state[i] < WAIT_NR;
		bool is_ended =
			is_wait && s->state[i] != WAIT_RUN_QUEUE && s->state[i] != WAIT_YIELD;
		CHECK(is_ended == !!s->waker[i]); /* the scheduler ends the others */
	}
}

TEST(pagedata_places_each_row_at_its_stack)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	made_sample(p, t, &(struct made){.stack = "main;b;c", .ns = 3000000, .weight = 7});
	made_sample(p, t, &(struct made){.stack = "main;a", .ns = 1000000, .weight = 5});
	profile_seal(p);
	CLEANUP(page_release) struct page page = made_page(p);
	const struct page_stream *s = &page.streams.p[0];
	const struct intern *names = &page.tree_report->names;
	const struct tree_node *n = page.tree->nodes;
	CHECK_U64(s->n, 2);
	CHECK_STR(intern_str(names, n[s->node[0]].name), "a");
	CHECK_STR(intern_str(names, n[s->node[1]].name), "c");
	CHECK_STR(intern_str(names, n[n[s->node[1]].parent].name), "b");
	CHECK_U64(s->time_ms[1] - s->time_ms[0], 2);
	CHECK_U64(s->weight[0], 5);
}

TEST(pagedata_of_memory_has_a_stream_a_weight_without_times)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(0);
	CLEANUP(page_release) struct page page = made_page(p);
	bool has_live = false;
	vec_foreach(s, &page.streams) {
		CHECK(!(s->flags & PAGE_HAS_TIMES) && !s->time_ms && !s->state);
		if (strcmp(s->key, "live") != 0)
			continue;
		has_live = true;
		CHECK_STR(s->report, "--weight live");
		CHECK(s->unit == UNIT_BYTES);
		CHECK_U64(total(s, true, &page), selected(p, "live", 0));
	}
	CHECK(has_live);
}

TEST(pagedata_of_a_command_under_a_limit_has_the_limit_and_the_kill)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(0);
	p->is_sealed = false;
	struct limit_spec spec = {.memory_bytes = 64 << 20};
	struct limit_outcome s = {.has_group = true, .start_ns = p->start_ns};
	s.numbers.nr_oom_kill = 1;
	s.at_kill = (struct limit_point){.time_ns = 9 * NS_PER_SEC, .usage_bytes = 64 << 20};
	vec_push(&s.points, (struct limit_point){.time_ns = 0, .usage_bytes = 1 << 20});
	vec_push(&s.points, s.at_kill);
	limit_rows(p, &spec, &s);
	vec_release(&s.points);
	profile_seal(p);
	CLEANUP(page_release) struct page page = made_page(p);
	CHECK_STR(page.series.p[0].key, "cgroup");
	CHECK_U64(page.series.p[0].value[1], 64 << 20);
	CHECK_STR(page.series.p[1].key, "limit");
	CHECK_U64(page.series.p[1].value[0], 64 << 20);
	CHECK_U64(page.marks.n, 1);
	CHECK_U64(page.marks.p[0].time_ms, 9000);
	CHECK_STR(page.marks.p[0].text, "OOM kill");
}

TEST(pagedata_of_nothing_is_empty)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_seal(p);
	CLEANUP(page_release) struct page page = made_page(p);
	CHECK_U64(page.streams.n, 0);
	CHECK_U64(page.tree->nr_nodes, 1);
	CHECK_U64(page.duration_ms, 0);
}

TEST(pagedata_of_other_events_is_named_by_them)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t faults = made_table(p, "page-faults", 1);
	uint32_t switches = made_table(p, "sched:sched_switch", 1);
	made_sample(p, faults, &(struct made){.stack = "main;f", .ns = 5});
	made_sample(p, switches, &(struct made){.stack = "main;g", .ns = 6});
	p->tables.p[faults].id = p->tables.p[switches].id = TABLE_SAMPLES;
	profile_seal(p);
	CLEANUP(page_release) struct page page = made_page(p);
	CHECK_STR(page.title, "samples of page-faults");
	CHECK_STR(page.first->title, "samples of page-faults");
	CHECK_U64(page.streams.n, 2); /* each event has a flame graph */
	CHECK_STR(page.streams.p[0].title, "samples of page-faults");
	CHECK_STR(page.streams.p[1].title, "samples of sched:sched_switch");
	CHECK_STR(page.streams.p[1].report, "-e sched:sched_switch");
}

/* Its rows count calls with a wait, which no reader knows as parts of calls. */
TEST(pagedata_of_calls_counts_their_waits)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.table = "span-time",
				       .comm = "a",
				       .tid = 2,
				       .reason = WAIT_FSYNC,
				       .stack = "main;commit",
				       .object = "commit",
				       .nr = 2,
				       .ms = 10});
	profile_seal(p);
	CLEANUP(page_release) struct page page = made_page(p);
	bool has_calls = false;
	vec_foreach(s, &page.streams) {
		has_calls |= !strcmp(s->key, "spans");
		CHECK_STR(s->noun, "waits");
	}
	CHECK(has_calls);
}

static const char *title_with(const struct page *page, const char *key)
{
	vec_foreach(s, &page->streams)
		if (!strcmp(s->key, key))
			return s->title;
	return "";
}

/* As in captures of everything: reads and writes take place, but have no rows. */
TEST(pagedata_of_sync_calls_only_says_so)
{
	static const struct {
		const char *fact;
		const char *of_io;
		const char *of_faults;
	} cases[] = {{NULL, "time in I/O calls", "page faults"},
		     {"not recorded", "time in sync calls (reads and writes not recorded)",
		      "major page faults (minor ones not recorded)"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(3);
		struct tag tag = {.log2_ns = 24, .detail = profile_cstr(p, "fsync")};
		task_id task = profile_task(p, 1, 2, profile_cstr(p, "app"), MADEWAITS_START_NS);
		uint32_t io = tables_add(p, TABLE_IO, 0);
		uint32_t faults = tables_add(p, TABLE_FAULTS, 0);
		profile_tagged_sample(p, io, MADEWAITS_START_NS, 0, task, -1, profile_tag(p, &tag),
				      (int64_t[]){100, 0, 2000000000, 20000000});
		profile_tagged_sample(p, faults, MADEWAITS_START_NS, 0, task, -1,
				      profile_tag(p, &tag), (int64_t[]){100, 2000000000, 20000000});
		if (cases[i].fact)
			profile_fact(p, FACT_IO_SYNCS_ONLY, cases[i].fact);
		profile_seal(p);
		CLEANUP(page_release) struct page page = made_page(p);
		CHECK_STR(title_with(&page, "io-time"), cases[i].of_io);
		CHECK_STR(title_with(&page, "faults"), cases[i].of_faults);
		CHECK_STR(title_with(&page, "io"), ""); /* a sync call has no bytes */
	}
}
