/*
 * Synthetic profiles, for tests in which every number is known.
 *
 *	CLEANUP(profile_free_p) struct profile *p = profile_new();
 *	uint32_t t = made_table(p, "cycles", 2);
 *	made_sample(p, t, &(struct made){.stack = "main;f libc.so.6;read [k]", .ns = 5,
 *				       .weight = 7});
 *	profile_seal(p);
 *
 * A frame is "name", "name module", or "name [k]" for kernel code; "inner<outer" is a location
 * with an inlined frame: inner inlined into outer.
 */
#ifndef ASSAY_TESTS_LIB_MADE_H
#define ASSAY_TESTS_LIB_MADE_H

#include "model/profile.h"

struct made {
	const char *stack; /* root first, ';' between */
	const char *comm;  /* "comm" when NULL */
	int32_t pid;       /* 1 when 0 */
	int32_t tid;       /* pid when 0 */
	int32_t cpu;
	uint64_t ns;
	int64_t nr;     /* 1 when 0 */
	int64_t weight; /* nr when 0 */
};

/* Adds a table with the given number of columns: samples, then a weight in ns. */
uint32_t made_table(struct profile *p, const char *event, uint32_t nr_columns);
/* Adds a frame that is known only by name, as in text formats; @flags: those of a location. */
loc_id made_named(struct profile *p, struct sv name, struct sv module_path, uint32_t flags);
stack_id made_stack(struct profile *p, const char *stack);
void made_sample(struct profile *p, uint32_t table, const struct made *m);

#endif
