/* Why a stack ends where it does: what each of the walkers says (unwind_core.h). */
#ifndef ASSAY_WIRE_WALK_END_H
#define ASSAY_WIRE_WALK_END_H

enum walk_end {
	WALK_ROOT = 0,  /* the thread's start */
	WALK_NO_MAP,    /* an address in no mapping */
	WALK_NO_RULE,   /* code without rules, and no frame pointer to follow */
	WALK_NO_FILE,   /* the module's file could not be opened */
	WALK_JIT,       /* JIT code whose frame pointer leads nowhere */
	WALK_BAD_FRAME, /* a frame that cannot be: CFA did not grow, unaligned, outside the stack */
	WALK_UNREADABLE, /* stack that was not copied, or is not in memory */
	WALK_DEPTH,      /* deeper than what was asked for */
	WALK_FULL,       /* needs more registers than the walker follows */
	WALK_END_NR
};

#endif
