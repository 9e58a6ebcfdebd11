/*
 * The ledger of samples: every way in which data can be missing, counted. A number that is shown
 * without its losses is a bug, so every renderer prints this and every file holds it.
 *
 * The sum that must hold for each capture:  seen = written + lost + unparsed + filtered
 * (and, when a recording is read again, + disk + damaged)
 * where seen counts what the kernel says it produced. Truncated and unsymbolized samples are
 * written: they are in the profile, with a stack or a name that is not whole.
 */
#ifndef ASSAY_MODEL_LOSS_H
#define ASSAY_MODEL_LOSS_H

#include "base/base.h"

/* Values reach files: append only. */
enum loss_kind {
	LOSS_SEEN = 0,      /* samples that the kernel produced: delivered + lost */
	LOSS_WRITTEN = 1,   /* samples in the profile */
	LOSS_LOST = 2,      /* dropped by the kernel because a ring was full */
	LOSS_THROTTLED = 3, /* times the kernel stopped sampling for a tick; not samples */
	LOSS_UNPARSED = 4,  /* records that did not make sense */
	LOSS_FILTERED = 5,  /* samples left out on request (other threads, other events) */

	/* Stacks that do not reach the thread's start; each is one sample, by the first cause. */
	LOSS_TRUNC_COPY = 6,       /* the copied stack bytes end too early */
	LOSS_TRUNC_NO_RULE = 7,    /* code without unwind rules and without frame pointers */
	LOSS_TRUNC_NO_FILE = 8,    /* the binary could not be opened, so it has no rules */
	LOSS_TRUNC_NO_MAP = 9,     /* an address in no known mapping */
	LOSS_TRUNC_BAD_FRAME = 10, /* a rule gave a frame that cannot be (CFA not growing, ...) */
	LOSS_TRUNC_DEPTH = 11,     /* deeper than the limit */
	LOSS_TRUNC_NO_REGS = 12,   /* the kernel gave no user registers (exiting, 32-bit, ...) */
	LOSS_TRUNC_JIT = 13,       /* JIT code without frame pointers */
	LOSS_TRUNC_FP = 14,        /* a frame-pointer stack that stops before the thread's start */

	/* Leaf frames without a function's name; each is one sample. */
	LOSS_UNSYM_NO_FILE = 15,  /* binary not found or not readable */
	LOSS_UNSYM_STRIPPED = 16, /* no symbol covers it; shown as module!fn_... */
	LOSS_UNSYM_CHANGED = 17,  /* the file there now is another one (build-id differs) */
	LOSS_UNSYM_NO_MAP = 18,   /* address in no mapping */
	LOSS_UNSYM_JIT = 19,      /* JIT code without a perf map or jitdump */
	LOSS_UNSYM_KERNEL = 20,   /* kernel addresses hidden (kptr_restrict) */

	LOSS_DISK = 21,    /* samples that could not be written to the recording (disk full) */
	LOSS_DAMAGED = 22, /* samples in damaged parts of a recording */

	LOSS_STACK_LOST =
		23, /* the stack was told while a ring was full, or never: frame [lost stack] */
	LOSS_NR
};

enum loss_class { LOSS_CLASS_COUNT, LOSS_CLASS_LOST, LOSS_CLASS_TRUNC, LOSS_CLASS_UNSYM };

struct losses {
	uint64_t nr[LOSS_NR];
};

/* Short stable key for JSON ("truncated_copy") and a phrase for people. */
const char *loss_key(enum loss_kind kind);
const char *loss_text(enum loss_kind kind);
enum loss_class loss_class(enum loss_kind kind);
void losses_merge(struct losses *to, const struct losses *from);
uint64_t losses_truncated(const struct losses *l);
uint64_t losses_unsymbolized(const struct losses *l);

#endif
