/*
 * Conditions over named values, as users write them: "lock.pct >= 10% and lock.waits > 5K".
 *
 *	or      = and { "or" and }
 *	and     = not { "and" not }
 *	not     = "not" not | compare
 *	compare = sum [ (">=" | ">" | "<=" | "<" | "=" | "!=") sum ] | text "~" 'REGEX'
 *	sum     = product { ("+" | "-") product }
 *	product = operand { ("*" | "/") operand }
 *	operand = NUMBER [unit] | 'TEXT' | NAME | NAME "(" NAME ")" | "known(" NAME ")" | "(" or ")"
 *	unit    = "%" | ns us ms s m h | K M G T (1000s of counts, 1024s of bytes) | KiB kB ...
 *
 * The name between parentheses is all up to the next ')': "p99(Database::commit)".
 * Other names have letters, digits, '_', '.', and '-' between two of these; "a - b" with blanks is a difference.
 * A value is a number or a text. It may be not known: then a comparison is not known, either, but
 * "known or true" is true and "known and false" false (Kleene's logic). A name alone is true if its
 * number is not 0 or its text not empty. Division by 0 is not known.
 *
 * Names and units are checked when an expression is parsed, so that a typing error is one of the
 * file, not of an evaluation. Expressions live in the caller's arena; sizes and depths are limited.
 */
#ifndef ASSAY_BASE_TEXT_FORMULA_H
#define ASSAY_BASE_TEXT_FORMULA_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

#define FORMULA_BYTES_MAX 2000
#define FORMULA_DEPTH_MAX 40

enum formula_unit {
	FORMULA_PLAIN, /* fits every unit */
	FORMULA_COUNT,
	FORMULA_PERCENT,
	FORMULA_NS,
	FORMULA_BYTES,
	FORMULA_TEXT,
};

struct formula_value {
	bool is_known;
	enum formula_unit unit; /* FORMULA_TEXT: .text, else .number */
	double number;
	const char *text;
};

/* Where names come from. @argument is empty for a name alone. */
struct formula_names {
	/* Sets the unit of a name. Fails, with a message, if there is no such name. */
	int (*unit)(void *context, struct sv name, struct sv argument, enum formula_unit *ret_unit,
		    struct err *err);
	struct formula_value (*value)(void *context, struct sv name, struct sv argument);
	void *context;
};

struct formula;

/* -EINVAL with what was expected and where. */
int formula_parse(const struct formula **ret_e, struct arena *a, struct sv text,
		  const struct formula_names *names, struct err *err);
struct formula_value formula_eval(const struct formula *e, const struct formula_names *names);
/* 1: true, 0: false, -1: not known. */
int formula_truth(struct formula_value v);
enum formula_unit formula_unit(const struct formula *e);

/*
 * Calls @visit for each name of the expression, from left to right, a repeated one again. Names
 * within known() are left out: the expression does not need them.
 */
void formula_each_name(const struct formula *e, const struct formula_names *names,
		       void (*visit)(void *context, struct sv name, struct sv argument,
				     struct formula_value v),
		       void *context);
/* Appends a value as people read it: "38 %", "1.50 ms", "23.4 MiB", "1,200"; "not known". */
void formula_add_value(struct buf *to, struct formula_value v);

static inline struct formula_value formula_number(double number, enum formula_unit unit)
{
	return (struct formula_value){.is_known = true, .unit = unit, .number = number};
}

static inline struct formula_value formula_text(const char *text)
{
	return (struct formula_value){.is_known = text, .unit = FORMULA_TEXT, .text = text};
}

#endif
