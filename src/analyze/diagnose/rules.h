/*
 * Rules of diagnosis, read from a text (docs/formats/rules.md; the built-in ones: the folder rules).
 *
 *	rule fsync
 *	needs waits
 *	test fsync.pct >= 10% and fsync.evident
 *	order fsync.pct
 *	finding {fsync.pct} of {active} was spent waiting for data to reach the disk (fsync)
 *	finding if fsync.where: ; most in {fsync.where}
 *
 * Everything is checked when it is read: names, units and templates. Lives in the caller's arena.
 */
#ifndef ASSAY_ANALYZE_DIAGNOSE_RULES_H
#define ASSAY_ANALYZE_DIAGNOSE_RULES_H

#include "analyze/diagnose/measures.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/text/formula.h"
#include "base/vec.h"

#define RULES_BYTES_MAX ((size_t)256 << 10)
#define RULES_MAX       500
#define RULE_TEXTS_MAX  100

/* What a rule that fires answers. */
enum rule_answer {
	RULE_FINDING,
	RULE_NO_LOAD,
	RULE_INVALID,      /* the capture itself is not to be relied on */
	RULE_SUMMARY,      /* what was done, not what is wrong: of diagnoses without findings */
	RULE_INCONCLUSIVE, /* as summary: it cannot be said */
	RULE_NOTE,         /* of pages only, and not the answer of one */
};

/* The texts of a rule; each may have several lines, with a condition or none. */
enum rule_text_kind {
	RULE_TEXT_FINDING, /* lines that hold make one sentence */
	RULE_TEXT_EVIDENCE,
	RULE_TEXT_REMEDY,
	RULE_TEXT_REFUTE,
	RULE_TEXT_GAIN,
	RULE_TEXT_NR
};

struct rule_text {
	enum rule_text_kind kind;
	const struct formula *condition; /* NULL: always */
	struct sv template;
};

struct rule {
	const char *id;
	unsigned line;
	uint32_t needs; /* bits by enum measure_section */
	enum rule_answer answer;
	struct sv test_text;
	const struct formula *test;
	const struct formula *order;    /* the largest first; NULL: 0 */
	bool is_second;                 /* a finding of a tenth of its order or more is before it */
	const struct formula *explains; /* share of non-idle thread time; NULL: none */
	bool is_overlapping;            /* other rules may explain the same time */
	bool is_for_diagnosis;          /* not on the pages of captures */
	struct sv over;                 /* ids of later rules, "*": all of them; comma separated */
	struct rule_text *texts;
	size_t nr_texts;
};

struct rules {
	VEC(struct rule) all;
};

void rules_release(struct rules *rules);
/* Appends the built-in rules, as text: the files of the folder rules. */
void rules_add_builtin_text(struct buf *to);
/*
 * Adds the rules of a text behind those that are there. A rule with the id of one of them replaces it.
 * -EINVAL: "line 12: ..." with what was expected.
 */
int rules_add(struct rules *rules, struct arena *a, struct sv text, struct err *err);
/* Adds the built-in rules. */
void rules_add_builtin(struct rules *rules, struct arena *a);

/* Whether rules with this answer say what was done, or that it is not known; not what is wrong. */
static inline bool rule_is_of_done(enum rule_answer answer)
{
	return answer == RULE_SUMMARY || answer == RULE_INCONCLUSIVE;
}

/* Whether @rule is over the later rule @id. */
bool rule_is_over(const struct rule *rule, const char *id);
/*
 * Appends the lines of a kind that hold, as one text or each behind @separator; names of @values replace
 * {NAME}. Returns how many lines held.
 */
size_t rule_add_text(struct buf *to, const struct rule *rule, enum rule_text_kind kind,
		     const struct formula_names *values, const char *separator);
#endif
