/*
 * Unwinds the stack of the calling thread with the shared unwind tables (wire/kernel_tables.h,
 * space 0), using the step functions of wire/unwind_core.h with pc, sp and fp. Reads only memory
 * that is known to be mapped. Terminates for any table contents.
 */
#ifndef ASSAY_INJECT_HEAP_WALK_H
#define ASSAY_INJECT_HEAP_WALK_H

#include "heap_recorder.h"

/*
 * Makes the stack of the caller of @c the thread's last stack. Returns the index of its leaf in
 * thread->frames; the stack ends at index HEAP_FRAMES_MAX - 1. The thread must be inside the
 * recorder. With @ret_stack_id (0 before the call): if the stack is in the stack cache, sets its id
 * and leaves the last stack as it was. NULL: the caller needs the frames.
 */
uint32_t walk_stack(struct heap_ctx *x, const struct heap_call *c, bool is_hook,
		    uint32_t *ret_stack_id);
/*
 * Returns the id of that stack and writes a STACK record if it is new; 0: no id. In
 * heap_stackid.c.
 */
uint32_t walk_stack_id(struct heap_ctx *x, const struct heap_call *c, bool is_hook);

#endif
