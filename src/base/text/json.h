/*
 * Streaming JSON writer; it inserts the commas. There is no JSON reader (tests use jansson).
 *
 *	struct json j = json_to(&buf);
 *	json_obj(&j); json_key(&j, "n"); json_u64(&j, 3); json_end(&j);
 */
#ifndef ASSAY_BASE_TEXT_JSON_H
#define ASSAY_BASE_TEXT_JSON_H

#include "base/base.h"
#include "base/buf.h"

struct json {
	struct buf *to;
	uint64_t is_array_bits; /* bit n: the object or array at depth n is an array */
	unsigned depth;         /* at most 63 */
	bool needs_comma;
	bool has_key;
};

struct json json_to(struct buf *to);
void json_obj(struct json *j);
void json_arr(struct json *j);
void json_end(struct json *j); /* closes the innermost object or array */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s);
void json_sv(struct json *j, struct sv s);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v, int decimals); /* null for NaN and infinities */
void json_null(struct json *j);
void json_raw(struct json *j, const char *literal); /* a number, true, false or null */
void json_millis(struct json *j, uint64_t ns);      /* milliseconds, exact to the ns: 1.5 */

/* Write a key and its value. */
void json_put_str(struct json *j, const char *key, const char *s);
void json_put_sv(struct json *j, const char *key, struct sv s);
void json_put_u64(struct json *j, const char *key, uint64_t v);
void json_put_i64(struct json *j, const char *key, int64_t v);
void json_put_double(struct json *j, const char *key, double v, int decimals);
void json_put_bool(struct json *j, const char *key, bool v);
void json_put_obj(struct json *j, const char *key); /* opens the object; json_end closes it */
void json_put_arr(struct json *j, const char *key);

#endif
