/*
 * The report of assay diagnose: at most three findings with what proves them, or the answer that there
 * is none and why; and how each rule came out.
 *
 * A finding must hold in 8 of 10 equal parts of the capture, of those that have enough evidence; else it
 * is an episode, and its times are given.
 */
#ifndef ASSAY_ANALYZE_DIAGNOSE_DIAGNOSIS_H
#define ASSAY_ANALYZE_DIAGNOSE_DIAGNOSIS_H

#include "analyze/diagnose/diagnose.h"

#define DIAGNOSIS_FINDINGS_MAX 3

enum diagnosis_flags {
	DIAGNOSIS_ALL_RULES = 1 << 0, /* also a table of all rules */
};

/* Begins the report and fills it. @input: file name for commands; NULL: none. */
void diagnosis_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		      const struct rules *rules, const char *input, unsigned flags);
/* Table of the measures that rules can use. */
void diagnosis_list_measures(struct report *r);

#endif
