/*
 * Walks the thread's own stack by the shared tables (wire/kernel_tables.h, space 0), in the steps
 * of wire/unwind_core.h as far as pc, sp and fp go. Reads no memory that is not known to be there,
 * ends for any rules.
 */
#ifndef ASSAY_INJECT_HEAP_WALK_H
#define ASSAY_INJECT_HEAP_WALK_H

#include "heap_inner.h"

/*
 * The stack of the caller of @c becomes the memo's. Returns the index of its leaf in memo->frames;
 * it ends with the last of these. The thread is in the recorder. *ret_number, 0 before: of a stack
 * that was met lately, which then does not become the memo's; NULL: frames are wanted.
 */
uint32_t walk_stack(struct heap_ctx *x, const struct heap_call *c, bool is_hook,
		    uint32_t *ret_number);
/* The number of that stack, told in the ring if it is new; 0: none. heap_stackid.c */
uint32_t walk_number(struct heap_ctx *x, const struct heap_call *c, bool is_hook);

#endif
