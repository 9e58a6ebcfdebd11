/*
 * Which function to show for an allocation: the program's own function nearest to it, past the
 * allocator, the wrappers around it (operator new, __rust_alloc, zmalloc, palloc) and what
 * containers and strings of standard libraries do on behalf of their callers. The tables are in
 * heapframes.c; one row a library. Flame graphs and trees keep whole stacks.
 *
 * A stack of nothing but such frames is shown by the outermost of them that is no allocator.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPFRAMES_H
#define ASSAY_ANALYZE_MEMORY_HEAPFRAMES_H

#include "base/arena.h"
#include "base/base.h"
#include "base/sv.h"
#include "model/profile.h"

enum heapframe_kind {
	HEAPFRAME_OWN = 0,   /* the program's, or a library's that is worth a name */
	HEAPFRAME_GLUE,      /* containers, strings, C library: allocates for its caller */
	HEAPFRAME_ALLOCATOR, /* an allocator or a wrapper around one */
};

/* By the name as shown (demangled). */
enum heapframe_kind heapframe_kind_of(struct sv function);

struct heapframe {
	uint64_t site;      /* equal where the function and all callers have the same names */
	stack_id node;      /* the stack without the frames that were passed over; 0 = none left */
	str_id function;    /* name in the profile's strings; 0: see heapframe_name */
	str_id via;         /* what it called, outside of allocators; 0 = the allocator itself */
	module_id module;   /* of the function */
	uint32_t frame_idx; /* of the function among the inlined ones of its location */
};

/* The file of a recorder that a process holds (wire/heap_wire.h). */
bool heapframes_is_recorder(const char *module);

/* Answers are kept by stack; lives in the arena, borrows the profile. */
struct heapframes;
struct heapframes *heapframes_new(struct arena *a, const struct profile *p);
const struct heapframe *heapframes_of(struct heapframes *hf, stack_id stack);
/* Per location: index of its innermost frame that heapframes_of may choose; in the arena. */
const uint16_t *heapframes_leaves(struct heapframes *hf);
/* Never NULL or empty: "[no stack]", "[unknown]". */
const char *heapframe_name(const struct profile *p, const struct heapframe *f);
/* Its callers, the nearest first, " < " between, with it at most @max of them; "-". In the arena. */
const char *heapframe_callers(struct arena *a, const struct profile *p, const struct heapframe *f,
			      size_t max);

#endif
