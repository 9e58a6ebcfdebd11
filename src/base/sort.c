/* Radix sort, the least significant digit first; see sort.h. */
#include "base/base.h"
#include "base/sort.h"

#include "base/mem.h"

#define DIGIT_BITS 8
#define NR_DIGITS  ((size_t)1 << DIGIT_BITS)

/* Inlined with a constant size, so that a record is copied by a few moves. */
static inline __attribute__((always_inline)) void sort(uint8_t *p, size_t n, size_t record_bytes,
						       uint64_t mask)
{
	const uint64_t digit_mask = NR_DIGITS - 1;
	uint64_t first = 0, last = 0, differing = 0;
	bool is_sorted = true;

	for (size_t i = 0; i < n; i++) {
		uint64_t key;
		memcpy(&key, p + i * record_bytes, sizeof(key));
		key &= mask;
		first = i ? first : key;
		differing |= key ^ first;
		is_sorted = is_sorted && last <= key;
		last = key;
	}
	if (is_sorted)
		return;
	CLEANUP(free_p) uint8_t *other = xreallocarray(NULL, n, record_bytes);
	uint8_t *from = p;
	uint8_t *to = other;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		size_t at[NR_DIGITS + 1] = {0};
		if (!(differing >> shift & digit_mask))
			continue;
		for (size_t i = 0; i < n; i++) {
			uint64_t key;
			memcpy(&key, from + i * record_bytes, sizeof(key));
			at[((key & mask) >> shift & digit_mask) + 1]++;
		}
		for (size_t i = 1; i < NR_DIGITS; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < n; i++) {
			uint64_t key;
			memcpy(&key, from + i * record_bytes, sizeof(key));
			size_t place = at[(key & mask) >> shift & digit_mask]++;
			memcpy(to + place * record_bytes, from + i * record_bytes, record_bytes);
		}
		uint8_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != p)
		memcpy(p, from, n * record_bytes);
}

void sort_records(void *records, size_t n, size_t record_bytes, uint64_t key_mask)
{
	switch (record_bytes) { /* those in use */
	case 8:
		sort(records, n, 8, key_mask);
		break;
	case 12:
		sort(records, n, 12, key_mask);
		break;
	case 16:
		sort(records, n, 16, key_mask);
		break;
	case 32:
		sort(records, n, 32, key_mask);
		break;
	default:
		sort(records, n, record_bytes, key_mask);
	}
}
