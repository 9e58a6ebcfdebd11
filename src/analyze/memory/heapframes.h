/*
 * Finds the function to show for an allocation: the program's innermost function, skipping the
 * allocator, wrappers around it (operator new, __rust_alloc, zmalloc, palloc) and functions of
 * standard containers and strings that allocate for their callers. The tables are in heapframes.c,
 * one row per library. Flame graphs in SVG files keep whole stacks.
 *
 * If a stack has only such frames, the outermost one that is not an allocator is shown.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPFRAMES_H
#define ASSAY_ANALYZE_MEMORY_HEAPFRAMES_H

#include "base/arena.h"
#include "base/base.h"
#include "base/sv.h"
#include "model/profile.h"

enum heapframe_kind {
	HEAPFRAME_SHOWN = 0, /* a function of the program or of another library */
	HEAPFRAME_HELPER,    /* of a container, string or the C library: allocates for its caller */
	HEAPFRAME_ALLOCATOR, /* an allocator or a wrapper around one */
};

/* @function: the name as shown (demangled). */
enum heapframe_kind heapframe_kind_of(struct sv function);

struct heapframe {
	uint64_t site;      /* id; equal if the function and all callers have equal names */
	stack_id node;      /* the stack without the skipped frames; 0: none left */
	str_id function;    /* name in the profile's strings; 0: see heapframe_name */
	str_id via;         /* what it called; 0: the allocator */
	module_id module;   /* of the function */
	uint32_t frame_idx; /* of the function, within its location */
};

/* True for the file name of the injected recorder (wire/heap_wire.h). */
bool heapframes_is_recorder(const char *module);

/* Results are cached by stack. Lives in the arena, borrows the profile. */
struct heapframes;
struct heapframes *heapframes_new(struct arena *a, const struct profile *p);
const struct heapframe *heapframes_of(struct heapframes *hf, stack_id stack);
/* Per location: index of the innermost frame that is not skipped; 0 if all are. In the arena. */
const uint16_t *heapframes_leaves(struct heapframes *hf);
/* Returns the function's name, or "[no stack]", "[unknown]". */
const char *heapframe_name(const struct profile *p, const struct heapframe *f);
/*
 * Returns the names of the function's callers, innermost first, separated by " < "; "-" if none.
 * @max: names at most, the function's own name included; further ones are shown as "..". In the
 * arena.
 */
const char *heapframe_callers(struct arena *a, const struct profile *p, const struct heapframe *f,
			      size_t max);

#endif
