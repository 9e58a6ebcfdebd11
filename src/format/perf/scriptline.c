/* Lines of `perf script` text; see scriptline.h. */
#include "base/base.h"
#include "format/perf/scriptline.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct sv skip_blanks(struct sv s)
{
	while (s.n && is_blank(s.p[0]))
		s = sv_from_idx(s, 1);
	return s;
}

static struct sv drop_trailing_blanks(struct sv s)
{
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* Returns the next word and moves *s past it and the blanks after it. */
static struct sv take_token(struct sv *s)
{
	size_t n = 0;
	while (n < s->n && !is_blank(s->p[n]))
		n++;
	struct sv token = sv_from(s->p, n);
	*s = skip_blanks(sv_from_idx(*s, n));
	return token;
}

/* "-12" or "12", below 2^31. */
static bool take_i32(struct sv *s, int32_t *ret_v)
{
	size_t i = s->n && s->p[0] == '-';
	size_t first = i;
	int64_t v = 0;
	for (; i < s->n && is_digit(s->p[i]); i++) {
		v = v * 10 + (s->p[i] - '0');
		if (v > INT32_MAX)
			return false;
	}
	if (i == first)
		return false;
	*ret_v = (int32_t)(first ? -v : v);
	*s = sv_from_idx(*s, i);
	return true;
}

/* "123" or "123/456". */
static bool parse_ids(struct sv token, struct script_event *e)
{
	e->pid = -1;
	if (!take_i32(&token, &e->tid))
		return false;
	if (!token.n)
		return true;
	if (token.p[0] != '/')
		return false;
	token = sv_from_idx(token, 1);
	e->pid = e->tid;
	return take_i32(&token, &e->tid) && !token.n;
}

/* "[003]" */
static bool parse_cpu(struct sv token, int32_t *ret_cpu)
{
	if (token.n < 3 || token.p[0] != '[' || token.p[token.n - 1] != ']')
		return false;
	struct sv digits = sv_from(token.p + 1, token.n - 2);
	return take_i32(&digits, ret_cpu) && !digits.n;
}

/* "2184.274461:", three to nine decimals. */
static bool parse_time(struct sv token, uint64_t *ret_ns)
{
	if (token.n < 6 || token.p[token.n - 1] != ':' || !is_digit(token.p[0]))
		return false;
	uint64_t sec = 0;
	size_t i = 0;
	for (; i < token.n && is_digit(token.p[i]); i++) {
		sec = sec * 10 + (uint64_t)(token.p[i] - '0');
		if (sec > INT64_MAX / 1000000000 - 1)
			return false;
	}
	if (token.p[i] != '.')
		return false;
	size_t nr_decimals = token.n - 2 - i;
	if (nr_decimals < 3 || nr_decimals > 9)
		return false;
	uint64_t frac = 0;
	for (i++; i < token.n - 1; i++) {
		if (!is_digit(token.p[i]))
			return false;
		frac = frac * 10 + (uint64_t)(token.p[i] - '0');
	}
	for (; nr_decimals < 9; nr_decimals++)
		frac *= 10;
	*ret_ns = sec * 1000000000 + frac;
	return true;
}

/* -F +misc: one letter per flag, "U", "Kh", "EF". */
static bool is_misc(struct sv token)
{
	if (!token.n || token.n > 6)
		return false;
	for (size_t i = 0; i < token.n; i++)
		if ((token.p[i] | 0x20) < 'a' || (token.p[i] | 0x20) > 'z')
			return false;
	return true;
}

/* Names with control characters are rejected: the writer would change them. */
static bool is_printable(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	return true;
}

static bool can_start_event(char c)
{
	char lower = c | 0x20;
	return (lower >= 'a' && lower <= 'z') || c == '_' || c == '{';
}

/* A token, where it begins, and what follows it. */
struct place {
	struct sv at;
	struct sv token;
	struct sv left;
};

static struct place place_at(struct sv s)
{
	struct place p = {.at = s, .left = s};
	p.token = take_token(&p.left);
	return p;
}

/* What follows pid: [cpu] misc time: period event: rest. */
static bool parse_after_ids(struct sv s, unsigned flags, struct script_event *e)
{
	struct place p = place_at(s);
	bool has_anchor = false;
	e->cpu = -1;
	e->has_time = e->has_period = false;
	e->time_ns = 0;
	e->period = 0;
	if (is_misc(p.token))
		p = place_at(p.left);
	if (parse_cpu(p.token, &e->cpu)) {
		has_anchor = true;
		p = place_at(p.left);
	}
	if (is_misc(p.token))
		p = place_at(p.left);
	if (parse_time(p.token, &e->time_ns)) {
		has_anchor = e->has_time = true;
		p = place_at(p.left);
	}
	if (!has_anchor && flags & SCRIPT_NEED_CPU_OR_TIME)
		return false;
	if (sv_to_u64(p.token, &e->period)) {
		e->has_period = true;
		p = place_at(p.left);
	}
	struct sv token = p.token;
	if (token.n >= 2 && token.p[token.n - 1] == ':' && can_start_event(token.p[0]) &&
	    is_printable(token)) {
		e->event = sv_from(token.p, token.n - 1);
		e->rest = drop_trailing_blanks(p.left);
		return true;
	}
	/* no event name: it is an event only with a time, followed by nothing or a frame */
	struct script_frame frame;
	if (!e->has_time || e->has_period || (p.at.n && !script_parse_frame(p.at, &frame)))
		return false;
	e->event = (struct sv){0};
	e->rest = drop_trailing_blanks(p.at);
	return true;
}

bool script_parse_event(struct sv line, unsigned flags, struct script_event *ret_e)
{
	line = skip_blanks(line);
	struct script_event e = {0};
	/* comm ends at the leftmost place from which the rest of the line parses */
	for (struct sv at = line; at.n;) {
		struct sv left = at;
		struct sv token = take_token(&left);
		char c = token.p[0];
		e.comm = drop_trailing_blanks(sv_from(line.p, (size_t)(at.p - line.p)));
		bool can_start = is_digit(c) || c == '-' || c == '[';
		if (can_start && parse_ids(token, &e) && parse_after_ids(left, flags, &e)) {
			*ret_e = e;
			return true;
		}
		e.pid = e.tid = -1;
		if (can_start && e.comm.n && parse_after_ids(at, SCRIPT_NEED_CPU_OR_TIME, &e)) {
			*ret_e = e;
			return true;
		}
		at = left;
	}
	return false;
}

/* Index of the parenthesis that matches the one at the end of s, or -1. */
static ssize_t find_group(struct sv s)
{
	size_t depth = 0;
	for (size_t i = s.n; i--;) {
		if (s.p[i] == ')')
			depth++;
		if (s.p[i] == '(' && --depth == 0)
			return i == 0 || is_blank(s.p[i - 1]) ? (ssize_t)i : -1;
	}
	return -1;
}

/* For a path with an unbalanced parenthesis: the last " (" before a slash or a bracket. */
static ssize_t find_open_path(struct sv s)
{
	for (size_t i = s.n; i-- > 2;)
		if (is_blank(s.p[i - 2]) && s.p[i - 1] == '(' && (s.p[i] == '/' || s.p[i] == '['))
			return (ssize_t)i - 1;
	return -1;
}

/* Cuts "+0x1a2b" off the end. */
static struct sv drop_offset(struct sv s)
{
	size_t i = s.n;
	while (i && hex_value(s.p[i - 1]) >= 0)
		i--;
	if (i == s.n || i < 3 || s.p[i - 1] != 'x' || s.p[i - 2] != '0' || s.p[i - 3] != '+')
		return s;
	return sv_from(s.p, i - 3);
}

static bool is_unknown(struct sv s)
{
	return !s.n || sv_eq(s, SV("[unknown]"));
}

bool script_parse_frame(struct sv line, struct script_frame *ret_f)
{
	struct sv s = drop_trailing_blanks(skip_blanks(line));
	struct sv rest = s;
	struct sv token = take_token(&rest);
	struct script_frame f = {0};
	if (!token.n || token.n > 16)
		return false;
	for (size_t i = 0; i < token.n; i++) {
		int digit = hex_value(token.p[i]);
		if (digit < 0)
			return false;
		f.ip = f.ip << 4 | (unsigned)digit;
	}
	ssize_t open = -1;
	if (rest.n && rest.p[rest.n - 1] == ')') {
		open = find_group(rest);
		if (open < 0)
			open = find_open_path(rest);
	}
	if (open >= 0) {
		f.dso = sv_from(rest.p + open + 1, rest.n - (size_t)open - 2);
		rest.n = (size_t)open;
	}
	f.is_inlined = open >= 0 && sv_eq(f.dso, SV("inlined"));
	f.is_inferred = open >= 0 && sv_eq(f.dso, SV("tail-call"));
	f.dso = drop_offset(f.dso);
	if (f.is_inlined || f.is_inferred || is_unknown(f.dso))
		f.dso = (struct sv){0};
	f.symbol = drop_offset(drop_trailing_blanks(rest));
	if (is_unknown(f.symbol))
		f.symbol = (struct sv){0};
	*ret_f = f;
	return true;
}

bool script_parse_source(struct sv line, struct script_source *ret_s)
{
	struct sv s = drop_trailing_blanks(skip_blanks(line));
	struct script_source src = {.is_inlined = sv_has_suffix(s, SV(" (inlined)"))};
	if (src.is_inlined)
		s = drop_trailing_blanks(sv_from(s.p, s.n - SV(" (inlined)").n));
	ssize_t colon = sv_rindex(s, ':');
	uint64_t nr;
	if (colon <= 0 || !sv_to_u64(sv_from_idx(s, (size_t)colon + 1), &nr) || nr > UINT32_MAX)
		return false;
	src.file = sv_from(s.p, (size_t)colon);
	src.line = (uint32_t)nr;
	if (sv_eq(src.file, SV("??")))
		src.file = (struct sv){0};
	*ret_s = src;
	return true;
}
