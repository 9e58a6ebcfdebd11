/*
 * The hash function of all tables. The seed is constant, so results and table order are
 * reproducible. Multiply-and-fold mixing (xor of the halves of the 128-bit product), 16 bytes per
 * step. Not cryptographic: tables with keys from untrusted input limit their size instead.
 */
#ifndef ASSAY_BASE_HASH_H
#define ASSAY_BASE_HASH_H

#include "base/base.h"

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}
static inline uint64_t hash_u64(uint64_t v)
{
	return hash_mix(v, 0xa0761d6478bd642fu);
}
uint64_t hash_bytes(const void *p, size_t n);

#endif
