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

static int add_named(struct bench_patterns *p, struct arena *a, struct sv name,
		     struct bench_pattern one, struct err *err)
{
	one.name = arena_strndup(a, name.p, name.n);
	vec_foreach(other, p)
		if (!strcmp(other->name, one.name)) {
			regex_free(one.re);
			return err_set(err, -EINVAL, "two phases have the name '%s'", one.name);
		}
	vec_push(p, one);
	return 0;
}

int bench_patterns_add_phase(struct bench_patterns *p, struct arena *a, const char *text,
			     struct err *err)
{
	const char *regex = strchrnul(text, '=');
	/* a pattern whose name was forgotten is no name that a program marks */
	if (regex == text || (!*regex && strpbrk(text, "()[]{}*+?\\^$|")))
		return err_set(err, -EINVAL, "--phase '%s': expected NAME or NAME=REGEX", text);
	struct regex *re = NULL;
	if (*regex)
		TRY(regex_new(&re, regex + 1, 0, err));
	return add_named(
		p, a, sv_from(text, (size_t)(regex - text)),
		(struct bench_pattern){.re = re, .is_boundary = re && !regex_has_group(re)}, err);
}

int bench_patterns_add_function(struct bench_patterns *p, struct arena *a, const char *text,
				struct err *err)
{
	const char *function = strchr(text, '=');
	if (!function || function == text || !function[1])
		return err_set(err, -EINVAL, "--phase-function '%s': expected NAME=FUNCTION", text);
	return add_named(p, a, sv_from(text, (size_t)(function - text)),
			 (struct bench_pattern){.function = arena_strdup(a, function + 1)}, err);
}

bool bench_patterns_has_lines(const struct bench_patterns *p)
{
	vec_foreach(one, p)
		if (one->re)
			return true;
	return false;
}

bool bench_patterns_has_marks(const struct bench_patterns *p)
{
	vec_foreach(one, p)
		if (!one->re && !one->function)
			return true;
	return false;
}

bool bench_patterns_has_bounds(const struct bench_patterns *p)
{
	vec_foreach(one, p)
		if (!one->re || one->is_boundary)
			return true;
	return false;
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
		vec_release(&l->values[i].counts);
		l->values[i] = (struct bench_values){0};
	}
	l->nr_unknown = 0;
	vec_foreach(mark, &l->unknown)
		free(*mark);
	vec_release(&l->unknown);
}

void bench_lines_release(struct bench_lines *l)
{
	buf_release(&l->line);
	buf_release(&l->mark);
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

/* A moment at which phases begin and end. */
struct moment {
	uint64_t at_ns;
	bool has_counts;
	struct counter_value counts[BENCH_COUNTERS_MAX];
};

static void moment_init(struct moment *m, const struct bench_lines *l, uint64_t at_ns)
{
	m->at_ns = at_ns;
	memset(m->counts, 0, sizeof(m->counts));
	m->has_counts = l->count && l->count(l->count_ctx, m->counts);
}

static void add_counts(struct bench_lines *l, struct bench_values *to, const struct moment *now)
{
	if (!to->has_start || !now->has_counts)
		return;
	while (to->counts.n <= l->run_idx)
		(void)vec_add(&to->counts);
	struct bench_counts *c = &to->counts.p[l->run_idx];
	c->nr++;
	for (size_t i = 0; i < BENCH_COUNTERS_MAX; i++) {
		c->v[i].value += now->counts[i].value - to->start[i].value;
		c->v[i].enabled_ns += now->counts[i].enabled_ns - to->start[i].enabled_ns;
		c->v[i].running_ns += now->counts[i].running_ns - to->start[i].running_ns;
	}
}

static void close_phase(struct bench_lines *l, size_t idx, const struct moment *now)
{
	struct bench_values *to = &l->values[idx];
	uint64_t at_ns = now->at_ns;
	if (!to->open_ns)
		return;
	add_counts(l, to, now);
	to->nr_at_once += l->patterns->p[idx].is_boundary && at_ns == to->open_ns;
	/* what a program prints last may be read after its end */
	add_value(l, to, at_ns > to->open_ns ? (double)(at_ns - to->open_ns) : 0, true);
	to->open_ns = 0;
}

static void begin_phase(struct bench_lines *l, size_t idx, const struct moment *now)
{
	struct bench_values *to = &l->values[idx];
	for (size_t i = 0; i < l->patterns->n; i++)
		if (i == idx || (l->patterns->p[i].is_boundary && l->patterns->p[idx].is_boundary))
			close_phase(l, i, now);
	to->open_ns = now->at_ns;
	to->has_start = now->has_counts;
	memcpy(to->start, now->counts, sizeof(to->start));
}

static void take_line(struct bench_lines *l, uint64_t at_ns)
{
	struct sv line = buf_sv(&l->line);
	struct sv group;
	struct sv rest;
	for (size_t i = 0; i < l->patterns->n; i++) {
		const struct bench_pattern *p = &l->patterns->p[i];
		if (p->is_boundary && regex_match(p->re, line)) {
			struct moment now;
			moment_init(&now, l, at_ns);
			begin_phase(l, i, &now);
		} else if (!p->is_boundary && p->re && regex_capture(p->re, line, &group, &rest)) {
			take_number(l, &l->values[i], group, rest);
		}
	}
	buf_clear(&l->line);
}

/* The time in a mark, if it can be one of this run; else when it was read. */
static uint64_t mark_time(const struct bench_lines *l, struct sv text, uint64_t at_ns)
{
	double s;
	bool is_own =
		sv_to_double(text, &s) && s * 1e9 > (double)l->end_ns && s * 1e9 <= (double)at_ns;
	return is_own ? (uint64_t)llround(s * 1e9) : at_ns;
}

static void add_unknown(struct bench_lines *l, struct sv mark)
{
	mark.n = MIN(mark.n, (size_t)BENCH_UNKNOWN_CUT);
	l->nr_unknown++;
	vec_foreach(other, &l->unknown)
		if (sv_eq_str(mark, *other))
			return;
	if (l->unknown.n < BENCH_UNKNOWN_MAX)
		vec_push(&l->unknown, xstrndup(mark.p, mark.n));
}

/* "NAME begin", "NAME end 12345.678" */
static void take_mark(struct bench_lines *l, uint64_t at_ns)
{
	struct sv line = sv_trim(buf_sv(&l->mark));
	bool is_known = false;
	for (size_t i = 0; i < l->patterns->n; i++) {
		const struct bench_pattern *p = &l->patterns->p[i];
		struct sv rest = sv_from_idx(line, p->re ? 0 : strlen(p->name));
		if (p->re || !sv_has_prefix(line, sv_from_str(p->name)) ||
		    !sv_has_prefix(rest, SV(" ")))
			continue;
		rest = sv_trim(rest);
		struct sv word = sv_split(&rest, ' ');
		bool is_end = sv_eq_str(word, "end");
		if (!is_end && !sv_eq_str(word, "begin"))
			continue;
		struct moment now;
		moment_init(&now, l, mark_time(l, sv_trim(rest), at_ns));
		is_known = true;
		l->values[i].nr_unopened += is_end && !l->values[i].open_ns;
		(is_end ? close_phase : begin_phase)(l, i, &now);
	}
	if (!is_known)
		add_unknown(l, line);
	buf_clear(&l->mark);
}

static void add_lines(struct bench_lines *l, struct buf *line, const char *p, size_t n,
		      uint64_t at_ns, void (*take)(struct bench_lines *l, uint64_t at_ns))
{
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t nr = end ? (size_t)(end - p) : n;
		if (line->n < BENCH_LINE_MAX)
			buf_add(line, p, MIN(nr, BENCH_LINE_MAX - line->n));
		if (end) {
			take(l, at_ns);
			nr++;
		}
		p += nr;
		n -= nr;
	}
}

void bench_lines_add(struct bench_lines *l, const char *p, size_t n, uint64_t at_ns)
{
	add_lines(l, &l->line, p, n, at_ns, take_line);
}

void bench_lines_add_marks(struct bench_lines *l, const char *p, size_t n, uint64_t at_ns)
{
	add_lines(l, &l->mark, p, n, at_ns, take_mark);
}

void bench_lines_end(struct bench_lines *l, uint64_t end_ns)
{
	if (l->line.n)
		take_line(l, end_ns);
	if (l->mark.n)
		take_mark(l, end_ns);
	struct moment end;
	moment_init(&end, l, end_ns);
	for (size_t i = 0; i < l->patterns->n; i++) {
		l->values[i].nr_unended += !l->patterns->p[i].re && l->values[i].open_ns;
		close_phase(l, i, &end);
	}
	l->end_ns = end_ns;
}
