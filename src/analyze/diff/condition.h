/*
 * Conditions on a comparison, for --fail-if: limits of growth.
 *
 *	condition = amount ">" limit
 *	amount    = rows | "self(" rows ")" | "total(" rows ")"	self if neither
 *	rows      = "all"		everything that is compared
 *	          | key			each function (module, crate) of its own
 *	          | key "~" REGEX	those that match, together: total counts a stack once
 *	          | key "=" NAME	the one with this name
 *	key       = "fn" | "module" | "crate"
 *	limit     = NUMBER "%"		of everything: points of shares, or per cent of the amount before
 *	          | NUMBER "x"		times the amount before
 *	          | AMOUNT		10MiB, 20ms, 5000: in the unit of the comparison, not of shares
 *
 * The change (after - before) must exceed the limit by more than its interval: what may be chance is
 * uncertain, by the rule of diff.h.
 */
#ifndef ASSAY_ANALYZE_DIFF_CONDITION_H
#define ASSAY_ANALYZE_DIFF_CONDITION_H

#include "analyze/diff/diff.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

enum condition_match { CONDITION_ALL, CONDITION_EACH, CONDITION_REGEX, CONDITION_NAME };
enum condition_limit { CONDITION_PERCENT, CONDITION_TIMES, CONDITION_AMOUNT };

struct condition {
	const char *text; /* as given, borrowed */
	bool is_total;
	enum condition_match match;
	enum group_by by;
	const char *pattern; /* regex or name */
	enum condition_limit kind;
	double number;     /* of PERCENT and TIMES */
	const char *limit; /* its text */
};

enum condition_verdict { CONDITION_IS_FALSE, CONDITION_IS_UNCERTAIN, CONDITION_HOLDS };

struct condition_result {
	const struct condition *condition;
	const char *name; /* of the row, for EACH; else "" */
	double change;
	double error;
	double limit; /* of the change, in its unit */
	enum condition_verdict verdict;
	bool is_matched; /* a row matches */
};

/* -EINVAL with what was expected. Strings live in the arena. */
int condition_parse(struct condition *ret_c, struct arena *a, const char *text, struct err *err);
/* -EINVAL: the regex is wrong, or the limit has another unit than the comparison. */
int condition_eval(struct condition_result *ret_r, struct arena *a, const struct condition *c,
		   const struct diff *d, struct err *err);
/* Adds table "conditions". */
void condition_report(struct report *r, const struct diff *d,
		      const struct condition_result *results, size_t nr);
const char *condition_verdict_text(enum condition_verdict v);

#endif
