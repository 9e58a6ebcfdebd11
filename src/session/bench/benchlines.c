/* Values that a program prints; see benchlines.h. */
#include "base/base.h"
#include "session/bench/benchlines.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void bench_lines_release(struct bench_lines *l)
{
	buf_release(&l->line);
	vec_release(&l->values);
	vec_release(&l->runs);
}

/* ns of a unit; 0: no unit of time. */
static double unit_ns(struct sv rest)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1},        {"us", 1e3},   {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3},
		     {"ms", 1e6},      {"s", 1e9},    {"sec", 1e9},       {"secs", 1e9},
		     {"seconds", 1e9}, {"min", 60e9}, {"m", 60e9}};
	size_t n = 0;
	rest = sv_trim(rest);
	while (n < rest.n && (isalpha((unsigned char)rest.p[n]) || rest.p[n] & 0x80))
		n++;
	if (n < rest.n && rest.p[n] == '/') /* a rate */
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (sv_eq_str(sv_from(rest.p, n), units[i].name))
			return units[i].ns;
	return 0;
}

static void take_line(struct bench_lines *l)
{
	struct sv group;
	struct sv rest;
	if (regex_capture(l->re, buf_sv(&l->line), &group, &rest)) {
		CLEANUP(free_p) char *text = xstrndup(group.p, group.n);
		char *end = text;
		double v = strtod(text, &end);
		double ns = unit_ns(rest);
		if (end == text || *end || !isfinite(v)) {
			l->nr_not_numbers++;
		} else {
			l->has_time |= ns > 0;
			l->has_plain |= !(ns > 0);
			vec_push(&l->values, ns > 0 ? v * ns : v);
			vec_push(&l->runs, l->run_idx);
		}
	}
	buf_clear(&l->line);
}

void bench_lines_add(struct bench_lines *l, const char *p, size_t n)
{
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t nr = end ? (size_t)(end - p) : n;
		if (l->line.n < BENCH_LINE_MAX)
			buf_add(&l->line, p, MIN(nr, BENCH_LINE_MAX - l->line.n));
		if (end) {
			take_line(l);
			nr++;
		}
		p += nr;
		n -= nr;
	}
}

void bench_lines_end(struct bench_lines *l)
{
	if (l->line.n)
		take_line(l);
}
