/*
 * Reads JSON (RFC 8259) step by step, without a tree in memory and without recursion, from text that
 * is not trusted. Each call either consumes one step or fails; after a failure all calls return false
 * and jsonread_is_bad is true. A value that is of no interest is skipped: of it only the strings and
 * the number of brackets are checked.
 *
 *	struct jsonread j = jsonread_from(text);
 *	if (jsonread_obj(&j))
 *		while (jsonread_key(&j, &key))
 *			if (!strcmp(buf_str(&key), "name"))
 *				(void)jsonread_str(&j, &name);
 *			else
 *				jsonread_skip(&j);
 */
#ifndef ASSAY_BASE_TEXT_JSONREAD_H
#define ASSAY_BASE_TEXT_JSONREAD_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

struct jsonread {
	struct sv left;
	bool is_bad;
};

struct jsonread jsonread_from(struct sv text);
bool jsonread_is_bad(const struct jsonread *j);
/* Enter the next value if it is an object (array); else skip it and return false. */
bool jsonread_obj(struct jsonread *j);
bool jsonread_arr(struct jsonread *j);
/* Replaces @key by the next key of the object, whose value is next; false: the object has ended. */
bool jsonread_key(struct jsonread *j, struct buf *key);
/* Whether the array has another value, which is next; false: the array has ended. */
bool jsonread_more(struct jsonread *j);
/* Replaces @to by the next value if it is a string, in UTF-8; else skips it and returns false. */
bool jsonread_str(struct jsonread *j, struct buf *to);
/* The next value if it is a number; else skips it and returns false. */
bool jsonread_number(struct jsonread *j, double *ret);
void jsonread_skip(struct jsonread *j);

#endif
