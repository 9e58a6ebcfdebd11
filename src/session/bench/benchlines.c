/* Values and phases in a program's output; see benchlines.h. */
#include "base/base.h"
#include "session/bench/benchlines.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void bench_patterns_release(struct bench_patterns *p)
{
	vec_foreach(one, p)
		regex_free(one->re);
	vec_release(p);
}

int bench_patterns_add_phase(struct bench_patterns *p, struct arena *a, const char *text,
			     struct err *err)
{
	const char *regex = strchr(text, '=');
	if (!regex || regex == text)
		return err_set(err, -EINVAL, "--phase '%s': expected NAME=REGEX", text);
	const char *name = arena_strndup(a, text, (size_t)(regex - text));
	vec_foreach(other, p)
		if (!strcmp(other->name, name))
			return err_set(err, -EINVAL, "two phases have the name '%s'", name);
	struct regex *re;
	TRY(regex_new(&re, regex + 1, 0, err));
	vec_push(p, (struct bench_pattern){name, re, !regex_has_group(re)});
	return 0;
}

int bench_patterns_add_each(struct bench_patterns *p, const char *regex, struct err *err)
{
	struct regex *re;
	TRY(regex_new(&re, regex, 0, err));
	vec_push(p, (struct bench_pattern){.re = re});
	return regex_has_group(re)
		       ? 0
		       : err_set(err, -EINVAL, "--each '%s' has no group (...) around the number",
				 regex);
}

void bench_lines_init(struct bench_lines *l, const struct bench_patterns *patterns)
{
	*l = (struct bench_lines){.patterns = patterns,
				  .values = xcalloc(patterns->n, sizeof(*l->values))};
}

void bench_lines_clear(struct bench_lines *l)
{
	for (size_t i = 0; i < l->patterns->n; i++) {
		vec_release(&l->values[i].values);
		vec_release(&l->values[i].runs);
		l->values[i] = (struct bench_values){0};
	}
}

void bench_lines_release(struct bench_lines *l)
{
	buf_release(&l->line);
	if (l->values)
		bench_lines_clear(l);
	free(l->values);
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

static void add_value(struct bench_lines *l, struct bench_values *to, double v, bool is_time)
{
	to->has_time |= is_time;
	to->has_plain |= !is_time;
	vec_push(&to->values, v);
	vec_push(&to->runs, l->run_idx);
}

static void take_number(struct bench_lines *l, struct bench_values *to, struct sv group,
			struct sv rest)
{
	CLEANUP(free_p) char *text = xstrndup(group.p, group.n);
	char *end = text;
	double v = strtod(text, &end);
	double ns = unit_ns(rest);
	if (end == text || *end || !isfinite(v))
		to->nr_not_numbers++;
	else
		add_value(l, to, ns > 0 ? v * ns : v, ns > 0);
}

static void close_phase(struct bench_lines *l, uint64_t at_ns)
{
	struct bench_values *to = &l->values[l->open];
	if (!l->open_ns)
		return;
	to->nr_at_once += at_ns == l->open_ns;
	/* what a program prints last may be read after its end */
	add_value(l, to, at_ns > l->open_ns ? (double)(at_ns - l->open_ns) : 0, true);
	l->open_ns = 0;
}

static void take_line(struct bench_lines *l, uint64_t at_ns)
{
	struct sv line = buf_sv(&l->line);
	struct sv group;
	struct sv rest;
	for (size_t i = 0; i < l->patterns->n; i++) {
		const struct bench_pattern *p = &l->patterns->p[i];
		if (p->is_boundary && regex_match(p->re, line)) {
			close_phase(l, at_ns);
			l->open = i;
			l->open_ns = at_ns;
		} else if (!p->is_boundary && regex_capture(p->re, line, &group, &rest)) {
			take_number(l, &l->values[i], group, rest);
		}
	}
	buf_clear(&l->line);
}

void bench_lines_add(struct bench_lines *l, const char *p, size_t n, uint64_t at_ns)
{
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t nr = end ? (size_t)(end - p) : n;
		if (l->line.n < BENCH_LINE_MAX)
			buf_add(&l->line, p, MIN(nr, BENCH_LINE_MAX - l->line.n));
		if (end) {
			take_line(l, at_ns);
			nr++;
		}
		p += nr;
		n -= nr;
	}
}

void bench_lines_end(struct bench_lines *l, uint64_t end_ns)
{
	if (l->line.n)
		take_line(l, end_ns);
	close_phase(l, end_ns);
}
