/* The HTML page of a benchmark: its charts, and that it is markup only. */
#include "base/base.h"
#include "tap.h"

#include "render/page/benchhtml.h"

static size_t count(const struct buf *b, const char *what)
{
	size_t n = 0;
	for (const char *p = b->p; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static void add_series(struct report *r, const char *name, const double *values, size_t nr,
		       const struct report_bin *bins, size_t nr_bins)
{
	static const char *const texts[] = {"1 ms", "2 ms", "4 ms"};
	vec_push(&r->series, ((struct report_series){.name = name,
						     .noun = "runs",
						     .values = values,
						     .texts = texts,
						     .nr = nr,
						     .min = values[0],
						     .median = values[nr / 2],
						     .max = values[nr - 1],
						     .min_text = texts[0],
						     .median_text = texts[1],
						     .max_text = "<4 ms>",
						     .bins = bins,
						     .nr_bins = nr_bins}));
}

TEST(benchhtml_has_charts_and_nothing_that_is_not_markup)
{
	static const double a[] = {1e6, 2e6, 4e6};
	static const double same[] = {3e6, 3e6};
	static const struct report_bin bins[] = {{"1 ms to 2 ms", 2}, {"2 ms to 4 ms", 1}};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	report_finding(r, "'%s' is slower", "<script>x</script>");
	add_series(r, "a <b>\"&", a, 3, bins, 2);
	add_series(r, "same", same, 2, NULL, 0);
	benchhtml_write(&b, r, "t</title><script>");
	CHECK(!strncmp(b.p, "<!DOCTYPE html>", 15));
	CHECK(!count(&b, "<script") && !count(&b, "<b>") && !count(&b, "<4"));
	CHECK(count(&b, "default-src 'none'; style-src") == 1);
	CHECK(count(&b, "<rect") == 2 && count(&b, "<circle") == 5 && count(&b, "<svg") == 3);
	CHECK(count(&b, "1 ms to 2 ms: 2 runs") == 1 && !count(&b, "nan"));
	CHECK(count(&b, "href=") == 0 && count(&b, "src=") == 0);
}
