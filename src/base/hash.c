/* Hashing of byte strings; see hash.h. */
#include "base/base.h"
#include "base/hash.h"

static uint64_t word_at(const unsigned char *p)
{
	uint64_t w;
	memcpy(&w, p, sizeof(w));
	return w;
}

uint64_t hash_bytes(const void *p, size_t n)
{
	const unsigned char *s = p;
	uint64_t h = n * 0x9fb21c651e98df25u;
	if (n < 16) {
		uint64_t low = 0;
		uint64_t high = 0;
		if (n >= 8) { /* both ends, which overlap */
			low = word_at(s);
			high = word_at(s + n - 8);
		} else {
			for (size_t i = 0; i < n; i++)
				low |= (uint64_t)s[i] << (8 * i);
		}
		return hash_mix(hash_mix(h ^ low, high), 0xe7037ed1a0b428dbu);
	}
	const unsigned char *last = s + n - 16;
	for (; s < last; s += 16)
		h = hash_mix(h ^ word_at(s), word_at(s + 8));
	h = hash_mix(h ^ word_at(last), word_at(last + 8));
	return hash_mix(h, 0xe7037ed1a0b428dbu);
}
