/* analyze/diff/: names, runs, conditions. */
#include "base/base.h"
#include "tap.h"

#include <math.h>
#include <string.h>

#include "analyze/diff/condition.h"
#include "analyze/diff/diff.h"
#include "analyze/diff/plainname.h"
#include "analyze/stacks/calltree.h"
#include "analyze/stacks/picture.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/stat.h"
#include "made.h"

/* ---- names --------------------------------------------------------------------------------- */

TEST(diff_names_lose_what_compilers_add)
{
	static const char *const functions[][2] = {
		{"f", "f"},
		{"f.cold", "f"},
		{"f.part.0.cold", "f"},
		{"f.isra.12", "f"},
		{"f.constprop.0.isra.3", "f"},
		{"f.llvm.1234567890", "f"},
		{"f.lto_priv.0", "f"},
		{"f.7", "f"},
		{"f(int) [clone .cold]", "f(int)"},
		{"f(int) [clone .isra.0] [clone .cold]", "f(int)"},
		{"krate::f::h0123456789abcdef", "krate::f"},
		{"_ZN5krate1f17h0123456789abcdefE", "_ZN5krate1f"},
		{"main.main.func1.2", "main.main.func1.2"},
		{"render (app.js:12)", "render (app.js:12)"},
		{"[unknown]", "[unknown]"},
		{"a::h0123", "a::h0123"},
		{".cold", ".cold"},
		{"", ""},
	};
	static const char *const modules[][2] = {
		{"libx.so.1.2.3", "libx.so"},
		{"libx.so", "libx.so"},
		{"server-0123456789abcdef", "server"},
		{"redis-server", "redis-server"},
		{"[kernel]", "[kernel]"},
	};
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		struct sv s = plainname_of_function(sv_from_str(functions[i][0]));
		CLEANUP(buf_release) struct buf b = {0};
		buf_add_sv(&b, s);
		CHECK_STR(buf_str(&b), functions[i][1]);
	}
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		struct sv s = plainname_of_module(sv_from_str(modules[i][0]));
		CLEANUP(buf_release) struct buf b = {0};
		buf_add_sv(&b, s);
		CHECK_STR(buf_str(&b), modules[i][1]);
	}
}

/* ---- runs ---------------------------------------------------------------------------------- */

#define RUNS_MAX 4

struct runs {
	struct profile *p[2 * RUNS_MAX];
	struct selection sel[2 * RUNS_MAX];
	size_t nr; /* of each side */
	struct arena a;
	struct diff d;
};

static void runs_release(struct runs *x)
{
	for (size_t i = 0; i < 2 * x->nr; i++)
		profile_free(x->p[i]);
	arena_release(&x->a);
}

static void compare(struct runs *x, enum diff_how how)
{
	for (size_t i = 0; i < 2 * x->nr; i++) {
		profile_seal(x->p[i]);
		CHECK(!views_select(&x->a, x->p[i], &(struct select_spec){0}, &x->sel[i], NULL));
	}
	struct diff_spec spec = {.runs = {x->sel, x->sel + x->nr},
				 .nr_runs = {x->nr, x->nr},
				 .how = how,
				 .by = BY_FUNCTION};
	diff_make(&x->d, &x->a, &spec);
}

static const struct diff_item *find(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->items[i].name, name))
			return &d->items[i];
	tap_fail(__FILE__, __LINE__, "no row '%s'", name);
	return &d->all;
}

/* Adds samples, each "module;function"; the stack is "main;function module". */
static struct profile *profile_of(const char *const *stacks, const int64_t *nr, size_t n)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	for (size_t i = 0; i < n; i++)
		if (nr[i])
			made_sample(p, t,
				    &(struct made){.stack = stacks[i], .nr = nr[i], .ns = 1 + i});
	return p;
}

TEST(diff_aligns_clones_and_renamed_modules)
{
	static const char *const before[] = {"main app-1.0;f.llvm.11 app-1.0;f.cold app-1.0",
					     "main app-1.0;read libc-2.31.so",
					     "main app-1.0;read [k]"};
	static const char *const after[] = {"main app-2.0;f.llvm.99 app-2.0",
					    "main app-2.0;read libc.so.6", "main app-2.0;read [k]"};
	static const int64_t nr[] = {1000, 200, 300};
	CLEANUP(runs_release)
	struct runs x = {.p = {profile_of(before, nr, 3), profile_of(after, nr, 3)}, .nr = 1};
	compare(&x, DIFF_SHARES);
	CHECK_U64(x.d.n, 4); /* main, f, and two of read */
	for (size_t i = 0; i < x.d.n; i++) {
		CHECK(x.d.items[i].self.change == 0 && x.d.items[i].total.change == 0);
		CHECK(x.d.items[i].is_in[DIFF_BEFORE] && x.d.items[i].is_in[DIFF_AFTER]);
	}
}

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
	return sqrt(-2 * log(uniform(seed))) * cos(2 * M_PI * uniform(seed));
}

#define NR_FUNCTIONS 60

/*
 * A run: function i has a share of 1 / (i + 1), times a factor that varies between runs by 15 %
 * (standard deviation), and Poisson noise. Function 9 is @times slower.
 */
static struct profile *drawn_run(uint64_t *seed, double times)
{
	static const unsigned planted = 9;
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	for (unsigned i = 0; i < NR_FUNCTIONS; i++) {
		double mean = 2000.0 / (i + 1) * exp(0.15 * normal(seed));
		mean *= i == planted ? times : 1;
		int64_t nr = llround(mean + sqrt(mean) * normal(seed));
		CLEANUP(buf_release) struct buf stack = {0};
		buf_addf(&stack, "main;f%u", i);
		if (nr > 0)
			made_sample(
				p, t,
				&(struct made){.stack = buf_str(&stack), .nr = nr, .ns = 1 + i});
	}
	return p;
}

static void draw(struct runs *x, uint64_t *seed, size_t nr, double times)
{
	x->nr = nr;
	for (size_t i = 0; i < 2 * nr; i++)
		x->p[i] = drawn_run(seed, i < nr ? 1 : times);
}

static size_t nr_marked(const struct diff *d)
{
	size_t nr = 0;
	for (size_t i = 0; i < d->n; i++)
		nr += diff_is_significant(&d->items[i].self);
	return nr;
}

TEST(diff_of_runs_covers_the_spread_between_them)
{
	enum { TRIES = 60 };
	uint64_t seed = 5;
	size_t of_one = 0;
	size_t of_runs = 0;
	size_t nr_found = 0;
	for (int i = 0; i < TRIES; i++) {
		CLEANUP(runs_release) struct runs one = {0};
		draw(&one, &seed, 1, 1);
		compare(&one, DIFF_SHARES);
		of_one += nr_marked(&one.d);
		CLEANUP(runs_release) struct runs same = {0};
		draw(&same, &seed, 3, 1);
		compare(&same, DIFF_SHARES);
		of_runs += nr_marked(&same.d);
		CLEANUP(runs_release) struct runs slower = {0};
		draw(&slower, &seed, 3, 2.5);
		compare(&slower, DIFF_SHARES);
		nr_found += diff_is_significant(&find(&slower.d, "f9")->self);
	}
	/* a single pair knows only sampling; three runs of each know how runs vary */
	CHECK(of_one > (size_t)TRIES * 2);
	CHECK(of_runs <= TRIES * NR_FUNCTIONS * 5 / 1000);
	CHECK(nr_found >= TRIES * 9 / 10);
}

TEST(diff_of_exact_runs_that_are_equal_marks_every_change)
{
	static const char *const stacks[] = {"main;a", "main;b"};
	static const int64_t before[] = {100, 50};
	static const int64_t after[] = {100, 51};
	CLEANUP(runs_release)
	struct runs x = {.p = {profile_of(stacks, before, 2), profile_of(stacks, before, 2),
			       profile_of(stacks, after, 2), profile_of(stacks, after, 2)},
			 .nr = 2};
	compare(&x, DIFF_AMOUNTS);
	CHECK(find(&x.d, "b")->self.change == 1);
	CHECK(x.d.has_spread && x.d.spread[0].prior_degrees == 0);
	CHECK(!diff_is_significant(&find(&x.d, "a")->self));
}

TEST(student_quantiles_are_those_of_tables)
{
	/* two-sided: 95 % for one, 0.05 / 100 for 100 */
	CHECK(fabs(stat_t_of_family(1, 1) - 12.7062) < 1e-3);
	CHECK(fabs(stat_t_of_family(1, 4) - 2.77645) < 1e-4);
	CHECK(fabs(stat_t_of_family(1, 30) - 2.04227) < 1e-4);
	CHECK(fabs(stat_t_of_family(50, 4) - 8.61030) < 1e-3); /* 0.1 % */
	CHECK(fabs(stat_t_of_family(100, 1e7) - stat_z_of_family(100)) < 1e-4);
	CHECK(fabs(stat_digamma(1) + 0.5772156649) < 1e-8);
	CHECK(fabs(stat_digamma(2) - 0.4227843351) < 1e-8);
	CHECK(fabs(stat_trigamma(1) - 1.6449340668) < 1e-8);
	CHECK(fabs(stat_trigamma(0.5) - 4.9348022005) < 1e-8);
}

TEST(diff_pictures_mark_what_tables_mark)
{
	static const char *const before[] = {"main;hot.llvm.1;x", "main;cool;x", "main;gone"};
	static const char *const after[] = {"main;hot.llvm.2;x", "main;cool;x", "main;gone"};
	static const int64_t nr_before[] = {1000, 1000, 200};
	static const int64_t nr_after[] = {1300, 1010, 0};
	CLEANUP(runs_release)
	struct runs x = {.p = {profile_of(before, nr_before, 3), profile_of(after, nr_after, 3)},
			 .nr = 1};
	compare(&x, DIFF_SHARES);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(picture_release) struct picture pic = {.tree_flags = CALLTREE_NORMALISE};
	const struct report_tree *t;
	picture_add_before(&pic, x.p[0], "before");
	picture_add(&pic, x.p[1], "after");
	CHECK(!picture_make(r, &pic, &t, NULL));
	size_t nr_changed = 0;
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const char *name = intern_str(&r->names, t->nodes[i].name);
		if (!(t->nodes[i].flags & TREE_CHANGED))
			continue;
		nr_changed++;
		const struct diff_item *it = find(&x.d, name);
		CHECK(diff_is_significant(&it->self) || diff_is_significant(&it->total));
	}
	CHECK_U64(t->nr_nodes, 7); /* all, main, hot, cool, gone, two of x: builds are aligned */
	CHECK(nr_changed >= 2 && nr_changed < t->nr_nodes - 1);
}

/* ---- conditions ---------------------------------------------------------------------------- */

static enum condition_verdict verdict_of(struct runs *x, const char *text)
{
	CLEANUP(err_release) struct err err = {0};
	struct condition c;
	struct condition_result r = {0};
	if (condition_parse(&c, &x->a, text, &err) || condition_eval(&r, &x->a, &c, &x->d, &err))
		tap_fail(__FILE__, __LINE__, "%s: %s", text, err_msg(&err));
	return r.verdict;
}

TEST(condition_is_of_self_or_total_and_needs_proof)
{
	static const char *const stacks[] = {"main;serve;keccak_a libk.so",
					     "main;serve;keccak_b libk.so",
					     "main;serve;alloc libc.so", "main;idle"};
	static const int64_t before[] = {1000, 1000, 3000, 5000};
	static const int64_t after[] = {1600, 1400, 3000, 4000};
	CLEANUP(runs_release)
	struct runs x = {.p = {profile_of(stacks, before, 4), profile_of(stacks, after, 4)},
			 .nr = 1};
	compare(&x, DIFF_SHARES);
	CHECK(verdict_of(&x, "fn~keccak > 3%") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "fn~keccak>9.5%") == CONDITION_IS_UNCERTAIN); /* 10 points */
	CHECK(verdict_of(&x, "fn~keccak > 11%") == CONDITION_IS_FALSE);
	CHECK(verdict_of(&x, "fn=keccak > 0%") == CONDITION_IS_FALSE); /* no such name */
	CHECK(verdict_of(&x, "fn=keccak_a.cold > 3 %") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "fn=serve > 1%") == CONDITION_IS_FALSE); /* self */
	CHECK(verdict_of(&x, "total(fn=serve) > 8%") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "total(fn~serve|keccak) > 11%") == CONDITION_IS_FALSE); /* once */
	CHECK(verdict_of(&x, "self( module=libk.so ) > 8%") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "module~libc > 0.1%") == CONDITION_IS_FALSE);
	CHECK(verdict_of(&x, "fn > 3%") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "fn > 7%") == CONDITION_IS_FALSE);
	CHECK(verdict_of(&x, "fn=keccak_a > 1.3x") == CONDITION_HOLDS);
	CHECK(verdict_of(&x, "fn=keccak_a > 1.58x") == CONDITION_IS_UNCERTAIN);
	CHECK(verdict_of(&x, "fn=keccak_a > 2x") == CONDITION_IS_FALSE);
}

TEST(condition_errors_say_what_was_expected)
{
	static const char *const wrong[][2] = {
		{"fn~keccak 3%", "'>' and a limit"},
		{"fn~keccak >", "a limit behind '>'"},
		{"fn~ > 3%", "a pattern behind '~'"},
		{"keccak > 3%", "'all', or 'fn', 'module' or 'crate'"},
		{"fnx > 3%", "'all', or 'fn', 'module' or 'crate'"},
		{"total(fn~a > 3%", "')' before '>'"},
		{"all > -3%", "a number before '%' or 'x'"},
		{"all > nanx", "a number before '%' or 'x'"},
	};
	CLEANUP(arena_release) struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CLEANUP(err_release) struct err err = {0};
		struct condition c;
		CHECK(condition_parse(&c, &a, wrong[i][0], &err) < 0);
		if (!strstr(err_msg(&err), wrong[i][1]))
			tap_fail(__FILE__, __LINE__, "%s: %s", wrong[i][0], err_msg(&err));
	}
	static const char *const stacks[] = {"main;a"};
	static const int64_t nr[] = {1000};
	CLEANUP(runs_release)
	struct runs x = {.p = {profile_of(stacks, nr, 1), profile_of(stacks, nr, 1)}, .nr = 1};
	compare(&x, DIFF_SHARES);
	CLEANUP(err_release) struct err err = {0};
	struct condition c;
	struct condition_result r;
	CHECK(!condition_parse(&c, &x.a, "all > 10MiB", &err));
	CHECK(condition_eval(&r, &x.a, &c, &x.d, &err) < 0);
	CHECK(strstr(err_msg(&err), "shares are compared"));
	CLEANUP(err_release) struct err bad = {0};
	CHECK(!condition_parse(&c, &x.a, "fn~a( > 1%", &bad));
	CHECK(condition_eval(&r, &x.a, &c, &x.d, &bad) < 0);
}
