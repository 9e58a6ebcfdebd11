/* render/statlines: what a machine with hardware counters would show, which this one may not have. */
#include "base/base.h"
#include "tap.h"

#include <math.h>

#include "render/statlines.h"

static const struct counter_row rows[] = {
	{"task-clock", COUNTER_CLOCK, COUNTER_COUNTED, true, false, 4451.32e6, NAN, 4451325000, 100,
	 0.445, "CPUs utilized"},
	{"page-faults", COUNTER_OTHER, COUNTER_COUNTED, false, false, 1234567, NAN, 4451325000, 100,
	 277.35, "K/sec"},
	{"instructions", COUNTER_INSTRUCTIONS, COUNTER_COUNTED, false, false, 9.5e9, NAN,
	 2225662500, 50, 1.9, "insn per cycle"},
	{"branch-misses", COUNTER_BRANCH_MISSES, COUNTER_COUNTED, false, false, 5e6, NAN,
	 4451325000, 100, 0.5, "of all branches"},
	{"cycles", COUNTER_CYCLES, COUNTER_NOT_COUNTED, false, false, 0, NAN, 0, 0, NAN, ""},
};
static const struct counter_reading reading = {10, NULL, rows, ARRAY_LEN(rows)};

TEST(statlines_summary_is_as_of_perf_stat)
{
	static const char *const notes[] = {"a note"};
	const struct statlines l = {.form = STATLINES_TEXT};
	const struct stat_summary s = {"redis-server", reading, 10, NAN, 4, 0.451325, notes, 1};
	CLEANUP(buf_release) struct buf b = {0};
	statlines_add_summary(&b, &l, &s);
	CHECK_STR(
		buf_str(&b),
		"\ncounters of redis-server:\n\n"
		"          4,451.32 msec task-clock               #    0.445 CPUs utilized\n"
		"         1,234,567      page-faults              #   277.35 K/sec\n"
		"     9,500,000,000      instructions             #    1.900 insn per cycle  (50.00%)\n"
		"         5,000,000      branch-misses            #   0.500% of all branches\n"
		"     <not counted>      cycles\n\n"
		"         10.000000 seconds time elapsed\n"
		"          4.000000 seconds user\n"
		"          0.451325 seconds sys\n\n"
		"a note\n");
}

TEST(statlines_summary_has_the_states_of_threads)
{
	static const struct stat_wait waits[] = {
		{"poll", "poll, epoll", 1500000000, 1204, 75, true, true},
		{"stolen", "interrupts and stolen time", 500000000, 0, 25, false, false},
	};
	struct statlines l = {.form = STATLINES_TEXT};
	const struct stat_summary s = {.title = "a",
				       .reading = {1, NULL, rows, 1},
				       .elapsed_s = 1,
				       .elapsed_spread_pct = NAN,
				       .user_s = NAN,
				       .system_s = NAN,
				       .waits = {waits, 2, 2}};
	CLEANUP(buf_release) struct buf b = {0};
	statlines_add_summary(&b, &l, &s);
	CHECK(strstr(
		buf_str(&b),
		"          2.000000 seconds thread time, by reason:\n\n"
		"          1,500.00 msec poll, epoll                  #   75.00%       1,204 times\n"
		"            500.00 msec interrupts and stolen time   #   25.00%\n\n"
		"          1.000000 seconds time elapsed\n"));
	l = (struct statlines){.form = STATLINES_CSV, .separator = ","};
	buf_clear(&b);
	statlines_add_summary(&b, &l, &s);
	CHECK(strstr(buf_str(&b), "\n1500.00,msec,thread-poll,1500000000,100.00,75.000,"
				  "% of thread time\n"));
	l.form = STATLINES_JSON;
	buf_clear(&b);
	statlines_add_summary(&b, &l, &s);
	CHECK(strstr(buf_str(&b), "\"thread_time_s\":2.000000000,\"thread_time\":[{\"reason\":"
				  "\"poll\",\"ns\":1500000000,\"count\":1204,\"pct\":75.00}"));
}

TEST(statlines_csv_has_the_fields_of_perf_stat)
{
	const struct statlines l = {.form = STATLINES_CSV, .separator = ";", .has_intervals = true};
	CLEANUP(buf_release) struct buf b = {0};
	statlines_add_reading(&b, &l, &reading, NULL, true);
	CHECK_STR(buf_str(&b),
		  "10.000000000;4451.32;msec;task-clock;4451325000;100.00;0.445;CPUs utilized\n"
		  "10.000000000;1234567;;page-faults;4451325000;100.00;277.350;K/sec\n"
		  "10.000000000;9500000000;;instructions;2225662500;50.00;1.900;insn per cycle\n"
		  "10.000000000;5000000;;branch-misses;4451325000;100.00;0.500;of all branches\n"
		  "10.000000000;<not counted>;;cycles;0;0.00;;\n");
}

TEST(statlines_intervals_fit_the_width)
{
	const struct statlines l = {.form = STATLINES_TEXT, .columns = 45, .has_intervals = true};
	CLEANUP(buf_release) struct buf b = {0};
	statlines_add_reading(&b, &l, &reading, NULL, true);
	CHECK_STR(buf_str(&b), "     time s     CPU ms     faults\n"
			       "     10.000    4451.32     1.23 M\n");
}

TEST(statlines_intervals_have_the_longest_wait_that_is_not_idle)
{
	struct stat_wait waits[] = {
		{"poll", "poll, epoll", 700000000, 3, 70, true, true},
		{"on_cpu", "on CPU", 200000000, 0, 20, false, false},
		{"file_read", "file read", 100000000, 5, 10, false, true},
	};
	struct stat_waits all = {waits, 3, 1};
	struct statlines l = {
		.form = STATLINES_TEXT, .columns = 68, .has_intervals = true, .has_waits = true};
	CLEANUP(buf_release) struct buf b = {0};
	statlines_add_reading(&b, &l, &reading, &all, true);
	all.n = 2;
	statlines_add_reading(&b, &l, &reading, &all, false);
	all.n = 0;
	statlines_add_reading(&b, &l, &reading, &all, false);
	CHECK_STR(buf_str(&b), "     time s     CPU ms     faults  longest wait\n"
			       "     10.000    4451.32     1.23 M  file read 10.0 %\n"
			       "     10.000    4451.32     1.23 M  poll, epoll 70.0 % (idle)\n"
			       "     10.000    4451.32     1.23 M  -\n");
	l = (struct statlines){.form = STATLINES_CSV, .separator = ",", .has_intervals = true};
	buf_clear(&b);
	all.n = 1;
	statlines_add_reading(&b, &l, &reading, &all, true);
	CHECK(strstr(buf_str(&b), "\n10.000000000,700.00,msec,thread-poll,700000000,100.00,70.000,"
				  "% of thread time\n"));
}
