/*
 * Registry of measures: named values of a profile under filters, for the rules of diagnose.h. A measure
 * is a number with a unit and what it is a share of, or a text ("lock.top.place"). Each is computed when
 * it is first asked for; what several share (breakdown, selections, blame) is computed once. A value
 * is not known if the profile lacks the data.
 *
 *	CLEANUP(measures_free_p) struct measures *m = measures_new(p, &spec);
 *	struct formula_value v = measures_value(m, SV("lock.pct"), SV(""));
 *
 * Waits have measures by reason (enum wait_reason): REASON.pct, .time, .waits, .evident, .where.
 *
 * To add a measure: a row in the file of its section, and its function.
 */
#ifndef ASSAY_ANALYZE_DIAGNOSE_MEASURES_H
#define ASSAY_ANALYZE_DIAGNOSE_MEASURES_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/wait/breakdown.h"
#include "base/base.h"
#include "base/text/formula.h"

/* What must have been recorded. */
enum measure_section {
	MEASURE_CAPTURE, /* the capture itself: losses, duration, facts; always there */
	MEASURE_WAITS,
	MEASURE_CPU,    /* samples of CPU time */
	MEASURE_MEMORY, /* readings over time */
	MEASURE_HEAP,   /* allocations */
	MEASURE_IO,     /* calls, block device requests */
	MEASURE_FAULTS, /* page faults, reclaim */
	MEASURE_SECTION_NR
};

struct measures;

struct measure {
	const char *key; /* of a family by reason: the part behind the dot */
	enum formula_unit unit;
	const char *of; /* what a share is of; NULL: no share */
	const char *help;
	/* One of them is set. NaN and NULL: not known. */
	double (*number)(struct measures *m);
	const char *(*text)(struct measures *m);
	double (*number_of)(struct measures *m, enum wait_reason reason); /* families */
	const char *(*text_of)(struct measures *m, enum wait_reason reason);
};

/* @input: file name for commands; NULL: none. All are borrowed. */
struct measures *measures_new(const struct profile *p, const struct select_spec *spec,
			      const char *input);
/* Of a part of @whole's profile: what does not depend on the filters is computed once, in @whole. */
struct measures *measures_of_part(struct measures *whole, const struct select_spec *spec);
void measures_free(struct measures *m);
void measures_free_p(struct measures **m);
/*
 * Hands over what a page of waits has computed already from the same profile and filters; borrowed.
 * @r has the tables of waits.
 */
void measures_give_waits(struct measures *m, const struct selection *sel, const struct breakdown *l,
			 const struct report *r);
/* As above: the selection of CPU samples that a page is of. */
void measures_give_cpu(struct measures *m, const struct selection *sel);
struct memverdict;
void measures_give_memory(struct measures *m, const struct memverdict *v);
struct heapfigures;
void measures_give_heap(struct measures *m, const struct heapfigures *f, double seconds);
struct io_figures;
void measures_give_io(struct measures *m, const struct io_figures *f);
struct fault_figures;
void measures_give_faults(struct measures *m, const struct fault_figures *f);
/* Leaves other sections than these (bits) out, as if they were not recorded. */
void measures_confine(struct measures *m, uint32_t kept);

bool measures_has(const struct measures *m, enum measure_section section);
/* "waits"; NULL: no such section. */
const char *measure_section_key(enum measure_section section);
bool measure_section_from_key(struct sv key, enum measure_section *ret_section);
/* Which commands record a section: "assay offcpu, assay cpu --offcpu". */
const char *measure_section_record(enum measure_section section);

/* Returns the measure and its section, or NULL; *ret_reason is set for those of a family. */
const struct measure *measure_find(struct sv name, enum measure_section *ret_section,
				   enum wait_reason *ret_reason);
struct formula_value measures_value(struct measures *m, struct sv name);
/* Appends its help up to ':' or ';' : "lock (number of intervals)"; a name that is no measure, as it is. */
void measure_add_words(struct buf *to, struct sv name);
/* Appends a condition of a rule with these words: "lock >= 10 % of non-idle thread time and lock (...)". */
void measure_add_condition(struct buf *to, struct sv condition);
/* Calls @visit for each measure, families once ("REASON.pct"). */
void measures_each(void (*visit)(void *context, enum measure_section section, const char *key,
				 const struct measure *measure),
		   void *context);

#endif
