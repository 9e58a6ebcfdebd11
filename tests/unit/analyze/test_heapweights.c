/* analyze/memory/heapweights.c, leaks.c, suppress.c, heapframes.c: weights of memory. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/memory/heapfigures.h"
#include "analyze/memory/heapframes.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/memory/leaks.h"
#include "analyze/memory/suppress.h"
#include "analyze/view.h"
#include "analyze/views.h"
#include "base/clock.h"
#include "base/stat.h"
#include "ingest/livesofar.h"
#include "madeheap.h"
#include "model/heap.h"
#include "random.h"

#define MIB ((uint64_t)1 << 20)

struct fixture {
	struct profile *p;
	struct arena a;
	struct selection sel;
	int rc;
};

static struct fixture select_heap(unsigned flags, const struct select_spec *spec)
{
	struct fixture f = {.p = madeheap_server(flags)};
	CLEANUP(err_release) struct err err = {0};
	f.rc = heapweights_select(&f.a, f.p, spec, &f.sel, &err);
	return f;
}

static void fixture_release(struct fixture *f)
{
	arena_release(&f->a);
	profile_free(f->p);
}

static uint64_t weight_of(unsigned flags, const struct heap_spec *heap, uint64_t *ret_nr)
{
	CLEANUP(fixture_release)
	struct fixture f = select_heap(flags, &(struct select_spec){.heap = *heap});
	CHECK(f.rc == 0);
	if (ret_nr)
		*ret_nr = f.sel.nr_samples;
	return f.sel.weight;
}

TEST(heapweights_have_the_sums_of_their_tables)
{
	uint64_t nr;
	CHECK_U64(weight_of(MADEHEAP_ATTACHED, &(struct heap_spec){.weight = "live"}, &nr),
		  12 * MIB);
	CHECK_U64(nr, 2592);
	CHECK_U64(weight_of(MADEHEAP_ATTACHED, &(struct heap_spec){.weight = "allocated"}, &nr),
		  12 * MIB + 200000 * 512);
	CHECK_U64(nr, 202592);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "calls"}, NULL), 202592);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "peak"}, NULL), 12 * MIB);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "temporary"}, NULL), 190000);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "temporary-bytes"}, NULL),
		  190000 * 512);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "freed"}, NULL), 200000 * 512);
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "mapped"}, NULL), 0);
	/* without faults: what was allocated and not freed */
	CHECK_U64(weight_of(0, &(struct heap_spec){.weight = "growth"}, NULL), 12 * MIB);
}

TEST(heapweights_live_at_a_moment_is_what_was_not_freed_before_it)
{
	CHECK_U64(weight_of(0, &(struct heap_spec){.at = "3s"}, NULL), 5 * MIB);
	CHECK_U64(weight_of(0, &(struct heap_spec){.at = "10s", .weight = "live"}, NULL), 12 * MIB);
	CLEANUP(fixture_release)
	struct fixture f =
		select_heap(0, &(struct select_spec){.heap = {.at = "3s", .weight = "peak"}});
	CHECK(f.rc == -EINVAL);
}

TEST(heapweights_growth_is_of_the_window)
{
	CLEANUP(fixture_release)
	struct fixture f =
		select_heap(0, &(struct select_spec){.heap = {.weight = "growth"}, .time = "2..5"});
	CHECK(f.rc == 0);
	CHECK_U64(f.sel.weight, 3 * MIB);
	/* Without page faults: blocks, of memory allocated less freed. */
	CHECK_STR(f.sel.noun, "blocks");
	CHECK(strstr(heap_weight_title(f.p, HEAP_WEIGHT_GROWTH), "less bytes freed") != NULL);
}

TEST(heapweights_leaks_are_old_or_left_by_who_has_ended)
{
	struct heap_spec leaked = {.weight = "leaked"};
	/* seconds 0 to 4 are at least 5 s old at 10 s: the table and 5 MiB of the cache */
	CHECK_U64(weight_of(MADEHEAP_ATTACHED, &leaked, NULL), 7 * MIB);
	CHECK_U64(weight_of(0, &leaked, NULL), 7 * MIB);
	CHECK_U64(weight_of(MADEHEAP_ENDED, &leaked, NULL), 12 * MIB);
	leaked.older_than = "9s";
	CHECK_U64(weight_of(MADEHEAP_ENDED, &leaked, NULL), 3 * MIB);
	leaked.older_than = "20s";
	CHECK_U64(weight_of(0, &leaked, NULL), 0);
}

static uint64_t leaked_with(enum fact_id id, const char *value)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct profile *p = madeheap_server(MADEHEAP_ENDED);
	p->is_sealed = false;
	profile_fact(p, id, value);
	struct selection sel;
	struct select_spec spec = {.heap.weight = "leaked"};
	CHECK(!heapweights_select(&a, p, &spec, &sel, NULL));
	uint64_t weight = sel.weight;
	profile_free(p);
	return weight;
}

TEST(heapweights_what_a_killed_program_held_is_not_all_leaked)
{
	CHECK_U64(leaked_with(FACT_HEAP_ENDED, "yes"), 12 * MIB);
	CHECK_U64(leaked_with(FACT_TARGET_END, "killed by SIGKILL"), 7 * MIB);
	CHECK_U64(leaked_with(FACT_HEAP_KILLED, "1"), 7 * MIB);
}

TEST(heapweights_of_a_program_that_freed_everything_knows_that_nothing_leaked)
{
	struct profile *p = madeheap_new(2, 0);
	madeheap_block(p, &(struct madeheap){.size = 8, .nr = 9, .stack = "main a"}, 1);
	struct leak_limit l;
	profile_fact(p, FACT_HEAP_ENDED, "yes");
	CHECK(!leaks_limit(p, NULL, &l, NULL));
	CHECK(l.rule == LEAKS_ALL);
	profile_free(p);
}

TEST(heapweights_a_capture_shorter_than_its_resolution_knows_no_leaks)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct profile *p = madeheap_server(MADEHEAP_ATTACHED);
	p->is_sealed = false;
	p->end_ns = p->start_ns + 3 * NS_PER_SEC / 2;
	struct leak_limit l;
	vec_foreach(t, &p->tables)
		for (size_t i = 0; i < t->n; i++)
			t->time_ns[i] = p->start_ns;
	CHECK(!leaks_limit(p, NULL, &l, NULL));
	CHECK(l.rule == LEAKS_UNKNOWN && strstr(l.why_unknown, "too short"));
	CHECK(!leaks_limit(p, "500ms", &l, NULL));
	CHECK(l.rule == LEAKS_OLDER);
	profile_free(p);
}

/* As read from the file of a killed recorder: tables of the end have no rows. */
TEST(heapweights_of_an_incomplete_recording_have_live_blocks_but_no_leaks_or_peak)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct profile *p = madeheap_server(0);
	p->is_sealed = false;
	p->is_incomplete = true;
	vec_foreach(t, &p->tables)
		if (t->id == TABLE_LIVE || t->id == TABLE_PEAK)
			t->n = 0;
	livesofar_add(p);
	struct selection sel;
	struct select_spec spec = {.heap.weight = "live"};
	CHECK(!heapweights_select(&a, p, &spec, &sel, &err));
	CHECK_U64(sel.weight, 12 * MIB);
	CHECK_U64(sel.nr_samples, 2592);
	for (int i = 0; i < 2; i++) {
		spec.heap.weight = i ? "peak" : "leaked";
		CHECK(!heapweights_select(&a, p, &spec, &sel, &err));
		CHECK_U64(sel.weight, 0);
		CHECK(strstr(sel.why_empty, "incomplete"));
	}
	profile_free(p);
}

static uint64_t sum_by(const struct profile *p, const char *weight)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	const struct select_spec spec = {.heap.weight = weight};
	CHECK(!heapweights_select(&a, p, &spec, &sel, NULL));
	return sel.weight;
}

/* Two children hold 3 blocks when they end, in a process that holds one; the recording is cut off. */
TEST(heapweights_of_processes_that_ended_are_held_not_live_or_freed)
{
	struct profile *p = madeheap_new(10, 0);
	struct madeheap child = {.pid = 2, .size = 100, .nr = 3, .stack = "main child"};
	struct madeheap own = {.size = 40, .nr = 1, .stack = "main parent"};
	madeheap_block(p, &own, 2);
	own.table = TABLE_ALLOCATED;
	madeheap(p, &own);
	for (int i = 0; i < 2; i++, child.pid++) {
		child.table = TABLE_ALLOCATED;
		child.detail = NULL;
		madeheap(p, &child);
		child.table = TABLE_FREED;
		child.detail = HEAP_FREED_BY_END;
		child.second = 3;
		madeheap(p, &child);
	}
	p->is_incomplete = true;
	livesofar_add(p);
	profile_seal(p);
	CHECK_U64(sum_by(p, "allocated"), 680);
	CHECK_U64(sum_by(p, "live"), 40);
	CHECK_U64(sum_by(p, "freed"), 40);
	CHECK_U64(sum_by(p, "held"), 600);
	CHECK_U64(sum_by(p, "growth"), 40); /* allocated less freed */
	profile_free(p);
}

TEST(heapweights_say_why_there_is_nothing)
{
	CLEANUP(fixture_release)
	struct fixture none = select_heap(0, &(struct select_spec){.heap = {.weight = "mapped"}});
	CHECK(none.sel.why_empty && strstr(none.sel.why_empty, "mapped no memory itself"));
	CLEANUP(fixture_release)
	struct fixture young = select_heap(
		0, &(struct select_spec){.heap = {.weight = "leaked", .older_than = "20s"}});
	CHECK(young.sel.why_empty && strstr(young.sel.why_empty, "20.0 s"));
}

TEST(heapweights_refuse_what_they_do_not_know)
{
	static const struct heap_spec bad[] = {
		{.weight = "size"},
		{.at = "noon"},
		{.at = "99s"}, /* of 10 */
		{.weight = "leaked", .older_than = "old"},
		{.weight = "leaked", .suppress = "cache\n"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(fixture_release)
		struct fixture f = select_heap(0, &(struct select_spec){.heap = bad[i]});
		CHECK(f.rc == -EINVAL);
	}
}

TEST(heapweights_carry_the_variance_of_samples)
{
	CLEANUP(fixture_release)
	struct fixture exact = select_heap(0, &(struct select_spec){0});
	CHECK(!exact.sel.variance);
	CLEANUP(fixture_release)
	struct fixture f =
		select_heap(MADEHEAP_SAMPLED, &(struct select_spec){.heap = {.weight = "live"}});
	CHECK(f.sel.variance != NULL);
	double sum = 0;
	for (size_t i = 0; f.sel.variance && i < f.sel.nr_rows; i++)
		sum += f.sel.variance[i];
	CHECK(fabs(sum - 11 * 2.0 * 524288 * 524288) < 1);
}

static bool notes_few_samples(unsigned flags)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(flags);
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK(!heapsum_report(r, p, &(struct select_spec){0}, NULL, &(struct view_limits){0},
			      NULL));
	bool is_noted = false;
	bool has_shares = false;
	vec_foreach(n, &r->notes) {
		is_noted |= strstr(*n, "too few for percentages") != NULL;
		has_shares |= strstr(*n, " %) by ") != NULL;
	}
	CHECK(has_shares == !is_noted); /* the page has no percentage that it calls unsupported */
	return is_noted;
}

TEST(heapsum_says_that_samples_are_few)
{
	CHECK(notes_few_samples(MADEHEAP_SAMPLED));
	CHECK(!notes_few_samples(0));
}

TEST(heapweights_default_is_peak_where_launched_and_live_where_attached)
{
	CLEANUP(profile_free_p) struct profile *launched = madeheap_server(0);
	CLEANUP(profile_free_p) struct profile *attached = madeheap_server(MADEHEAP_ATTACHED);
	CLEANUP(profile_free_p) struct profile *empty = madeheap_new(1, 0);
	CHECK(heap_weight_default(launched) == HEAP_WEIGHT_PEAK);
	CHECK(heap_weight_default(attached) == HEAP_WEIGHT_LIVE);
	CHECK(heapweights_exist(launched) && !heapweights_exist(empty));
	CHECK(views_default(launched) == views_at(VIEW_HEAP));
}

TEST(heapweights_cut_stacks_at_the_allocating_function)
{
	CLEANUP(fixture_release)
	struct fixture f = select_heap(0, &(struct select_spec){.heap = {.weight = "live"},
								.flags = SELECT_CUT_STACKS});
	for (size_t i = 0; i < f.sel.nr_rows; i++) {
		struct frame_ref ref = {0};
		struct frame_it it = select_frames(&f.sel, f.sel.rows[i].stack);
		CHECK(frame_next(&it, &ref));
		const char *name = profile_frame_name(f.p, &f.p->frames.p[ref.frame_idx]);
		CHECK(!strcmp(name, "Cache::insert") || !strcmp(name, "load_table"));
	}
	CHECK_U64(f.sel.nr_rows, 2);
}

TEST(heapframes_distinguish_allocators_and_glue_from_code)
{
	static const struct {
		const char *name;
		enum heapframe_kind kind;
	} cases[] = {
		{"malloc", HEAPFRAME_ALLOCATOR},
		{"operator new(unsigned long)", HEAPFRAME_ALLOCATOR},
		{"_rjem_malloc", HEAPFRAME_ALLOCATOR},
		{"__rust_alloc", HEAPFRAME_ALLOCATOR},
		{"alloc::raw_vec::RawVec<T,A>::reserve", HEAPFRAME_ALLOCATOR},
		{"<alloc::raw_vec::RawVecInner<A>>::finish_grow", HEAPFRAME_ALLOCATOR},
		{"<tikv_jemallocator::Jemalloc as core::alloc::GlobalAlloc>::alloc",
		 HEAPFRAME_ALLOCATOR},
		{"<mine::Counted as core::alloc::global::GlobalAlloc>::alloc_zeroed",
		 HEAPFRAME_ALLOCATOR},
		{"<[u8]>::to_vec_in::<alloc::alloc::Global>", HEAPFRAME_HELPER},
		{"alloc::vec::Vec<T,A>::push", HEAPFRAME_HELPER},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)", HEAPFRAME_HELPER},
		{"void std::vector<int>::_M_realloc_insert<int>(int*)", HEAPFRAME_HELPER},
		{"hashbrown::raw::RawTable<T>::reserve_rehash", HEAPFRAME_HELPER},
		{"<i32 as alloc::string::SpecToString>::spec_to_string", HEAPFRAME_HELPER},
		{"<T as alloc::string::ToString>::to_string", HEAPFRAME_HELPER},
		{"<mine::Thing as core::fmt::Display>::fmt", HEAPFRAME_SHOWN},
		{"<&mut alloc::string::String as core::fmt::Write>::write_str", HEAPFRAME_HELPER},
		{"zmalloc", HEAPFRAME_ALLOCATOR},
		{"sdsnewlen", HEAPFRAME_HELPER},
		{"palloc0", HEAPFRAME_ALLOCATOR},
		{"ngx_pcalloc", HEAPFRAME_ALLOCATOR},
		{"sqlite3DbMallocRaw", HEAPFRAME_ALLOCATOR},
		{"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >"
		 "::_M_run()",
		 HEAPFRAME_SHOWN},
		{"std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(std::_Any_data "
		 "const&)",
		 HEAPFRAME_SHOWN},
		{"std::thread::_M_start_thread(std::unique_ptr<int>, void (*)())",
		 HEAPFRAME_HELPER},
		{"execute_native_thread_routine", HEAPFRAME_HELPER},
		{"isc__mem_get", HEAPFRAME_ALLOCATOR},
		{"pool_get_from_os", HEAPFRAME_ALLOCATOR},
		{"Perl_safesysrealloc", HEAPFRAME_ALLOCATOR},
		{"_safe_emalloc", HEAPFRAME_ALLOCATOR},
		{"cache_insert", HEAPFRAME_SHOWN},
		{"mallocator_of_mine", HEAPFRAME_SHOWN},
		{"standard::thing", HEAPFRAME_SHOWN},
		{"my::Alloc::run(std::vector<int>)", HEAPFRAME_SHOWN},
		{"main", HEAPFRAME_SHOWN},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (heapframe_kind_of(sv_from_str(cases[i].name)) != cases[i].kind)
			tap_fail(__FILE__, __LINE__, "%s", cases[i].name);
}

static struct profile *one_stack(const char *stack)
{
	struct profile *p = madeheap_new(1, 0);
	madeheap(p, &(struct madeheap){.table = TABLE_LIVE, .size = 64, .nr = 1, .stack = stack});
	profile_seal(p);
	return p;
}

static void check_frame(const char *stack, const char *function, const char *via)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = one_stack(stack);
	const struct table *t = tables_find_rows(p, TABLE_LIVE);
	const struct heapframe *f = heapframes_of(heapframes_new(&a, p), t->stack[0]);
	CHECK_STR(heapframe_name(p, f), function);
	CHECK_STR(f->via ? profile_text(p, f->via) : "", via);
}

TEST(heapframes_find_the_function_of_a_stack)
{
	check_frame("main bin;parse bin;std::vector::push_back bin;_Znwm libstdc++.so.6;malloc "
		    "libc.so.6",
		    "parse", "std::vector::push_back");
	check_frame("main bin;parse bin;malloc libc.so.6", "parse", "");
	/* a library's function is no glue unless its file is one */
	check_frame("main bin;png_read libpng16.so.16;malloc libc.so.6", "png_read", "");
	check_frame("main bin;fopen libc.so.6;malloc libc.so.6", "main", "fopen");
	/* glue that is inlined into the function */
	check_frame("main bin;alloc::vec::Vec::push<take bin;malloc libc.so.6", "take",
		    "alloc::vec::Vec::push");
	/* methods of an allocator in stripped code, below their exported wrappers */
	check_frame("main bin;plan bin;palloc bin;bin!fn_5c7730 bin;malloc libc.so.6", "plan", "");
	check_frame("main bin;plan bin;palloc bin;bin!fn_1 bin;bin!fn_2 bin;malloc libc.so.6",
		    "plan", "");
	check_frame("main bin;plan bin;bin!fn_5c7730 bin;malloc libc.so.6", "bin!fn_5c7730", "");
	check_frame("main bin;palloc bin;lib.so!fn_10 lib.so;malloc libc.so.6", "lib.so!fn_10", "");
	/* the recorder stands between a function and the allocator whose calls it sees */
	check_frame("main bin;keep bin;memfd:assay-heap!fn_0 memfd:assay-heap;malloc libc.so.6",
		    "keep", "");
	/* only glue frames: the most informative one */
	check_frame("_start ld-linux.so.2;_dl_init ld-linux.so.2;malloc libc.so.6", "_dl_init", "");
	check_frame("malloc libc.so.6", "malloc", "");
}

static uint64_t site_of(struct heapframes *hf, const struct profile *p, size_t row)
{
	return heapframes_of(hf, tables_find_rows(p, TABLE_LIVE)->stack[row])->site;
}

TEST(heapframes_have_one_site_whatever_is_inlined_below)
{
	static const char *const stacks[] = {
		"main bin;alloc::vec::Vec::push<take bin;malloc libc.so.6",
		"main bin;alloc::vec::Vec::reserve<take bin;malloc libc.so.6",
		"main bin;take bin;malloc libc.so.6",
		"other bin;take bin;malloc libc.so.6",
	};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madeheap_new(1, 0);
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		madeheap(p, &(struct madeheap){
				    .table = TABLE_LIVE, .size = 64, .nr = 1, .stack = stacks[i]});
	profile_seal(p);
	struct heapframes *hf = heapframes_new(&a, p);
	CHECK_U64(site_of(hf, p, 0), site_of(hf, p, 1));
	CHECK_U64(site_of(hf, p, 0), site_of(hf, p, 2));
	CHECK(site_of(hf, p, 0) != site_of(hf, p, 3));
}

/* What a function called is shown by bytes, whatever the order and the table of the rows. */
TEST(heapfigures_name_the_callee_of_most_bytes)
{
	static const struct madeheap rows[] = {
		{.table = TABLE_LIVE, .size = 64, .nr = 9, .stack = "take b;std::a b;malloc c"},
		{.table = TABLE_LIVE, .size = 4096, .nr = 2, .stack = "take b;std::b b;malloc c"},
		{.table = TABLE_LIVE, .size = 4096, .nr = 1, .stack = "take b;std::c b;malloc c"},
		{.table = TABLE_LIVE, .size = 64, .nr = 1, .stack = "take b;malloc c"},
		{.table = TABLE_MAPPED,
		 .bytes = 1 << 20,
		 .nr = 1,
		 .stack = "take b;std::d b;mmap c"},
	};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = madeheap_new(1, MADEHEAP_ATTACHED);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		madeheap(p, &rows[i]);
	profile_seal(p);
	struct heapfigures f;
	CHECK(!heapfigures_collect(&f, &a, p, &(struct select_spec){0}, &err));
	CHECK_U64(f.functions.rows.n, 1);
	CHECK_STR(profile_text(p, f.functions.rows.p[0].frame.via), "std::b");
	heapfigures_release(&f);
}

static bool is_suppressed(const char *text, const char *stack)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = one_stack(stack);
	struct suppress *s;
	CHECK(suppress_new(&s, &a, p, text, &err) == 0);
	return suppress_has(s, tables_find_rows(p, TABLE_LIVE)->stack[0]);
}

TEST(suppressions_match_as_leaksanitizer_does)
{
	const char *stack = "main bin;warm_up_cache libcache.so.1;grow bin;malloc libc.so.6";
	CHECK(is_suppressed("leak:warm_up\n", stack));
	CHECK(is_suppressed("# known\n\n  leak:libcache\n", stack));
	CHECK(is_suppressed("leak:^warm*cache$", stack));
	CHECK(is_suppressed("leak:nothing\nleak:^grow$\n", stack));
	CHECK(!is_suppressed("leak:^cache", stack));
	CHECK(!is_suppressed("leak:up$", stack));
	CHECK(!is_suppressed("leak:^warm*x*cache$", stack));
	CHECK(!is_suppressed(NULL, stack));
	/* by default: what the C library keeps */
	CHECK(is_suppressed(NULL, "main bin;setlocale libc.so.6;malloc libc.so.6"));
	CLEANUP(err_release) struct err err = {0};
	CHECK(suppress_check("leak:a\nleak:\n", &err) == -EINVAL);
	CHECK(strstr(err_msg(&err), "line 2") != NULL);
}

/* Adds @nr allocations of @size that were sampled each @mean bytes on average. */
static void sample(struct random *r, struct weight *to, int nr, double size, double mean)
{
	double p = 1 - exp(-size / mean);
	for (int i = 0; i < nr; i++) {
		if (random_unit(r) >= p)
			continue;
		to->weight += (uint64_t)(size / p);
		to->variance += (size / p) * (size / p) * (1 - p);
		to->nr_samples++;
	}
}

/* Of a thousand captures each, the interval of a share has the true one in about 95 of 100. */
TEST(shares_of_sampled_bytes_have_true_intervals)
{
	static const int nr_parts[] = {100, 1000, 5000, 9000, 9900};
	const double none = 0;
	const struct selection sel = {.variance = &none};
	struct random r = {1};
	for (size_t i = 0; i < ARRAY_LEN(nr_parts); i++) {
		int nr_covered = 0;
		double wide = 0;
		for (int n = 0; n < 1000; n++) {
			struct weight part = {0};
			struct weight rest = {0};
			sample(&r, &part, nr_parts[i], 512, 4096);
			sample(&r, &rest, 10000 - nr_parts[i], 512, 4096);
			struct weight all = part;
			weight_add(&all, &rest);
			double pct = 100 * (double)part.weight / (double)all.weight;
			double error = view_error(&sel, part, all);
			nr_covered += fabs(pct - 0.01 * nr_parts[i]) <= error;
			wide = MAX(wide, error);
			CHECK(fabs(error - view_error(&sel, rest, all)) < 1e-9);
		}
		CHECK(nr_covered >= 930 && nr_covered <= 985);
		CHECK(wide < 4);
		printf("# %d of 1000 intervals of %.0f %%\n", nr_covered, 0.01 * nr_parts[i]);
	}
	struct weight all = {.weight = 100, .variance = 100, .nr_samples = 50};
	CHECK(view_error(&sel, all, all) == 0);
}

TEST(stat_estimates_are_wide_for_few_samples)
{
	struct stat_interval one = stat_estimate(100, 100.0 * 100);
	CHECK(one.low > 0 && one.low < 5 && one.high > 550 && one.high < 565);
	struct stat_interval many = stat_estimate(1e6, 1e6);
	CHECK(fabs(many.high - 1e6 - 1960) < 5 && fabs(1e6 - many.low - 1960) < 5);
	CHECK(stat_estimate_error(50, 0) == 0);
	CHECK(fabs(stat_t95(4) - 2.776) < 0.001 && fabs(stat_t95(30) - 2.042) < 0.001);
	CHECK(isinf(stat_t95(0)));
}
