/* Numbers as text; see num.h. */
#include "base/base.h"
#include "base/text/num.h"

#include <math.h>

void num_add_count(struct buf *to, uint64_t v)
{
	char tmp[32];
	size_t at = sizeof(tmp);
	unsigned nr_digits = 0;
	do {
		if (nr_digits && nr_digits % 3 == 0)
			tmp[--at] = ',';
		tmp[--at] = (char)('0' + v % 10);
		v /= 10;
		nr_digits++;
	} while (v);
	buf_add(to, tmp + at, sizeof(tmp) - at);
}

static const uint64_t pow10_of[] = {1,      10,      100,      1000,      10000,
				    100000, 1000000, 10000000, 100000000, 1000000000};

static void add_fraction(struct buf *to, uint64_t frac, int decimals)
{
	char tmp[16];
	for (int i = decimals - 1; i >= 0; i--) {
		tmp[i] = (char)('0' + frac % 10);
		frac /= 10;
	}
	buf_add_ch(to, '.');
	buf_add(to, tmp, (size_t)decimals);
}

void num_add_double(struct buf *to, double v, int decimals)
{
	ASSERT(decimals >= 0 && decimals <= 9);
	if (isnan(v)) {
		buf_add_str(to, "nan");
		return;
	}
	bool is_negative = v < 0;
	double a = fabs(v);
	if (isinf(v)) {
		buf_add_str(to, is_negative ? "-inf" : "inf");
		return;
	}
	uint64_t scale = pow10_of[decimals];
	if (a >= 9e18) { /* whole numbers from here on */
		buf_addf(to, "%.0f", v);
		if (decimals)
			add_fraction(to, 0, decimals);
		return;
	}
	uint64_t whole = (uint64_t)a;
	uint64_t frac = (uint64_t)llround((a - (double)whole) * (double)scale);
	if (frac >= scale) {
		whole++;
		frac -= scale;
	}
	if (is_negative && (whole || frac))
		buf_add_ch(to, '-');
	buf_add_u64(to, whole);
	if (decimals)
		add_fraction(to, frac, decimals);
}

/* A double with more digits is truncated. */
static struct num_text text_of(const struct buf *b)
{
	struct num_text text = {0};
	memcpy(text.s, buf_str(b), MIN(b->n, sizeof(text.s) - 1));
	return text;
}

/* Three significant digits of v (at least 1, below 1000 after rounding is the caller's care). */
static int decimals_for_three(double v)
{
	return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

static void add_with_unit(struct buf *to, uint64_t v, uint64_t step, const char *const *names,
			  size_t nr_names)
{
	if (v < step) {
		buf_add_u64(to, v);
		if (names[0][0])
			buf_addf(to, " %s", names[0]);
		return;
	}
	double x = (double)v;
	size_t i = 0;
	/* 999.6 k would print as "1000 k": such values take the next unit */
	while (i + 1 < nr_names && x >= (i ? 999.5 : (double)step)) {
		x /= (double)step;
		i++;
	}
	num_add_double(to, x, decimals_for_three(x));
	buf_addf(to, " %s", names[i]);
}

void num_add_short(struct buf *to, uint64_t v)
{
	static const char *const names[] = {"", "k", "M", "G", "T", "P", "E"};
	add_with_unit(to, v, 1000, names, ARRAY_LEN(names));
}

void num_add_bytes(struct buf *to, uint64_t v)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	add_with_unit(to, v, 1024, names, ARRAY_LEN(names));
}

void num_add_ns(struct buf *to, uint64_t ns)
{
	static const char *const names[] = {"ns", "us", "ms", "s"};
	const uint64_t sec_ns = 1000000000;
	if (ns < 60 * sec_ns - sec_ns / 20) {
		add_with_unit(to, ns, 1000, names, ARRAY_LEN(names));
		return;
	}
	uint64_t sec = ns / sec_ns + (ns % sec_ns >= sec_ns / 2);
	if (sec < 3600) {
		buf_addf(to, "%" PRIu64 "m %02" PRIu64 "s", sec / 60, sec % 60);
		return;
	}
	uint64_t min = sec / 60;
	buf_addf(to, "%" PRIu64 "h %02" PRIu64 "m", min / 60, min % 60);
}

void num_add_pct(struct buf *to, double pct)
{
	double a = fabs(pct);
	if (pct == 0) {
		buf_add_ch(to, '0');
		return;
	}
	if (pct == 100) {
		buf_add_str(to, "100");
		return;
	}
	if (a < 0.0005) {
		buf_add_str(to, pct < 0 ? ">-0.001" : "<0.001");
		return;
	}
	num_add_double(to, pct, a < 0.0995 ? 3 : a < 9.995 ? 2 : a < 999.95 ? 1 : 0);
}

bool num_parse_scaled(struct sv s, uint64_t unit, uint64_t *ret_v)
{
	struct sv frac = s;
	bool has_point = sv_index(s, '.') >= 0;
	struct sv whole = sv_split(&frac, '.');
	uint64_t v = 0;
	if ((whole.n && !sv_to_u64(whole, &v)) || __builtin_mul_overflow(v, unit, &v))
		return false;
	if (!has_point)
		frac = (struct sv){0};
	if (!whole.n && !frac.n)
		return false;
	/* digit by digit: each is worth a tenth of the one before */
	unsigned __int128 part = 0;
	unsigned __int128 div = 1;
	for (size_t i = 0; i < frac.n; i++) {
		if (frac.p[i] < '0' || frac.p[i] > '9')
			return false;
		if (i >= 18)
			continue; /* below any unit */
		part = part * 10 + (unsigned)(frac.p[i] - '0');
		div *= 10;
	}
	if (__builtin_add_overflow(v, (uint64_t)(part * unit / div), &v))
		return false;
	*ret_v = v;
	return true;
}

static bool unit_of_letter(char c, uint64_t step, uint64_t *ret_unit)
{
	static const char letters[] = "kmgtp";
	const char *at = c ? strchr(letters, c | 0x20) : NULL;
	if (!at)
		return false;
	uint64_t unit = step;
	for (const char *p = letters; p < at; p++)
		unit *= step;
	*ret_unit = unit;
	return true;
}

static struct sv take_number(struct sv *s)
{
	struct sv number = sv_take(s, "0123456789.");
	(void)sv_take(s, " ");
	return number;
}

bool num_parse_bytes(struct sv s, uint64_t *ret_bytes)
{
	struct sv number = take_number(&s);
	uint64_t unit = 1;
	if (s.n && (s.p[0] | 0x20) != 'b') {
		bool is_si = s.n == 2 && (s.p[1] | 0x20) == 'b';
		if (!unit_of_letter(s.p[0], is_si ? 1000 : 1024, &unit))
			return false;
		s = sv_from_idx(s, 1);
		if (s.n == 2 && (s.p[0] | 0x20) == 'i')
			s = sv_from_idx(s, 1);
	}
	if (s.n && (s.n != 1 || (s.p[0] | 0x20) != 'b'))
		return false;
	return num_parse_scaled(number, unit, ret_bytes);
}

bool num_parse_count(struct sv s, uint64_t *ret_v)
{
	struct sv number = take_number(&s);
	uint64_t unit = 1;
	if (s.n > 1 || (s.n == 1 && !unit_of_letter(s.p[0], 1000, &unit)))
		return false;
	return num_parse_scaled(number, unit, ret_v);
}

struct num_text num_count(uint64_t v)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_count(&b, v);
	return text_of(&b);
}

/* Nouns whose plural ends with "es": "processes", "switches", "misses". */
static bool has_plural_es(struct sv s)
{
	return sv_has_suffix(s, SV("sses")) || sv_has_suffix(s, SV("ches"));
}

struct num_text num_noun(uint64_t v, const char *plural)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct sv s = sv_from_str(plural);
	num_add_count(&b, v);
	const char *end = "";
	bool is_one = v == 1 && !strstr(plural, " and "); /* "samples and waits" stays */
	if (is_one && sv_has_suffix(s, SV("ies"))) {
		s.n -= 3;
		end = "y";
	} else if (is_one && sv_has_suffix(s, SV("s"))) {
		s.n -= has_plural_es(s) ? 2 : 1;
	}
	buf_addf(&b, " %.*s%s", SV_ARGS(s), end);
	return text_of(&b);
}

struct num_text num_bytes(uint64_t v)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_bytes(&b, v);
	return text_of(&b);
}

struct num_text num_ns(uint64_t ns)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_ns(&b, ns);
	return text_of(&b);
}

struct num_text num_pct(double pct)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_pct(&b, pct);
	return text_of(&b);
}

struct num_text num_double(double v, int decimals)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_double(&b, v, decimals);
	return text_of(&b);
}
