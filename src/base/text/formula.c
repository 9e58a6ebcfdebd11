/* Conditions over named values; see formula.h. */
#include "base/base.h"
#include "base/text/formula.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/opt/opt.h"
#include "base/text/num.h"
#include "base/text/regex.h"

enum op {
	OP_NUMBER,
	OP_TEXT,
	OP_NAME,
	OP_KNOWN,
	OP_NOT,
	OP_AND,
	OP_OR,
	OP_GE,
	OP_GT,
	OP_LE,
	OP_LT,
	OP_EQ,
	OP_NE,
	OP_MATCH, /* the right side is a regular expression */
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV
};

struct formula {
	enum op op;
	enum formula_unit unit;
	bool is_scaled; /* a number with K, M, G, T: of counts or of bytes */
	double number;
	double bytes; /* the number if it is of bytes */
	const char *text;
	struct sv name;
	struct sv argument;
	struct formula *left;
	struct formula *right;
};

struct parser {
	struct arena *a;
	struct sv whole;
	struct sv rest;
	const struct formula_names *names;
	unsigned depth;
	struct err *err;
};

/* ---- words --------------------------------------------------------------------------------- */

static int refuse(struct parser *p, const char *expected)
{
	size_t at = p->whole.n - p->rest.n;
	return err_set(p->err, -EINVAL, "'%.*s': expected %s at column %zu", SV_ARGS(p->whole),
		       expected, at + 1);
}

static void skip_blanks(struct parser *p)
{
	(void)sv_take(&p->rest, " \t");
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool take(struct parser *p, const char *symbol)
{
	skip_blanks(p);
	struct sv s = sv_from_str(symbol);
	if (!sv_has_prefix(p->rest, s))
		return false;
	if (is_word(symbol[0]) && p->rest.n > s.n &&
	    (is_word(p->rest.p[s.n]) || p->rest.p[s.n] == '.'))
		return false;
	p->rest = sv_from_idx(p->rest, s.n);
	return true;
}

static struct sv take_name(struct parser *p)
{
	size_t n = 0;
	const struct sv r = p->rest;
	while (n < r.n && (is_word(r.p[n]) || ((r.p[n] == '.' || r.p[n] == '-') && n &&
					       n + 1 < r.n && is_word(r.p[n + 1]))))
		n++;
	p->rest = sv_from_idx(r, n);
	return sv_from(r.p, n);
}

static struct formula *node(struct parser *p, enum op op, enum formula_unit unit)
{
	struct formula *e = arena_calloc(p->a, 1, sizeof(*e));
	e->op = op;
	e->unit = unit;
	return e;
}

/* ---- operands ------------------------------------------------------------------------------ */

static bool read_number(struct formula *e, struct sv text, struct sv unit)
{
	static const char *const times[] = {"ns", "us", "ms", "s", "m", "min", "h"};
	uint64_t v;
	CLEANUP(buf_release) struct buf copy = {0};
	struct sv whole = sv_from(text.p, text.n + unit.n);
	if (!sv_to_double(text, &e->number) || !isfinite(e->number))
		return false;
	if (!unit.n)
		return true;
	if (sv_eq_str(unit, "%")) {
		e->unit = FORMULA_PERCENT;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		if (!sv_eq_str(unit, times[i]))
			continue;
		e->unit = FORMULA_NS;
		buf_add_sv(&copy, whole);
		if (opt_to_duration(&v, buf_str(&copy), NULL))
			return false;
		e->number = (double)v;
		return true;
	}
	if (!num_parse_bytes(whole, &v))
		return false;
	e->bytes = (double)v;
	e->is_scaled = num_parse_count(whole, &v);
	e->number = e->is_scaled ? (double)v : e->bytes;
	e->unit = e->is_scaled ? FORMULA_PLAIN : FORMULA_BYTES;
	return true;
}

static int parse_number(struct parser *p, struct formula **ret_e)
{
	struct sv text = sv_take(&p->rest, "0123456789.");
	struct sv unit = {p->rest.p, 0};
	if (p->rest.n && p->rest.p[0] == '%')
		unit.n = 1;
	while (!(unit.n && unit.p[0] == '%') && unit.n < p->rest.n &&
	       isalpha((unsigned char)p->rest.p[unit.n]))
		unit.n++;
	*ret_e = node(p, OP_NUMBER, FORMULA_PLAIN);
	if (!read_number(*ret_e, text, unit)) {
		p->rest = sv_from(text.p, p->rest.n + text.n);
		return refuse(p, "a number such as 10%, 50ms, 8G or 200");
	}
	p->rest = sv_from_idx(p->rest, unit.n);
	return 0;
}

static int parse_text(struct parser *p, struct formula **ret_e)
{
	p->rest = sv_from_idx(p->rest, 1);
	ssize_t end = sv_index(p->rest, '\'');
	if (end < 0)
		return refuse(p, "a text that ends with '");
	*ret_e = node(p, OP_TEXT, FORMULA_TEXT);
	(*ret_e)->text = arena_strndup(p->a, p->rest.p, (size_t)end);
	p->rest = sv_from_idx(p->rest, (size_t)end + 1);
	return 0;
}

static int parse_argument(struct parser *p, struct sv *ret_name)
{
	ssize_t n = sv_index(p->rest, ')');
	*ret_name = sv_trim(sv_from(p->rest.p, (size_t)MAX(n, 0)));
	if (n < 0)
		return refuse(p, "')'");
	if (!ret_name->n)
		return refuse(p, "a name between parentheses");
	p->rest = sv_from_idx(p->rest, (size_t)n + 1);
	return 0;
}

static struct sv keep(struct parser *p, struct sv s)
{
	return sv_from(arena_strndup(p->a, s.p, s.n), s.n);
}

static int parse_name(struct parser *p, struct formula **ret_e)
{
	struct sv before = p->rest;
	struct sv name = take_name(p);
	struct sv argument = SV("");
	bool has_argument = p->rest.n && p->rest.p[0] == '(' && take(p, "(");
	if (has_argument)
		TRY(parse_argument(p, &argument));
	bool is_known = has_argument && sv_eq_str(name, "known");
	if (is_known) {
		name = argument;
		argument = SV("");
	}
	enum formula_unit unit = FORMULA_PLAIN;
	if (p->names->unit(p->names->context, name, argument, &unit, p->err)) {
		p->rest = before;
		return err_wrap(p->err, "column %zu", p->whole.n - p->rest.n + 1);
	}
	*ret_e = node(p, is_known ? OP_KNOWN : OP_NAME, is_known ? FORMULA_PLAIN : unit);
	(*ret_e)->name = keep(p, name);
	(*ret_e)->argument = keep(p, argument);
	return 0;
}

static int parse_or(struct parser *p, struct formula **ret_e);

static int parse_operand(struct parser *p, struct formula **ret_e)
{
	skip_blanks(p);
	char c = p->rest.n ? p->rest.p[0] : '\0';
	if (take(p, "(")) {
		TRY(parse_or(p, ret_e));
		return take(p, ")") ? 0 : refuse(p, "')'");
	}
	if (isdigit((unsigned char)c))
		return parse_number(p, ret_e);
	if (c == '\'')
		return parse_text(p, ret_e);
	if (isalpha((unsigned char)c))
		return parse_name(p, ret_e);
	return refuse(p, "a name, a number or '('");
}

/* ---- operators ----------------------------------------------------------------------------- */

/* A number with K, M, G is one of what the other side is. */
static void scale(struct formula *number, const struct formula *other)
{
	if (number->is_scaled && other->unit == FORMULA_BYTES) {
		number->number = number->bytes;
		number->unit = FORMULA_BYTES;
	}
}

static int check_match(struct parser *p, const struct formula *l, const struct formula *pattern)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	if (l->unit != FORMULA_TEXT || pattern->op != OP_TEXT)
		return refuse(p, "a text before '~' and a 'PATTERN' behind it, before");
	return regex_new(&re, pattern->text, 0, p->err);
}

static int join(struct parser *p, enum op op, struct formula **left, struct formula *right)
{
	struct formula *l = *left;
	scale(l, right);
	scale(right, l);
	bool is_product = op == OP_MUL || op == OP_DIV;
	bool is_compare = op >= OP_GE && op <= OP_MATCH;
	bool has_text = l->unit == FORMULA_TEXT || right->unit == FORMULA_TEXT;
	bool is_same = l->unit == right->unit ||
		       (!has_text && (l->unit == FORMULA_PLAIN || right->unit == FORMULA_PLAIN));
	if (op == OP_MATCH)
		TRY(check_match(p, l, right));
	else if (op != OP_AND && op != OP_OR &&
		 ((!is_product && !is_same) || (has_text && op != OP_EQ && op != OP_NE)))
		return refuse(
			p,
			"the same unit on both sides: per cent, time, bytes, counts or texts, before");
	enum formula_unit unit = FORMULA_PLAIN;
	if (op == OP_ADD || op == OP_SUB)
		unit = l->unit == FORMULA_PLAIN ? right->unit : l->unit;
	else if (is_product && right->unit == FORMULA_PLAIN)
		unit = l->unit;
	else if (op == OP_MUL && l->unit == FORMULA_PLAIN)
		unit = right->unit;
	struct formula *e = node(p, op, is_compare ? FORMULA_PLAIN : unit);
	e->left = l;
	e->right = right;
	*left = e;
	return 0;
}

struct symbol {
	const char *text;
	enum op op;
};

static bool take_symbol(struct parser *p, const struct symbol *symbols, size_t n, enum op *ret_op)
{
	for (size_t i = 0; i < n; i++)
		if (take(p, symbols[i].text)) {
			*ret_op = symbols[i].op;
			return true;
		}
	return false;
}

/* A row of operands of one precedence, from left to right. */
static int parse_row(struct parser *p, const struct symbol *symbols, size_t n,
		     int (*operand)(struct parser *p, struct formula **ret_e),
		     struct formula **ret_e)
{
	enum op op;
	TRY(operand(p, ret_e));
	while (take_symbol(p, symbols, n, &op)) {
		struct formula *right = NULL;
		TRY(operand(p, &right));
		TRY(join(p, op, ret_e, right));
	}
	return 0;
}

static int parse_product(struct parser *p, struct formula **ret_e)
{
	static const struct symbol symbols[] = {{"*", OP_MUL}, {"/", OP_DIV}};
	return parse_row(p, symbols, ARRAY_LEN(symbols), parse_operand, ret_e);
}

static int parse_sum(struct parser *p, struct formula **ret_e)
{
	static const struct symbol symbols[] = {{"+", OP_ADD}, {"-", OP_SUB}};
	return parse_row(p, symbols, ARRAY_LEN(symbols), parse_product, ret_e);
}

static int parse_compare(struct parser *p, struct formula **ret_e)
{
	static const struct symbol symbols[] = {{">=", OP_GE},  {">", OP_GT},  {"<=", OP_LE},
						{"<", OP_LT},   {"!=", OP_NE}, {"=", OP_EQ},
						{"~", OP_MATCH}};
	enum op op;
	TRY(parse_sum(p, ret_e));
	if (!take_symbol(p, symbols, ARRAY_LEN(symbols), &op))
		return 0;
	struct formula *right = NULL;
	TRY(parse_sum(p, &right));
	return join(p, op, ret_e, right);
}

static int parse_not(struct parser *p, struct formula **ret_e)
{
	if (!take(p, "not"))
		return parse_compare(p, ret_e);
	if (++p->depth > FORMULA_DEPTH_MAX)
		return refuse(p, "fewer levels");
	struct formula *e = node(p, OP_NOT, FORMULA_PLAIN);
	TRY(parse_not(p, &e->left));
	p->depth--;
	*ret_e = e;
	return 0;
}

static int parse_and(struct parser *p, struct formula **ret_e)
{
	static const struct symbol symbols[] = {{"and", OP_AND}};
	return parse_row(p, symbols, ARRAY_LEN(symbols), parse_not, ret_e);
}

static int parse_or(struct parser *p, struct formula **ret_e)
{
	static const struct symbol symbols[] = {{"or", OP_OR}};
	if (++p->depth > FORMULA_DEPTH_MAX)
		return refuse(p, "fewer levels of parentheses");
	TRY(parse_row(p, symbols, ARRAY_LEN(symbols), parse_and, ret_e));
	p->depth--;
	return 0;
}

int formula_parse(const struct formula **ret_e, struct arena *a, struct sv text,
		  const struct formula_names *names, struct err *err)
{
	struct parser p = {.a = a, .whole = text, .rest = text, .names = names, .err = err};
	struct formula *e = NULL;
	if (text.n > FORMULA_BYTES_MAX)
		return err_set(err, -EINVAL, "a condition of more than %d bytes",
			       FORMULA_BYTES_MAX);
	TRY(parse_or(&p, &e));
	skip_blanks(&p);
	if (p.rest.n)
		return refuse(&p, "an operator or the end");
	*ret_e = e;
	return 0;
}

/* ---- values -------------------------------------------------------------------------------- */

int formula_truth(struct formula_value v)
{
	if (!v.is_known)
		return -1;
	return v.unit == FORMULA_TEXT ? v.text[0] != '\0' : v.number != 0;
}

static struct formula_value truth(int t)
{
	return (struct formula_value){.is_known = t >= 0, .number = t > 0};
}

static struct formula_value logic(const struct formula *e, const struct formula_names *names)
{
	int decides = e->op == OP_OR;
	int l = formula_truth(formula_eval(e->left, names));
	if (l == decides)
		return truth(l);
	int r = formula_truth(formula_eval(e->right, names));
	return truth(r == decides || l >= 0 ? r : l);
}

static double calculate(enum op op, double l, double r)
{
	switch (op) {
	case OP_GE:
		return l >= r;
	case OP_GT:
		return l > r;
	case OP_LE:
		return l <= r;
	case OP_LT:
		return l < r;
	case OP_EQ:
		return l == r; /* NOLINT: of counts, and what was given as is */
	case OP_NE:
		return l != r;
	case OP_ADD:
		return l + r;
	case OP_SUB:
		return l - r;
	case OP_MUL:
		return l * r;
	case OP_DIV:
		return l / r;
	default:
		BUG("no operator of two numbers: %d", (int)op);
	}
}

/* Parsing has checked the pattern. */
static bool is_match(const char *text, const char *pattern)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	return !regex_new(&re, pattern, 0, NULL) && regex_match(re, sv_from_str(text));
}

static struct formula_value binary(const struct formula *e, const struct formula_names *names)
{
	struct formula_value l = formula_eval(e->left, names);
	struct formula_value r = formula_eval(e->right, names);
	if (!l.is_known || !r.is_known)
		return (struct formula_value){.unit = e->unit};
	if (e->op == OP_MATCH)
		return truth(is_match(l.text, r.text));
	if (l.unit == FORMULA_TEXT && r.unit == FORMULA_TEXT)
		return truth(!strcmp(l.text, r.text) == (e->op == OP_EQ));
	double v = calculate(e->op, l.number, r.number);
	return (struct formula_value){.is_known = isfinite(v), .unit = e->unit, .number = v};
}

struct formula_value formula_eval(const struct formula *e, const struct formula_names *names)
{
	struct formula_value v;
	switch (e->op) {
	case OP_NUMBER:
		return formula_number(e->number, e->unit);
	case OP_TEXT:
		return formula_text(e->text);
	case OP_NAME:
		v = names->value(names->context, e->name, e->argument);
		v.is_known &= v.unit == FORMULA_TEXT ? v.text != NULL : isfinite(v.number) != 0;
		return v;
	case OP_KNOWN:
		v = names->value(names->context, e->name, e->argument);
		return truth(v.is_known && (v.unit == FORMULA_TEXT || isfinite(v.number)));
	case OP_NOT:
		v = formula_eval(e->left, names);
		return v.is_known ? truth(!formula_truth(v)) : v;
	case OP_AND:
	case OP_OR:
		return logic(e, names);
	default:
		return binary(e, names);
	}
}

enum formula_unit formula_unit(const struct formula *e)
{
	return e->unit;
}

void formula_each_name(const struct formula *e, const struct formula_names *names,
		       void (*visit)(void *context, struct sv name, struct sv argument,
				     struct formula_value v),
		       void *context)
{
	if (e->op == OP_NAME)
		visit(context, e->name, e->argument, formula_eval(e, names));
	if (e->left)
		formula_each_name(e->left, names, visit, context);
	if (e->right)
		formula_each_name(e->right, names, visit, context);
}

void formula_add_value(struct buf *to, struct formula_value v)
{
	uint64_t whole = (uint64_t)(MIN(MAX(v.number, 0.0), 9e18) + 0.5);
	if (!v.is_known) {
		buf_add_str(to, "not known");
		return;
	}
	switch (v.unit) {
	case FORMULA_TEXT:
		buf_add_str(to, v.text);
		return;
	case FORMULA_PERCENT:
		buf_addf(to, "%s %%", num_double(v.number, v.number < 10 ? 1 : 0).s);
		return;
	case FORMULA_NS:
		num_add_ns(to, whole);
		return;
	case FORMULA_BYTES:
		num_add_bytes(to, whole);
		return;
	case FORMULA_COUNT:
		num_add_count(to, whole);
		return;
	case FORMULA_PLAIN:
		buf_add_str(to, num_double(v.number, v.number == floor(v.number) ? 0 : 2).s);
		return;
	}
}
