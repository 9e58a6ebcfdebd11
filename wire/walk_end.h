/* The reasons why a stack walk ended; the same for all three walkers (unwind_core.h). */
#ifndef ASSAY_WIRE_WALK_END_H
#define ASSAY_WIRE_WALK_END_H

enum walk_end {
	WALK_ROOT = 0,   /* complete: the thread's start was reached */
	WALK_NO_MAP,     /* an address is in no mapping */
	WALK_NO_RULE,    /* code has no unwind rule and no usable frame pointer */
	WALK_NO_FILE,    /* the module's file could not be opened */
	WALK_JIT,        /* JIT code without a usable frame pointer */
	WALK_BAD_FRAME,  /* CFA not above that of the callee, unaligned or outside the stack */
	WALK_UNREADABLE, /* stack that was not copied, or is not in memory */
	WALK_DEPTH,      /* more frames than the caller's limit */
	WALK_NEEDS_FULL, /* needs more registers than the walker follows */
	WALK_END_NR
};

#endif
