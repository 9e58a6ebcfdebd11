/* base/text/jsonread: the same strings as jansson reads, and every damaged text is refused or ends. */
#include "base/base.h"
#include "tap.h"

#include <jansson.h>
#include <string.h>

#include "base/text/jsonread.h"

/* All strings of a value, with their keys, in the order of the text. */
static void collect(struct jsonread *j, struct buf *to)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf value = {0};
	struct jsonread before = *j;
	if (jsonread_str(j, &value)) {
		buf_addf(to, "'%s' ", buf_str(&value));
		return;
	}
	*j = before;
	if (jsonread_obj(j)) {
		while (jsonread_key(j, &key)) {
			buf_addf(to, "%s: ", buf_str(&key));
			collect(j, to);
		}
		return;
	}
	*j = before;
	if (jsonread_arr(j))
		while (jsonread_more(j))
			collect(j, to);
}

static void collect_jansson(json_t *v, struct buf *to)
{
	const char *key;
	json_t *value;
	size_t i;
	if (json_is_string(v))
		buf_addf(to, "'%s' ", json_string_value(v));
	else if (json_is_object(v))
		json_object_foreach(v, key, value)
		{
			buf_addf(to, "%s: ", key);
			collect_jansson(value, to);
		}
	else
		json_array_foreach(v, i, value) collect_jansson(value, to);
}

static const char *const texts[] = {
	"{}",
	" [ ] ",
	"\"x\"",
	"-1.5e+3",
	"{\"a\":[1,\"b\",null,{\"c\":true,\"d\":\"e\"},[[\"f\"]]],\"g\":\"\"}",
	"{\"esc\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83d\\ude00\"}",
	"[\"\xc3\xa9\", \"a]b}\", {\"]\":\"}\"}]",
};

TEST(jsonread_reads_the_strings_that_jansson_reads)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(buf_release) struct buf ours = {0};
		CLEANUP(buf_release) struct buf theirs = {0};
		struct jsonread j = jsonread_from(sv_from_str(texts[i]));
		collect(&j, &ours);
		json_t *v = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		CHECK(v != NULL && !jsonread_is_bad(&j));
		collect_jansson(v, &theirs);
		json_decref(v);
		CHECK_STR(buf_str(&ours), buf_str(&theirs));
	}
}

TEST(jsonread_fails_on_each_truncated_text)
{
	for (size_t i = 4; i < ARRAY_LEN(texts); i++)
		for (size_t n = 0; n < strlen(texts[i]); n++) {
			CLEANUP(buf_release) struct buf ours = {0};
			struct jsonread j = jsonread_from(sv_from(texts[i], n));
			collect(&j, &ours);
			CHECK(jsonread_is_bad(&j));
		}
}

TEST(jsonread_refuses_what_is_no_json)
{
	static const char *const bad[] = {"{\"a\" 1}",  "{a:1}",    "[\"\\x\"]", "[\"\\u12g4\"]",
					  "[\"a\nb\"]", "{\"a\":}", "[}",        "\"",
					  "\\"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(buf_release) struct buf ours = {0};
		struct jsonread j = jsonread_from(sv_from_str(bad[i]));
		collect(&j, &ours);
		if (!jsonread_is_bad(&j))
			tap_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
	}
}

TEST(jsonread_numbers_are_taken_and_everything_else_is_skipped)
{
	struct jsonread j = jsonread_from(SV("[1.5, -2e3, \"7\", null, 0, [1], 1x, 1e999, 3]"));
	static const double truth[] = {1.5, -2000, 0, 3};
	size_t n = 0;
	CHECK(jsonread_arr(&j));
	while (jsonread_more(&j)) {
		double v;
		if (jsonread_number(&j, &v))
			CHECK(n < ARRAY_LEN(truth) && v == truth[n++]);
	}
	CHECK(n == ARRAY_LEN(truth) && !jsonread_is_bad(&j));
}
