/* Hashing of byte strings; see hash.h. */
#include "base/base.h"
#include "base/hash.h"

uint64_t hash_bytes(const void *p, size_t n)
{
	const unsigned char *s = p;
	uint64_t h = n * 0x9fb21c651e98df25u;
	while (n >= 8) {
		uint64_t w;
		memcpy(&w, s, 8);
		h = hash_mix(h, w);
		s += 8;
		n -= 8;
	}
	uint64_t tail = 0;
	for (size_t i = 0; i < n; i++)
		tail |= (uint64_t)s[i] << (8 * i);
	return hash_mix(h, tail ^ 0xe7037ed1a0b428dbu);
}
