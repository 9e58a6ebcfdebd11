/* session/bench: what is measured of a run, and values read from a program's output. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "session/bench/benchlines.h"
#include "session/bench/benchloop.h"
#include "session/bench/benchrunner.h"

static int run_shell(struct bench_runner *r, const char *script, bench_sink_fn sink, void *ctx,
		     struct bench_run *ret)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	return bench_runner_run(r, argv, BENCH_RUN_PADDED, "7", sink, ctx, ret, NULL);
}

static struct bench_runner *new_runner(enum bench_output_kind output)
{
	static struct arena names; /* they outlive the runner */
	struct bench_runner *r = NULL;
	struct counter_events events = {0};
	CHECK(!counter_events_add(&events, &names, "cpu-migrations", NULL));
	CHECK(!bench_runner_new(&r, &(struct bench_stdio){.output = output}, &events, NULL));
	return r;
}

TEST(bench_counters_count_the_command_and_nothing_of_the_helper)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(bench_runner_free_p) struct bench_runner *r = NULL;
	struct counter_events events = {0};
	struct bench_run runs[2];
	CHECK(!counter_events_add(&events, &a, "page-faults,task-clock,cpu-migrations", NULL));
	CHECK(!bench_runner_new(&r, &(struct bench_stdio){0}, &events, NULL));
	for (size_t i = 0; i < ARRAY_LEN(runs); i++) /* the second is not added to the first */
		CHECK(!run_shell(r, "dd if=/dev/zero of=/dev/null bs=8M count=1 2>&1; true", NULL,
				 NULL, &runs[i]));
	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		const struct counter_value *v = runs[i].counters;
		double faults =
			(double)(runs[i].v[BENCH_MINOR_FAULTS] + runs[i].v[BENCH_MAJOR_FAULTS]);
		CHECK(v[0].value <= faults && v[0].value >= 0.9 * faults - 20);
		CHECK(v[1].value > 0 && v[1].value <= (double)runs[i].v[BENCH_WALL] * 1.1);
		CHECK_U64(runs[i].v[BENCH_MIGRATIONS], v[2].value);
	}
	if (bench_runner_counters(r)->state[0])
		tap_skip("page faults cannot be counted");
}

TEST(bench_peak_is_that_of_a_small_child_of_a_large_parent)
{
	enum { LARGE = 300 << 20 };
#ifdef __SANITIZE_ADDRESS__
	tap_skip("the helper has the shadow memory of AddressSanitizer");
#endif
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	struct bench_run small;
	struct bench_run child;
	CHECK(!run_shell(r, "exec dd if=/dev/zero of=/dev/null bs=8M count=1 2>&1", NULL, NULL,
			 &small));
	CLEANUP(free_p) char *large = xmalloc(LARGE);
	memset(large, 1, LARGE);
	CHECK(!run_shell(r, "exec dd if=/dev/zero of=/dev/null bs=8M count=1 2>&1", NULL, NULL,
			 &child));
	uint64_t peak = child.v[BENCH_PEAK_RSS];
	CHECK(peak > 8u << 20 && peak < 12u << 20 && !child.peak_is_bound);
	CHECK(peak < small.v[BENCH_PEAK_RSS] * 105 / 100);
	CHECK(bench_runner_bound_bytes(r) < 16u << 20);
}

static void keep_output(void *ctx, const struct bench_piece *piece)
{
	buf_add(ctx, piece->p, piece->n);
}

TEST(bench_run_has_status_output_and_times)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_PIPE);
	CLEANUP(buf_release) struct buf out = {0};
	struct bench_run run;
	CHECK(!run_shell(r, "echo $HYPERFINE_ITERATION; sleep 0.05; exit 3", keep_output, &out,
			 &run));
	CHECK_STR(buf_str(&out), "7\n");
	CHECK(run.exit_code == 3);
	CHECK(run.v[BENCH_WALL] >= 50000000 && run.v[BENCH_WALL] < 10000000000);
	CHECK(run.v[BENCH_VOLUNTARY_SWITCHES] >= 1 && run.v[BENCH_MINOR_FAULTS] > 20);
	CHECK(!run_shell(r, "kill -9 $$", NULL, NULL, &run));
	CHECK(run.exit_code == 137);
	uint64_t wall = 0;
	CHECK(!run_shell(r, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", NULL, NULL, &run));
	wall = run.v[BENCH_WALL];
	CHECK(run.v[BENCH_USER] > 10000000 && run.v[BENCH_USER] < wall + wall / 10);
}

TEST(bench_migrations_are_those_of_the_command_and_its_children)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_skip("one CPU");
	for (int i = 0; i < 4; i++) { /* none of the helper is in it */
		struct bench_run run;
		CHECK(!run_shell(
			r,
			"move() { for i in 1 2 3 4 5; do taskset -pc 0 $1; taskset -pc 1 $1; done; }\n"
			"move $$; sh -c 'kill -STOP $$; exit 0' & move $!; kill -CONT $!; wait $!",
			NULL, NULL, &run));
		if (run.v[BENCH_MIGRATIONS] == UINT64_MAX)
			tap_skip("no permission to count events");
		CHECK(run.v[BENCH_MIGRATIONS] >= 9 && run.v[BENCH_MIGRATIONS] < 1000);
	}
}

TEST(bench_a_command_that_cannot_run_is_an_error_and_the_next_one_runs)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	CLEANUP(err_release) struct err err = {0};
	char *argv[] = {(char *)"no-such-program", NULL};
	struct bench_run run;
	CHECK(bench_runner_run(r, argv, 0, NULL, NULL, NULL, &run, &err) == -ENOENT);
	CHECK_STR(err_msg(&err), "cannot run 'no-such-program': No such file or directory");
	CHECK(!run_shell(r, "exit 0", NULL, NULL, &run) && run.exit_code == 0);
}

struct printed {
	struct bench_patterns patterns;
	struct bench_lines lines;
	struct arena names;
};

static void printed_release(struct printed *p)
{
	bench_lines_release(&p->lines);
	bench_patterns_release(&p->patterns);
	arena_release(&p->names);
}

static void take(struct printed *p, const char *text, size_t piece)
{
	size_t n = strlen(text);
	if (!p->lines.patterns)
		bench_lines_init(&p->lines, &p->patterns);
	for (size_t i = 0; i < n; i += piece)
		bench_lines_add(&p->lines, text + i, MIN(piece, n - i), 1);
	bench_lines_end(&p->lines, 2);
}

static const struct bench_values *each_of(struct printed *p, const char *pattern, const char *text,
					  size_t piece)
{
	CHECK(!bench_patterns_add_each(&p->patterns, pattern, NULL));
	take(p, text, piece);
	return &p->lines.values[0];
}

TEST(bench_values_are_found_however_the_output_is_cut)
{
	static const char text[] =
		"start\nTIME SPENT: 60 ms\nTIME SPENT: 61.5 ms.\nTIME SPENT: x ms\n"
		"TIME SPENT: 2 s";
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		CLEANUP(printed_release) struct printed p = {0};
		const struct bench_values *v = each_of(&p, "TIME SPENT: ([0-9.x]+)", text, piece);
		CHECK(v->values.n == 3 && v->has_time && !v->has_plain && v->nr_not_numbers == 1);
		CHECK(v->values.p[0] == 60e6 && v->values.p[1] == 61.5e6 && v->values.p[2] == 2e9);
	}
}

TEST(bench_values_without_a_unit_of_time_are_numbers)
{
	CLEANUP(printed_release) struct printed p = {0};
	const struct bench_values *v = each_of(&p, "rate ([0-9.]+)", "rate 12 s/op\nrate 7\n", 5);
	CHECK(v->values.n == 2 && v->has_plain && !v->has_time && v->values.p[0] == 12);
}

TEST(bench_metric_lines_of_both_forms_are_read)
{
	CLEANUP(printed_release) struct printed p = {0};
	const struct bench_values *v = each_of(
		&p, BENCH_METRIC_PATTERN,
		"INFO [METRIC] BLOCK EXECUTION THROUGHPUT (24443168): 0.63 Ggas/s TIME SPENT: 60 ms. Gas "
		"Used: 37500000 (62%), #Txs: 442.\n"
		"INFO [METRIC] BLOCK 24443168 | 0.610 Ggas/s | 61.25 ms | 442 txs | 38 Mgas (62%)\n"
		"INFO [METRIC] |- exec: 40 ms (66%)\n",
		64);
	CHECK(v->values.n == 2 && v->values.p[0] == 60e6 && v->values.p[1] == 61.25e6);
}

static void add_phase(struct printed *p, const char *text)
{
	CHECK(!bench_patterns_add_phase(&p->patterns, &p->names, text, NULL));
}

static void add_line(struct printed *p, const char *line, uint64_t at_ns)
{
	bench_lines_add(&p->lines, line, strlen(line), at_ns);
}

TEST(bench_phases_last_from_their_line_to_the_next_boundary_or_the_end)
{
	CLEANUP(printed_release) struct printed p = {0};
	add_phase(&p, "load=^load");
	add_phase(&p, "run=^run");
	add_phase(&p, "inner=inner took ([0-9]+)");
	bench_lines_init(&p.lines, &p.patterns);
	const struct bench_values *v = p.lines.values;
	for (size_t run = 0; run < 2; run++) {
		p.lines.run_idx = run;
		add_line(&p, "hello\nlo", 50);
		add_line(&p, "ading\n", 100);
		add_line(&p, "inner took 3 us\nnothing\n", 150);
		add_line(&p, "running\n", 300);
		add_line(&p, "load again\n", 1000);
		bench_lines_end(&p.lines, 1700);
	}
	CHECK(v[0].values.n == 4 && v[1].values.n == 2 && v[2].values.n == 2);
	CHECK(v[0].values.p[0] == 200 && v[0].values.p[1] == 700 && v[1].values.p[0] == 700);
	CHECK(v[0].runs.p[1] == 0 && v[0].runs.p[2] == 1 && v[2].values.p[1] == 3000);
	CHECK(!v[0].nr_at_once && v[0].has_time && !v[0].has_plain);
}

TEST(bench_phases_whose_lines_come_together_are_counted)
{
	CLEANUP(printed_release) struct printed p = {0};
	add_phase(&p, "a=^a");
	add_phase(&p, "b=^b");
	bench_lines_init(&p.lines, &p.patterns);
	add_line(&p, "a\nb\n", 500); /* read after the end of the run */
	bench_lines_end(&p.lines, 400);
	const struct bench_values *v = p.lines.values;
	CHECK(v[0].nr_at_once == 1 && v[0].values.p[0] == 0 && v[1].values.p[0] == 0);
	bench_lines_clear(&p.lines);
	CHECK(!v[0].values.n && !v[0].nr_at_once && p.patterns.n == 2);
}

TEST(bench_phases_need_a_name_of_their_own)
{
	static const char *const wrong[] = {"ok", "=^a", "ok=x", "a=("};
	CLEANUP(printed_release) struct printed p = {0};
	add_phase(&p, "ok=a=b");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK(bench_patterns_add_phase(&p.patterns, &p.names, wrong[i], NULL) == -EINVAL);
	CHECK(bench_patterns_add_function(&p.patterns, &p.names, "ok=f", NULL) == -EINVAL);
	CHECK(bench_patterns_add_function(&p.patterns, &p.names, "f", NULL) == -EINVAL);
	CHECK(p.patterns.n == 1 && p.patterns.p[0].is_boundary);
	CHECK(!bench_patterns_add_function(&p.patterns, &p.names, "f=a..b", NULL));
	CHECK(!bench_patterns_has_marks(&p.patterns) && bench_patterns_has_bounds(&p.patterns));
	CHECK_STR(p.patterns.p[1].function, "a..b");
}

static void add_mark(struct printed *p, const char *line, uint64_t at_ns)
{
	bench_lines_add_marks(&p->lines, line, strlen(line), at_ns);
}

TEST(bench_phases_by_mark_last_from_begin_to_end_and_may_overlap)
{
	CLEANUP(printed_release) struct printed p = {0};
	add_phase(&p, "whole");
	add_phase(&p, "whole sum");
	add_phase(&p, "line=^line");
	bench_lines_init(&p.lines, &p.patterns);
	const struct bench_values *v = p.lines.values;
	add_mark(&p, "whole be", 50);
	add_mark(&p, "gin\nwhole sum begin\n", 100);
	add_line(&p, "line\n", 150);
	add_mark(&p, "whole sum end\nwhole sum end\n", 300);
	add_mark(&p, "whole sum begin\nwhole  begin x\nwhole\nwholes end\n", 600);
	bench_lines_end(&p.lines, 1000);
	CHECK(v[0].values.n == 2 && v[0].values.p[0] == 500 && v[0].values.p[1] == 400);
	CHECK(v[1].values.n == 2 && v[1].values.p[0] == 200 && v[1].values.p[1] == 400);
	CHECK(v[2].values.n == 1 && v[2].values.p[0] == 850);
	CHECK(v[1].nr_unopened == 1 && p.lines.nr_unknown == 2);
	CHECK(v[0].nr_unended == 1 && v[1].nr_unended == 1 && !v[2].nr_unended);
	CHECK(p.lines.unknown.n == 2);
	CHECK_STR(p.lines.unknown.p[1], "wholes end");
	bench_lines_clear(&p.lines);
	CHECK(!p.lines.nr_unknown);
}

static bool count_hundreds(void *ctx, struct counter_value *ret)
{
	size_t *nr = ctx;
	ret[1] = (struct counter_value){(double)(100 * ++*nr), *nr, *nr};
	return *nr != 3; /* one reading fails */
}

TEST(bench_phases_have_what_was_counted_from_begin_to_end_in_each_run)
{
	CLEANUP(printed_release) struct printed p = {0};
	size_t nr = 0;
	add_phase(&p, "a");
	add_phase(&p, "b=^b");
	add_phase(&p, "c=c ([0-9]+)");
	bench_lines_init(&p.lines, &p.patterns);
	p.lines.count = count_hundreds;
	p.lines.count_ctx = &nr;
	const struct bench_values *v = p.lines.values;
	add_mark(&p, "a begin\na end\na begin\n", 100); /* the third is not read */
	bench_lines_end(&p.lines, 200);
	p.lines.run_idx = 2;
	add_line(&p, "b\nc 7 s\n", 300);
	add_mark(&p, "a begin\n", 400);
	add_mark(&p, "a end\na begin\na end\n", 500);
	bench_lines_end(&p.lines, 600);
	CHECK(v[0].counts.n == 3 && v[0].counts.p[0].nr == 1 && !v[0].counts.p[1].nr);
	CHECK(v[0].counts.p[0].v[1].value == 100 && v[0].counts.p[0].v[1].running_ns == 1);
	CHECK(v[0].counts.p[2].nr == 2 && v[0].counts.p[2].v[1].value == 200);
	CHECK(v[1].counts.n == 3 && v[1].counts.p[2].v[1].value == 500 && !v[2].counts.n);
	bench_lines_clear(&p.lines);
	CHECK(!v[0].counts.n && !v[1].counts.n);
}

TEST(bench_marks_have_their_own_time_if_it_can_be_one_of_the_run)
{
	CLEANUP(printed_release) struct printed p = {0};
	add_phase(&p, "run");
	bench_lines_init(&p.lines, &p.patterns);
	const struct bench_values *v = p.lines.values;
	bench_lines_end(&p.lines, 1000000000);
	add_mark(&p, "run begin 1.000000500\nrun end 1.000000900\n", 1000005000);
	add_mark(&p, "run begin 0.5\nrun end 7.5\n",
		 1000006000); /* before the run, in the future */
	CHECK(v[0].values.n == 2 && v[0].values.p[0] == 400 && v[0].values.p[1] == 0);
	CHECK(bench_patterns_has_marks(&p.patterns) && !bench_patterns_has_lines(&p.patterns));
}

static void keep_marks(void *ctx, const struct bench_piece *piece)
{
	struct buf *to = ctx;
	if (piece->is_mark)
		buf_add(to, piece->p, piece->n);
}

TEST(bench_commands_send_marks_through_a_pipe_that_does_not_remain)
{
	CLEANUP(buf_release) struct buf marks = {0};
	CLEANUP(buf_release) struct buf path = {0};
	struct bench_runner *r = NULL;
	struct bench_run run;
	CHECK(!bench_runner_new(&r, &(struct bench_stdio){.has_marks = true}, NULL, NULL));
	CHECK(!run_shell(r, "echo run begin > $ASSAY_MARKS; echo $ASSAY_MARKS > $ASSAY_MARKS",
			 keep_marks, &marks, &run));
	bench_runner_free(r);
	CHECK(!strncmp(buf_str(&marks), "run begin\n/", 11));
	buf_add(&path, marks.p + 10, marks.n - 11);
	CHECK(access(buf_str(&path), F_OK) == -1 && errno == ENOENT);
}

struct faults {
	struct bench_runner *r;
	double at[8];
	size_t n;
};

static void count_faults(void *ctx, const struct bench_piece *piece)
{
	struct faults *f = ctx;
	struct counter_value v[COUNTERS_MAX];
	CHECK(piece->is_mark && f->n < ARRAY_LEN(f->at) && bench_runner_count(f->r, v));
	f->at[f->n++] = v[0].value;
}

TEST(bench_counters_are_read_while_the_command_runs)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(bench_runner_free_p) struct bench_runner *r = NULL;
	struct counter_events events = {0};
	struct counter_value v[COUNTERS_MAX];
	struct bench_run run;
	CHECK(!counter_events_add(&events, &a, "page-faults", NULL));
	CHECK(!bench_runner_new(&r, &(struct bench_stdio){.has_marks = true, .has_counts = true},
				&events, NULL));
	if (bench_runner_counters(r)->state[0])
		tap_skip("page faults cannot be counted");
	CHECK(!bench_runner_count(r, v));
	for (int i = 0; i < 2; i++) { /* the second run has its own counters */
		struct faults f = {.r = r};
		CHECK(!run_shell(r,
				 "echo a begin > $ASSAY_MARKS\n"
				 "dd if=/dev/zero of=/dev/null bs=8M count=1 2>&1\n"
				 "echo a end > $ASSAY_MARKS; sh -c :",
				 count_faults, &f, &run));
		CHECK(bench_runner_count(r, v));
		CHECK(f.n >= 1 && f.at[0] > 0 && f.at[0] <= f.at[f.n - 1]);
		CHECK(f.at[f.n - 1] <= v[0].value && v[0].value == run.counters[0].value);
	}
}

TEST(bench_blocks_have_two_runs_of_each_command)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	char *argv[] = {(char *)"true", NULL};
	struct bench_subject s[3] = {{.name = "a", .argv = argv},
				     {.name = "b", .argv = argv},
				     {.name = "c", .argv = argv}};
	struct bench_loop l = {.subjects = s, .nr_subjects = 3, .nr_exact = 5};
	CHECK(!bench_loop_run(&l, r, NULL));
	for (size_t i = 0; i < 3; i++) {
		CHECK(s[i].runs.n == 6 && s[i].has_cold && s[i].nr_before == 1);
		bench_subject_release(&s[i]);
	}
}

TEST(bench_runs_take_3_s_even_if_the_first_one_is_slow)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	char *argv[] = {(char *)"sh", (char *)"-c",
			(char *)"[ $HYPERFINE_ITERATION != 1 ] || exec sleep 0.7; exec sleep 0.1",
			NULL};
	struct bench_subject s = {.name = "a", .argv = argv};
	struct bench_loop l = {.subjects = &s, .nr_subjects = 1, .nr_min = BENCH_MIN_RUNS};
	uint64_t sum_ns = 0;
	CHECK(!bench_loop_run(&l, r, NULL));
	for (size_t i = 0; i < s.runs.n; i++)
		sum_ns += s.runs.p[i].v[BENCH_WALL];
	CHECK(sum_ns >= BENCH_MIN_NS && s.runs.n >= BENCH_MIN_RUNS);
	bench_subject_release(&s);
}

TEST(bench_a_failing_command_ends_the_runs_unless_it_may_fail)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = new_runner(BENCH_OUTPUT_NULL);
	CLEANUP(err_release) struct err err = {0};
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"[ $HYPERFINE_ITERATION -lt 2 ]", NULL};
	struct bench_subject s = {.name = "it", .argv = argv};
	struct bench_loop l = {.subjects = &s, .nr_subjects = 1, .nr_exact = 5};
	CHECK(bench_loop_run(&l, r, &err) == -ECANCELED && s.runs.n == 1);
	CHECK_STR(err_msg(&err), "run 3 of 'it' exited with status 1");
	bench_subject_release(&s);
	s = (struct bench_subject){.name = "it", .argv = argv};
	l.is_failure_ok = true;
	CHECK(!bench_loop_run(&l, r, NULL) && s.runs.n == 5 && s.nr_failed == 4);
	bench_subject_release(&s);
}
