/* base/sort.h and the searches of base/vec.h, against the obvious way. */
#include "base/base.h"
#include "base/sort.h"
#include "tap.h"

#include "base/vec.h"

#define NR 3000

struct record {
	uint64_t key;
	uint32_t order;
	uint32_t pad[5];
};

static uint64_t rng = 1;

static uint64_t draw(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 20;
}

TEST(sort_records_ascend_and_equal_ones_keep_their_order)
{
	static struct record r[NR];
	const uint64_t ranges[] = {1, 200, 70000, (uint64_t)1 << 40};
	for (size_t k = 0; k < ARRAY_LEN(ranges); k++) {
		for (uint32_t i = 0; i < NR; i++)
			r[i] = (struct record){.key = draw() % ranges[k] << 20, .order = i};
		sort_records(r, NR, sizeof(r[0]), UINT64_MAX);
		for (size_t i = 1; i < NR; i++)
			CHECK(r[i - 1].key < r[i].key ||
			      (r[i - 1].key == r[i].key && r[i - 1].order < r[i].order));
	}
	sort_records(r, 0, sizeof(r[0]), UINT64_MAX);
}

TEST(sort_records_by_a_part_of_the_first_word)
{
	struct {
		uint32_t key, rest, more;
	} r[] = {{3, 0, 0}, {1, 9, 1}, {2, 5, 2}, {1, 4, 3}};
	sort_records(r, ARRAY_LEN(r), sizeof(r[0]), UINT32_MAX);
	const uint32_t want[] = {1, 3, 2, 0};
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		CHECK_U64(r[i].more, want[i]);
}

TEST(lower_and_upper_bound_match_a_linear_search)
{
	const uint64_t v[] = {2, 2, 5, 9};
	const struct {
		uint32_t at;
	} r[] = {{2}, {2}, {5}, {9}};
	for (uint64_t key = 0; key < 12; key++) {
		size_t nr_less = 0, nr_not_more = 0;
		for (size_t i = 0; i < ARRAY_LEN(v); i++) {
			nr_less += v[i] < key;
			nr_not_more += v[i] <= key;
		}
		CHECK_U64(u64_lower_bound(v, ARRAY_LEN(v), key), nr_less);
		CHECK_U64(lower_bound(r, ARRAY_LEN(r), at, key), nr_less);
		CHECK_U64(upper_bound(r, ARRAY_LEN(r), at, key), nr_not_more);
	}
	CHECK_U64(u64_lower_bound(v, 0, 3), 0);
}
