/* The order and number of runs; see benchloop.h. */
#include "base/base.h"
#include "session/bench/benchloop.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process/stop.h"

#define BLOCKS_MAX 20 /* of comparisons, if the commands take long enough */
#define BLOCKS_MIN 10 /* 20 runs of each command */
#define COMPARE_LONG_NS \
	60000000000 /* fewer blocks than BLOCKS_MAX rather than a longer comparison */

struct state {
	struct bench_loop *l;
	struct bench_runner *r;
	uint64_t start_ns;
	uint64_t nr_done; /* of all commands, without cold and warm-up runs */
	uint64_t nr_all;
	size_t subject; /* whose output comes */
};

void bench_subject_release(struct bench_subject *s)
{
	vec_release(&s->runs);
}

static void on_output(void *ctx, const struct bench_piece *piece)
{
	struct state *st = ctx;
	if (st->l->on_output)
		st->l->on_output(st->l->ctx, st->subject, piece);
}

static void on_end(const struct state *st, size_t i, const struct bench_run *run)
{
	if (st->l->on_end)
		st->l->on_end(st->l->ctx, i, run->end_ns);
}

static int run_helper_command(struct state *st, const char *what, char *const *argv,
			      struct err *err)
{
	struct bench_run run;
	if (!argv)
		return 0;
	TRY(bench_runner_run(st->r, argv, BENCH_RUN_VISIBLE, NULL, NULL, NULL, &run, err));
	if (run.exit_code)
		return err_set(err, -ECANCELED, "the %s command exited with status %d", what,
			       run.exit_code);
	return 0;
}

/* What a shell was to run, up to the first blank; NULL: no shell, or not a plain word. */
static const char *shell_word(char *const *argv, size_t *ret_n)
{
	size_t nr = 0;
	while (argv[nr])
		nr++;
	if (nr < 3 || strcmp(argv[nr - 2], "-c") != 0)
		return NULL;
	const char *text = argv[nr - 1] + strspn(argv[nr - 1], " \t\n");
	*ret_n = strcspn(text, " \t\n");
	return strcspn(text, "=$(){}[]<>|&;*?'\"\\`#~!") >= *ret_n ? text : NULL;
}

static int fail_run(const struct bench_subject *s, uint64_t nr, int status, struct err *err)
{
	size_t n = 0;
	const char *word = status == 127 ? shell_word(s->argv, &n) : NULL;
	const char *sig = status > 128 ? sigabbrev_np(status - 128) : NULL;
	err_set(err, -ECANCELED, "run %" PRIu64 " of '%s' exited with status %d%s%s%s", nr + 1,
		s->name, status, sig ? " (SIG" : "", sig ? sig : "", sig ? ")" : "");
	if (word)
		return err_hint(err,
				"127 is the shell's for a command that is not found; check with: "
				"command -v %.*s. A command with arguments is quoted: 'sort FILE'",
				(int)n, word);
	return err_hint(
		err, "-i measures failing commands, too; --show-output shows what they print%s",
		shell_word(s->argv, &n) ? ". A command with arguments is quoted: 'sort FILE'" : "");
}

/* @nr: which run of the command this is, from 0. */
static int run_subject(struct state *st, size_t i, uint64_t nr, struct bench_run *ret,
		       struct err *err)
{
	char iteration[24];
	(void)snprintf(iteration, sizeof(iteration), "%" PRIu64, nr);
	struct bench_subject *s = &st->l->subjects[i];
	TRY(run_helper_command(st, "prepare", s->prepare, err));
	st->subject = i;
	TRY(bench_runner_run(st->r, s->argv, st->l->is_padded ? BENCH_RUN_PADDED : 0, iteration,
			     on_output, st, ret, err));
	s->nr_failed += ret->exit_code != 0;
	if (!ret->exit_code || st->l->is_failure_ok)
		return 0;
	return fail_run(s, nr, ret->exit_code, err);
}

static void show_progress(struct state *st)
{
	uint64_t passed = clock_mono_ns() - st->start_ns;
	uint64_t left = st->nr_done && st->nr_all > st->nr_done
				? passed / st->nr_done * (st->nr_all - st->nr_done)
				: 0;
	if (st->l->for_ns)
		left = st->l->for_ns > passed ? st->l->for_ns - passed : 0;
	if (st->l->on_run)
		st->l->on_run(st->l->ctx, st->nr_done, st->nr_all, left);
}

static int run_measured(struct state *st, size_t i, struct err *err)
{
	struct bench_subject *s = &st->l->subjects[i];
	struct bench_run run;
	show_progress(st);
	TRY(run_subject(st, i, s->nr_before + s->runs.n, &run, err));
	vec_push(&s->runs, run);
	on_end(st, i, &run);
	st->nr_done++;
	return 0;
}

static int run_first(struct state *st, struct err *err)
{
	const struct bench_loop *l = st->l;
	for (size_t i = 0; i < l->nr_subjects; i++) {
		struct bench_subject *s = &l->subjects[i];
		TRY(run_helper_command(st, "setup", s->setup, err));
		for (uint64_t k = 0; k < MAX(l->nr_warmups, (uint64_t)!l->has_no_cold); k++) {
			show_progress(st);
			TRY(run_subject(st, i, s->nr_before, &s->cold, err));
			on_end(st, i, &s->cold);
			s->nr_before++;
		}
		s->has_cold = !l->nr_warmups && !l->has_no_cold;
	}
	return 0;
}

static uint64_t clamp_runs(const struct bench_loop *l, uint64_t nr)
{
	nr = MAX(nr, l->nr_min);
	return l->nr_max ? MIN(nr, l->nr_max) : nr;
}

/* Whether --for is over; a run more is made only if it fits. */
static bool is_time_over(const struct state *st, uint64_t next_ns)
{
	uint64_t passed = clock_mono_ns() - st->start_ns;
	return st->l->for_ns && passed + next_ns > st->l->for_ns;
}

static int run_series(struct state *st, struct err *err)
{
	const struct bench_loop *l = st->l;
	uint64_t spent_ns = 0;
	st->nr_all = l->nr_exact;
	while (!st->nr_all || st->nr_done < st->nr_all) {
		uint64_t before = clock_mono_ns();
		TRY(run_measured(st, 0, err));
		uint64_t took = clock_mono_ns() - before;
		spent_ns += vec_last(&l->subjects[0].runs)->v[BENCH_WALL];
		if (l->for_ns && is_time_over(st, took) && st->nr_done >= MAX(l->nr_min, 1u))
			break;
		if (l->nr_exact || l->for_ns || (st->nr_done > 1 && st->nr_done < st->nr_all))
			continue;
		/* estimated after the first run, and again if these were not enough */
		uint64_t once_ns = MAX(spent_ns / st->nr_done, (uint64_t)1);
		uint64_t fit = (BENCH_MIN_NS + once_ns - 1) / once_ns;
		st->nr_all = clamp_runs(l, MAX(fit, (uint64_t)BENCH_MIN_RUNS));
	}
	return 0;
}

/* At least 3 s of each command, and as many blocks as find +3 % on a quiet machine. */
static size_t plan_blocks(const struct bench_loop *l)
{
	if (l->nr_exact)
		return (size_t)(l->nr_exact + 1) / 2;
	uint64_t once = 1;
	for (size_t i = 0; i < l->nr_subjects; i++)
		once += l->subjects[i].cold.v[BENCH_WALL];
	uint64_t room = l->for_ns ? l->for_ns : COMPARE_LONG_NS;
	uint64_t fit = MAX(room / (2 * once), (uint64_t)BLOCKS_MIN);
	uint64_t want =
		MAX((BENCH_MIN_NS * l->nr_subjects / 2 + once - 1) / once, (uint64_t)BLOCKS_MAX);
	uint64_t nr = l->for_ns ? fit : MIN(fit, want);
	return (size_t)(clamp_runs(l, 2 * nr) + 1) / 2;
}

static int run_block(struct state *st, struct err *err)
{
	size_t nr = st->l->nr_subjects;
	bool is_reversed = random() & 1;
	for (size_t k = 0; k < 2 * nr; k++) {
		size_t at = k < nr ? k : 2 * nr - 1 - k;
		TRY(run_measured(st, is_reversed ? nr - 1 - at : at, err));
	}
	return 0;
}

/* Runs of the block that was not completed are dropped: they have no counterpart. */
static int run_blocks(struct state *st, struct err *err)
{
	const struct bench_loop *l = st->l;
	size_t nr = plan_blocks(l);
	size_t nr_done = 0;
	int rc = 0;
	if (l->on_plan)
		l->on_plan(l->ctx, nr);
	st->nr_all = 2 * nr * l->nr_subjects;
	while (nr_done < nr && !rc) {
		uint64_t before = clock_mono_ns();
		rc = run_block(st, err);
		if (rc)
			break;
		nr_done++;
		if (l->is_decided && l->is_decided(l->ctx, nr_done))
			break;
		if (is_time_over(st, clock_mono_ns() - before))
			break;
	}
	for (size_t i = 0; rc && i < l->nr_subjects; i++)
		l->subjects[i].runs.n = 2 * nr_done;
	return rc;
}

static int clean_up(struct state *st, struct err *err)
{
	for (size_t i = 0; i < st->l->nr_subjects; i++)
		TRY(run_helper_command(st, "cleanup", st->l->subjects[i].cleanup, err));
	return 0;
}

int bench_loop_run(struct bench_loop *l, struct bench_runner *r, struct err *err)
{
	struct state st = {.l = l, .r = r, .start_ns = clock_mono_ns()};
	srandom((unsigned)st.start_ns);
	TRY(run_first(&st, err));
	st.start_ns = clock_mono_ns();
	TRY(l->nr_subjects == 1 ? run_series(&st, err) : run_blocks(&st, err));
	return clean_up(&st, err);
}

static int compare_u64(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

int bench_loop_calibrate(struct bench_run *ret, struct bench_runner *r, char *const argv[],
			 size_t nr, struct err *err)
{
	CLEANUP(free_p) struct bench_run *runs = xcalloc(nr, sizeof(*runs));
	CLEANUP(free_p) uint64_t *one = xcalloc(nr, sizeof(*one));
	for (size_t i = 0; i < nr; i++) {
		TRY(bench_runner_run(r, argv, 0, NULL, NULL, NULL, &runs[i], err));
		if (runs[i].exit_code)
			return err_set(err, -ECANCELED, "the shell '%s' exited with status %d",
				       argv[0], runs[i].exit_code);
	}
	*ret = (struct bench_run){0};
	for (size_t m = 0; m < BENCH_METRIC_NR; m++) {
		for (size_t i = 0; i < nr; i++)
			one[i] = runs[i].v[m];
		qsort(one, nr, sizeof(*one), compare_u64);
		ret->v[m] = one[nr / 2];
	}
	return 0;
}
