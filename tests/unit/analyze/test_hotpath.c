/*
 * The rules of CPU time on analyze/stacks/hotpath and shortlived: where the sentence on the hottest path ends, when there is none,
 * and what is said of short processes.
 */
#include "base/base.h"
#include "tap.h"

#include "analyze/diagnose/diagnose.h"
#include "analyze/select/select.h"
#include "made.h"

static void add_sentences(struct report *r, const struct profile *p, const struct select_spec *spec)
{
	CLEANUP(measures_free_p) struct measures *m = measures_new(p, spec, NULL);
	diagnose_page(r, m, 1u << MEASURE_CPU, 0, 0);
}

/* Returns the sentence for samples of these stacks; "" if there is none. */
static const char *path_of(const struct made *rows, size_t nr)
{
	static char text[512];
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	for (size_t i = 0; i < nr; i++)
		made_sample(p, t, &rows[i]);
	profile_seal(p);
	add_sentences(r, p, &(struct select_spec){0});
	snprintf(text, sizeof(text), "%s", r->notes.n ? r->notes.p[0] : "");
	if (strstr(text, "no path of calls has half"))
		text[0] = 0;
	return text;
}

#define PATH_OF(...)                                \
	path_of((const struct made[]){__VA_ARGS__}, \
		sizeof((const struct made[]){__VA_ARGS__}) / sizeof(struct made))

TEST(hotpath_goes_to_the_callee_that_has_most)
{
	CHECK_STR(PATH_OF({.stack = "main;run;parse;copy", .nr = 600},
			  {.stack = "main;run;parse;hash", .nr = 250},
			  {.stack = "main;run;print;copy", .nr = 150}),
		  "hottest path: 60 % (+-3.03) of CPU time in main > run > parse > copy");
}

TEST(hotpath_ends_where_callees_share_the_time)
{
	CHECK_STR(
		PATH_OF({.stack = "main;run;spin", .nr = 480},
			{.stack = "main;run;work", .nr = 510}, {.stack = "main;init", .nr = 10}),
		"hottest path: 99 % (+-0.64) of CPU time in main > run: 51 % in work, 48 % in spin");
}

TEST(hotpath_keeps_the_user_functions_of_a_path_into_the_kernel)
{
	CHECK_STR(
		PATH_OF({.stack = "_start;main;run;put;write;entry [k];call [k];copy [k]",
			 .nr = 200}),
		"hottest path: 100 % (+-0.94) of CPU time in main > run > put > write > ... > copy");
}

TEST(hotpath_begins_at_main)
{
	CHECK_STR(PATH_OF({.stack = "libc.so.6!fn_29c30;main;run", .nr = 200}),
		  "hottest path: 100 % (+-0.94) of CPU time in main > run");
}

TEST(hotpath_leaves_out_how_threads_begin_and_enter_the_kernel)
{
	CHECK_STR(PATH_OF({.stack = "clone3;start_thread;cold", .nr = 500},
			  {.stack = "clone3;start_thread;warm", .nr = 500}),
		  "");
	CHECK_STR(
		PATH_OF({.stack = "clone3;start_thread;run;sendmsg;do_syscall_64 [k];a [k]",
			 .nr = 500},
			{.stack = "clone3;start_thread;run;sendmsg;do_syscall_64 [k];b [k]",
			 .nr = 500}),
		"hottest path: 100 % (+-0.19) of CPU time in run > sendmsg: 50 % in a, 50 % in b");
}

TEST(hotpath_goes_on_below_starts_of_threads_where_one_has_more_than_half)
{
	CHECK_STR(PATH_OF({.stack = "runtime.goexit;serve;render", .nr = 530},
			  {.stack = "runtime.goexit;collect;scan", .nr = 310},
			  {.stack = "runtime.goexit;other;f", .nr = 160}),
		  "hottest path: 53 % (+-3.09) of CPU time in serve > render");
}

TEST(hotpath_is_not_named_without_samples_or_without_a_path)
{
	CHECK_STR(PATH_OF({.stack = "[truncated];leaf", .nr = 300}, {.stack = "a;f", .nr = 100}),
		  "");
	CHECK_STR(PATH_OF({.stack = "main;f", .nr = 99}), "");
	CHECK_STR(PATH_OF({.stack = "a;f", .nr = 300}, {.stack = "b;f", .nr = 300},
			  {.stack = "c;f", .nr = 300}),
		  "");
}

/*
 * @nr processes of @life_ms in one second, each with a second name after its exec, and one with
 * @nr_other samples. Returns the finding, or the note in brackets.
 */
static const char *short_text(int32_t nr, uint64_t life_ms, const char *thread, unsigned nr_other)
{
	static char text[512];
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	p->start_ns = 1000;
	p->end_ns = p->start_ns + 1000000000;
	for (int32_t i = 0; i < nr; i++)
		for (int k = 0; k < 2; k++)
			made_sample(p, t,
				    &(struct made){.stack = "main;f",
						   .comm = k ? "sh" : "cut",
						   .pid = 100 + i,
						   .nr = 10});
	size_t nr_short = p->tasks.n;
	made_sample(p, t, &(struct made){.stack = "main;f", .pid = 99, .nr = nr_other});
	for (size_t i = 1; i < nr_short; i++) {
		p->tasks.p[i].start_ns = p->start_ns + 1000 + i;
		p->tasks.p[i].end_ns = p->tasks.p[i].start_ns + life_ms * 1000000;
	}
	profile_seal(p);
	add_sentences(r, p, &(struct select_spec){.thread = thread});
	text[0] = 0;
	vec_foreach(note, &r->notes)
		if (strstr(*note, "short processes"))
			snprintf(text, sizeof(text), r->findings.p[0] == *note ? "%s" : "(%s)",
				 *note);
	return text;
}

TEST(short_processes_are_counted_where_there_are_many)
{
	CHECK_STR(
		short_text(60, 2, NULL, 400),
		"short processes: 75 % of CPU time; at least 60 started and ended, 60 per second; "
		"half of those that were sampled lived for less than 2.00 ms");
	CHECK_STR(
		short_text(60, 2, NULL, 3600),
		"(short processes: 25 % of CPU time; at least 60 started and ended, 60 per second; "
		"half of those that were sampled lived for less than 2.00 ms)");
	CHECK_STR(short_text(40, 2, NULL, 0), "");
	CHECK_STR(short_text(60, 200, NULL, 0), "");
	CHECK_STR(short_text(60, 2, "100", 0), "");
}

TEST(kernel_time_is_of_the_named_function_above_those_of_a_stripped_library)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	made_sample(p, t, &(struct made){.stack = "main;read;do_syscall_64 [k];b [k]", .nr = 400});
	made_sample(p, t,
		    &(struct made){.stack = "main;write;libc.so.6!fn_8f340 libc.so.6;"
					    "libc.so.6!fn_9a700 libc.so.6;do_syscall_64 [k];a [k]",
				   .nr = 600});
	vec_foreach(f, &p->functions)
		if (strstr(profile_text(p, f->name), "!fn_"))
			f->flags |= FUNC_GUESSED;
	profile_seal(p);
	add_sentences(r, p, &(struct select_spec){0});
	bool has_it = false;
	vec_foreach(note, &r->notes)
		has_it |= strstr(*note, "kernel: 100 % of CPU time, most for write") != NULL;
	CHECK(has_it);
}
