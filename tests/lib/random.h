/* Random numbers for tests that simulate: xorshift64 with a fixed seed, not 0. */
#ifndef ASSAY_TESTS_LIB_RANDOM_H
#define ASSAY_TESTS_LIB_RANDOM_H

#include <math.h>

#include "base/base.h"

struct random {
	uint64_t state;
};

/* Uniform between 0 and 1, neither of them. */
static inline double random_unit(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return ((double)(r->state >> 11) + 0.5) / 9007199254740992.0;
}

static inline double random_normal(struct random *r)
{
	double radius = sqrt(-2 * log(random_unit(r)));
	return radius * cos(2 * M_PI * random_unit(r));
}

#endif
