/* Classes of sizes of blocks and slices of time (model/heap.h). */
#include "base/base.h"
#include "tap.h"

#include "model/heap.h"

/* heap_class_min is 0 past the last class, so this wraps to the largest size. */
static uint64_t class_max(uint16_t c)
{
	return heap_class_min((uint16_t)(c + 1)) - 1;
}

TEST(heap_classes_cover_all_sizes)
{
	for (uint64_t n = 0; n < 100000; n++) {
		uint16_t c = heap_size_class(n);
		CHECK(c > 0 && heap_class_min(c) <= n && n <= class_max(c));
	}
	for (unsigned shift = 17; shift < 64; shift++) {
		uint64_t n = (uint64_t)1 << shift;
		uint16_t c = heap_size_class(n);
		CHECK_U64(heap_class_min(c), n);
		CHECK_U64(heap_size_class(n - 1), c - 1);
		CHECK_U64(class_max((uint16_t)(c - 1)), n - 1);
	}
	CHECK_U64(class_max(heap_size_class(UINT64_MAX)), UINT64_MAX);
}

TEST(heap_classes_are_narrow)
{
	for (uint64_t n = 64; n < (uint64_t)1 << 40; n += n / 7) {
		uint16_t c = heap_size_class(n);
		CHECK(class_max(c) - heap_class_min(c) < heap_class_min(c) / 8);
	}
}

TEST(heap_slices_follow_one_another_and_are_short_at_first)
{
	uint64_t nr = 0;
	for (uint64_t ns = 0; ns < 6000000000u; nr++) {
		uint64_t end = heap_slice_end(ns);
		CHECK_U64(heap_slice_start(ns), ns);
		CHECK_U64(heap_slice_start(end - 1), ns);
		CHECK_U64(heap_slice_end(end - 1), end);
		CHECK(end - ns <= MAX((uint64_t)1 << 20, MIN(ns / 8, (uint64_t)500000000)));
		ns = end;
	}
	CHECK_U64(heap_slice_end(3999999999), 4000000000);
	CHECK_U64(nr, 83);
}
