/* The report of assay diagnose; see diagnosis.h. */
#include "base/base.h"
#include "analyze/diagnose/diagnosis.h"

#include "analyze/select/window.h"
#include "base/clock.h"
#include "base/text/num.h"

#define SLICES          10
#define HOLD_SLICES     8                  /* of ten */
#define DECIDED_MIN     5                  /* slices with enough evidence */
#define SLICE_ACTIVE_NS (50.0 * NS_PER_MS) /* thread time that is not idle, at least */

enum { SLICE_NO, SLICE_YES, SLICE_THIN };

struct slices {
	bool is_made;
	uint64_t second[SLICES + 1]; /* where they begin */
	uint8_t *states;             /* by rule and slice */
};

/* ---- slices ---------------------------------------------------------------------------------- */

/* Values as if there were evidence and samples enough. */
static struct formula_value value_with_evidence(void *context, struct sv name, struct sv argument)
{
	const struct formula_names names = diagnose_names(context);
	if (sv_has_suffix(name, SV(".evident")))
		return formula_number(1, FORMULA_PLAIN);
	if (sv_has_suffix(name, SV(".samples")))
		return formula_number(1e9, FORMULA_COUNT);
	return names.value(context, name, argument);
}

/* A test that fails only for want of evidence says nothing of its slice, nor does one of next to no time. */
static uint8_t state_of(struct diagnoses *d, const struct diagnosis *one)
{
	const struct formula_names names = {.value = value_with_evidence, .context = d};
	struct formula_value active = measures_value(d->m, SV("active.time"));
	if (one->state == DIAGNOSIS_FIRED || one->state == DIAGNOSIS_EXPLAINED)
		return SLICE_YES;
	if (one->state == DIAGNOSIS_COULD_NOT_RUN ||
	    (active.is_known && active.number < SLICE_ACTIVE_NS))
		return SLICE_THIN;
	bool is_thin = formula_truth(formula_eval(one->rule->test, &names)) != 0;
	return is_thin ? SLICE_THIN : SLICE_NO;
}

/* Verdicts on readings of memory and growing sites are of the whole capture. */
static bool is_of_parts(const struct rule *rule)
{
	return !(rule->needs & (1u << MEASURE_MEMORY | 1u << MEASURE_HEAP)) &&
	       !rule_is_of_done(rule->answer);
}

struct wanted {
	const struct rules *rules;
	bool *is_wanted; /* by rule */
};

static void want_fired(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct wanted *w = context;
	(void)name;
	(void)v;
	for (size_t i = 0; i < w->rules->all.n; i++)
		w->is_wanted[i] |= sv_eq_str(argument, w->rules->all.p[i].id);
}

/* Adds the rules on which the states of those wanted depend: all of them come before. */
static void want_decisive(struct wanted *w, struct diagnoses *d)
{
	const struct formula_names names = diagnose_names(d);
	for (size_t i = w->rules->all.n; i-- > 0;) {
		const struct rule *rule = &w->rules->all.p[i];
		for (size_t later = i + 1; later < w->rules->all.n; later++)
			w->is_wanted[i] |= w->is_wanted[later] &&
					   rule_is_over(rule, w->rules->all.p[later].id);
		if (w->is_wanted[i])
			formula_each_name(rule->test, &names, want_fired, w);
	}
}

/* Evaluates no other rules than the states of those shown need: each slice is a selection of all rows. */
static void make_slices(struct slices *s, struct arena *a, const struct profile *p,
			const struct select_spec *spec, const struct wanted *w,
			struct measures *whole)
{
	uint64_t seconds = window_recorded_ns(p, window_of_profile(p)) / NS_PER_SEC;
	size_t nr_rules = w->rules->all.n;
	CLEANUP(rules_release) struct rules some = {0};
	size_t *at = arena_alloc(a, (nr_rules + 1) * sizeof(*at));
	for (size_t i = 0; i < nr_rules; i++)
		if (w->is_wanted[i]) {
			at[some.all.n] = i;
			vec_push(&some.all, w->rules->all.p[i]);
		}
	if (spec->time || seconds < SLICES || !some.all.n)
		return;
	s->is_made = true;
	s->states = arena_calloc(a, nr_rules * SLICES, 1);
	for (unsigned i = 0; i <= SLICES; i++)
		s->second[i] = seconds * i / SLICES;
	for (unsigned i = 0; i < SLICES; i++) {
		CLEANUP(arena_release) struct arena scratch = {0};
		struct select_spec part = *spec;
		struct diagnoses d;
		part.time = arena_fmt(&scratch, "%" PRIu64 "s..%" PRIu64 "s", s->second[i],
				      s->second[i + 1]);
		CLEANUP(measures_free_p) struct measures *m = measures_of_part(whole, &part);
		diagnose_run(&d, &scratch, &some, m, 0);
		for (size_t k = 0; k < d.nr; k++)
			s->states[at[k] * SLICES + i] = state_of(&d, &d.all[k]);
	}
}

static const char *hold_text(struct arena *a, const struct slices *s, size_t rule)
{
	CLEANUP(buf_release) struct buf times = {0};
	const uint8_t *states = &s->states[rule * SLICES];
	unsigned nr_yes = 0;
	unsigned nr_decided = 0;
	if (!s->is_made)
		return "the capture is too short to say whether it holds throughout (10 s are needed, "
		       "without --time)";
	for (unsigned i = 0; i < SLICES; i++) {
		nr_yes += states[i] == SLICE_YES;
		nr_decided += states[i] != SLICE_THIN;
		if (states[i] == SLICE_YES)
			buf_addf(&times, "%s%" PRIu64 " s to %" PRIu64 " s", times.n ? ", " : "",
				 s->second[i], s->second[i + 1]);
	}
	if (nr_decided < DECIDED_MIN)
		return arena_fmt(
			a,
			"only %u of %d equal parts of the capture have enough evidence to say "
			"whether it holds throughout",
			nr_decided, SLICES);
	if (nr_yes * 10 >= nr_decided * HOLD_SLICES)
		return arena_fmt(a, "in %u of %u equal parts of the capture", nr_yes, nr_decided);
	return arena_fmt(a, "an episode: in %u of %u equal parts of the capture%s%s", nr_yes,
			 nr_decided, nr_yes ? ": " : "", buf_str(&times));
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Such as "fsync", a cause; longer texts are in the sentence of the finding. */
static bool is_word(struct formula_value v)
{
	return v.is_known && v.text[0] && !strpbrk(v.text, " >(");
}

static void add_measured(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct buf *to = context;
	enum measure_section section;
	enum wait_reason reason;
	const struct measure *m = argument.n ? NULL : measure_find(name, &section, &reason);
	if (!m || m->unit == FORMULA_PLAIN || (m->unit == FORMULA_TEXT && !is_word(v)))
		return;
	CLEANUP(buf_release) struct buf text = {0};
	measure_add_words(&text, name);
	buf_add_str(&text, ": ");
	formula_add_value(&text, v);
	if (m->of)
		buf_addf(&text, " of %s", m->of);
	if (!strstr(buf_str(to), buf_str(&text)))
		buf_addf(to, "%s%s", to->n ? "; " : "", buf_str(&text));
}

static const char *measured_text(struct arena *a, struct diagnoses *d, const struct diagnosis *one)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct formula_names names = diagnose_names(d);
	formula_each_name(one->rule->test, &names, add_measured, &b);
	if (one->rule->explains)
		formula_each_name(one->rule->explains, &names, add_measured, &b);
	return arena_strdup(a, buf_str(&b));
}

static void add_part(struct report *r, struct report_table *t, const char *id, const char *part,
		     const char *text)
{
	if (text[0])
		report_add_texts(r, t, id, part, text);
}

static void add_finding(struct report *r, struct report_table *t, struct diagnoses *d,
			const struct diagnosis *one, const struct slices *slices)
{
	static const struct {
		enum rule_text_kind kind;
		const char *title;
	} parts[] = {{RULE_TEXT_GAIN, "gain"},
		     {RULE_TEXT_EVIDENCE, "proved by"},
		     {RULE_TEXT_REMEDY, "remedy"},
		     {RULE_TEXT_REFUTE, "refuted if"}};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf test = {0};
	const struct formula_names names = diagnose_names(d);
	const char *id = one->rule->id;
	report_finding(r, "%s", diagnose_sentence(&a, d, one));
	add_part(r, t, id, "measured", measured_text(&a, d, one));
	measure_add_condition(&test, sv_from(one->rule->test_text.p, one->rule->test_text.n));
	add_part(r, t, id, "test", buf_str(&test));
	if (is_of_parts(one->rule))
		add_part(r, t, id, "holds", hold_text(&a, slices, (size_t)(one - d->all)));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		CLEANUP(buf_release) struct buf b = {0};
		rule_add_text(&b, one->rule, parts[i].kind, &names, "; or ");
		add_part(r, t, id, parts[i].title, buf_str(&b));
	}
}

static void note_coverage(struct report *r, const struct diagnoses *d,
			  const struct diagnosis *const *shown, size_t nr)
{
	bool has_waits = measures_has(d->m, MEASURE_WAITS);
	double sum = 0;
	double most = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct diagnosis *one = shown[i];
		sum += one->rule->is_overlapping ? 0 : one->explains_pct;
		most = MAX(most, one->explains_pct);
	}
	double pct = MIN(MAX(sum, most), 100.0);
	if (pct > 0)
		report_note(r, "explains %s %% of %s, %s %% unexplained", num_double(pct, 0).s,
			    has_waits ? "non-idle thread time" : "CPU time",
			    num_double(100 - pct, 0).s);
}

static void add_inconclusive(struct report *r, const struct diagnoses *d)
{
	CLEANUP(buf_release) struct buf missing = {0};
	size_t nr_run = 0;
	uint32_t sections = 0;
	for (size_t i = 0; i < d->nr; i++) {
		nr_run += d->all[i].state != DIAGNOSIS_COULD_NOT_RUN;
		sections |= d->all[i].state == DIAGNOSIS_COULD_NOT_RUN ? d->all[i].rule->needs : 0;
	}
	for (enum measure_section s = 0; s < MEASURE_SECTION_NR; s++)
		if (sections & 1u << s && !measures_has(d->m, s))
			buf_addf(&missing, "%s%s (%s)",
				 missing.n ? ", " : "; not recorded: ", measure_section_key(s),
				 measure_section_record(s));
	report_finding(r, "inconclusive: none of %s that could run fired%s",
		       num_noun(nr_run, "rules").s, buf_str(&missing));
}

/* The first findings; without any the first summaries. Returns their number. */
static size_t choose(const struct diagnosis **ret_shown, const struct diagnoses *d)
{
	size_t nr = 0;
	for (int is_summary = 0; is_summary < 2 && !nr; is_summary++)
		for (size_t i = 0; i < d->nr_fired && nr < DIAGNOSIS_FINDINGS_MAX; i++) {
			enum rule_answer answer = d->fired[i]->rule->answer;
			if (answer != RULE_NOTE && rule_is_of_done(answer) == is_summary)
				ret_shown[nr++] = d->fired[i];
		}
	return nr;
}

/* The sentences of the findings after the last one with its proof. */
static void note_further(struct report *r, struct diagnoses *d, const struct diagnosis *last)
{
	CLEANUP(arena_release) struct arena a = {0};
	bool is_after = false;
	for (size_t i = 0; i < d->nr_fired; i++) {
		enum rule_answer answer = d->fired[i]->rule->answer;
		if (is_after && answer != RULE_NOTE && !rule_is_of_done(answer))
			report_note(r, "also found: %s", diagnose_sentence(&a, d, d->fired[i]));
		is_after |= d->fired[i] == last;
	}
}

/* The table of what proves them, their sentences, and how much of the time they are. */
static void add_findings(struct report *r, struct diagnoses *d,
			 const struct diagnosis *const *shown, size_t nr,
			 const struct slices *slices)
{
	static const struct report_column columns[] = {{"rule", "rule", CELL_TEXT, NULL},
						       {"part", "", CELL_TEXT, NULL},
						       {"text", "", CELL_TEXT, NULL,
							.is_prose = true}};
	struct report_table *t =
		report_add_table(r, "findings", "what proves it", columns, ARRAY_LEN(columns));
	t->nr_first = 40;
	if (rule_is_of_done(shown[0]->rule->answer))
		report_finding(r, "no rule for a problem fired; what was recorded:");
	for (size_t i = 0; i < nr; i++)
		add_finding(r, t, d, shown[i], slices);
	note_coverage(r, d, shown, nr);
	if (!rule_is_of_done(shown[0]->rule->answer))
		note_further(r, d, shown[nr - 1]);
}

/* ---- all rules ------------------------------------------------------------------------------- */

static void add_rules(struct report *r, struct diagnoses *d)
{
	static const char *const states[] = {[DIAGNOSIS_NOT_FIRED] = "not fired",
					     [DIAGNOSIS_FIRED] = "fired",
					     [DIAGNOSIS_EXPLAINED] = "explained",
					     [DIAGNOSIS_COULD_NOT_RUN] = "could not run"};
	static const struct report_column columns[] = {
		{"rule", "rule", CELL_TEXT, NULL},
		{"state", "state", CELL_TEXT, "explained: another rule that fired is over it"},
		{"why", "why", CELL_TEXT, "measured values, or what is missing", .is_prose = true}};
	struct report_table *t =
		report_add_table(r, "rules", "all rules", columns, ARRAY_LEN(columns));
	CLEANUP(arena_release) struct arena a = {0};
	t->nr_first = d->nr;
	for (size_t i = 0; i < d->nr; i++) {
		const struct diagnosis *one = &d->all[i];
		const char *why = one->missing ?: measured_text(&a, d, one);
		if (one->by)
			why = arena_fmt(&a, "by the finding of %s; %s", one->by->id, why);
		report_add_texts(r, t, one->rule->id, states[one->state], why);
	}
}

void diagnosis_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		      const struct rules *rules, const char *input, unsigned flags)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(measures_free_p) struct measures *m = measures_new(p, spec, input);
	const struct diagnosis *shown[DIAGNOSIS_FINDINGS_MAX];
	struct slices slices = {0};
	struct diagnoses d;
	r->title = "diagnosis";
	r->losses = p->losses;
	r->noun = "rows";
	vec_foreach(t, &p->tables)
		r->nr_samples += t->n;
	report_facts(r, p);
	report_fact_duration(r, window_recorded_ns(p, window_of_profile(p)));
	diagnose_run(&d, &a, rules, m, 0);
	size_t nr = choose(shown, &d);
	if (nr) {
		struct wanted w = {rules, arena_calloc(&a, rules->all.n + 1, sizeof(bool))};
		for (size_t i = 0; i < nr; i++)
			w.is_wanted[shown[i] - d.all] = is_of_parts(shown[i]->rule);
		want_decisive(&w, &d);
		make_slices(&slices, &a, p, spec, &w, m);
		add_findings(r, &d, shown, nr, &slices);
	} else {
		add_inconclusive(r, &d);
	}
	if (flags & DIAGNOSIS_ALL_RULES)
		add_rules(r, &d);
}

/* ---- measures -------------------------------------------------------------------------------- */

struct listing {
	struct report *r;
	struct report_table *t;
};

static void list_one(void *context, enum measure_section section, const char *key,
		     const struct measure *m)
{
	static const char *const units[] = {
		[FORMULA_PLAIN] = "number", [FORMULA_COUNT] = "count", [FORMULA_PERCENT] = "%",
		[FORMULA_NS] = "time",      [FORMULA_BYTES] = "bytes", [FORMULA_TEXT] = "text"};
	struct listing *l = context;
	report_add_texts(l->r, l->t, key, units[m->unit], measure_section_key(section), m->help,
			 m->of ? m->of : "");
}

void diagnosis_list_measures(struct report *r)
{
	static const struct report_column columns[] = {
		{"measure", "measure", CELL_TEXT, NULL},
		{"unit", "unit", CELL_TEXT, NULL},
		{"needs", "needs", CELL_TEXT, NULL},
		{"help", "what", CELL_TEXT, NULL, .is_prose = true},
		{"of", "% of", CELL_TEXT, NULL, .is_prose = true}};
	struct listing l = {r, report_add_table(r, "measures", "measures of rules", columns,
						ARRAY_LEN(columns))};
	r->title = "measures";
	r->has_no_samples = true;
	measures_each(list_one, &l);
}
