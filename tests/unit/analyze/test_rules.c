/* analyze/diagnose/rules: what a text of rules may have, and the line that an error names. */
#include "base/base.h"
#include "tap.h"

#include "analyze/diagnose/diagnose.h"
#include "analyze/diagnose/diagnosis.h"
#include "analyze/diagnose/rules.h"
#include "base/mem.h"
#include "madewaits.h"

/* Returns the error; "" if the text is right. */
static const char *error_of(const char *text)
{
	static char message[300];
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = rules_add(&rules, &a, sv_from_str(text), &err);
	snprintf(message, sizeof(message), "%s", rc ? err_msg(&err) : "");
	return message;
}

TEST(rules_errors_name_the_line)
{
	CHECK_STR(error_of("# nothing\n\n"), "");
	CHECK_STR(error_of("rule a\ntest lock.pct > 1%\nfinding f\n"), "");
	CHECK_STR(error_of("test lock.pct > 1%\n"), "line 1: expected 'rule ID'");
	CHECK_STR(error_of("rule A b\n"),
		  "line 1: expected an id of lower-case letters, digits and "
		  "'-' behind 'rule'");
	CHECK_STR(error_of("rule a\nfinding f\n\nrule b\n"), "line 1: rule 'a' has no 'test'");
	CHECK_STR(error_of("rule a\ntest lock.pct > 1%\n"), "line 1: rule 'a' has no 'finding'");
	CHECK_STR(error_of("rule a\ntest lock.pct\n\t> 1%\n\tand lokc.pct > 1%\nfinding f\n"),
		  "line 2: column 19: no measure is named 'lokc.pct'");
	CHECK_STR(error_of("rule a\n\ntest lock.pct > 1%\nfinding {lock.pc} f\n"),
		  "line 4: no measure is named 'lock.pc'");
	CHECK_STR(error_of("rule a\ntest lock.pct > 1%\nfinding {lock.pct f\n"),
		  "line 3: '{' without '}'");
	CHECK_STR(error_of("rule a\ntest lock.pct > 1%\nfinding if lock.pct > 3% f\n"),
		  "line 3: expected ':' behind the condition");
	CHECK_STR(error_of("rule a\nadvice f\n"), "line 2: 'advice' is no part of a rule");
	CHECK_STR(error_of("rule a\nneeds waits, disks\n"),
		  "line 2: 'disks': expected capture, waits, cpu, memory, heap, io or faults");
	CHECK_STR(error_of("rule a\ntest fired(b)\n"),
		  "line 2: column 1: no rule before this one is named 'b'");
	CHECK_STR(error_of("rule a\ntest lock.pct > 1%\nfinding \x1b[2J\n"),
		  "line 3: a control character");
}

TEST(rules_of_any_size_are_refused_or_read)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (int i = 0; i < 600; i++)
		buf_addf(&b, "rule r%d\ntest lock.pct > 1%%\nfinding f\n", i);
	CHECK_STR(error_of(buf_str(&b)), "line 1501: more than 500 rules");
	buf_clear(&b);
	buf_add_str(&b, "rule a\ntest lock.pct > 1%\n");
	for (int i = 0; i < 200; i++)
		buf_add_str(&b, "finding f\n");
	CHECK_STR(error_of(buf_str(&b)), "line 103: more than 100 texts of a rule");
	buf_clear(&b);
	while (b.n < (1 << 20))
		buf_add_str(&b, "# much\n");
	CHECK_STR(error_of(buf_str(&b)), "more than 262144 bytes");
}

TEST(the_builtin_rules_are_right)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	rules_add_builtin(&rules, &a);
	CHECK(rules.all.n >= 20);
	vec_foreach(r, &rules.all)
		CHECK(r->needs && r->test);
	size_t nr = rules.all.n;
	rules_add_builtin(&rules, &a); /* the same ids: they replace */
	CHECK_U64(rules.all.n, nr);
}

/* ---- words ----------------------------------------------------------------------------------- */

#define WORDS_MAX 200

struct worded {
	struct sv names[WORDS_MAX];
	char *words[WORDS_MAX];
	size_t nr;
};

static bool is_known_already(const struct worded *all, struct sv name)
{
	for (size_t i = 0; i < all->nr; i++)
		if (sv_eq(all->names[i], name))
			return true;
	return false;
}

/* What depends on the sentence before it, is no word, or is the key of a measure. */
static bool is_plain(const char *words, struct sv key)
{
	static const char *const bad[] = {"its ", "the same", "that ", "of ", "1: ", "\"", "them"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!strncmp(words, bad[i], strlen(bad[i])))
			return false;
	return words[0] && (!sv_eq_str(key, words) || !strpbrk(words, "._"));
}

static void check_words(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct worded *all = context;
	enum measure_section section;
	enum wait_reason reason;
	CLEANUP(buf_release) struct buf b = {0};
	(void)v;
	if (argument.n || is_known_already(all, name))
		return;
	const struct measure *m = measure_find(name, &section, &reason);
	CHECK(m != NULL);
	measure_add_words(&b, name);
	if (!is_plain(buf_str(&b), name))
		CHECK_STR(buf_str(&b), "words for a measure of a rule");
	if (m->of)
		buf_addf(&b, " of %s", m->of);
	buf_addf(&b, " (unit %d)", (int)m->unit);
	for (size_t i = 0; i < all->nr; i++)
		if (!strcmp(all->words[i], buf_str(&b)) && !sv_eq_str(name, "io.seconds") &&
		    !sv_eq_str(name, "faults.seconds") && !sv_eq_str(name, "cpu.of-active"))
			CHECK_STR(buf_str(&b), "words that no other measure has");
	CHECK(all->nr < WORDS_MAX);
	all->names[all->nr] = name;
	all->words[all->nr++] = xstrdup(buf_str(&b));
}

static struct formula_value unknown(void *context, struct sv name, struct sv argument)
{
	(void)context;
	(void)name;
	(void)argument;
	return (struct formula_value){0};
}

TEST(each_measure_of_a_builtin_rule_has_words_of_its_own)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	struct worded all = {0};
	const struct formula_names names = {.value = unknown};
	rules_add_builtin(&rules, &a);
	vec_foreach(r, &rules.all) {
		formula_each_name(r->test, &names, check_words, &all);
		if (r->explains)
			formula_each_name(r->explains, &names, check_words, &all);
	}
	CHECK(all.nr > 60);
	for (size_t i = 0; i < all.nr; i++)
		free(all.words[i]);
}

static const char *condition(const char *text)
{
	static char words[500];
	CLEANUP(buf_release) struct buf b = {0};
	measure_add_condition(&b, sv_from_str(text));
	snprintf(words, sizeof(words), "%s", buf_str(&b));
	return words;
}

TEST(a_condition_in_words)
{
	CHECK_STR(
		condition("lock.pct >= 10% and lock.evident"),
		"lock >= 10 % of non-idle thread time and lock (at least 50 ms or 200 intervals)");
	CHECK_STR(condition("lock.cause = 'lock.pct' and lock.waits > 5K"),
		  "cause of waits for locks = 'lock.pct' and lock (number of intervals) > 5K");
	CHECK_STR(condition("io.syncs / io.seconds >= 20 and not fired(allocator)"),
		  "fsync calls and similar / seconds selected >= 20 and not fired(allocator)");
	CHECK_STR(condition("not (known(run_queue.pct)\tor  threads<3)"),
		  "not (known(run queue) or threads<3)");
	CHECK_STR(condition("allocator ~ 'a b"), "memory allocator ~ 'a b");
	CHECK_STR(condition(""), "");
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Waits of 2100 ms for fsync, 900 ms for reads, of 4 s. */
static struct profile *waits(void)
{
	struct profile *p = madewaits_new(4);
	struct madewait rows[] = {{.comm = "a",
				   .tid = 2,
				   .reason = WAIT_FSYNC,
				   .stack = "main app;commit app",
				   .nr = 500,
				   .ms = 2100},
				  {.comm = "a",
				   .tid = 2,
				   .reason = WAIT_FILE_READ,
				   .stack = "main app;load app",
				   .nr = 500,
				   .ms = 900}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		madewait(p, &rows[i]);
	profile_seal(p);
	return p;
}

/* The rules of a text, on waits(). */
struct judged {
	struct arena a;
	struct rules rules;
	struct profile *p;
	struct measures *m;
	struct diagnoses d;
};

static void judged_release(struct judged *j)
{
	measures_free(j->m);
	profile_free(j->p);
	rules_release(&j->rules);
	arena_release(&j->a);
}

static void judge(struct judged *j, const char *text)
{
	CLEANUP(err_release) struct err err = {0};
	j->p = waits();
	j->m = measures_new(j->p, &(struct select_spec){0}, NULL);
	CHECK(!rules_add(&j->rules, &j->a, sv_from_str(text), &err));
	diagnose_run(&j->d, &j->a, &j->rules, j->m, 0);
}

TEST(a_rule_is_over_later_ones_only_if_it_fires)
{
	static const char text[] =
		"rule cause\nneeds waits\ntest fsync.pct > %d%%\nover symptom\n"
		"order 1\nfinding {fsync.pct}\nfinding , then\nfinding if "
		"file_read.pct > 50%%: never\n"
		"rule symptom\nneeds waits\ntest file_read.pct > 1%%\n"
		"order 2\nfinding {file_read.where}\n"
		"rule blind\nneeds waits\ntest fsync.time / lock.time > 1\nfinding f\n"
		"rule after\nneeds waits\ntest fired(cause)\norder 0\nfinding f\n";
	for (int fires = 0; fires < 2; fires++) {
		CLEANUP(judged_release) struct judged j = {0};
		judge(&j, arena_fmt(&j.a, text, fires ? 10 : 90));
		CHECK_U64(j.d.nr, 4);
		CHECK(j.d.all[0].state == (fires ? DIAGNOSIS_FIRED : DIAGNOSIS_NOT_FIRED));
		CHECK(j.d.all[1].state == (fires ? DIAGNOSIS_EXPLAINED : DIAGNOSIS_FIRED));
		CHECK(j.d.all[2].state == DIAGNOSIS_COULD_NOT_RUN);
		CHECK(j.d.all[3].state == (fires ? DIAGNOSIS_FIRED : DIAGNOSIS_NOT_FIRED));
		CHECK_STR(diagnose_sentence(&j.a, &j.d, j.d.fired[0]),
			  fires ? "70 %, then" : "load");
	}
}

TEST(a_finding_that_comes_second_is_behind_the_first_of_the_others)
{
	static const char text[] =
		"rule small\ntest fsync.pct > 1%%\norder 5%%\nfinding small\n"
		"rule large\ntest fsync.pct > %d%%\norder 8%%\nfinding large\n"
		"rule others\ntest fsync.pct > 1%%\norder second 60%%\nfinding others\n";
	for (int fires = 0; fires < 2; fires++) {
		CLEANUP(judged_release) struct judged j = {0};
		judge(&j, arena_fmt(&j.a, text, fires ? 10 : 90));
		CHECK_U64(j.d.nr_fired, fires ? 3 : 2);
		CHECK_STR(diagnose_sentence(&j.a, &j.d, j.d.fired[0]), fires ? "large" : "others");
		CHECK_STR(diagnose_sentence(&j.a, &j.d, j.d.fired[1]), fires ? "others" : "small");
	}
}

/* Returns the cell "holds" of a recording of 20 s whose waits for fsync are in some seconds. */
static const char *holds(struct report *r, unsigned from, unsigned to)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(20);
	for (unsigned s = 0; s < 20; s++) {
		struct madewait w = {
			.comm = "a", .tid = 2, .stack = "main app;commit app", .nr = 300};
		w.second = s;
		w.reason = s >= from && s < to ? WAIT_FSYNC : WAIT_FILE_READ;
		w.ms = 900;
		madewait(p, &w);
	}
	profile_seal(p);
	rules_add_builtin(&rules, &a);
	diagnosis_report(r, p, &(struct select_spec){0}, &rules, NULL, 0);
	vec_foreach(t, &r->tables)
		for (size_t i = 0; i + 2 < t->nr_rows * t->nr_columns; i += t->nr_columns)
			if (!strcmp(t->cells[i].text, "fsync") &&
			    !strcmp(t->cells[i + 1].text, "holds"))
				return t->cells[i + 2].text;
	return "";
}

TEST(a_finding_of_some_parts_of_the_capture_is_an_episode)
{
	CLEANUP(report_free_p) struct report *all = report_new();
	CLEANUP(report_free_p) struct report *some = report_new();
	CHECK_STR(holds(all, 0, 18), "in 9 of 10 equal parts of the capture");
	CHECK_STR(holds(some, 4, 10),
		  "an episode: in 3 of 10 equal parts of the capture: 4 s to 6 s, 6 s to 8 s, "
		  "8 s to 10 s");
}

/* All of the time is an upper bound of what can be gained in any program. */
TEST(a_description_of_cpu_time_states_no_gain)
{
	static const char *const stacks[] = {"main;run;f", "main;f;write;ksys_write [k]"};
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(rules_release) struct rules rules = {0};
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
		madewaits_samples(p, 0, "a", 2, stacks[i], 900);
		profile_seal(p);
		rules_add_builtin(&rules, &a);
		diagnosis_report(r, p, &(struct select_spec){0}, &rules, NULL, 0);
		CHECK(r->findings.n && strstr(r->findings.p[0], "hottest path"));
		vec_foreach(t, &r->tables)
			for (size_t k = 0; k < t->nr_rows; k++)
				CHECK(strcmp(t->cells[k * t->nr_columns + 1].text, "gain") != 0);
	}
}

/* The hottest path says where the time on CPU goes; that there is so much of it adds nothing. */
TEST(a_hottest_path_is_over_time_on_cpu)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(10);
	struct madewait w = {.comm = "a", .tid = 2, .reason = WAIT_ON_CPU, .nr = 100, .ms = 9000};
	madewait(p, &w);
	w.reason = WAIT_FILE_READ;
	w.ms = 1000;
	madewait(p, &w);
	madewaits_samples(p, 0, "a", 2, "main;run;f", 900);
	profile_seal(p);
	rules_add_builtin(&rules, &a);
	diagnosis_report(r, p, &(struct select_spec){0}, &rules, NULL, 0);
	CHECK_U64(r->findings.n, 2);
	CHECK(r->findings.n && strstr(r->findings.p[0], "hottest path"));
	vec_foreach(one, &r->findings)
		CHECK(!strstr(*one, "on CPU: 90 %"));
}
