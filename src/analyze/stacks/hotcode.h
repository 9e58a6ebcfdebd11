/*
 * Weights of single instructions: of each function of machine code the addresses at which samples
 * were taken, as they are recorded. A function is the physical one; code that was inlined into it is
 * its code. Lives in the caller's arena.
 *
 * Only rows whose leaf is code and is where the sample was taken: not waits, whose leaf is a reason,
 * and not return addresses.
 */
#ifndef ASSAY_ANALYZE_STACKS_HOTCODE_H
#define ASSAY_ANALYZE_STACKS_HOTCODE_H

#include "analyze/select/select.h"
#include "analyze/select/weigh.h"
#include "base/arena.h"
#include "base/base.h"
#include "model/code.h"

struct hot_place {
	uint64_t offset; /* in the module */
	loc_id loc;      /* a location there, with its frames */
	struct weight self;
};

struct hot_function {
	func_id func;
	module_id module;
	struct weight self;       /* of all places */
	struct hot_place *places; /* by offset */
	size_t nr_places;
};

/* Those that have a weight, the heaviest first. Returns their number. */
size_t hotcode_find(struct arena *a, const struct selection *sel, struct hot_function **ret_f);
/* Whether a stack that ends there has the weight of an instruction, unless the row has a synth_leaf. */
bool hotcode_is_insn(const struct profile *p, const struct location *loc);
/* Reads the code of @n functions; the result has one code_function for each. */
struct code_function *hotcode_read(struct arena *a, const struct profile *p,
				   const struct code_access *code, const struct hot_function *f,
				   size_t n);

#endif
