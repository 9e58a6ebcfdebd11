/*
 * Losses: counters for samples and for everything that can make them incomplete (lost, truncated,
 * unsymbolized, ...). Every file stores them and every renderer prints them.
 *
 * For each capture:  seen = written + lost + unparsed + filtered
 * (and, for a recording that was read from a file, + disk + damaged)
 * where seen is the number of samples that the kernel produced. Truncated and unsymbolized samples
 * count as written: they are in the profile, with an incomplete stack or without a symbol. Other
 * losses (child processes not followed, missing file names, calls that did not return) have
 * counters that are not part of this sum.
 */
#ifndef ASSAY_MODEL_LOSS_H
#define ASSAY_MODEL_LOSS_H

#include "base/base.h"
#include "walk_end.h"

/* Values are stored in files: append only. */
enum loss_kind {
	LOSS_SEEN = 0,      /* samples that the kernel produced: delivered + lost */
	LOSS_WRITTEN = 1,   /* samples in the profile */
	LOSS_LOST = 2,      /* dropped by the kernel because a ring buffer was full */
	LOSS_THROTTLED = 3, /* times the kernel throttled sampling for a tick; not samples */
	LOSS_UNPARSED = 4,  /* records that could not be parsed */
	LOSS_FILTERED = 5,  /* samples removed by a filter (other threads, other events) */

	/* Truncated stacks, one count per sample, by the first cause. */
	LOSS_TRUNC_COPY = 6,       /* the copied stack bytes do not reach far enough */
	LOSS_TRUNC_NO_RULE = 7,    /* code without unwind rules and without frame pointers */
	LOSS_TRUNC_NO_FILE = 8,    /* the binary could not be opened, so there are no rules */
	LOSS_TRUNC_NO_MAP = 9,     /* an address in no known mapping */
	LOSS_TRUNC_BAD_FRAME = 10, /* unwinding gave an impossible frame (CFA not growing, ...) */
	LOSS_TRUNC_DEPTH = 11,     /* more frames than the limit */
	LOSS_TRUNC_NO_REGS = 12,   /* no user registers from the kernel (exiting, 32-bit, ...) */
	LOSS_TRUNC_JIT = 13,       /* JIT code without frame pointers */
	LOSS_TRUNC_FP = 14,        /* a frame-pointer chain that ends before the thread's start */

	/* Leaf frames without a function name, one count per sample. */
	LOSS_UNSYM_NO_FILE = 15,  /* binary not found or not readable */
	LOSS_UNSYM_STRIPPED = 16, /* no symbol covers the address; shown as module!fn_... */
	LOSS_UNSYM_CHANGED = 17,  /* the file was replaced since (build-id differs) */
	LOSS_UNSYM_NO_MAP = 18,   /* address in no mapping */
	LOSS_UNSYM_JIT = 19,      /* JIT code without a perf map or jitdump */
	LOSS_UNSYM_KERNEL = 20,   /* kernel addresses hidden (kptr_restrict) */

	LOSS_DISK = 21,    /* samples that could not be written to the recording (disk full) */
	LOSS_DAMAGED = 22, /* samples in damaged parts of a recording */

	LOSS_STACK_LOST = 23, /* the EVENT_STACK was dropped (ring full): frame [lost stack] */

	/* Not samples, and not part of the sum above. */
	LOSS_HEAP_DROPPED = 24,      /* allocator events dropped by the recorder in the process */
	LOSS_HEAP_REFUSED = 25,      /* processes whose heap could not be recorded */
	LOSS_HEAP_NOT_FOLLOWED = 26, /* child processes not attached to */
	LOSS_HEAP_TOO_SHORT = 27,    /* child processes that ended before they were attached to */
	LOSS_HEAP_BROKEN = 28,       /* rings with invalid content */
	LOSS_HEAP_NO_STACK = 29,     /* stacks of allocations that found no room in a table */
	LOSS_HEAP_UNACCOUNTED = 30,  /* live blocks not tracked (table full) */
	LOSS_HEAP_UNPATCHED = 31,    /* allocator functions that could not be patched */
	LOSS_HEAP_NO_FREE = 32,      /* sampled blocks whose free is not recorded (table full) */
	LOSS_IO_NO_ROW = 33,         /* I/O calls counted without stack and file (map full) */
	LOSS_IO_UNCOUNTED = 34,      /* I/O calls not counted */
	LOSS_IO_NO_NAME = 35,        /* files of I/O whose name is unknown */
	LOSS_FAULTS_NO_MAP = 36,     /* page faults counted without their mapping */
	LOSS_BLOCK_NO_ISSUE = 37,    /* block requests that completed without a recorded issue */
	LOSS_BLOCK_UNTRACKED = 38,   /* block requests not tracked (map full) */
	LOSS_WAITS_NO_REASON = 39,   /* off-CPU intervals with reason unknown (map full) */
	LOSS_WAITS_NO_ROW_NS = 40,   /* off-CPU time in no row (map full), nanoseconds */
	LOSS_EVENTS_NO_ROW = 41,     /* events in no row (map full) */
	LOSS_EVENTS_MISSED = 42, /* events in interrupts of another BPF program, of all processes */
	LOSS_SPANS_UNFINISHED = 43, /* calls that did not return before the end */
	LOSS_SPANS_INSIDE = 44,     /* calls inside a span of another function, not counted */
	LOSS_SPANS_NO_ROW = 45,     /* calls in no row (map full) */
	LOSS_SPANS_NO_DETAILS = 46, /* slow calls whose details were dropped (ring full) */
	LOSS_UNSYM_SILENT = 47,     /* the binary did not answer in time; an unsymbolized leaf */
	LOSS_HEAP_LATE = 48,        /* programs of children that ran unrecorded at first */
	LOSS_UNSYM_NO_KERNEL =
		49, /* no symbols of the kernel that was recorded, or none covers it */
	LOSS_NR
};

enum loss_class {
	LOSS_CLASS_OTHER, /* not samples, outside the sum (kinds without a class in loss.c) */
	LOSS_CLASS_COUNT, /* seen, written, throttled, filtered */
	LOSS_CLASS_LOST,  /* samples that are not in the profile */
	LOSS_CLASS_TRUNC, /* samples with a truncated stack */
	LOSS_CLASS_UNSYM, /* samples with an unsymbolized leaf */
};

struct buf;

struct losses {
	uint64_t nr[LOSS_NR];
};

/* Stable key for JSON ("truncated_copy"). */
const char *loss_key(enum loss_kind kind);
/* Text for users ("stack copy too short"). */
const char *loss_text(enum loss_kind kind);
enum loss_class loss_class(enum loss_kind kind);
/* Converts the end state of an unwound stack; LOSS_NR if the stack is complete. */
enum loss_kind loss_from_walk_end(enum walk_end end);
/* Adds to a counter, which stops at UINT64_MAX. */
void losses_add(struct losses *l, enum loss_kind kind, uint64_t nr);
/*
 * Sets counters to 0 that cannot be true: a file may contain any number. @duration_ns: length of
 * the recording, 0 = unknown. Returns their number.
 */
size_t losses_ignore_implausible(struct losses *l, uint64_t duration_ns);
/* Adds all counters of @from to @to. */
void losses_merge(struct losses *to, const struct losses *from);
/* Whether any sample counter is set; profiles from files of other programs may have none. */
bool losses_has_samples(const struct losses *l);
/*
 * Appends the LOSS_CLASS_OTHER counters that are not 0, if any: "missing or incomplete: 12 heap events
 * (...), 3 child processes not followed".
 */
void losses_add_other(struct buf *to, const struct losses *l);
/* Sum of the LOSS_CLASS_TRUNC, LOSS_CLASS_UNSYM counters. */
uint64_t losses_truncated(const struct losses *l);
uint64_t losses_unsymbolized(const struct losses *l);

#endif
