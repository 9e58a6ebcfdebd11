/* Sampling in the recorder (inject/): which blocks are recorded, and which frees. */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <math.h>
#include <pthread.h>

#include "heapblob_fixture.h"

#define NR_THREADS 6

static const struct local_recorder_spec sampled = {.interval_bytes = 1000};

/* How many of @n blocks of @size are recorded; all counted. */
static uint64_t nr_sampled(size_t size, uint64_t n)
{
	struct heap_seen r;
	uint64_t nr = 0;

	for (uint64_t i = 0; i < n; i++) {
		hooked_free(hooked_malloc(size));
		struct heap_slot *s = local_recorder_slot(hw);
		while (i % 100 == 0 && next(s, &r))
			nr += r.kind == HEAP_RECORD_ALLOC;
	}
	while (next(local_recorder_slot(hw), &r))
		nr += r.kind == HEAP_RECORD_ALLOC;
	return nr;
}

TEST(heapblob_samples_each_size_as_often_as_it_says)
{
	begin(&sampled);
	static const size_t sizes[] = {1, 10, 100, 500, 900, 999};
	uint64_t nr_all = 0;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t n = 1000000;
		double p = 1 - exp(-(double)sizes[i] / 1000);
		double wanted = p * (double)n;
		double sigma = sqrt(wanted * (1 - p));
		uint64_t nr = nr_sampled(sizes[i], n);
		nr_all += n;
		if (fabs((double)nr - wanted) > 4 * sigma)
			tap_fail(__FILE__, __LINE__, "size %zu: %" PRIu64 ", not %.0f +- %.0f",
				 sizes[i], nr, wanted, sigma);
	}
	CHECK_U64(nr_sampled(1000, 1000), 1000);
	CHECK_U64(nr_sampled(5000, 1000), 1000);
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, nr_all + 2000);
	CHECK_U64(local_recorder_slot(hw)->nr_frees, nr_all + 2000);
	CHECK_U64(hw->shared->nr_no_block, 0);
	local_recorder_free(hw);
}

/* While always_bytes is 0 all are recorded, and their frees also afterwards. */
TEST(heapblob_records_all_until_it_is_told_to_sample)
{
	static const struct local_recorder_spec spec = {.interval_bytes = 1 << 20,
							.starts_full = true};
	static void *blocks[100];
	struct heap_seen r;
	uint64_t nr[HEAP_RECORD_NR] = {0};
	begin(&spec);
	struct heap_slot *s = NULL;
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		blocks[i] = hooked_malloc(i % 10);
	hw->local->always_bytes = spec.interval_bytes;
	for (size_t i = 0; i < 1000; i++)
		hooked_free(hooked_malloc(16));
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		hooked_free(blocks[i]);
	s = local_recorder_slot(hw);
	while (next(s, &r))
		nr[r.kind]++;
	CHECK_U64(nr[HEAP_RECORD_ALLOC_ALL], ARRAY_LEN(blocks));
	CHECK(nr[HEAP_RECORD_ALLOC] <= 3); /* 16 kB of the 1 MiB between samples */
	CHECK(nr[HEAP_RECORD_FREE] >= ARRAY_LEN(blocks) && nr[HEAP_RECORD_FREE] <= 103);
	CHECK_U64(s->nr_allocs, 1100);
	local_recorder_free(hw);
}

/* A block whose free cannot be recorded must not be: it would be live forever. */
TEST(heapblob_samples_when_it_cannot_follow_more_blocks)
{
	static const struct local_recorder_spec spec = {
		.interval_bytes = 1 << 30, .starts_full = true, .nr_blocks = 64};
	static void *blocks[1000];
	struct heap_seen r;
	uint64_t nr[HEAP_RECORD_NR] = {0};
	begin(&spec);
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		blocks[i] = hooked_malloc(24);
	CHECK_U64(hw->local->always_bytes, spec.interval_bytes);
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		hooked_free(blocks[i]);
	while (next(local_recorder_slot(hw), &r))
		nr[r.kind]++;
	CHECK(nr[HEAP_RECORD_ALLOC_ALL] >= 16 && nr[HEAP_RECORD_ALLOC_ALL] <= 64);
	CHECK_U64(nr[HEAP_RECORD_FREE], nr[HEAP_RECORD_ALLOC_ALL] + nr[HEAP_RECORD_ALLOC]);
	CHECK_U64(hw->shared->nr_no_block, 0);
	local_recorder_free(hw);
}

TEST(heapblob_samples_a_mix_of_sizes_without_bias)
{
	begin(&sampled);
	double estimate = 0, wanted = 0, variance = 0;
	uint64_t seed = 1;
	for (int i = 0; i < 2000000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t size = 1 + (seed >> 40) % 700;
		(void)hooked_malloc(size);
		double p = 1 - exp(-(double)size / 1000);
		wanted += (double)size;
		variance += (double)size * (double)size * (1 - p) / p;
		struct heap_slot *s = local_recorder_slot(hw);
		struct heap_seen r;
		while (next(s, &r))
			estimate += (double)r.n / (1 - exp(-(double)r.n / 1000));
	}
	if (fabs(estimate - wanted) > 4 * sqrt(variance))
		tap_fail(__FILE__, __LINE__, "%.0f, not %.0f +- %.0f", estimate, wanted,
			 sqrt(variance));
	local_recorder_free(hw);
}

TEST(heapblob_reports_frees_of_sampled_blocks_and_of_no_others)
{
	begin(&sampled);
	enum { N = 30000 };
	static bool is_in[N];
	struct heap_seen r;
	uint64_t first = next_block + 64;
	uint64_t nr_in = 0, nr_freed = 0;
	for (int i = 0; i < N; i++) {
		(void)hooked_malloc(100);
		while (next(local_recorder_slot(hw), &r)) {
			CHECK(r.kind == HEAP_RECORD_ALLOC);
			is_in[(r.block - first) / 64] = true;
			nr_in++;
		}
	}
	for (int i = 0; i < N; i++) {
		hooked_free((void *)(uintptr_t)(first + (uint64_t)i * 64));
		while (next(local_recorder_slot(hw), &r)) {
			CHECK(r.kind == HEAP_RECORD_FREE && is_in[(r.block - first) / 64]);
			nr_freed++;
		}
	}
	CHECK(nr_in > N / 15 && nr_in < N / 7);
	CHECK_U64(nr_freed, nr_in);
	CHECK_U64(local_recorder_slot(hw)->nr_frees, N);
	/* The set is empty again, bits too. */
	uint64_t *words = (uint64_t *)(uintptr_t)hw->local->blocks;
	for (uint64_t i = 0; i < HEAP_BLOCKS_BYTES(hw->local->nr_blocks) / 8; i++)
		CHECK(words[i] == 0);
	local_recorder_free(hw);
}

TEST(heapblob_counts_blocks_for_which_the_set_has_no_room)
{
	begin(&(struct local_recorder_spec){.interval_bytes = 100, .nr_blocks = 512});
	for (int i = 0; i < 5000; i++) {
		(void)hooked_malloc(100);
		local_recorder_skip(local_recorder_slot(hw));
	}
	uint64_t nr_out = hw->shared->nr_no_block;
	CHECK(nr_out >= 5000 - 512 && nr_out < 5000 - 400);
	struct heap_seen r;
	uint64_t nr_freed = 0;
	for (uint64_t i = 0; i < 5000; i++) {
		hooked_free((void *)(uintptr_t)(0x10040 + i * 64));
		while (next(local_recorder_slot(hw), &r))
			nr_freed++;
	}
	CHECK_U64(nr_freed + nr_out, 5000);
	local_recorder_free(hw);
}

TEST(heapblob_has_room_for_blocks_at_any_usual_distance)
{
	for (unsigned shift = 4; shift <= 24; shift += 2) {
		begin(&(struct local_recorder_spec){.interval_bytes = 1000});
		for (uint64_t i = 0; i < 8000; i++) {
			next_block = (i + 1) << shift;
			(void)hooked_malloc(20000); /* so much is sampled always */
			local_recorder_skip(local_recorder_slot(hw));
		}
		CHECK_U64(hw->shared->nr_no_block, 0);
		local_recorder_free(hw);
	}
}

TEST(heapblob_puts_a_sampled_block_back_when_realloc_fails)
{
	begin(&sampled);
	void *(*re)(void *, size_t) = (void *(*)(void *, size_t))local_recorder_hook(
		hw, HEAP_REALLOC_1, (heap_fn)fake_realloc);
	void *p = hooked_malloc(2000);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 2000);
	CHECK(re(p, (size_t)-1) == NULL);
	CHECK_NONE();
	void *q = re(p, 3000);
	CHECK_NEXT(HEAP_RECORD_FREE, p, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, q, 3000);
	hooked_free(p);
	CHECK_NONE();
	hooked_free(q);
	CHECK_NEXT(HEAP_RECORD_FREE, q, 0);
	local_recorder_free(hw);
}

static void *share_blocks(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg;
	void *(*f)(uint64_t, size_t) = (void *(*)(uint64_t, size_t))(uintptr_t)base;
	/* All threads' addresses fall into the same few buckets. */
	for (int round = 0; round < 300; round++) {
		void *p[60];
		for (int i = 0; i < 60; i++)
			p[i] = f((uint64_t)i * 16, 5000);
		for (int i = 0; i < 60; i++)
			hooked_free(p[i]);
		local_recorder_skip(local_recorder_slot(hw));
	}
	return NULL;
}

TEST(heapblob_set_of_blocks_is_shared_by_threads)
{
	begin(&(struct local_recorder_spec){.interval_bytes = 1000, .nr_blocks = 8192});
	heap_fn f = local_recorder_hook(hw, HEAP_ALLOC_1, (heap_fn)fake_thread_block);
	pthread_t t[NR_THREADS];
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, share_blocks, (void *)(uintptr_t)f) == 0);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(t[i], NULL);
	uint64_t *words = (uint64_t *)(uintptr_t)(hw->local->blocks + hw->local->nr_blocks / 8);
	for (uint64_t i = 0; i < hw->local->nr_blocks; i++)
		CHECK(words[i] == 0);
	CHECK_U64(hw->shared->nr_no_block, 0);
	local_recorder_free(hw);
}
#endif
