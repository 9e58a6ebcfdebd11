/* base/text/formula: precedence, units, values that are not known, and what is refused. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "base/text/formula.h"

static int unit_of(void *context, struct sv name, struct sv argument, enum formula_unit *ret_unit,
		   struct err *err)
{
	static const struct {
		const char *name;
		enum formula_unit unit;
	} units[] = {{"lock.pct", FORMULA_PERCENT}, {"rss", FORMULA_BYTES},
		     {"calls", FORMULA_COUNT},      {"p99", FORMULA_NS},
		     {"place", FORMULA_TEXT},       {"fired", FORMULA_PLAIN},
		     {"missing", FORMULA_PERCENT},  {"run-queue", FORMULA_NS},
		     {"empty", FORMULA_TEXT}};
	(void)context;
	(void)argument;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (sv_eq_str(name, units[i].name)) {
			*ret_unit = units[i].unit;
			return 0;
		}
	return err_set(err, -ENOENT, "no measure is named '%.*s'", SV_ARGS(name));
}

static struct formula_value value_of(void *context, struct sv name, struct sv argument)
{
	(void)context;
	if (sv_eq_str(name, "lock.pct"))
		return formula_number(38, FORMULA_PERCENT);
	if (sv_eq_str(name, "rss"))
		return formula_number(9.0 * (1 << 30), FORMULA_BYTES);
	if (sv_eq_str(name, "calls"))
		return formula_number(5000, FORMULA_COUNT);
	if (sv_eq_str(name, "p99") || sv_eq_str(name, "run-queue"))
		return formula_number(1700000, FORMULA_NS);
	if (sv_eq_str(name, "place"))
		return formula_text("main");
	if (sv_eq_str(name, "empty"))
		return formula_text("");
	if (sv_eq_str(name, "fired"))
		return formula_number(sv_eq_str(argument, "no-load"), FORMULA_PLAIN);
	return (struct formula_value){.unit = FORMULA_PERCENT};
}

static const struct formula_names names = {unit_of, value_of, NULL};

/* 1, 0, -1: not known; -2: refused. */
static int truth_of(const char *text)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct formula *e;
	if (formula_parse(&e, &a, sv_from_str(text), &names, NULL))
		return -2;
	return formula_truth(formula_eval(e, &names));
}

TEST(formula_compares_numbers_in_their_units)
{
	CHECK(truth_of("lock.pct >= 38%") == 1);
	CHECK(truth_of("lock.pct > 38%") == 0);
	CHECK(truth_of("rss > 8G") == 1);
	CHECK(truth_of("9G > rss") == 0);
	CHECK(truth_of("rss > 9600M") == 0);
	CHECK(truth_of("rss = 9GiB") == 1);
	CHECK(truth_of("calls = 5K") == 1);
	CHECK(truth_of("p99 > 1.5ms and p99 < 2ms") == 1);
	CHECK(truth_of("run-queue >= 1700us") == 1);
	CHECK(truth_of("place = 'main'") == 1);
	CHECK(truth_of("place != 'main'") == 0);
}

TEST(formula_matches_texts)
{
	CHECK(truth_of("place ~ '^ma'") == 1);
	CHECK(truth_of("place ~ 'ain|loop' and calls > 1") == 1);
	CHECK(truth_of("not place ~ '^ain'") == 1);
	CHECK(truth_of("empty ~ 'x'") == 0);
	CHECK(truth_of("place ~ 'a('") == -2);
	CHECK(truth_of("place ~ place") == -2);
	CHECK(truth_of("calls ~ '5'") == -2);
}

TEST(formula_has_the_usual_precedence)
{
	CHECK(truth_of("1 + 2 * 3 = 7") == 1);
	CHECK(truth_of("(1 + 2) * 3 = 9") == 1);
	CHECK(truth_of("10 - 4 - 3 = 3") == 1);
	CHECK(truth_of("1 = 1 or 1 = 0 and 1 = 0") == 1);
	CHECK(truth_of("not 1 = 0 and not (1 = 1 and 1 = 0)") == 1);
	CHECK(truth_of("lock.pct / 2 >= 19%") == 1);
	CHECK(truth_of("fired(no-load)") == 1);
	CHECK(truth_of("fired(lock)") == 0);
	CHECK(truth_of("place and not empty") == 1);
}

TEST(formula_with_a_value_that_is_not_known)
{
	CHECK(truth_of("missing > 3%") == -1);
	CHECK(truth_of("not missing > 3%") == -1);
	CHECK(truth_of("missing > 3% or lock.pct > 3%") == 1);
	CHECK(truth_of("lock.pct < 3% and missing > 3%") == 0);
	CHECK(truth_of("lock.pct > 3% and missing > 3%") == -1);
	CHECK(truth_of("known(missing) and missing > 3%") == 0);
	CHECK(truth_of("known(lock.pct)") == 1);
	CHECK(truth_of("1 / 0 > 1") == -1);
}

TEST(formula_refuses)
{
	static const char *const wrong[] = {"",
					    "lock.pct >",
					    "> 3",
					    "lock.pct >= 50ms",
					    "rss > 5%",
					    "place > 3",
					    "place > 'main'",
					    "no.such > 1",
					    "(1 = 1",
					    "1 = 1)",
					    "1 = 1 2",
					    "lock.pct >= 3 %x",
					    "'open",
					    "known()",
					    "known(no.such)",
					    "5 apples",
					    "fired(",
					    "1 = 1 && 2",
					    "p99 > 1.2.3ms",
					    "and"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (truth_of(wrong[i]) != -2)
			CHECK_STR(wrong[i], "refused");
}

TEST(formula_refuses_what_is_too_deep_or_long)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (int i = 0; i < 1000; i++)
		buf_add_str(&b, "(");
	CHECK(truth_of(buf_str(&b)) == -2);
	buf_clear(&b);
	for (int i = 0; i < 450; i++)
		buf_add_str(&b, "not ");
	buf_add_str(&b, "1");
	CHECK(truth_of(buf_str(&b)) == -2);
	buf_clear(&b);
	for (int i = 0; i < 2000; i++)
		buf_add_str(&b, "1+");
	buf_add_str(&b, "1");
	CHECK(truth_of(buf_str(&b)) == -2);
}

static int unit_of_calls(void *context, struct sv name, struct sv argument,
			 enum formula_unit *ret_unit, struct err *err)
{
	*ret_unit = FORMULA_NS;
	return sv_eq_str(name, "p99") && sv_eq_str(argument, context) ? 0
								      : err_set(err, -EINVAL, "no");
}

static struct formula_value no_value(void *context, struct sv name, struct sv argument)
{
	(void)context, (void)name, (void)argument;
	return (struct formula_value){0};
}

TEST(formula_arguments_are_all_up_to_the_parenthesis)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	char function[] = "std::vec<T>::push..drop";
	const struct formula_names n = {unit_of_calls, no_value, function};
	const struct formula *e;
	CHECK_U64(formula_parse(&e, &a, SV("p99( std::vec<T>::push..drop ) > 50ms"), &n, &err), 0);
	CHECK(formula_parse(&e, &a, SV("p99(x) > 50ms"), &n, &err) == -EINVAL);
	CHECK(formula_parse(&e, &a, SV("p99() > 50ms"), &n, &err) == -EINVAL);
	CHECK(strstr(err_msg(&err), "a name between parentheses") != NULL);
	CHECK(formula_parse(&e, &a, SV("p99(std"), &n, &err) == -EINVAL);
}

TEST(formula_error_names_the_column)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	const struct formula *e;
	CHECK(formula_parse(&e, &a, SV("lock.pct >= 10% and nope > 1"), &names, &err));
	CHECK_STR(err_msg(&err), "column 21: no measure is named 'nope'");
	CHECK(formula_parse(&e, &a, SV("lock.pct >= )"), &names, &err));
	CHECK_STR(err_msg(&err), "'lock.pct >= )': expected a name, a number or '(' at column 13");
}

static void add_name(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct buf *b = context;
	(void)argument;
	buf_addf(b, "%s%.*s = ", b->n ? ", " : "", SV_ARGS(name));
	formula_add_value(b, v);
}

TEST(formula_names_and_their_values)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	const struct formula *e;
	CHECK(!formula_parse(
		&e, &a,
		SV("lock.pct >= 10% and (rss > 8G or p99 > 1s or calls > 2) and missing > 1%"),
		&names, NULL));
	formula_each_name(e, &names, add_name, &b);
	CHECK_STR(buf_str(&b), "lock.pct = 38 %, rss = 9.00 GiB, p99 = 1.70 ms, calls = 5,000, "
			       "missing = not known");
}
