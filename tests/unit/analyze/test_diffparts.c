/* analyze/diff/diffparts.c, diffblocks.c: recordings of CPU samples and waits; gaps; few events. */
#include "base/base.h"
#include "tap.h"

#include <string.h>

#include "analyze/diff/diffblocks.h"
#include "analyze/diff/diffparts.h"
#include "analyze/stacks/calltree.h"
#include "analyze/stacks/picture.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "made.h"
#include "madewaits.h"

#define RUN "start_thread libc.so.6;serve app;parse app"
#define LOCK \
	"start_thread libc.so.6;serve app;append app;pthread_mutex_lock libc.so.6;futex_wait [k]"

struct mixed {
	struct profile *p[2];
	struct selection sel[2];
	struct arena a;
	struct diff d[DIFF_PARTS_MAX];
	size_t nr;
	bool has_default_how;
};

static void mixed_release(struct mixed *x)
{
	profile_free(x->p[0]);
	profile_free(x->p[1]);
	arena_release(&x->a);
}

/* @lock_ms: of waits for a lock in each second, more or less. */
static struct profile *service(const char *comm, unsigned seconds, int64_t lock_ms)
{
	struct profile *p = madewaits_new(seconds);
	for (unsigned s = 0; s < seconds; s++) {
		int64_t more = (int64_t)(s * 7 % 5);
		madewaits_samples(p, s, comm, 1, RUN, 100 + (unsigned)more);
		madewait(p, &(struct madewait){.second = s,
					       .comm = comm,
					       .tid = 1,
					       .reason = WAIT_ON_CPU,
					       .nr = 50,
					       .ms = 100 + more});
		madewait(p, &(struct madewait){.second = s,
					       .comm = comm,
					       .tid = 1,
					       .stack = LOCK,
					       .reason = WAIT_LOCK,
					       .nr = 100,
					       .ms = lock_ms + more});
		madewait(p, &(struct madewait){.second = s,
					       .comm = comm,
					       .tid = 1,
					       .stack = RUN ";fsync libc.so.6",
					       .reason = WAIT_FSYNC,
					       .nr = 100,
					       .ms = 300 + more});
	}
	return p;
}

static void compare(struct mixed *x, const char *event)
{
	CLEANUP(err_release) struct err err = {0};
	struct select_spec spec = {.event = event};
	for (size_t i = 0; i < 2; i++) {
		profile_seal(x->p[i]);
		if (views_select(&x->a, x->p[i], &spec, &x->sel[i], &err))
			tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	}
	struct diff_spec ds = {.runs = {&x->sel[0], &x->sel[1]},
			       .nr_runs = {1, 1},
			       .how = DIFF_SHARES,
			       .has_default_how = x->has_default_how,
			       .by = BY_FUNCTION};
	if (blocks_select(&x->a, &ds, &spec, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	diff_make(&x->d[0], &x->a, &ds);
	if (diffparts_add(x->d, &x->nr, &x->a, &spec, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
}

static const struct diff_item *find(const struct diff *d, const char *reason, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->items[i].name, name) && !strcmp(d->items[i].reason, reason))
			return &d->items[i];
	tap_fail(__FILE__, __LINE__, "no row '%s' '%s'", reason, name);
	return &d->all;
}

TEST(diff_of_samples_and_waits_finds_a_change_of_waits)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 8, 100), service("app", 8, 500)}};
	compare(&x, NULL);
	CHECK_U64(x.nr, 3);
	CHECK_STR(x.d[0].spec.runs[DIFF_AFTER]->event, "cpu-clock");
	CHECK(!diff_is_significant(&find(&x.d[0], "", "parse")->self));
	CHECK(diff_is_significant(&find(&x.d[1], "", "lock")->self));
	CHECK(find(&x.d[1], "", "on_cpu")->self.amount[DIFF_BEFORE] > 15);
	const struct diff_item *lock = find(&x.d[2], "lock", "append");
	CHECK_STR(lock->module, "app");
	CHECK(lock->self.change > 30 && diff_is_significant(&lock->self));
	CHECK(find(&x.d[2], "fsync", "parse")->self.change < 0);
	CLEANUP(report_free_p) struct report *r = report_new();
	diff_report(r, x.d, x.nr, &(struct view_limits){.max_rows = 5});
	CHECK_U64(r->findings.n, 3);
	CHECK(strstr(r->findings.p[2], "waits: ") && strstr(r->findings.p[2], "lock in append +"));
}

TEST(diff_of_waits_is_per_time_and_that_of_thread_time_by_share)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 8, 100), service("app", 16, 100)},
			  .has_default_how = true};
	compare(&x, NULL);
	CHECK(x.d[0].spec.how == DIFF_SHARES && x.d[1].spec.how == DIFF_SHARES);
	CHECK(x.d[2].spec.how == DIFF_PER_TIME);
	const struct diff_item *lock = find(&x.d[2], "lock", "append");
	CHECK(lock->self.amount[DIFF_BEFORE] > 1.6e9 && !diff_is_significant(&lock->self));
}

TEST(diff_of_a_named_event_is_of_that_event_alone)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 8, 100), service("app", 8, 500)}};
	compare(&x, "cpu-clock");
	CHECK_U64(x.nr, 1);
	CLEANUP(mixed_release)
	struct mixed waits = {.p = {service("app", 8, 100), service("app", 8, 500)}};
	compare(&waits, "off-cpu");
	CHECK_U64(waits.nr, 3);
	CHECK(diff_is_significant(&find(&waits.d[1], "", "lock")->self));
}

TEST(diff_pictures_of_samples_and_waits_mark_waiting_functions)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 8, 100), service("app", 8, 500)}};
	profile_seal(x.p[0]);
	profile_seal(x.p[1]);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(picture_release) struct picture pic = {.tree_flags = CALLTREE_NORMALISE};
	const struct report_tree *t;
	picture_add_before(&pic, x.p[0], "before");
	picture_add(&pic, x.p[1], "after");
	CHECK(!picture_make(r, &pic, &t, NULL));
	unsigned nr = 0;
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const char *name = intern_str(&r->names, t->nodes[i].name);
		bool is_append = !strcmp(name, "append");
		nr += is_append;
		CHECK(!is_append || t->nodes[i].flags & TREE_CHANGED);
	}
	CHECK_U64(nr, 1);
}

TEST(diff_blocks_are_within_the_pieces_of_merged_recordings)
{
	static const struct recorded pieces[] = {
		{MADEWAITS_START_NS, MADEWAITS_START_NS + 3 * NS_PER_SEC},
		{MADEWAITS_START_NS + 15 * NS_PER_SEC, MADEWAITS_START_NS + 18 * NS_PER_SEC}};
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 18, 100), service("app", 18, 100)}};
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		vec_push(&x.p[0]->pieces, pieces[i]);
	compare(&x, "off-cpu");
	CHECK_U64(x.d[0].spec.nr_blocks[DIFF_BEFORE], 6);
	CHECK(!x.d[0].is_unknown);
	uint64_t sum = 0;
	for (size_t i = 0; i < 6; i++)
		sum += x.d[0].spec.blocks[DIFF_BEFORE][i].weight;
	CHECK_U64(sum / NS_PER_MS, 2412 + 12); /* of 6 seconds: 0..2 and 15..17 */
}

TEST(diff_of_few_events_that_are_as_many_in_each_second_is_no_proof)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 8, 100), service("app", 8, 100)}};
	for (unsigned s = 0; s < 8; s++)
		madewait(x.p[0], &(struct madewait){.second = s,
						    .comm = "app",
						    .tid = 1,
						    .stack = RUN ";nanosleep libc.so.6",
						    .reason = WAIT_FILE_READ,
						    .nr = 1,
						    .us = 400});
	compare(&x, "off-cpu");
	const struct diff_value *v = &find(&x.d[1], "", "file_read")->self;
	CHECK(v->change < 0 && !diff_is_significant(v));
}

TEST(diff_of_different_programs_says_so)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {service("app", 4, 100), service("other", 4, 100)}};
	compare(&x, NULL);
	CLEANUP(report_free_p) struct report *r = report_new();
	diffparts_note_programs(r, &x.d[0].spec);
	CHECK_U64(r->findings.n, 1);
	CHECK(strstr(r->findings.p[0], "different programs: 'app' before, 'other' after"));
	/* What was launched, not a child of it that happens to have the first rows. */
	CLEANUP(mixed_release)
	struct mixed launched = {.p = {service("sed", 4, 100), service("awk", 4, 100)}};
	profile_fact(launched.p[0], FACT_TARGET, "build.sh");
	profile_fact(launched.p[1], FACT_TARGET, "test.sh");
	compare(&launched, NULL);
	diffparts_note_programs(r, &launched.d[0].spec);
	CHECK_U64(r->findings.n, 2);
	CHECK(strstr(vec_last(&r->findings)[0], "'build.sh' before, 'test.sh' after"));
	CLEANUP(mixed_release)
	struct mixed script = {.p = {service("sed", 4, 100), service("awk", 4, 100)}};
	profile_fact(script.p[0], FACT_TARGET, "build.sh");
	profile_fact(script.p[1], FACT_TARGET, "build.sh");
	compare(&script, NULL);
	diffparts_note_programs(r, &script.d[0].spec);
	CHECK_U64(r->findings.n, 2);
	CLEANUP(mixed_release)
	struct mixed same = {.p = {service("app", 4, 100), service("app", 4, 100)}};
	compare(&same, NULL);
	diffparts_note_programs(r, &same.d[0].spec);
	CHECK_U64(r->findings.n, 2);
}

/* Waits of @a and @b ms in each second, times 1 to 5. */
static struct profile *varying_load(int64_t a_ms, int64_t b_ms)
{
	struct profile *p = madewaits_new(10);
	for (unsigned s = 0; s < 10; s++) {
		int64_t load = 1 + (int64_t)(s * 3 % 5);
		struct madewait w = {.second = s, .comm = "app", .tid = 1, .nr = 1000 * load};
		w.stack = LOCK;
		w.reason = WAIT_LOCK;
		w.ms = a_ms * load;
		madewait(p, &w);
		w.stack = RUN ";fsync libc.so.6";
		w.reason = WAIT_FSYNC;
		w.ms = b_ms * load;
		madewait(p, &w);
	}
	return p;
}

TEST(diff_of_shares_has_no_noise_from_a_load_that_varies)
{
	CLEANUP(mixed_release)
	struct mixed x = {.p = {varying_load(20, 80), varying_load(25, 75)}};
	compare(&x, "off-cpu");
	CHECK(diff_is_significant(&find(&x.d[1], "", "lock")->self));
}
