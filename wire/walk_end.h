/* Why a walk of a stack ended where it did; the result of all walkers (unwind_core.h). */
#ifndef ASSAY_WIRE_WALK_END_H
#define ASSAY_WIRE_WALK_END_H

enum walk_end {
	WALK_ROOT = 0,  /* reached the thread's start: the stack is complete */
	WALK_NO_MAP,    /* a return address in no mapping */
	WALK_NO_RULE,   /* code without unwind rules, and no usable frame pointer */
	WALK_NO_FILE,   /* the module's file could not be opened */
	WALK_JIT,       /* JIT code without a usable frame pointer */
	WALK_BAD_FRAME, /* impossible frame: CFA not above the last, unaligned, outside the stack */
	WALK_UNREADABLE, /* stack memory that was not copied or is not resident */
	WALK_DEPTH,      /* more frames than were requested */
	WALK_FULL,       /* the rule needs registers that this walker does not track */
	WALK_END_NR
};

#endif
