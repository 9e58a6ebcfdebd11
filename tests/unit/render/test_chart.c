/* render/chart: a chart is one well-formed file without references, and keeps every peak. */
#include "base/base.h"

#include "render/chart.h"

#include <stdlib.h>

#include "tap.h"
#include "wellformed.h"

#define POINTS 5000

static struct chart make(uint64_t *ns, uint64_t *area, uint64_t *line, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ns[i] = i * 250000000ull;
		area[i] = (64 << 20) + i * 1024;
		line[i] = 80 << 20;
	}
	return (struct chart){
		.title = "memory of <script>&\"x\"</script>",
		.subtitle = "a ]]> b \x01",
		.note = "verdict: \xff",
		.ns = ns,
		.nr_points = n,
		.series = {{"heap <b>", CHART_AREA, 0, area}, {"RSS", CHART_LINE, 5, line}},
		.nr_series = 2,
	};
}

static size_t count(const struct buf *b, const char *what)
{
	size_t nr = 0;
	for (const char *at = buf_str(b); (at = strstr(at, what)); at++)
		nr++;
	return nr;
}

TEST(chart_is_one_well_formed_file)
{
	static uint64_t ns[POINTS], area[POINTS], line[POINTS];
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf again = {0};
	struct chart c = make(ns, area, line, 100);
	const struct chart_mark mark = {ns[40], "peak & more"};
	c.marks = &mark;
	c.nr_marks = 1;
	chart_write(&b, &c);
	CHECK(is_well_formed(buf_sv(&b)));
	CHECK(!strstr(buf_str(&b), "<script>&"));
	CHECK(strstr(buf_str(&b), "peak &amp; more") && strstr(buf_str(&b), "heap &lt;b&gt;"));
	/* Nothing refers to anything outside. */
	CHECK(!strstr(buf_str(&b), "href") && !strstr(buf_str(&b), "@import"));
	CHECK_U64(count(&b, "http"), count(&b, "http://www.w3.org/2000/svg"));
	CHECK_U64(count(&b, "class=\"area\""), 1);
	CHECK_U64(count(&b, "class=\"curve\""), 1);
	CHECK(strstr(buf_str(&b), ">80.0 MiB</text>") != NULL);
	chart_write(&again, &c);
	CHECK_STR(buf_str(&again), buf_str(&b));
}

TEST(chart_of_many_points_keeps_the_peak_and_both_ends)
{
	static uint64_t ns[POINTS], area[POINTS], line[POINTS];
	CLEANUP(buf_release) struct buf b = {0};
	struct chart c = make(ns, area, line, POINTS);
	area[3333] = 1234567890;
	chart_write(&b, &c);
	CHECK(is_well_formed(buf_sv(&b)));
	CHECK(strstr(buf_str(&b), ",1234567890,") != NULL);
	CHECK(strstr(buf_str(&b), "[67108864,") != NULL);
	CHECK(strstr(buf_str(&b), ",72227840]") != NULL); /* the last one */
	CHECK(b.n < (200 << 10));
}

TEST(chart_of_one_point_or_none_is_drawn)
{
	uint64_t ns[1], area[1], line[1];
	for (size_t n = 0; n < 2; n++) {
		CLEANUP(buf_release) struct buf b = {0};
		struct chart c = make(ns, area, line, n);
		chart_write(&b, &c);
		CHECK(is_well_formed(buf_sv(&b)));
		CHECK(!strstr(buf_str(&b), "nan") && !strstr(buf_str(&b), "inf"));
	}
	area[0] = line[0] = 0;
	ns[0] = 0;
	CLEANUP(buf_release) struct buf b = {0};
	struct chart c = make(ns, area, line, 1);
	area[0] = line[0] = 0;
	chart_write(&b, &c);
	CHECK(is_well_formed(buf_sv(&b)));
}
