/*
 * Diagnosis: evaluates rules (rules.h) over measures (measures.h).
 *
 * Rules are tried in their order. A rule that fires may be over later ones: what those measure is its
 * symptom, so they are no findings then. Findings come in the order of their share of the time, the
 * largest first.
 */
#ifndef ASSAY_ANALYZE_DIAGNOSE_DIAGNOSE_H
#define ASSAY_ANALYZE_DIAGNOSE_DIAGNOSE_H

#include "analyze/diagnose/measures.h"
#include "analyze/diagnose/rules.h"
#include "analyze/report.h"
#include "base/arena.h"
#include "base/base.h"

enum diagnosis_state {
	DIAGNOSIS_NOT_FIRED,
	DIAGNOSIS_FIRED,
	DIAGNOSIS_EXPLAINED,     /* fired, but another one that did is over it */
	DIAGNOSIS_COULD_NOT_RUN, /* a value is not known */
};

struct diagnosis {
	const struct rule *rule;
	enum diagnosis_state state;
	double order;
	double explains_pct;   /* of non-idle thread time; 0: none */
	const struct rule *by; /* EXPLAINED: the rule that is over it */
	const char *missing;   /* COULD_NOT_RUN: the value or the section, in the arena */
};

struct diagnoses {
	struct diagnosis *all; /* in the order of the rules */
	size_t nr;
	struct diagnosis **fired; /* the findings, in their order */
	size_t nr_fired;
	struct measures *m;
};

/*
 * Evaluates the rules, or those that need nothing but @sections (bits; 0: all rules). Lives in the
 * arena, borrows rules and measures.
 */
void diagnose_run(struct diagnoses *ret_d, struct arena *a, const struct rules *rules,
		  struct measures *m, uint32_t sections);
/* The names of values in the texts of these rules. */
struct formula_names diagnose_names(struct diagnoses *d);
/* Returns the sentence of a rule that fired, in the arena. */
const char *diagnose_sentence(struct arena *a, struct diagnoses *d, const struct diagnosis *one);

enum diagnose_flags {
	DIAGNOSE_PART = 1 << 0,  /* the page is of more sections: what was done is a note */
	DIAGNOSE_WRONG = 1 << 1, /* only what is wrong */
};

/*
 * Adds the findings of the built-in rules of these sections to a page. Without flags they and those that
 * @r has already are in the order of their shares of time; the latter are shares of @before_pct of it. With
 * flags they come behind, but for those that come before any share of time (their order is above 100 %: a
 * deadlock, a leak).
 */
void diagnose_page(struct report *r, struct measures *m, uint32_t sections, double before_pct,
		   unsigned flags);

#endif
