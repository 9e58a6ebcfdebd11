/*
 * Finds functions that a tail call removed from a stack. The call before a return address names the
 * function that was called there, T. If the frame above belongs to another function F, T has ended
 * with a jump that led to F, and left no frame:
 *
 *	caller:  call T     T:  ...  jmp F     F:  ...  <- pc
 *
 * T is certain: only a call pushes that return address. The jumps of T and of the functions that it
 * jumps to are followed to confirm it. Where exactly one chain of direct jumps leads from T to F, and
 * no jump could have led elsewhere, the functions between them are certain as well.
 *
 * Not found: functions that are called by name (PLT, .got) unless direct jumps lead from them to F,
 * since lazy binding passes through the dynamic linker; code that compilers and linkers add (outlined
 * code, range extension, retpolines); functions without symbols. Fragments of a function (foo.cold,
 * foo.part.0) and the function are one.
 *
 * x86-64: call rel32 and calls through a slot of .got. arm64: bl. One tailcode per binary; used by one
 * thread at a time.
 */
#ifndef ASSAY_SYMBOL_TAILCODE_H
#define ASSAY_SYMBOL_TAILCODE_H

#include "base/base.h"
#include "base/sv.h"
#include "symbol/symbolizer.h"

#define TAIL_CHAIN_MAX 6 /* functions that one call can be followed through */

struct tailcode; /* opaque */

/* Borrows the symbolizer. */
struct tailcode *tailcode_new(struct symbolizer *s);
void tailcode_free(struct tailcode *t);
DEFINE_FREE_P(tailcode, struct tailcode)

/* Returns what the call before @return_vaddr calls, for tailcode_hidden; 0: no direct call. */
uint64_t tailcode_target(struct tailcode *t, uint64_t return_vaddr);

struct tail_function {
	struct tailcode *in;
	uint64_t
		vaddr; /* of the jump that left it, if it is the only one possible; else its start */
};

/*
 * Finds the functions between a call of @target in the binary @caller and the function that starts
 * at @start in @callee, in the order in which they were called. Returns how many.
 */
size_t tailcode_hidden(struct tailcode *caller, uint64_t target, struct tailcode *callee,
		       uint64_t start, struct tail_function ret_chain[TAIL_CHAIN_MAX]);

#endif
