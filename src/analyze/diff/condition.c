/* Conditions on a comparison; see condition.h. */
#include "base/base.h"
#include "analyze/diff/condition.h"

#include <errno.h>
#include <math.h>

#include "analyze/diff/plainname.h"
#include "analyze/select/weigh.h"
#include "base/opt/opt.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "base/text/regex.h"

/* ---- parsing ------------------------------------------------------------------------------- */

static struct sv trim(struct sv s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = sv_from_idx(s, 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static int refuse(struct err *err, const char *text, const char *expected)
{
	err_set(err, -EINVAL, "condition '%s': expected %s", text, expected);
	return err_hint(err,
			"for example 'fn~keccak > 3%%', 'total(module=libc.so) > 1.2x', 'all > "
			"10MiB'");
}

static bool cut_prefix(struct sv *s, const char *prefix)
{
	if (!sv_has_prefix(*s, sv_from_str(prefix)))
		return false;
	*s = trim(sv_from_idx(*s, strlen(prefix)));
	return true;
}

static int parse_rows(struct condition *c, struct arena *a, struct sv rows, struct err *err)
{
	static const struct {
		const char *key;
		enum group_by by;
	} keys[] = {{"fn", BY_FUNCTION}, {"module", BY_MODULE}, {"crate", BY_CRATE}};
	if (sv_eq_str(rows, "all")) {
		c->match = CONDITION_ALL;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct sv rest = rows;
		if (!cut_prefix(&rest, keys[i].key))
			continue;
		c->by = keys[i].by;
		c->match = CONDITION_EACH;
		if (!rest.n)
			return 0;
		c->match = rest.p[0] == '~' ? CONDITION_REGEX : CONDITION_NAME;
		if (rest.p[0] != '~' && rest.p[0] != '=')
			break;
		rest = trim(sv_from_idx(rest, 1));
		if (!rest.n)
			return refuse(err, c->text, "a pattern behind '~' or a name behind '='");
		c->pattern = arena_strndup(a, rest.p, rest.n);
		return 0;
	}
	return refuse(err, c->text, "'all', or 'fn', 'module' or 'crate' with '~REGEX' or '=NAME'");
}

static int parse_limit(struct condition *c, struct arena *a, struct sv limit, struct err *err)
{
	if (!limit.n)
		return refuse(err, c->text, "a limit behind '>': 3%, 1.2x or an amount");
	c->limit = arena_strndup(a, limit.p, limit.n);
	char last = limit.p[limit.n - 1];
	c->kind = last == '%'   ? CONDITION_PERCENT
		  : last == 'x' ? CONDITION_TIMES
				: CONDITION_AMOUNT;
	if (c->kind == CONDITION_AMOUNT)
		return 0;
	struct sv number = trim(sv_from(limit.p, limit.n - 1));
	if (!sv_to_double(number, &c->number) || !(c->number >= 0) || !(c->number < 1e15))
		return refuse(err, c->text, "a number before '%' or 'x'");
	return 0;
}

int condition_parse(struct condition *ret_c, struct arena *a, const char *text, struct err *err)
{
	struct condition c = {.text = text};
	struct sv whole = sv_from_str(text);
	ssize_t at = sv_rindex(whole, '>');
	if (at < 0)
		return refuse(err, text, "'>' and a limit");
	struct sv rows = trim(sv_from(whole.p, (size_t)at));
	struct sv limit = trim(sv_from_idx(whole, (size_t)at + 1));
	struct sv inner = rows;
	c.is_total = cut_prefix(&inner, "total(");
	if (c.is_total || cut_prefix(&inner, "self(")) {
		if (!inner.n || inner.p[inner.n - 1] != ')')
			return refuse(err, text, "')' before '>'");
		rows = trim(sv_from(inner.p, inner.n - 1));
	}
	TRY(parse_rows(&c, a, rows, err));
	TRY(parse_limit(&c, a, limit, err));
	*ret_c = c;
	return 0;
}

/* ---- amounts ------------------------------------------------------------------------------- */

/* @name has been aligned, so a name given is, too. */
static bool is_match(const struct condition *c, struct regex *re, struct sv name)
{
	if (c->match == CONDITION_REGEX)
		return regex_match(re, name);
	struct sv given = sv_from_str(c->pattern);
	if (c->by == BY_FUNCTION)
		given = plainname_of_function(given);
	if (c->by == BY_MODULE)
		given = plainname_of_module(given);
	return sv_eq(name, given);
}

/* One group, 1, of all matching ones. */
static struct groups one_group(struct arena *a, const struct profile *p, const struct groups *g,
			       const struct condition *c, struct regex *re, bool *is_matched)
{
	bool *is_in = arena_calloc(a, g->n, sizeof(*is_in));
	struct groups one = {
		.n = 2,
		.rows = arena_calloc(a, 2, sizeof(*one.rows)),
		.by_frame = arena_calloc(a, p->frames.n, sizeof(*one.by_frame)),
		.by_loc = arena_calloc(a, p->locations.n, sizeof(*one.by_loc)),
	};
	for (size_t i = 1; i < g->n; i++) {
		is_in[i] = is_match(c, re, sv_from_str(g->rows[i].name));
		*is_matched |= is_in[i];
	}
	for (size_t f = 0; f < p->frames.n; f++)
		one.by_frame[f] = is_in[g->by_frame[f]];
	for (size_t l = 0; l < p->locations.n; l++)
		one.by_loc[l] = is_in[g->by_loc[l]];
	return one;
}

static int value_of_matches(struct diff_value *ret_v, struct arena *a, const struct condition *c,
			    const struct diff *d, bool *is_matched, struct err *err)
{
	const struct diff_spec *s = &d->spec;
	size_t nr_parts = diff_nr_parts(s);
	struct weight *weights = arena_calloc(a, nr_parts, sizeof(*weights));
	CLEANUP(regex_free_p) struct regex *re = NULL;
	if (c->match == CONDITION_REGEX && regex_new(&re, c->pattern, 0, err))
		return err_wrap(err, "condition '%s'", c->text);
	for (size_t i = 0; i < nr_parts; i++) {
		CLEANUP(arena_release) struct arena scratch = {0};
		const struct selection *sel = diff_part(s, i);
		struct groups g = groups_by_plain_name(&scratch, sel->p, c->by);
		struct groups one = one_group(&scratch, sel->p, &g, c, re, is_matched);
		struct weighed w = weigh(&scratch, sel);
		const struct group_weight *gw = weigh_groups(&scratch, &w, &one);
		weights[i] = c->is_total ? gw[1].total : gw[1].self;
	}
	struct diff_family family = diff_family_of(d, 1);
	*ret_v = diff_value_of(d, weights, c->is_total, &family);
	return 0;
}

/* ---- the verdict --------------------------------------------------------------------------- */

static int limit_of(double *ret_limit, const struct condition *c, const struct diff *d,
		    struct err *err)
{
	bool is_shares = d->spec.how == DIFF_SHARES;
	uint64_t v = 0;
	*ret_limit = 0;
	switch (c->kind) {
	case CONDITION_TIMES:
		return 0;
	case CONDITION_PERCENT:
		*ret_limit =
			is_shares ? c->number : d->all.self.amount[DIFF_BEFORE] * c->number / 100;
		return 0;
	case CONDITION_AMOUNT:
		break;
	}
	if (is_shares) {
		err_set(err, -EINVAL, "condition '%s': '%s' limits an amount, shares are compared",
			c->text, c->limit);
		return err_hint(err, "write a limit like 3%% or 1.2x, or add --absolute");
	}
	struct sv limit = sv_from_str(c->limit);
	enum unit unit = d->spec.runs[DIFF_AFTER]->unit;
	bool is_ok = unit == UNIT_BYTES ? num_parse_bytes(limit, &v)
		     : unit == UNIT_NS  ? !opt_to_duration(&v, c->limit, NULL)
					: num_parse_count(limit, &v);
	if (!is_ok)
		return refuse(err, c->text,
			      unit == UNIT_BYTES ? "a size like 10MiB behind '>', or 3%, 1.2x"
			      : unit == UNIT_NS  ? "a time like 20ms behind '>', or 3%, 1.2x"
						 : "a count like 5000 behind '>', or 3%, 1.2x");
	*ret_limit = (double)v;
	return 0;
}

static void judge(struct condition_result *r, const struct diff_value *v)
{
	const struct condition *c = r->condition;
	r->change = v->change;
	r->error = v->change_error;
	if (c->kind == CONDITION_TIMES) { /* the interval is that of after - x * before */
		double x = c->number;
		double a = v->amount[DIFF_BEFORE];
		double b = v->amount[DIFF_AFTER];
		const struct stat_interval *ia = &v->range[DIFF_BEFORE];
		const struct stat_interval *ib = &v->range[DIFF_AFTER];
		r->limit = (x - 1) * a;
		r->error = MAX(hypot(b - ib->low, x * (ia->high - a)),
			       hypot(ib->high - b, x * (a - ia->low)));
		r->error = MAX(r->error, v->spread * MAX(x, 1.0));
	}
	r->verdict = !(r->change > r->limit)           ? CONDITION_IS_FALSE
		     : r->change - r->error > r->limit ? CONDITION_HOLDS
						       : CONDITION_IS_UNCERTAIN;
}

/* The row that exceeds the limit most clearly. */
static void judge_each(struct condition_result *r, const struct diff *d)
{
	struct condition_result best = *r;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		struct condition_result one = *r;
		one.name = it->name;
		one.is_matched = true;
		judge(&one, r->condition->is_total ? &it->total : &it->self);
		if (!best.is_matched || one.verdict > best.verdict ||
		    (one.verdict == best.verdict &&
		     one.change - one.error - one.limit > best.change - best.error - best.limit))
			best = one;
	}
	*r = best;
}

int condition_eval(struct condition_result *ret_r, struct arena *a, const struct condition *c,
		   const struct diff *d, struct err *err)
{
	struct condition_result r = {.condition = c, .name = ""};
	struct diff_value v = d->all.self;
	TRY(limit_of(&r.limit, c, d, err));
	if (c->match == CONDITION_EACH) {
		struct diff by_key = *d;
		struct diff_spec spec = d->spec;
		spec.by = c->by;
		if (c->by != d->spec.by)
			diff_make(&by_key, a, &spec);
		judge_each(&r, &by_key);
		*ret_r = r;
		return 0;
	}
	r.is_matched = c->match == CONDITION_ALL;
	if (!r.is_matched)
		TRY(value_of_matches(&v, a, c, d, &r.is_matched, err));
	judge(&r, &v);
	*ret_r = r;
	return 0;
}

/* ---- the table ----------------------------------------------------------------------------- */

const char *condition_verdict_text(enum condition_verdict v)
{
	switch (v) {
	case CONDITION_IS_FALSE:
		return "no";
	case CONDITION_IS_UNCERTAIN:
		return "may be chance";
	case CONDITION_HOLDS:
		return "yes";
	}
	BUG("no such verdict: %d", (int)v);
}

void condition_report(struct report *r, const struct diff *d,
		      const struct condition_result *results, size_t nr)
{
	enum { POINTS = 1, AMOUNTS = 2 };
	static const enum cell_kind changes[] = {[UNIT_COUNT] = CELL_COUNT_CHANGE,
						 [UNIT_NS] = CELL_NS_CHANGE,
						 [UNIT_BYTES] = CELL_BYTES_CHANGE};
	enum cell_kind change = changes[d->spec.runs[DIFF_AFTER]->unit];
	const struct report_column columns[] = {
		{"holds", "holds", CELL_TEXT, "yes, no, may be chance"},
		{"change_points", "change", CELL_FLOAT, "percentage points", POINTS},
		{"change_error_points", "+-", CELL_FLOAT, "half width of its interval", POINTS},
		{"limit_points", "limit", CELL_FLOAT, NULL, POINTS},
		{"change", "change", change, NULL, AMOUNTS},
		{"limit", "limit", change, NULL, AMOUNTS},
		{"condition", "condition", CELL_TEXT, NULL},
		{"name", "name", CELL_TEXT, "of the row, where each is compared"},
	};
	struct report_table *t =
		report_add_table_of(r, "conditions", "conditions to fail (--fail-if)", columns,
				    ARRAY_LEN(columns),
				    d->spec.how == DIFF_SHARES ? POINTS : AMOUNTS);
	for (size_t i = 0; i < nr; i++) {
		const struct condition_result *c = &results[i];
		const union cell cells[] = {
			{.text = condition_verdict_text(c->verdict)},
			{.d = c->change},
			{.d = isfinite(c->error) ? c->error : (double)NAN},
			{.d = c->limit},
			{.estimate = {.change = llrint(MAX(MIN(c->change, 9e18), -9e18)),
				      .error = isfinite(c->error)
						       ? (uint64_t)llrint(MIN(c->error, 9e18))
						       : 0}},
			{.estimate = {.change = llrint(MIN(c->limit, 9e18))}},
			{.text = c->condition->text},
			{.text = c->name},
		};
		report_add_row(r, t, cells);
	}
}
