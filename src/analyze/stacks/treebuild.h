/* The builder's inside, shared by calltree.c and treefinish.c. */
#ifndef ASSAY_ANALYZE_STACKS_TREEBUILD_H
#define ASSAY_ANALYZE_STACKS_TREEBUILD_H

#include "analyze/stacks/calltree.h"
#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"

struct bnode {
	uint32_t parent;
	str_id name;
	str_id module;
	uint32_t flags;
	uint64_t self;
	uint64_t before;
};

struct calltree {
	struct report *r;
	unsigned flags;
	bool has_before;
	VEC(struct bnode) nodes; /* parents before children; 0 = root */
	struct map children;     /* parent << 32 | name -> node */
	size_t nr_indexed;       /* nodes that are in `children` */
	VEC(uint32_t) open;      /* time order: the path of the last sample */
	uint64_t nr_samples;
	bool has_input; /* a selection, whose samples are known */
};

/* A sum that cannot be represented stays at the largest number instead of starting again. */
static inline uint64_t treebuild_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
