/* Tests of model/profile: what sealing counts. */
#include "base/base.h"
#include "analyze/select/window.h"
#include "model/profile.h"
#include "model/tables.h"

#include "tap.h"

static loc_id add_code(struct profile *p, module_id module, uint64_t offset, const char *name,
		       unsigned func_flags, enum loss_kind unsym)
{
	loc_id loc = profile_location(p, module, offset, 0);
	struct function fn = {.module = module, .flags = func_flags, .start = offset};
	if (name)
		fn.name = profile_cstr(p, name);
	struct frame frame = {0};
	if (name)
		frame.func = profile_function(p, &fn);
	profile_set_frames(p, loc, &frame, name ? 1 : 0, unsym);
	return loc;
}

static void add_samples(struct profile *p, uint32_t table, stack_id parent, loc_id leaf, int64_t nr)
{
	profile_sample(p, table, 0, profile_stack(p, parent, leaf), 0, -1, &nr);
}

TEST(profile_shows_a_nul_in_a_text)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	str_id id = profile_str(p, "a\0b", 3);
	CHECK_STR(profile_text(p, id), "a\\x00b");
	CHECK_U64(profile_sv(p, id).n, 6);
	CHECK(profile_str(p, "a", 1) != id && profile_str(p, "a\0b", 3) == id);
}

/* What assay top shows each second. */
TEST(profile_is_peeked_at_while_it_grows)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "cpu-clock"),
			      .nr_columns = 1,
			      .columns = {{.name = profile_cstr(p, "samples")}}};
	uint32_t table = profile_table(p, &shape);
	module_id m = profile_module(p, &(struct module){.kind = MODULE_ELF, .path = shape.event});
	loc_id named = add_code(p, m, 16, "main", 0, 0);
	int64_t one = 1;
	task_id task = profile_task(p, 7, 7, profile_cstr(p, "x"), 1);
	for (uint64_t round = 1; round < 3; round++) {
		for (uint64_t t = 3; t-- > 0;)
			profile_sample(p, table, 10 * round + t, profile_stack(p, 0, named), task,
				       -1, &one);
		struct profile view;
		profile_peek_init(&view, p, 10 * round, 10 * round + 5);
		CHECK(view.is_sealed && !p->is_sealed);
		CHECK_U64(view.start_ns, 10 * round);
		CHECK_U64(view.tables.p[table].n, 3);
		CHECK_U64(view.tables.p[table].time_ns[0], 10 * round); /* sorted */
		CHECK_U64(profile_main_task(&view, task), task);
		profile_peek_release(&view);
		profile_clear_rows(p);
		CHECK_U64(p->tables.p[table].n, 0);
	}
}

TEST(profile_seal_counts_unsymbolized_samples_by_cause)
{
	struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "cpu-clock"),
			      .nr_columns = 1,
			      .columns = {{.name = profile_cstr(p, "samples")}}};
	uint32_t table = profile_table(p, &shape);
	module_id m = profile_module(p, &(struct module){.kind = MODULE_ELF, .path = shape.event});
	loc_id named = add_code(p, m, 16, "main", 0, 0);
	loc_id start_only = add_code(p, m, 32, "x!fn_20", FUNC_GUESSED, 0);
	loc_id plt = add_code(p, m, 48, "memcpy@plt", FUNC_GUESSED, 0);
	loc_id jit = add_code(p, m, 64, NULL, 0, LOSS_UNSYM_JIT);
	stack_id root = profile_stack(p, 0, named);
	add_samples(p, table, 0, named, 5);
	add_samples(p, table, root, start_only, 7);
	add_samples(p, table, root, plt, 11);
	add_samples(p, table, root, jit, 13);
	/* An unsymbolized caller does not count: the leaf has a symbol. */
	add_samples(p, table, profile_stack(p, 0, jit), named, 17);
	/* The leaf of an allocation may be in the allocator, whose name does not matter. */
	int64_t values[TABLE_COLUMNS_MAX] = {19};
	profile_sample(p, tables_add(p, TABLE_ALLOCATED, 0), 0, profile_stack(p, root, jit), 0, -1,
		       values);
	p->losses.nr[LOSS_UNSYM_JIT] = 99; /* set by a reader: is replaced, not added to */
	profile_seal(p);
	CHECK_U64(p->losses.nr[LOSS_UNSYM_STRIPPED], 7);
	CHECK_U64(p->losses.nr[LOSS_UNSYM_JIT], 13);
	CHECK_U64(losses_unsymbolized(&p->losses), 20);
	profile_free(p);
}

TEST(profile_merge_keeps_inferred_frames_apart_from_the_same_code_without_them)
{
	struct profile *from = profile_new();
	module_id lib = profile_module(from, &(struct module){.kind = MODULE_ELF,
							      .path = profile_cstr(from, "/lib")});
	module_id app = profile_module(from, &(struct module){.kind = MODULE_ELF,
							      .path = profile_cstr(from, "/app")});
	loc_id base = add_code(from, lib, 16, "goal", 0, 0);
	func_id gone = profile_function(from, &(struct function){.name = profile_cstr(from, "gone"),
								 .module = app});
	struct frame inferred = {.func = gone, .is_inferred = true};
	loc_id tail = profile_tail_location(from, base, &inferred, 1);
	CHECK(tail != base);
	CHECK_U64(profile_tail_location(from, base, &inferred, 1), tail);
	CHECK_U64(profile_location(from, lib, 16, 0), base);
	stack_id root = profile_stack(from, 0, add_code(from, app, 32, "main", 0, 0));
	stack_id with = profile_stack(from, root, base);
	profile_set_tail(from, with, tail);

	struct profile *to = profile_new();
	loc_id other = add_code(to, profile_module(to, &(struct module){.kind = MODULE_NAMED}), 1,
				"other", 0, 0);
	(void)profile_stack(to, 0, other);
	profile_merge(to, from);
	profile_merge(to, from);
	CHECK_U64(to->stacks.n, 1 + 3);
	const struct location *l = &to->locations.p[vec_last(&to->stacks)->loc];
	CHECK_U64(l->nr_frames, 2);
	const struct frame *f = to->frames.p + l->first_frame;
	CHECK_STR(profile_frame_name(to, profile_physical_frame(to, l)), "goal");
	CHECK_STR(profile_frame_name(to, &f[1]), "gone");
	CHECK(f[1].is_inferred && !f[0].is_inferred);
	CHECK_STR(profile_module_name(to, profile_frame_module(to, l, &f[1])), "app");
	CHECK_STR(profile_module_name(to, profile_frame_module(to, l, &f[0])), "lib");
	profile_free(to);
	profile_free(from);
}

TEST(profile_merge_keeps_the_order_of_a_threads_names)
{
	static const char *const names[] = {"sh", "make", "sh"};
	struct profile *from = profile_new();
	struct profile *to = profile_new();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		task_id id = profile_task(from, 5, 5, profile_cstr(from, names[i]), i);
		if (i == 2)
			(void)profile_task_again(from, id, i);
	}
	CHECK_U64(from->tasks.n, 1 + 3);
	profile_merge(to, from);
	CHECK_U64(to->tasks.n, 1 + 3);
	profile_seal(to);
	CHECK_U64(profile_last_task(to, 1), 3);
	CHECK_U64(profile_last_task(to, 2), 3);
	CHECK_STR(profile_text(to, to->tasks.p[3].comm), "sh");
	profile_free(to);
	profile_free(from);
}

TEST(facts_of_times_are_shown_with_their_unit)
{
	struct num_text scratch;
	const char *value;
	const char *key = fact_key(FACT_STEAL);
	CHECK_STR(fact_shown(key, "10000000", &scratch, &value),
		  "stolen by the hypervisor (all CPUs)");
	CHECK_STR(value, "10.0 ms");
	CHECK_STR(fact_shown(key, "unknown", &scratch, &value), key);
	CHECK_STR(value, "unknown");
	key = fact_key(FACT_MEMORY_PEAK_RSS);
	CHECK_STR(fact_shown(key, "43835392", &scratch, &value), "memory peak RSS");
	CHECK_STR(value, "41.8 MiB");
	CHECK_STR(fact_shown("a key", "12", &scratch, &value), "a key");
	CHECK_STR(value, "12");
}

static struct profile *recorded(uint64_t from_ns, uint64_t to_ns, const char *cpu_time)
{
	struct profile *p = profile_new();
	p->start_ns = from_ns;
	p->end_ns = to_ns;
	profile_fact(p, FACT_HOST, "same");
	profile_fact(p, FACT_CPU_TIME, cpu_time);
	return p;
}

TEST(profiles_merged_know_when_each_was_recorded)
{
	struct profile *p = recorded(1000, 2000, "1 s");
	static const uint64_t times[][2] = {{7000, 8000}, {4000, 5000}, {4500, 5500}, {500, 1200}};
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct profile *from = recorded(times[i][0], times[i][1], i ? "2 s" : "1 s");
		profile_merge(p, from);
		profile_free(from);
		CHECK(!profile_get_fact(p, FACT_CPU_TIME) == (i > 0));
	}
	CHECK_STR(profile_get_fact(p, FACT_HOST), "same");
	CHECK_U64(p->pieces.n, 3);
	CHECK_U64(p->pieces.p[0].from_ns, 500);
	CHECK_U64(p->pieces.p[0].to_ns, 2000);
	CHECK_U64(p->pieces.p[1].from_ns, 4000);
	CHECK_U64(p->pieces.p[1].to_ns, 5500);
	CHECK_U64(p->pieces.p[2].from_ns, 7000);
	CHECK_U64(window_recorded_ns(p, (struct window){1000, 7500}), 1000 + 1500 + 500);
	profile_free(p);
}
