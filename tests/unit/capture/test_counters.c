/* capture/perf/counters: names of events, and the arithmetic on what the kernel returns. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "capture/perf/counters.h"
#include "session/bench/countrun.h"

/* As perf_event_open(2) documents it: nr, enabled, running, then value and id of each. */
static const uint64_t three[] = {3, 1000, 250, 4000, 71, 100, 70, 9, 72};

TEST(counters_of_a_group_are_found_by_id)
{
	struct counter_raw raw[4] = {[3] = {.value = 5}};
	const uint64_t ids[] = {70, 71, 72, 0};
	CHECK(counter_parse_group(raw, ids, 4, three, sizeof(three)) == 3);
	CHECK_U64(raw[0].value, 100);
	CHECK_U64(raw[1].value, 4000);
	CHECK_U64(raw[2].value, 9);
	CHECK_U64(raw[0].enabled_ns, 1000);
	CHECK_U64(raw[0].running_ns, 250);
	CHECK_U64(raw[3].value, 5); /* not in this group: as it was */
}

TEST(counters_cut_or_of_a_wrong_number_are_refused)
{
	struct counter_raw raw[1];
	const uint64_t ids[] = {70};
	const uint64_t many[] = {1000, 1, 1, 1, 70};
	for (size_t n = 0; n < sizeof(three); n++)
		CHECK(counter_parse_group(raw, ids, 1, three, n) == -EINVAL);
	CHECK(counter_parse_group(raw, ids, 1, many, sizeof(many)) == -EINVAL);
}

TEST(counters_that_took_turns_are_scaled_by_the_time_they_counted)
{
	struct counter_value v = {0};
	const struct counter_raw start = {1000, 10000, 10000};
	const struct counter_raw quarter = {1500, 14000, 11000}; /* 500 in 1 of 4 us */
	const struct counter_raw whole = {2500, 15000, 12000};   /* 1000 in 1 of 1 us */
	counter_add(&v, &start, &quarter);
	CHECK(fabs(v.value - 2000) < 1e-9);
	CHECK_U64(v.enabled_ns, 4000);
	CHECK_U64(v.running_ns, 1000);
	counter_add(&v, &quarter, &whole);
	CHECK(fabs(v.value - 3000) < 1e-9);
}

static struct counter_row row_of(struct counter_set *set, const struct counter_value *v)
{
	struct counter_row rows[COUNTRUN_ROWS_MAX];
	CHECK_U64(countrun_rows(rows, set, v, UINT64_MAX, 0, UINT64_MAX), 1);
	return rows[0];
}

TEST(counters_never_on_the_hardware_are_not_counted_and_not_zero)
{
	struct counter_set set = {.events = {.n = 1, .p = {{.name = "cycles"}}}};
	CHECK_U64(row_of(&set, &(struct counter_value){0, 5000, 0}).state, COUNTER_NOT_COUNTED);
	/* a thread that did not run counted nothing, which is known */
	CHECK_U64(row_of(&set, &(struct counter_value){0, 0, 0}).state, COUNTER_COUNTED);
	struct counter_row r = row_of(&set, &(struct counter_value){8, 4000, 1000});
	CHECK_U64(r.state, COUNTER_COUNTED);
	CHECK(fabs(r.running_pct - 25) < 1e-9);
	set.state[0] = COUNTER_NOT_SUPPORTED;
	CHECK_U64(row_of(&set, &(struct counter_value){0}).state, COUNTER_NOT_SUPPORTED);
}

TEST(counters_have_the_names_of_perf)
{
	static const struct {
		const char *word;
		uint32_t type;
		uint64_t config;
	} rows[] = {
		{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
		{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
		{"L1-dcache-loads", PERF_TYPE_HW_CACHE, 0},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000},
		{"LLC-stores", PERF_TYPE_HW_CACHE, 0x102},
		{"dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10003},
		{"r1a8", PERF_TYPE_RAW, 0x1a8},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		struct counter_events e = {0};
		CHECK(!counter_events_add(&e, &a, rows[i].word, NULL));
		CHECK_U64(e.n, 1);
		CHECK_U64(e.p[0].type, rows[i].type);
		CHECK_U64(e.p[0].config, rows[i].config);
		CHECK_STR(e.p[0].name, rows[i].word);
	}
}

TEST(counters_of_lists_modifiers_and_wrong_names)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct counter_events e = {0};
	CHECK(!counter_events_add(&e, &a, "{cycles:u,instructions:k}, faults", NULL));
	CHECK_U64(e.n, 3);
	CHECK(e.p[0].has_no_kernel && !e.p[0].has_no_user);
	CHECK(e.p[1].has_no_user && !e.p[1].has_no_kernel);
	CHECK_U64(e.p[0].family, e.p[1].family);
	CHECK(counter_events_add(&e, &a, "cylces", &err) == -EINVAL);
	CHECK(strstr(err_msg(&err), "there is no event 'cylces'") != NULL);
}

TEST(counters_count_the_page_faults_of_this_process)
{
	enum { PAGES = 500 };
	CLEANUP(arena_release) struct arena a = {0};
	struct counter_set set = {0};
	struct counter_fds fds;
	struct counter_value v[COUNTERS_MAX] = {0};
	CHECK(!counter_events_add(&set.events, &a, "task-clock,page-faults,cycles", NULL));
	CHECK(!counter_set_probe(&set, false, NULL));
	CHECK(!counter_fds_open(&fds, &set, 0, -1, COUNTERS_INHERIT, NULL));
	counter_fds_enable(&fds, &set);
	const size_t size = (size_t)PAGES * 4096;
	volatile char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	counter_fds_read(&fds, &set, v);
	counter_fds_close(&fds);
	munmap((void *)p, size);
	CHECK(v[1].value >= 1 && v[1].value <= PAGES + 200); /* 1 with huge pages */
	CHECK(v[0].value > 0);
}
