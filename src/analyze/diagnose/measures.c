/* The registry of measures; see measures.h. */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <ctype.h>
#include <math.h>

#include "analyze/memory/heapweights.h"
#include "base/mem.h"

static const struct section {
	const char *key;
	const char *record;
	/* Up to the first NULL. */
	const struct measure *(*rows[4])(size_t *ret_nr);
} sections[MEASURE_SECTION_NR] = {
	[MEASURE_CAPTURE] = {"capture", "any capture", {capture_measures}},
	[MEASURE_WAITS] = {"waits",
			   "assay offcpu, assay cpu --offcpu",
			   {wait_measures, lock_measures, cause_measures}},
	[MEASURE_CPU] = {"cpu", "assay cpu", {cpu_measures}},
	[MEASURE_MEMORY] = {"memory", "assay watch -o FILE", {memory_measures}},
	[MEASURE_HEAP] = {"heap", "assay heap", {heap_measures}},
	[MEASURE_IO] = {"io", "assay io", {io_measures}},
	[MEASURE_FAULTS] = {"faults", "assay faults", {fault_measures}},
};

struct measures *measures_new(const struct profile *p, const struct select_spec *spec,
			      const char *input)
{
	struct measures *m = xcalloc(1, sizeof(*m));
	m->p = p;
	m->spec = *spec;
	m->input = input;
	return m;
}

struct measures *measures_of_part(struct measures *whole, const struct select_spec *spec)
{
	struct measures *m = measures_new(whole->p, spec, NULL);
	m->whole = whole;
	return m;
}

void measures_free(struct measures *m)
{
	if (!m)
		return;
	wait_measures_release(m);
	heap_measures_release(m);
	arena_release(&m->a);
	free(m);
}

void measures_free_p(struct measures **m)
{
	measures_free(*m);
}

void measures_confine(struct measures *m, uint32_t kept)
{
	m->left_out = ~(kept | 1u << MEASURE_CAPTURE);
}

bool measures_has(const struct measures *m, enum measure_section section)
{
	if (m->left_out & 1u << section)
		return false;
	switch (section) {
	case MEASURE_CAPTURE:
		return true;
	case MEASURE_WAITS:
		return tables_has_rows(m->p, TABLE_OFF_CPU) || tables_has_rows(m->p, TABLE_ON_CPU);
	case MEASURE_CPU:
		return tables_has_rows(m->p, TABLE_SAMPLES);
	case MEASURE_MEMORY:
		return m->memory || tables_has_rows(m->p, TABLE_MEMORY);
	case MEASURE_HEAP:
		return m->heap || heapweights_exist(m->p);
	case MEASURE_IO:
		return tables_has_rows(m->p, TABLE_IO) || tables_has_rows(m->p, TABLE_BLOCK);
	case MEASURE_FAULTS:
		return tables_has_rows(m->p, TABLE_FAULTS) || tables_has_rows(m->p, TABLE_RECLAIM);
	case MEASURE_SECTION_NR:
		break;
	}
	BUG("no such section: %d", (int)section);
}

const char *measure_section_key(enum measure_section section)
{
	return section < MEASURE_SECTION_NR ? sections[section].key : NULL;
}

bool measure_section_from_key(struct sv key, enum measure_section *ret_section)
{
	for (enum measure_section s = 0; s < MEASURE_SECTION_NR; s++)
		if (sv_eq_str(key, sections[s].key)) {
			*ret_section = s;
			return true;
		}
	return false;
}

const char *measure_section_record(enum measure_section section)
{
	ASSERT(section < MEASURE_SECTION_NR);
	return sections[section].record;
}

static const struct measure *find_in(const struct measure *rows, size_t n, struct sv key)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq_str(key, rows[i].key))
			return &rows[i];
	return NULL;
}

const struct measure *measure_find(struct sv name, enum measure_section *ret_section,
				   enum wait_reason *ret_reason)
{
	size_t n = 0;
	*ret_reason = WAIT_NONE;
	for (enum measure_section s = 0; s < MEASURE_SECTION_NR; s++) {
		for (size_t i = 0; sections[s].rows[i]; i++) {
			const struct measure *rows = sections[s].rows[i](&n);
			const struct measure *found = find_in(rows, n, name);
			*ret_section = s;
			if (found)
				return found;
		}
	}
	ssize_t dot = sv_index(name, '.');
	if (dot < 0)
		return NULL;
	*ret_reason = wait_from_key(sv_from(name.p, (size_t)dot));
	*ret_section = MEASURE_WAITS;
	const struct measure *rows = reason_measures(&n);
	return *ret_reason == WAIT_NONE ? NULL
					: find_in(rows, n, sv_from_idx(name, (size_t)dot + 1));
}

/* ---- words ----------------------------------------------------------------------------------- */

void measure_add_words(struct buf *to, struct sv name)
{
	enum measure_section section;
	enum wait_reason reason;
	const struct measure *m = measure_find(name, &section, &reason);
	if (!m) {
		buf_add_sv(to, name);
		return;
	}
	bool is_truth = !strncmp(m->help, "1: ", 3);
	struct sv words = sv_from_str(m->help + (is_truth ? 3 : 0));
	words = sv_from(words.p, strcspn(words.p, ":;"));
	if (reason == WAIT_NONE)
		buf_add_sv(to, words);
	else if (m->unit == FORMULA_PERCENT || !strcmp(m->key, "time"))
		buf_add_str(to, wait_text(reason));
	else
		buf_addf(to, "%s (%.*s)", wait_text(reason), SV_ARGS(words));
}

/* The length of the name, number, 'text' or symbol that a condition begins with. */
static size_t token_length(struct sv s)
{
	size_t n = 1;
	if (s.p[0] == '\'') {
		while (n < s.n && s.p[n] != '\'')
			n++;
		return MIN(n + 1, s.n);
	}
	while (isalnum((unsigned char)s.p[0]) && n < s.n &&
	       (isalnum((unsigned char)s.p[n]) || strchr("_.-%", s.p[n])))
		n++;
	return n;
}

void measure_add_condition(struct buf *to, struct sv condition)
{
	const struct measure *last = NULL;
	bool is_of_rule = false; /* fired(RULE) */
	for (size_t n; condition.n; condition = sv_from_idx(condition, n)) {
		enum measure_section section;
		enum wait_reason reason;
		n = token_length(condition);
		struct sv token = sv_from(condition.p, n);
		const struct measure *m =
			is_of_rule ? NULL : measure_find(token, &section, &reason);
		is_of_rule = sv_eq_str(token, "fired") || (is_of_rule && token.p[0] == '(');
		if (isspace((unsigned char)token.p[0])) {
			buf_add_str(to, to->n && to->p[to->n - 1] != ' ' ? " " : "");
		} else if (token.p[n - 1] == '%' && n > 1) {
			bool has_of = last && last->unit == FORMULA_PERCENT;
			buf_addf(to, "%.*s %%%s%s", (int)n - 1, token.p, has_of ? " of " : "",
				 has_of ? last->of : "");
		} else if (m) {
			last = m;
			measure_add_words(to, token);
		} else {
			buf_add_sv(to, token);
		}
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

struct formula_value measures_value(struct measures *m, struct sv name)
{
	enum measure_section section = MEASURE_CAPTURE;
	enum wait_reason reason = WAIT_NONE;
	const struct measure *one = measure_find(name, &section, &reason);
	if (!one || !measures_has(m, section))
		return (struct formula_value){.unit = one ? one->unit : FORMULA_PLAIN};
	if (one->unit == FORMULA_TEXT)
		return formula_text(one->text ? one->text(m) : one->text_of(m, reason));
	double v = one->number ? one->number(m) : one->number_of(m, reason);
	return (struct formula_value){.is_known = isfinite(v), .unit = one->unit, .number = v};
}

void measures_each(void (*visit)(void *context, enum measure_section section, const char *key,
				 const struct measure *measure),
		   void *context)
{
	size_t n = 0;
	for (enum measure_section s = 0; s < MEASURE_SECTION_NR; s++) {
		for (size_t part = 0; sections[s].rows[part]; part++) {
			const struct measure *rows = sections[s].rows[part](&n);
			for (size_t i = 0; i < n; i++)
				visit(context, s, rows[i].key, &rows[i]);
		}
	}
	CLEANUP(arena_release) struct arena a = {0};
	const struct measure *rows = reason_measures(&n);
	for (size_t i = 0; i < n; i++)
		visit(context, MEASURE_WAITS, arena_fmt(&a, "REASON.%s", rows[i].key), &rows[i]);
}
