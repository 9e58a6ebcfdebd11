/* JSON writer; see json.h. */
#include "base/base.h"
#include "base/text/json.h"

#include <math.h>

#include "base/text/escape.h"

struct json json_to(struct buf *to)
{
	return (struct json){.to = to};
}

static void before_value(struct json *j)
{
	bool in_array = j->depth && (j->is_array_bits >> (j->depth - 1) & 1);
	ASSERT(!j->depth || in_array || j->has_key);
	if (in_array && j->needs_comma)
		buf_add_ch(j->to, ',');
	j->needs_comma = true;
	j->has_key = false;
}

static void open_nested(struct json *j, char c, bool is_array)
{
	before_value(j);
	ASSERT(j->depth < 64);
	buf_add_ch(j->to, c);
	j->is_array_bits &= ~((uint64_t)1 << j->depth);
	j->is_array_bits |= (uint64_t)is_array << j->depth;
	j->depth++;
	j->needs_comma = false;
}

void json_obj(struct json *j)
{
	open_nested(j, '{', false);
}

void json_arr(struct json *j)
{
	open_nested(j, '[', true);
}

void json_end(struct json *j)
{
	ASSERT(j->depth && !j->has_key);
	j->depth--;
	buf_add_ch(j->to, (j->is_array_bits >> j->depth & 1) ? ']' : '}');
	j->needs_comma = true;
}

void json_key(struct json *j, const char *key)
{
	ASSERT(j->depth && !(j->is_array_bits >> (j->depth - 1) & 1) && !j->has_key);
	if (j->needs_comma)
		buf_add_ch(j->to, ',');
	buf_add_ch(j->to, '"');
	escape_json(j->to, sv_from_str(key));
	buf_add_str(j->to, "\":");
	j->has_key = true;
}

void json_sv(struct json *j, struct sv s)
{
	before_value(j);
	buf_add_ch(j->to, '"');
	escape_json(j->to, s);
	buf_add_ch(j->to, '"');
}

void json_str(struct json *j, const char *s)
{
	json_sv(j, sv_from_str(s));
}

void json_u64(struct json *j, uint64_t v)
{
	before_value(j);
	buf_add_u64(j->to, v);
}

void json_i64(struct json *j, int64_t v)
{
	before_value(j);
	if (v < 0)
		buf_add_ch(j->to, '-');
	buf_add_u64(j->to, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_double(struct json *j, double v, int decimals)
{
	before_value(j);
	if (!isfinite(v))
		buf_add_str(j->to, "null");
	else
		buf_addf(j->to, "%.*f", decimals, v);
}

void json_null(struct json *j)
{
	before_value(j);
	buf_add_str(j->to, "null");
}

void json_raw(struct json *j, const char *literal)
{
	before_value(j);
	buf_add_str(j->to, literal);
}

void json_millis(struct json *j, uint64_t ns)
{
	before_value(j);
	buf_add_u64(j->to, ns / 1000000);
	uint32_t rest = (uint32_t)(ns % 1000000);
	if (!rest)
		return;
	char digits[8] = ".";
	size_t n = 1;
	for (uint32_t unit = 100000; rest; unit /= 10) {
		digits[n++] = (char)('0' + rest / unit);
		rest %= unit;
	}
	buf_add(j->to, digits, n);
}

void json_put_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_put_sv(struct json *j, const char *key, struct sv s)
{
	json_key(j, key);
	json_sv(j, s);
}

void json_put_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

void json_put_i64(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_i64(j, v);
}

void json_put_double(struct json *j, const char *key, double v, int decimals)
{
	json_key(j, key);
	json_double(j, v, decimals);
}

void json_put_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	before_value(j);
	buf_add_str(j->to, v ? "true" : "false");
}

void json_put_obj(struct json *j, const char *key)
{
	json_key(j, key);
	json_obj(j);
}

void json_put_arr(struct json *j, const char *key)
{
	json_key(j, key);
	json_arr(j);
}
