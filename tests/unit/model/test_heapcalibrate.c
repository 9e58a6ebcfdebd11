/* model/heapcalibrate.c: heap samples scaled to exact counts. */
#include "base/base.h"
#include "tap.h"

#include "madeheap.h"
#include "model/heap.h"
#include "model/heapcalibrate.h"

/* Sum of a column; @stack: of the rows that were not sampled, or of the others. */
static int64_t sum_of(const struct profile *p, enum table_id id, unsigned column, bool is_sampled)
{
	const struct table *t = tables_find(p, id);
	int64_t sum = 0;
	for (size_t i = 0; t && i < t->n; i++)
		if (heap_is_not_sampled(p, t->stack[i]) != is_sampled)
			sum += t->values[i * t->nr_columns + column];
	return sum;
}

/*
 * Blocks of 100 bytes: 30 of two sites estimated, 40 counted; of 4,096 bytes: all recorded; of 20
 * bytes: 7, none sampled.
 */
static struct profile *made(void)
{
	struct profile *p = madeheap_new(10, MADEHEAP_ATTACHED | MADEHEAP_SAMPLED);
	struct madeheap m = {.table = TABLE_ALLOCATED, .second = 1, .size = 100, .variance = 900};
	m.stack = "main;f";
	m.nr = 10;
	madeheap_block(p, &m, MADEHEAP_NEVER);
	m.stack = "main;g";
	m.nr = 20;
	madeheap_block(p, &m, 3);
	m = (struct madeheap){.table = TABLE_ALLOCATED, .second = 2, .size = 4096, .nr = 5};
	m.stack = "main;big";
	madeheap_block(p, &m, MADEHEAP_NEVER);
	profile_fact(p, FACT_HEAP_SIZES, "1:7:140 3:40:4004 9:5:20480");
	return p;
}

TEST(heapcalibrate_makes_the_sums_of_each_size_exact)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, true), 35);
	heapcalibrate(p);
	CHECK(heapcalibrate_is_exact(p));
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, true), 45);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES, true), 4004 + 20480);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, false), 7);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES, false), 140);
	/* the same blocks: 10 of 30 live, 20 freed */
	CHECK_U64((uint64_t)sum_of(p, TABLE_LIVE, HEAP_BLOCKS, true), 5 + 13);
	CHECK_U64((uint64_t)sum_of(p, TABLE_FREED, HEAP_BLOCKS, true), 27);
	/* 900 x (4004 / 3000)^2 of each site */
	CHECK_U64((uint64_t)sum_of(p, TABLE_FREED, HEAP_VARIANCE, true), 1603);
}

TEST(heapcalibrate_changes_nothing_the_second_time)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	heapcalibrate(p);
	size_t nr_rows = tables_find(p, TABLE_ALLOCATED)->n;
	heapcalibrate(p);
	CHECK_U64(tables_find(p, TABLE_ALLOCATED)->n, nr_rows);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, true), 45);
	CHECK_U64((uint64_t)sum_of(p, TABLE_FREED, HEAP_VARIANCE, true), 1603);
}

TEST(heapcalibrate_shows_counts_of_which_nothing_was_sampled)
{
	CLEANUP(profile_free_p)
	struct profile *p = madeheap_new(10, MADEHEAP_ATTACHED | MADEHEAP_SAMPLED);
	profile_fact(p, FACT_HEAP_SIZES, "0:3:24 3:600:70000");
	heapcalibrate(p);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, false), 603);
	CHECK_U64((uint64_t)sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES, false), 70024);
	CHECK_U64(p->losses.nr[LOSS_WRITTEN], 603);
}

/* The counts are read from the target's memory. */
TEST(heapcalibrate_bears_counts_that_cannot_be)
{
	static const char *const texts[] = {
		"",
		"3",
		"3:1",
		"99:1:1",
		"3:x:1",
		"3:18446744073709551615:18446744073709551615 0:0:18446744073709551615",
		"3:1:0 9:1:99999999999"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(profile_free_p) struct profile *p = made();
		profile_fact(p, FACT_HEAP_SIZES, texts[i]);
		heapcalibrate(p);
		CHECK(sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, true) >= 0);
		CHECK(sum_of(p, TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES, true) >= 0);
		profile_seal(p);
	}
}
