/* capture/heap: recordings that start with every allocation and change to samples. */
#include "base/base.h"
#include "fake_recorder.h"
#include "tap.h"

#include "capture/heap/thin.h"
#include "model/heap.h"
#include "model/tables.h"

#define START FAKE_RECORDER_START
#define MS    1000000ull

TEST(thin_is_due_when_records_cost_more_than_their_share)
{
	CHECK(!thin_is_due(300000, 0, 0, 1000)); /* 45 ms of the 50 that each program has */
	CHECK(thin_is_due(400000, 0, 0, 1000));
	CHECK(thin_is_due(400000, 100 * MS, 0, 1000));
	CHECK(!thin_is_due(400000, 1000 * MS, 0, 1000));  /* 60 of 70 ms */
	CHECK(thin_is_due(4000000, 10000 * MS, 0, 1000)); /* 600 of 250 */
	CHECK(!thin_is_due(10, 0, 1000, 1000));
	CHECK(thin_is_due(10, 0, 1001, 1000));
}

static void put_all(struct fake_recorder *w, uint64_t tsc, uint64_t addr, uint64_t nr_bytes)
{
	uint64_t words[3] = {HEAP_RECORD_ALLOC_ALL | (uint64_t)HEAP_SITE_NONE << HEAP_SITE_SHIFT |
				     tsc << HEAP_TSC_SHIFT,
			     addr | (uint64_t)7 << HEAP_STACK_SHIFT, nr_bytes};
	CHECK(fake_recorder_put(w, 0, words, 3));
}

/* The same stack, thread and size, before and after the change, and frees of both afterwards. */
TEST(heapaccount_counts_blocks_once_that_were_recorded_while_all_were)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 1 << 20, 1);
	for (uint64_t i = 0; i < 10; i++)
		put_all(&w, START + 10 + i, 0x1000 + 64 * i, 64);
	CHECK(fake_recorder_free(&w, 0, START + 30, 0x1000));
	CHECK(fake_recorder_alloc(&w, 0, START + 40, 0x9000, 64, 7)); /* stands for 16384.5 */
	CHECK(fake_recorder_alloc(&w, 0, START + 41, 0xa000, 64, 7));
	for (uint64_t i = 1; i < 4; i++)
		CHECK(fake_recorder_free(&w, 0, START + 50 + i, 0x1000 + 64 * i));
	CHECK(fake_recorder_free(&w, 0, START + 60, 0x9000));
	fake_recorder_pass(&w, START + 100);
	heapaccount_end(w.account);
	CHECK_U64((uint64_t)fake_recorder_sum(&w, TABLE_ALLOCATED, -1, -1, HEAP_ALLOCATED_CALLS),
		  10 + 2 * 16384 + 1);
	CHECK_U64((uint64_t)fake_recorder_sum(&w, TABLE_FREED, -1, -1, HEAP_BLOCKS), 4 + 16385);
	CHECK_U64((uint64_t)fake_recorder_sum(&w, TABLE_LIVE, -1, -1, HEAP_BLOCKS), 6 + 16385);
	/* the variance is that of the sampled ones alone: two rows for one stack */
	double one = 64.0 * 64 * 16384.5 * 16383.5;
	double sum = (double)fake_recorder_sum(&w, TABLE_LIVE, -1, -1, HEAP_VARIANCE);
	CHECK(sum > 0.999 * one && sum < 1.001 * one);
	fake_recorder_release(&w);
}
