/*
 * The ledger of samples: every way in which data can be missing, counted. A number that is shown
 * without its losses is a bug, so every renderer prints this and every file holds it.
 *
 * The sum that must hold for each capture:  seen = written + lost + unparsed + filtered
 * (and, when a recording is read again, + disk + damaged)
 * where seen counts what the kernel says it produced. Truncated and unsymbolized samples are
 * written: they are in the profile, with a stack or a name that is not whole. What else is missing
 * (child processes, file names, calls that did not return) is counted beside that sum.
 */
#ifndef ASSAY_MODEL_LOSS_H
#define ASSAY_MODEL_LOSS_H

#include "base/base.h"
#include "walk_end.h"

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

	/* Beside the samples: each counts what its name says, outside of the sum. */
	LOSS_HEAP_DROPPED = 24, /* events of an allocator that its recorder dropped */
	LOSS_HEAP_REFUSED = 25,
	LOSS_HEAP_NOT_FOLLOWED = 26,
	LOSS_HEAP_TOO_SHORT = 27,
	LOSS_HEAP_BROKEN = 28, /* rings that made no sense */
	LOSS_HEAP_NO_STACK = 29,
	LOSS_HEAP_UNACCOUNTED = 30,
	LOSS_HEAP_UNPATCHED = 31,
	LOSS_HEAP_NO_FREE = 32,
	LOSS_IO_NO_ROW = 33,
	LOSS_IO_UNCOUNTED = 34,
	LOSS_IO_NO_NAME = 35,
	LOSS_FAULTS_NO_MAP = 36, /* page faults that are counted without what is mapped there */
	LOSS_BLOCK_NO_ISSUE = 37,
	LOSS_BLOCK_UNTRACKED = 38,
	LOSS_WAITS_NO_REASON = 39, /* intervals shown as unknown */
	LOSS_WAITS_NO_ROW_NS = 40, /* nanoseconds */
	LOSS_EVENTS_NO_ROW = 41,
	LOSS_EVENTS_MISSED = 42,
	LOSS_SPANS_UNFINISHED = 43,
	LOSS_SPANS_INSIDE = 44,
	LOSS_SPANS_NO_ROW = 45,
	LOSS_SPANS_NO_DETAILS = 46,
	LOSS_NR
};

enum loss_class {
	LOSS_CLASS_BESIDE, /* no samples; of kinds that say no class */
	LOSS_CLASS_COUNT,
	LOSS_CLASS_LOST,
	LOSS_CLASS_TRUNC,
	LOSS_CLASS_UNSYM,
};

struct buf;

struct losses {
	uint64_t nr[LOSS_NR];
};

/* Short stable key for JSON ("truncated_copy") and a phrase for people. */
const char *loss_key(enum loss_kind kind);
const char *loss_text(enum loss_kind kind);
enum loss_class loss_class(enum loss_kind kind);
/* Why a walked stack is cut; LOSS_NR: it is whole. */
enum loss_kind loss_of_walk(enum walk_end end);
void losses_merge(struct losses *to, const struct losses *from);
/* Whether anything but what is beside the samples is known: a file of others may have no ledger. */
bool losses_has_samples(const struct losses *l);
/* Appends "also missing: 12 heap events (...), 3 child processes not followed"; nothing if there is nothing. */
void losses_add_beside(struct buf *to, const struct losses *l);
uint64_t losses_truncated(const struct losses *l);
uint64_t losses_unsymbolized(const struct losses *l);

#endif
