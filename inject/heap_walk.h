/*
 * Unwinds the stack of the calling thread with the shared unwind tables (wire/kernel_tables.h,
 * space 0), using the step functions of wire/unwind_core.h with pc, sp and fp. Reads only memory
 * that is known to be mapped. Terminates for any table contents.
 */
#ifndef ASSAY_INJECT_HEAP_WALK_H
#define ASSAY_INJECT_HEAP_WALK_H

#include "heap_recorder.h"

/* Returns whether a page is readable; false without system calls. */
bool walk_is_readable(const struct heap_local *l, uint64_t page);
/*
 * Unwinds the stack of the caller of @c into thread->frames. Returns the index of its leaf there; the
 * stack ends at index HEAP_FRAMES_MAX - 1. The thread must be inside the recorder. @is_hook: called
 * by jemalloc, so the innermost frames in jemalloc's code are omitted. @ret_stack_id: 0 before the
 * call; if the stack is in the stack cache, it is set to the stack's id and thread->frames is not
 * changed. NULL: the caller needs the frames.
 */
uint32_t walk_stack(struct heap_ctx *x, const struct heap_call *c, bool is_hook,
		    uint32_t *ret_stack_id);
/*
 * Unwinds in the same way, returns the id of the stack with its Python frames (heap_python.h) and
 * writes a STACK record if it is new; 0: no id. Implemented in heap_stackid.c.
 */
uint32_t walk_stack_id(struct heap_ctx *x, const struct heap_call *c, bool is_hook);

/* What to do when something is not in the set of known stacks yet; the head of a larger struct. */
struct stackid_new {
	/* Writes its record; false: no room. */
	bool (*emit)(struct heap_ctx *x, struct stackid_new *n, uint32_t id);
	bool has_loop; /* set by emit: the loop of the Python interpreter is in the stack */
};
/* Returns the id of what has @hash, after writing its record if it is new; 0: no room. */
uint32_t stackid_find(struct heap_ctx *x, uint64_t hash, struct stackid_new *n);

#endif
