/* Evaluates rules over measures; see diagnose.h. */
#include "base/base.h"
#include "analyze/diagnose/diagnose.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- values ---------------------------------------------------------------------------------- */

static struct formula_value has_fired(const struct diagnoses *d, struct sv id)
{
	bool is_fired = false;
	for (size_t i = 0; i < d->nr; i++)
		is_fired |= sv_eq_str(id, d->all[i].rule->id) && d->all[i].state == DIAGNOSIS_FIRED;
	return formula_number(is_fired, FORMULA_PLAIN);
}

static struct formula_value value_of(void *context, struct sv name, struct sv argument)
{
	struct diagnoses *d = context;
	return argument.n ? has_fired(d, argument) : measures_value(d->m, name);
}

struct formula_names diagnose_names(struct diagnoses *d)
{
	return (struct formula_names){.value = value_of, .context = d};
}

/* The first name without a value. */
struct missing {
	struct arena *a;
	const char *text;
};

static const char *missing_text(struct arena *a, struct sv name)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, "not known: ");
	measure_add_words(&b, name);
	return arena_strdup(a, buf_str(&b));
}

static void note_missing(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct missing *m = context;
	(void)argument;
	if (!v.is_known && !m->text)
		m->text = missing_text(m->a, name);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *missing_section(struct arena *a, const struct measures *m, uint32_t needs)
{
	for (enum measure_section s = 0; s < MEASURE_SECTION_NR; s++)
		if (needs & 1u << s && !measures_has(m, s))
			return arena_fmt(a, "%s not recorded (%s)", measure_section_key(s),
					 measure_section_record(s));
	return NULL;
}

static const struct rule *over_it(const struct diagnoses *d, const char *id)
{
	for (size_t i = 0; i < d->nr; i++)
		if (d->all[i].state == DIAGNOSIS_FIRED && rule_is_over(d->all[i].rule, id))
			return d->all[i].rule;
	return NULL;
}

static double number_of(const struct formula *e, const struct formula_names *names)
{
	struct formula_value v = e ? formula_eval(e, names) : (struct formula_value){0};
	return v.is_known ? v.number : 0;
}

static struct diagnosis judge(struct diagnoses *d, struct arena *a, const struct rule *rule)
{
	const struct formula_names names = diagnose_names(d);
	struct diagnosis one = {.rule = rule, .state = DIAGNOSIS_COULD_NOT_RUN};
	one.missing = missing_section(a, d->m, rule->needs);
	if (one.missing)
		return one;
	int truth = formula_truth(formula_eval(rule->test, &names));
	if (truth < 0) {
		struct missing missing = {a, NULL};
		formula_each_name(rule->test, &names, note_missing, &missing);
		one.missing = missing.text ? missing.text : "a quotient is not known";
		return one;
	}
	one.state = truth ? DIAGNOSIS_FIRED : DIAGNOSIS_NOT_FIRED;
	one.by = truth ? over_it(d, rule->id) : NULL;
	if (one.by)
		one.state = DIAGNOSIS_EXPLAINED;
	if (one.state != DIAGNOSIS_FIRED)
		return one;
	one.order = number_of(rule->order, &names);
	one.explains_pct = number_of(rule->explains, &names);
	return one;
}

static int by_order(const void *x, const void *y)
{
	const struct diagnosis *a = *(struct diagnosis *const *)x;
	const struct diagnosis *b = *(struct diagnosis *const *)y;
	return COMPARE(b->order, a->order) ?: COMPARE(a, b);
}

/*
 * A finding that comes second is behind the first of the others. Not behind one of less than a tenth of
 * its order, a little less: waits that are a finding have 10 %, and its share may be 100 %.
 */
#define SECOND_LEAST 0.09

static void order_seconds(struct diagnoses *d)
{
	double first = 0;
	for (size_t i = 0; i < d->nr_fired; i++) {
		const struct diagnosis *one = d->fired[i];
		if (one->rule->answer == RULE_FINDING && !one->rule->is_second)
			first = MAX(first, one->order);
	}
	for (size_t i = 0; i < d->nr_fired; i++) {
		struct diagnosis *one = d->fired[i];
		if (one->rule->is_second && first >= one->order * SECOND_LEAST)
			one->order = MIN(one->order, nextafter(first, 0));
	}
}

void diagnose_run(struct diagnoses *ret_d, struct arena *a, const struct rules *rules,
		  struct measures *m, uint32_t sections)
{
	struct diagnoses *d = ret_d;
	*d = (struct diagnoses){.m = m};
	d->all = arena_calloc(a, rules->all.n + 1, sizeof(*d->all));
	d->fired = arena_calloc(a, rules->all.n + 1, sizeof(struct diagnosis *));
	vec_foreach(rule, &rules->all) {
		if (sections && (!rule->needs || rule->needs & ~sections || rule->is_for_diagnosis))
			continue;
		struct diagnosis one = judge(d, a, rule);
		d->all[d->nr++] = one;
	}
	for (size_t i = 0; i < d->nr; i++)
		if (d->all[i].state == DIAGNOSIS_FIRED)
			d->fired[d->nr_fired++] = &d->all[i];
	order_seconds(d);
	if (d->nr_fired)
		qsort(d->fired, d->nr_fired, sizeof(*d->fired), by_order);
}

const char *diagnose_sentence(struct arena *a, struct diagnoses *d, const struct diagnosis *one)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct formula_names names = diagnose_names(d);
	rule_add_text(&text, one->rule, RULE_TEXT_FINDING, &names, " ");
	return arena_strdup(a, buf_str(&text));
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* What has a larger order is a defect, whatever the shares of time are; their sums may be rounded up. */
#define URGENT_PCT 100.05
#define LAST_RANK  (-1) /* no share of time: in the order of the parts */

typedef void add_sentence(struct report *r, const char *fmt, ...);

static add_sentence *adder_of(enum rule_answer answer, unsigned flags)
{
	bool is_part = flags & DIAGNOSE_PART;
	if (flags & DIAGNOSE_WRONG && rule_is_of_done(answer))
		return NULL;
	if (answer == RULE_NOTE || (answer == RULE_SUMMARY && is_part))
		return report_note;
	return answer == RULE_INCONCLUSIVE && is_part ? report_detail : report_finding;
}

void diagnose_page(struct report *r, struct measures *m, uint32_t sections, double before_pct,
		   unsigned flags)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	struct diagnoses d;
	rules_add_builtin(&rules, &a);
	measures_confine(m, sections);
	diagnose_run(&d, &a, &rules, m, sections);
	vec_foreach(rank, &r->ranks)
		*rank *= flags ? 1 : before_pct / 100;
	for (size_t i = 0; i < d.nr_fired; i++) {
		const struct diagnosis *one = d.fired[i];
		add_sentence *add = adder_of(one->rule->answer, flags);
		if (!add)
			continue;
		add(r, "%s", diagnose_sentence(&a, &d, one));
		if (add == report_finding)
			report_rank(r, flags && one->order <= URGENT_PCT ? LAST_RANK : one->order);
	}
}
