/* base/: clock, numbers, regexes, lines, statistics. */
#include "base/base.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text/escape.h"
#include "base/text/lines.h"
#include "base/text/num.h"
#include "base/text/regex.h"
#include "base/stat.h"

static uint64_t duration(const char *s)
{
	uint64_t ns = 12345;
	return clock_parse_duration(sv_from_str(s), &ns) ? ns : UINT64_MAX;
}

TEST(durations_are_read_with_and_without_units)
{
	CHECK_U64(duration("10"), 10 * NS_PER_SEC);
	CHECK_U64(duration("0.5"), 500 * NS_PER_MS);
	CHECK_U64(duration("10s"), 10 * NS_PER_SEC);
	CHECK_U64(duration("500ms"), 500 * NS_PER_MS);
	CHECK_U64(duration("2m"), 120 * NS_PER_SEC);
	CHECK_U64(duration("1m30s"), 90 * NS_PER_SEC);
	CHECK_U64(duration("1.5h"), 5400 * NS_PER_SEC);
	CHECK_U64(duration("7us"), 7000);
	CHECK_U64(duration("9223372036"), 9223372036 * NS_PER_SEC);
}

TEST(durations_that_make_no_sense_are_refused)
{
	static const char *const bad[] = {"",    "s",     "-1",  "1x",  "10 s",        "1s1m",
					  "1s1", "1.2.3", "1e3", "0x1", "99999999999", "."};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (duration(bad[i]) != UINT64_MAX)
			tap_fail(__FILE__, __LINE__, "'%s' was accepted", bad[i]);
}

TEST(stamps_follow_the_time_zone)
{
	CLEANUP(buf_release) struct buf b = {0};
	setenv("TZ", "AAA-02:30", 1);
	clock_add_iso_utc(&b, 1795225808 * (int64_t)NS_PER_SEC + 5);
	buf_add_ch(&b, ' ');
	clock_add_local(&b, 1795225808 * (int64_t)NS_PER_SEC);
	buf_add_ch(&b, ' ');
	clock_add_stamp(&b, 1795225808 * (int64_t)NS_PER_SEC);
	CHECK_STR(buf_str(&b), "2026-11-21T01:50:08Z 2026-11-21 04:20:08 20261121-042008");
	buf_clear(&b);
	clock_add_iso_utc(&b, -1);
	CHECK_STR(buf_str(&b), "1969-12-31T23:59:59Z");
}

/* The rate of the ticks over short times is that over a long one, whatever else runs on the CPUs. */
TEST(clock_moments_are_of_both_clocks)
{
	struct clock_moment first = clock_moment_now();
	struct clock_moment moments[100];
	for (unsigned i = 0; i < ARRAY_LEN(moments); i++) {
		uint64_t ns = clock_mono_ns();
		while (clock_mono_ns() < ns + 200000)
			;
		moments[i] = clock_moment_now();
	}
	struct clock_moment last = moments[ARRAY_LEN(moments) - 1];
	double rate = (double)(last.ticks - first.ticks) / (double)(last.ns - first.ns);
	CHECK(rate > 0.01);
	struct clock_moment before = first;
	for (unsigned i = 0; i < ARRAY_LEN(moments); i++) {
		double d_ns = (double)(moments[i].ns - before.ns);
		CHECK(d_ns >= 200000);
		CHECK((double)(moments[i].ticks - before.ticks) / d_ns > rate * 0.8);
		CHECK((double)(moments[i].ticks - before.ticks) / d_ns < rate * 1.25);
		before = moments[i];
	}
}

static void expect(struct buf *b, const char *want)
{
	CHECK_STR(buf_str(b), want);
	buf_clear(b);
}

TEST(numbers_have_their_noun_in_the_singular_if_they_are_one)
{
	CHECK_STR(num_noun(1, "calls").s, "1 call");
	CHECK_STR(num_noun(0, "calls").s, "0 calls");
	CHECK_STR(num_noun(1200, "calls").s, "1,200 calls");
	CHECK_STR(num_noun(1, "child processes").s, "1 child process");
	CHECK_STR(num_noun(1, "context-switches").s, "1 context-switch");
	CHECK_STR(num_noun(1, "wake-up latencies").s, "1 wake-up latency");
	CHECK_STR(num_noun(1, "times").s, "1 time");
	CHECK_STR(num_noun(1, "samples and waits").s, "1 samples and waits");
	CHECK_STR(num_noun(1, "").s, "1 ");
}

TEST(numbers_are_formatted_with_units)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_count(&b, 0), expect(&b, "0");
	num_add_count(&b, 999), expect(&b, "999");
	num_add_count(&b, 12345), expect(&b, "12,345");
	num_add_count(&b, UINT64_MAX), expect(&b, "18,446,744,073,709,551,615");
	num_add_short(&b, 999), expect(&b, "999");
	num_add_short(&b, 1234567), expect(&b, "1.23 M");
	num_add_short(&b, 999999), expect(&b, "1.00 M");
	num_add_short(&b, UINT64_MAX), expect(&b, "18.4 E");
	num_add_bytes(&b, 512), expect(&b, "512 B");
	num_add_bytes(&b, 1536), expect(&b, "1.50 KiB");
	num_add_bytes(&b, 1023 * 1024), expect(&b, "1.00 MiB");
	num_add_ns(&b, 950), expect(&b, "950 ns");
	num_add_ns(&b, 12345), expect(&b, "12.3 us");
	num_add_ns(&b, 59990000000), expect(&b, "1m 00s");
	num_add_ns(&b, 185000000000), expect(&b, "3m 05s");
	num_add_ns(&b, 3725000000000), expect(&b, "1h 02m");
}

TEST(percentages_keep_sensible_digits)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_pct(&b, 0), expect(&b, "0");
	num_add_pct(&b, 100), expect(&b, "100");
	num_add_pct(&b, 70.34), expect(&b, "70.3");
	num_add_pct(&b, 5.125), expect(&b, "5.13");
	num_add_pct(&b, 0.0412), expect(&b, "0.041");
	num_add_pct(&b, 0.0001), expect(&b, "<0.001");
	num_add_pct(&b, -3.5), expect(&b, "-3.50");
	num_add_double(&b, -0.001, 1), expect(&b, "0.0");
	num_add_double(&b, 1.996, 2), expect(&b, "2.00");
	num_add_double(&b, NAN, 2), expect(&b, "nan");
	num_add_double(&b, 1e19, 1), expect(&b, "10000000000000000000.0");
}

static uint64_t size_of(const char *s)
{
	uint64_t v = 12345;
	return num_parse_bytes(sv_from_str(s), &v) ? v : UINT64_MAX;
}

TEST(sizes_are_read_in_both_kinds_of_units)
{
	CHECK_U64(size_of("2M"), 2 << 20);
	CHECK_U64(size_of("512KiB"), 512 << 10);
	CHECK_U64(size_of("1.5g"), 3ull << 29);
	CHECK_U64(size_of("10MB"), 10000000);
	CHECK_U64(size_of("8B"), 8);
	CHECK_U64(size_of("4096"), 4096);
	CHECK_U64(size_of("8 KiB"), 8192);
	static const char *const bad[] = {"", "M", "1X", "1MiBs", "-1", "1Mi", "99999999P", "1KiK"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (size_of(bad[i]) != UINT64_MAX)
			tap_fail(__FILE__, __LINE__, "'%s' was accepted", bad[i]);
	uint64_t v;
	CHECK(num_parse_count(SV("1.5k"), &v) && v == 1500);
	CHECK(!num_parse_count(SV("1kk"), &v));
}

TEST(regexes_match_bytes_of_any_kind)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	CHECK(!regex_new(&re, "^read_.*[0-9]$", 0, NULL));
	CHECK(regex_match(re, SV("read_x7")));
	CHECK(!regex_match(re, SV("xread_x7")));
	CHECK(!regex_match(re, (struct sv){0}));
	CHECK(!regex_match(re, SV("read_\xff\xfe")));
	regex_free(re);
	re = NULL;
	CHECK(!regex_new(&re, "A.B", REGEX_LITERAL | REGEX_ICASE, NULL));
	CHECK(regex_match(re, SV("xa.bx")));
	CHECK(!regex_match(re, SV("axb")));
	regex_free(re);
	re = NULL;
	CHECK(!regex_new(&re, "a|ab", REGEX_WHOLE, NULL));
	CHECK(regex_match(re, SV("ab")));
	CHECK(!regex_match(re, SV("abc")));
}

TEST(errors_of_patterns_have_an_offset)
{
	CLEANUP(err_release) struct err err = {0};
	struct regex *re = NULL;
	CHECK(regex_new(&re, "a(b", 0, &err) < 0);
	CHECK(!re);
	CHECK_STR(err_msg(&err), "pattern 'a(b': missing closing parenthesis at offset 3");
}

TEST(catastrophic_backtracking_stops_at_the_limit)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	CHECK(!regex_new(&re, "^(a+)+$", 0, NULL));
	char subject[64];
	memset(subject, 'a', sizeof(subject));
	subject[63] = 'b';
	CHECK(!regex_match(re, sv_from(subject, sizeof(subject))));
	CHECK_U64(regex_nr_over_limit(re), 1);
}

TEST(lines_end_with_or_without_newline)
{
	static const char text[] = "one\r\n\ntwo\rx\nlast";
	struct lines l = lines_from(text, sizeof(text) - 1);
	struct sv s;
	CHECK(lines_next(&l, &s) && sv_eq_str(s, "one"));
	CHECK(lines_next(&l, &s) && s.n == 0);
	CHECK(lines_next(&l, &s) && sv_eq_str(s, "two\rx"));
	CHECK(lines_next(&l, &s) && sv_eq_str(s, "last") && l.nr == 4);
	CHECK(!lines_next(&l, &s));
	l = lines_from(NULL, 0);
	CHECK(!lines_next(&l, &s));
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-4;
}

TEST(statistics_match_known_values)
{
	double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct stat_run r = {0};
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		stat_add(&r, v[i]);
	CHECK(is_near(r.mean, 5) && is_near(stat_mean(v, 8), 5));
	CHECK(is_near(stat_stddev(&r), 2.138090));
	CHECK(r.min == 2 && r.max == 9);
	CHECK(is_near(stat_median(v, 8), 4.5));
	CHECK(is_near(stat_quantile(v, 8, 1), 9));
	CHECK(isnan(stat_median(v, 0)));
}

TEST(wilson_interval_matches_published_values)
{
	/* Newcombe, Statistics in Medicine 17 (1998), table I: 81/263, 15/148, 0/20, 1/29 */
	static const double cases[][4] = {{81, 263, 0.2553, 0.3662},
					  {15, 148, 0.0624, 0.1605},
					  {0, 20, 0, 0.1611},
					  {1, 29, 0.0061, 0.1718}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stat_interval w = stat_wilson(cases[i][0], cases[i][1]);
		CHECK(is_near(w.low, cases[i][2]) && is_near(w.high, cases[i][3]));
	}
	CHECK(stat_wilson(0, 0).high == 1);
	CHECK(fabs(stat_share_pct_error(5000, 10000) - 0.98) < 0.01);
}

TEST(a_shell_word_is_quoted_only_if_it_must_be)
{
	static const struct {
		const char *word;
		const char *quoted;
	} cases[] = {{"profiling/x/cpu-1.assay", "profiling/x/cpu-1.assay"},
		     {"", "''"},
		     {"two words", "'two words'"},
		     {"it's", "'it'\\''s'"},
		     {"$(reboot)", "'$(reboot)'"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_release) struct buf text = {0};
		escape_shell(&text, sv_from_str(cases[i].word));
		CHECK_STR(buf_str(&text), cases[i].quoted);
	}
}
