/* Reads rules of diagnosis; see rules.h. */
#include "base/base.h"
#include "analyze/diagnose/rules.h"

#include <ctype.h>
#include <errno.h>

/* In the order in which they are tried: a rule can be over later ones only. */
#define SUBJECTS(each) each(capture) each(cpu) each(waits) each(memory) each(io)

#define EMBED(name)                                                                            \
	__asm__(".section .rodata\n"                                                           \
		".balign 16\n" #name "_rules:\n"                                               \
		".incbin \"src/analyze/diagnose/rules/" #name ".txt\"\n" #name "_rules_end:\n" \
		".byte 0\n"                                                                    \
		".previous\n");                                                                \
	extern const char name##_rules[];                                                      \
	extern const char name##_rules_end[];
SUBJECTS(EMBED)

struct reader {
	struct rules *rules;
	struct arena *a;
	struct rule rule; /* the one that is read; without id: none */
	struct rule_text texts[RULE_TEXTS_MAX];
	unsigned line;
	struct err *err;
};

static const char *const text_keys[RULE_TEXT_NR] = {
	[RULE_TEXT_FINDING] = "finding", [RULE_TEXT_EVIDENCE] = "evidence",
	[RULE_TEXT_REMEDY] = "remedy",   [RULE_TEXT_REFUTE] = "refute",
	[RULE_TEXT_GAIN] = "gain",
};

void rules_release(struct rules *rules)
{
	vec_release(&rules->all);
}

void rules_add_builtin_text(struct buf *to)
{
#define ADD(name) buf_add(to, name##_rules, (size_t)(name##_rules_end - name##_rules));
	SUBJECTS(ADD)
}

static struct rule *find(struct rules *rules, struct sv id)
{
	vec_foreach(r, &rules->all)
		if (sv_eq_str(id, r->id))
			return r;
	return NULL;
}

/* ---- names and templates --------------------------------------------------------------------- */

static int unit_of(void *context, struct sv name, struct sv argument, enum formula_unit *ret_unit,
		   struct err *err)
{
	struct reader *rd = context;
	enum measure_section section;
	enum wait_reason reason;
	if (sv_eq_str(name, "fired") && argument.n) {
		*ret_unit = FORMULA_PLAIN;
		if (find(rd->rules, argument))
			return 0;
		return err_set(err, -EINVAL, "no rule before this one is named '%.*s'",
			       SV_ARGS(argument));
	}
	const struct measure *m = argument.n ? NULL : measure_find(name, &section, &reason);
	if (!m) {
		err_set(err, -EINVAL, "no measure is named '%.*s'", SV_ARGS(name));
		return err_hint(err, "assay diagnose --list-measures");
	}
	*ret_unit = m->unit;
	return 0;
}

static struct formula_names names_of(struct reader *rd)
{
	return (struct formula_names){.unit = unit_of, .context = rd};
}

/* Cuts "{name}" and the text before it; false: no brace is left. */
static bool next_brace(struct sv *rest, struct sv *ret_before, struct sv *ret_name)
{
	ssize_t open = sv_index(*rest, '{');
	ssize_t end = open < 0 ? -1 : sv_index(sv_from_idx(*rest, (size_t)open), '}');
	if (end < 0)
		return false;
	*ret_before = sv_from(rest->p, (size_t)open);
	*ret_name = sv_from(rest->p + open + 1, (size_t)end - 1);
	*rest = sv_from_idx(*rest, (size_t)(open + end + 1));
	return true;
}

static int check_template(struct reader *rd, struct sv text)
{
	struct sv before;
	struct sv name;
	enum formula_unit unit;
	while (next_brace(&text, &before, &name))
		TRY(unit_of(rd, name, SV(""), &unit, rd->err));
	if (sv_index(text, '{') >= 0)
		return err_set(rd->err, -EINVAL, "'{' without '}'");
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int parse_formula(struct reader *rd, struct sv text, const struct formula **ret_e)
{
	const struct formula_names names = names_of(rd);
	return formula_parse(ret_e, rd->a, text, &names, rd->err);
}

/* The end of a condition: the first ':' that is not within a text. */
static ssize_t find_colon(struct sv s)
{
	bool is_in_text = false;
	for (size_t i = 0; i < s.n; i++) {
		is_in_text ^= s.p[i] == '\'';
		if (s.p[i] == ':' && !is_in_text)
			return (ssize_t)i;
	}
	return -1;
}

static int read_text(struct reader *rd, enum rule_text_kind kind, struct sv value)
{
	struct rule_text t = {.kind = kind, .template = value};
	if (rd->rule.nr_texts == RULE_TEXTS_MAX)
		return err_set(rd->err, -EINVAL, "more than %d texts of a rule", RULE_TEXTS_MAX);
	if (sv_has_prefix(value, SV("if "))) {
		ssize_t colon = find_colon(value);
		if (colon < 0)
			return err_set(rd->err, -EINVAL, "expected ':' behind the condition");
		TRY(parse_formula(rd, sv_from(value.p + 3, (size_t)colon - 3), &t.condition));
		t.template = sv_trim(sv_from_idx(value, (size_t)colon + 1));
	}
	if (!t.template.n)
		return err_set(rd->err, -EINVAL, "expected a text behind '%s'", text_keys[kind]);
	TRY(check_template(rd, t.template));
	rd->texts[rd->rule.nr_texts++] = t;
	return 0;
}

static int read_needs(struct reader *rd, struct sv value)
{
	while (value.n) {
		enum measure_section section;
		struct sv one = sv_trim(sv_split(&value, ','));
		if (!measure_section_from_key(one, &section))
			return err_set(
				rd->err, -EINVAL,
				"'%.*s': expected capture, waits, cpu, memory, heap, io or faults",
				SV_ARGS(one));
		rd->rule.needs |= 1u << section;
	}
	return 0;
}

static int read_answer(struct reader *rd, struct sv value)
{
	if (sv_eq_str(value, "no load"))
		rd->rule.answer = RULE_NO_LOAD;
	else if (sv_eq_str(value, "invalid"))
		rd->rule.answer = RULE_INVALID;
	else if (sv_eq_str(value, "summary"))
		rd->rule.answer = RULE_SUMMARY;
	else if (sv_eq_str(value, "inconclusive"))
		rd->rule.answer = RULE_INCONCLUSIVE;
	else if (sv_eq_str(value, "note"))
		rd->rule.answer = RULE_NOTE;
	else if (!sv_eq_str(value, "finding"))
		return err_set(rd->err, -EINVAL,
			       "expected finding, no load, invalid, summary, inconclusive "
			       "or note");
	return 0;
}

static int read_pages(struct reader *rd, struct sv value)
{
	rd->rule.is_for_diagnosis = sv_eq_str(value, "no");
	return rd->rule.is_for_diagnosis ? 0 : err_set(rd->err, -EINVAL, "expected no");
}

/* @word before the formula sets @ret_flag. */
static int read_flagged(struct reader *rd, struct sv value, const char *word, bool *ret_flag,
			const struct formula **ret_e)
{
	struct sv rest = value;
	*ret_flag = sv_eq_str(sv_split(&rest, ' '), word);
	return parse_formula(rd, *ret_flag ? rest : value, ret_e);
}

static int read_line(struct reader *rd, struct sv key, struct sv value)
{
	for (int kind = 0; kind < RULE_TEXT_NR; kind++)
		if (sv_eq_str(key, text_keys[kind]))
			return read_text(rd, (enum rule_text_kind)kind, value);
	if (sv_eq_str(key, "needs"))
		return read_needs(rd, value);
	if (sv_eq_str(key, "answer"))
		return read_answer(rd, value);
	if (sv_eq_str(key, "explains"))
		return read_flagged(rd, value, "also", &rd->rule.is_overlapping,
				    &rd->rule.explains);
	if (sv_eq_str(key, "order"))
		return read_flagged(rd, value, "second", &rd->rule.is_second, &rd->rule.order);
	if (sv_eq_str(key, "pages"))
		return read_pages(rd, value);
	if (sv_eq_str(key, "over")) {
		rd->rule.over = value;
		return 0;
	}
	if (sv_eq_str(key, "test")) {
		rd->rule.test_text = value;
		return parse_formula(rd, value, &rd->rule.test);
	}
	err_set(rd->err, -EINVAL, "'%.*s' is no part of a rule", SV_ARGS(key));
	return err_hint(rd->err,
			"the parts are rule, needs, test, answer, pages, order, explains, over, "
			"finding, evidence, remedy, refute, gain");
}

static bool is_id(struct sv id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!islower((unsigned char)id.p[i]) && !isdigit((unsigned char)id.p[i]) &&
		    (id.p[i] != '-' || !i || i + 1 == id.n))
			return false;
	return id.n && id.n <= 40;
}

static int end_rule(struct reader *rd)
{
	struct rule *r = &rd->rule;
	if (!r->id)
		return 0;
	bool has_finding = false;
	for (size_t i = 0; i < r->nr_texts; i++)
		has_finding |= rd->texts[i].kind == RULE_TEXT_FINDING;
	if (!r->test || !has_finding) {
		rd->line = r->line;
		return err_set(rd->err, -EINVAL, "rule '%s' has no '%s'", r->id,
			       r->test ? "finding" : "test");
	}
	r->texts = arena_dup(rd->a, rd->texts, r->nr_texts * sizeof(*r->texts));
	struct rule *same = find(rd->rules, sv_from_str(r->id));
	if (same)
		*same = *r;
	else
		vec_push(&rd->rules->all, *r);
	rd->rule = (struct rule){0};
	return 0;
}

static int begin_rule(struct reader *rd, struct sv id)
{
	TRY(end_rule(rd));
	if (!is_id(id))
		return err_set(
			rd->err, -EINVAL,
			"expected an id of lower-case letters, digits and '-' behind 'rule'");
	if (rd->rules->all.n >= RULES_MAX)
		return err_set(rd->err, -EINVAL, "more than %d rules", RULES_MAX);
	rd->rule = (struct rule){.id = arena_strndup(rd->a, id.p, id.n), .line = rd->line};
	return 0;
}

/* A line with those below it that begin with a blank; comments and empty lines end it. */
static struct sv next_line(struct reader *rd, struct sv *text, unsigned *nr_more)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct sv line = sv_split(text, '\n');
	rd->line++;
	*nr_more = 0;
	buf_add_sv(&b, sv_trim(line));
	while (b.n && b.p[0] != '#' && text->n && (text->p[0] == ' ' || text->p[0] == '\t')) {
		struct sv more = sv_trim(sv_split(text, '\n'));
		++*nr_more;
		if (!more.n)
			break;
		buf_add_str(&b, " ");
		buf_add_sv(&b, more);
	}
	return sv_from(arena_strndup(rd->a, buf_str(&b), b.n), b.n);
}

static int read_rule_line(struct reader *rd, struct sv line)
{
	if (!line.n || line.p[0] == '#')
		return 0;
	for (size_t i = 0; i < line.n; i++)
		if (iscntrl((unsigned char)line.p[i]) && line.p[i] != '\t')
			return err_set(rd->err, -EINVAL, "a control character");
	struct sv key = sv_take(&line, "abcdefghijklmnopqrstuvwxyz");
	struct sv value = sv_trim(line);
	if (sv_eq_str(key, "rule"))
		return begin_rule(rd, value);
	if (!rd->rule.id)
		return err_set(rd->err, -EINVAL, "expected 'rule ID'");
	if (!value.n)
		return err_set(rd->err, -EINVAL, "expected a value behind '%.*s'", SV_ARGS(key));
	return read_line(rd, key, value);
}

int rules_add(struct rules *rules, struct arena *a, struct sv text, struct err *err)
{
	struct reader *rd = arena_calloc(a, 1, sizeof(*rd));
	*rd = (struct reader){.rules = rules, .a = a, .err = err};
	if (text.n > RULES_BYTES_MAX)
		return err_set(err, -EINVAL, "more than %zu bytes", RULES_BYTES_MAX);
	while (text.n) {
		unsigned nr_more;
		struct sv line = next_line(rd, &text, &nr_more);
		if (read_rule_line(rd, line))
			return err_wrap(err, "line %u", rd->line);
		rd->line += nr_more;
	}
	return end_rule(rd) ? err_wrap(err, "line %u", rd->line) : 0;
}

void rules_add_builtin(struct rules *rules, struct arena *a)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	rules_add_builtin_text(&text);
	if (rules_add(rules, a, sv_from(arena_strndup(a, text.p, text.n), text.n), &err))
		BUG("built-in rules: %s", err_msg(&err));
}

/* ---- use ------------------------------------------------------------------------------------- */

bool rule_is_over(const struct rule *rule, const char *id)
{
	return sv_eq_str(rule->over, "*") || sv_has_item(rule->over, ',', sv_from_str(id));
}

static void add_filled(struct buf *to, struct sv text, const struct formula_names *values)
{
	struct sv before;
	struct sv name;
	while (next_brace(&text, &before, &name)) {
		buf_add_sv(to, before);
		formula_add_value(to, values->value(values->context, name, SV("")));
	}
	buf_add_sv(to, text);
}

size_t rule_add_text(struct buf *to, const struct rule *rule, enum rule_text_kind kind,
		     const struct formula_names *values, const char *separator)
{
	size_t nr = 0;
	for (size_t i = 0; i < rule->nr_texts; i++) {
		const struct rule_text *t = &rule->texts[i];
		if (t->kind != kind ||
		    (t->condition && formula_truth(formula_eval(t->condition, values)) != 1))
			continue;
		bool is_joined = kind == RULE_TEXT_FINDING && strchr(",;:.)", t->template.p[0]);
		if (nr++ && !is_joined)
			buf_add_str(to, separator);
		add_filled(to, t->template, values);
	}
	return nr;
}
