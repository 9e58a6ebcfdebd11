/* analyze/select, match, window, weigh: which samples are selected, and their sums. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "analyze/stacks/groups.h"
#include "analyze/stacks/threads.h"
#include "analyze/report.h"
#include "analyze/view.h"
#include "analyze/select/match.h"
#include "analyze/select/select.h"
#include "analyze/select/weigh.h"
#include "analyze/select/window.h"
#include "base/buf.h"
#include "made.h"

/* Two threads of 1 and one of 2; 10 samples, 100 ns each but for the last (1000). */
static struct profile *make_profile(void)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	static const struct made rows[] = {
		{.stack = "main;work;hash", .ns = 1000000000, .weight = 100},
		{.stack = "main;work;hash", .ns = 2000000000, .weight = 100},
		{.stack = "main;work;hash",
		 .ns = 3000000000,
		 .weight = 100,
		 .tid = 7,
		 .comm = "pool-1"},
		{.stack = "main;work;copy libc.so.6", .ns = 4000000000, .weight = 100},
		{.stack = "main;work;work;hash", .ns = 5000000000, .weight = 100},
		{.stack = "main;io;read libc.so.6;vfs_read [k]", .ns = 6000000000, .weight = 100},
		{.stack = "main;io;read libc.so.6;vfs_read [k]", .ns = 7000000000, .weight = 100},
		{.stack = "main;io;read libc.so.6", .ns = 8000000000, .weight = 100},
		{.stack = "main", .ns = 9000000000, .weight = 100, .pid = 2, .comm = "other"},
		{.stack = "", .ns = 10000000000, .weight = 1000, .pid = 2, .comm = "other"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		made_sample(p, t, &rows[i]);
	uint32_t few = made_table(p, "faults", 1);
	made_sample(p, few, &(struct made){.stack = "main;work", .ns = 5000000000});
	profile_seal(p);
	return p;
}

static uint64_t count(const struct select_spec *spec, uint64_t *ret_weight)
{
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct selection s;
	if (select_run(&a, p, spec, &s, &err)) {
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
		return 0;
	}
	uint64_t nr = 0;
	uint64_t weight = 0;
	for (size_t i = 0; i < s.nr_rows; i++) {
		nr += s.rows[i].nr_samples;
		weight += s.rows[i].weight;
	}
	CHECK_U64(nr, s.nr_samples);
	CHECK_U64(weight, s.weight);
	uint64_t nr_all = nr;
	for (size_t i = 0; i < SELECT_OUT_NR; i++)
		nr_all += s.nr_out[i];
	uint64_t in_table = 0;
	for (size_t i = 0; i < p->tables.p[s.table].n; i++)
		in_table +=
			(uint64_t)p->tables.p[s.table].values[i * p->tables.p[s.table].nr_columns];
	CHECK_U64(nr_all, in_table);
	if (ret_weight)
		*ret_weight = weight;
	return nr;
}

TEST(a_renamed_thread_is_selected_by_each_of_its_names_and_shown_under_the_last)
{
	static const char *const wanted[] = {"^java$", "^worker-1$", "7"};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	static const struct made rows[] = {
		{.stack = "main", .ns = 1, .weight = 100, .tid = 7, .comm = "java"},
		{.stack = "main", .ns = 2, .weight = 100, .tid = 7, .comm = "worker-1"},
		{.stack = "main", .ns = 3, .weight = 100, .tid = 8, .comm = "worker-2"},
		{.stack = "main", .ns = 4, .weight = 100, .pid = 2, .tid = 7, .comm = "other"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		made_sample(p, t, &rows[i]);
	profile_seal(p);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(report_free_p) struct report *r = report_new();
		struct selection s;
		CHECK(!select_run(&a, p, &(struct select_spec){.thread = wanted[i]}, &s, NULL));
		bool is_tid = i == 2; /* of both processes */
		CHECK_U64(s.nr_samples, is_tid ? 3 : 2);
		threads_report(r, &s, &(struct view_limits){0});
		const struct report_table *shown = &r->tables.p[0];
		CHECK_U64(shown->nr_rows, is_tid ? 2 : 1);
		CHECK_STR(shown->cells[shown->nr_columns - 1].text, "worker-1");
	}
}

TEST(no_filter_selects_everything_of_the_first_event)
{
	uint64_t weight;
	CHECK_U64(count(&(struct select_spec){0}, &weight), 10);
	CHECK_U64(weight, 1900);
	CHECK_U64(count(&(struct select_spec){.event = "faults"}, NULL), 1);
}

TEST(each_filter_keeps_what_it_says)
{
	CHECK_U64(count(&(struct select_spec){.thread = "pool"}, NULL), 1);
	CHECK_U64(count(&(struct select_spec){.thread = "7"}, NULL), 1);
	CHECK_U64(count(&(struct select_spec){.pid = "2"}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.pid = "1, 2"}, NULL), 10);
	CHECK_U64(count(&(struct select_spec){.comm = "^comm$"}, NULL), 8);
	CHECK_U64(count(&(struct select_spec){.module = "libc"}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.function = "^read$"}, NULL), 3);
	CHECK_U64(count(&(struct select_spec){.exclude = "^read$"}, NULL), 7);
	CHECK_U64(count(&(struct select_spec){.within = "^work$"}, NULL), 5);
	CHECK_U64(count(&(struct select_spec){.mode = SELECT_KERNEL}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.mode = SELECT_USER}, NULL), 8);
	CHECK_U64(count(&(struct select_spec){.function = "hash", .exclude = "hash"}, NULL), 0);
}

TEST(windows_count_from_the_first_sample)
{
	CHECK_U64(count(&(struct select_spec){.time = "0..2"}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.time = "8s.."}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.time = "..500ms"}, NULL), 1);
	CHECK_U64(count(&(struct select_spec){.time = "1,3"}, NULL), 2);
	CHECK_U64(count(&(struct select_spec){.time = "0%-100%"}, NULL), 10);
	CHECK_U64(count(&(struct select_spec){.time = "50%..100%"}, NULL), 5);
}

static void check_error(const struct select_spec *spec, int code, const char *hint)
{
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct selection s;
	CHECK(select_run(&a, p, spec, &s, &err) == code);
	CHECK(!hint || (err.hint && strstr(err.hint, hint)));
	if (hint && (!err.hint || !strstr(err.hint, hint)))
		tap_fail(__FILE__, __LINE__, "%s; hint %s", err_msg(&err), err.hint);
}

TEST(wrong_filters_are_named_with_a_remedy)
{
	check_error(&(struct select_spec){.event = "cycle"}, -ENOENT, "cycles, faults");
	check_error(&(struct select_spec){.time = "5..2"}, -EINVAL, "FROM..TO");
	check_error(&(struct select_spec){.time = "abc"}, -EINVAL, "FROM..TO");
	check_error(&(struct select_spec){.thread = "poll-1"}, -ENOENT, "'pool-1'");
	check_error(&(struct select_spec){.function = "hsah"}, -ENOENT, "'hash'");
	check_error(&(struct select_spec){.function = "a("}, -EINVAL, NULL);
	check_error(&(struct select_spec){.module = "libd"}, -ENOENT, "libc.so.6");
	check_error(&(struct select_spec){.pid = "x"}, -EINVAL, NULL);
	check_error(&(struct select_spec){.phase = "x"}, -EINVAL, NULL);
}

TEST(phases_take_the_rule_nearest_to_the_root_and_windows_first)
{
	static const struct phase_rule rules[] = {
		{"hashing", "hash"}, {"work", "^work$"}, {"io", "^io$"}, {"late", "@7..100"}};
	struct select_spec spec = {.rules = rules, .nr_rules = ARRAY_LEN(rules)};
	CHECK_U64(count(&spec, NULL), 10);
	spec.phase = "hashing";
	CHECK_U64(count(&spec, NULL), 0);
	spec.phase = "work";
	CHECK_U64(count(&spec, NULL), 5);
	spec.phase = "io";
	CHECK_U64(count(&spec, NULL), 2);
	spec.phase = "late";
	CHECK_U64(count(&spec, NULL), 3);
	spec.phase = "<other>";
	CHECK_U64(count(&spec, NULL), 0);
}

TEST(a_view_within_ends_at_the_outermost_match)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	made_sample(p, t, &(struct made){.stack = "main;x<y;work;work;leaf"});
	made_sample(p, t, &(struct made){.stack = "main;a<work;leaf"});
	profile_seal(p);
	CLEANUP(arena_release) struct arena a = {0};
	struct selection s;
	CHECK(!select_run(&a, p, &(struct select_spec){.within = "work"}, &s, NULL));
	static const char *const want[] = {"leaf work work ", "leaf a work "};
	for (size_t i = 0; i < s.nr_rows && i < 2; i++) {
		CLEANUP(buf_release) struct buf b = {0};
		struct frame_ref f;
		for (struct frame_it it = select_frames(&s, s.rows[i].stack); frame_next(&it, &f);)
			buf_addf(&b, "%s ", profile_frame_name(p, &p->frames.p[f.frame_idx]));
		CHECK_STR(buf_str(&b), want[i]);
	}
	CHECK_U64(s.nr_rows, 2);
	CHECK(!select_run(&a, p, &(struct select_spec){.within = "^a$"}, &s, NULL));
	CHECK_U64(s.nr_samples, 1);
	struct frame_ref f;
	size_t nr = 0;
	for (struct frame_it it = select_frames(&s, s.rows[0].stack); frame_next(&it, &f);)
		nr++;
	CHECK_U64(nr, 2); /* leaf, a: work holds a and is outside */
}

static struct group_weight weight_of(const struct groups *g, const struct group_weight *w,
				     const char *name)
{
	struct group_weight none = {0};
	for (size_t i = 1; i < g->n; i++)
		if (!strcmp(g->rows[i].name, name))
			return w[i];
	tap_fail(__FILE__, __LINE__, "no group '%s'", name);
	return none;
}

TEST(recursion_counts_once_and_self_adds_up_to_everything)
{
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(arena_release) struct arena a = {0};
	struct selection s;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &s, NULL));
	struct weighed w = weigh(&a, &s);
	for (enum group_by by = 0; by < BY_NR; by++) {
		struct groups g = groups_by(&a, p, by);
		struct group_weight *gw = weigh_groups(&a, &w, &g);
		uint64_t self = 0;
		for (size_t i = 0; i < g.n; i++) {
			self += gw[i].self.weight;
			CHECK(gw[i].total.weight <= s.weight);
			CHECK(gw[i].self.weight <= gw[i].total.weight);
		}
		CHECK_U64(self, s.weight);
		if (by != BY_FUNCTION)
			continue;
		CHECK_U64(weight_of(&g, gw, "work").total.weight, 500);
		CHECK_U64(weight_of(&g, gw, "work").self.weight, 0);
		CHECK_U64(weight_of(&g, gw, "hash").self.nr_samples, 4);
		CHECK_U64(weight_of(&g, gw, "main").total.nr_samples, 9);
		CHECK_U64(weight_of(&g, gw, "[no stack]").self.weight, 1000);
	}
}

TEST(an_empty_profile_selects_nothing_without_error)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_seal(p);
	CLEANUP(arena_release) struct arena a = {0};
	struct selection s;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &s, NULL));
	CHECK_U64(s.nr_rows, 0);
	struct weighed w = weigh(&a, &s);
	struct groups g = groups_by(&a, p, BY_CRATE);
	CHECK_U64(weigh_groups(&a, &w, &g)[0].total.weight, 0);
}

TEST(crates_are_found_in_every_form_of_name)
{
	static const char *const cases[][2] = {
		{"reth_trie::root::compute", "reth_trie"},
		{"<reth_trie::Root as core::fmt::Debug>::fmt", "reth_trie"},
		{"<u8 as alloy_rlp::Encodable>::encode", "alloy_rlp"},
		{"<&mut W as core::fmt::Write>::write_str", "core"},
		{"<&mut reth::X as core::fmt::Write>::write_str", "reth"},
		{"<impl core::fmt::Display for revm::Gas>::fmt", "revm"},
		{"core::fmt::num::<impl core::fmt::Display for u32>::fmt", "core"},
		{"<alloc::vec::Vec<reth::T> as core::ops::drop::Drop>::drop", "alloc"},
		{"<[T] as core::slice::SliceOrd>::compare", "core"},
		{"ethrex_vm[1a2b3c4d5e6f7081]::run", "ethrex_vm"},
		{"core::ptr::drop_in_place<reth::X>", "core"},
		{"<F as tower::Service<R>>::call::{{closure}}", "tower"},
		{"<dyn tokio::io::AsyncRead as x::Y>::z", "tokio"},
		{"<(reth::A, B) as x::Y>::z", "reth"},
		{"void ns::sort<int*>(int*, int*)", "ns"},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)", "std"},
		{"std::pair<int, int> ns::f<int>(a::b const&)", "ns"},
		{"net/http.(*conn).serve", "net/http"},
		{"github.com/a/b.C", "github.com/a/b"},
		{"runtime.mallocgc", "runtime"},
		{"main", ""},
		{"memcpy.part.0", ""},
		{"operator new(unsigned long)", ""},
		{"", ""},
		{"::", ""},
		{"<", ""},
		{"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<", ""},
		{"<a as ", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sv crate = crate_from_name(sv_from_str(cases[i][0]));
		if (!sv_eq_str(crate, cases[i][1]))
			tap_fail(__FILE__, __LINE__, "'%s' gives '%.*s', expected '%s'",
				 cases[i][0], SV_ARGS(crate), cases[i][1]);
	}
}

TEST(rows_in_time_order_merge_equal_neighbours_only)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	static const char *const stacks[] = {"m;a", "m;a", "m;b", "m;a", "m;a", "m"};
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		made_sample(p, t, &(struct made){.stack = stacks[i], .ns = i + 1});
	profile_seal(p);
	CLEANUP(arena_release) struct arena a = {0};
	struct selection s;
	CHECK(!select_run(&a, p, &(struct select_spec){.flags = SELECT_TIME_ORDER}, &s, NULL));
	static const uint64_t want[] = {2, 1, 2, 1};
	CHECK_U64(s.nr_rows, ARRAY_LEN(want));
	for (size_t i = 0; i < s.nr_rows && i < ARRAY_LEN(want); i++)
		CHECK_U64(s.rows[i].nr_samples, want[i]);
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &s, NULL));
	CHECK_U64(s.nr_rows, 3);
}

TEST(phases_by_time_split_one_stack_of_one_thread)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	for (uint64_t i = 0; i < 100; i++)
		made_sample(p, t,
			    &(struct made){.stack = "m;a",
					   .ns = (i + 1) * 1000000000,
					   .tid = 1 + (int)(i % 2)});
	profile_seal(p);
	static const struct phase_rule rules[] = {{"first", "@0..30"}, {"last", "@90.."}};
	CLEANUP(arena_release) struct arena a = {0};
	struct selection s;
	struct select_spec spec = {.rules = rules, .nr_rules = 2};
	CHECK(!select_run(&a, p, &spec, &s, NULL));
	uint64_t of_phase[3] = {0};
	CHECK_U64(s.nr_rows, 6);
	for (size_t i = 0; i < s.nr_rows; i++)
		of_phase[s.rows[i].phase] += s.rows[i].nr_samples;
	CHECK_U64(of_phase[0], 30);
	CHECK_U64(of_phase[1], 10);
	CHECK_U64(of_phase[2], 60);
}

TEST(select_has_agrees_with_select_run_sample_by_sample)
{
	static const struct select_spec specs[] = {
		{0},
		{.time = "1..5"},
		{.thread = "^pool"},
		{.pid = "2"},
		{.function = "^copy$"},
		{.exclude = "work"},
		{.within = "^io$", .mode = SELECT_KERNEL},
		{.module = "libc"},
	};
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t table;
	CHECK(!select_table(p, "cycles", &table, NULL));
	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		struct selection sel;
		struct row_filter *row_filter;
		CHECK(!select_run(&a, p, &specs[i], &sel, NULL));
		CHECK(!select_compile(&a, p, table, &specs[i], &row_filter, NULL));
		uint64_t nr = 0;
		for (size_t k = 0; k < p->tables.p[table].n; k++)
			nr += select_has(row_filter, k);
		CHECK_U64(nr, sel.nr_samples);
		CHECK(nr > 0);
	}
}
