/*
 * Spans of operations (bpf/spans.bpf.h): a span is the time from a function's entry to its return,
 * or from one function to another. Two kinds of rows, each in two maps (BPF programs write one
 * while user space reads and empties the other): sums of the spans by second, thread, stack and
 * duration bucket, and sums of their waits by second, thread, stack of the wait and reason. Slow
 * spans are also sent one by one through the ring (RECORD_SPAN).
 *
 * A span's time is the sum of on_cpu_ns, its waits, and rest_ns: waits without their stacks, by
 * reason, because there was no room for more. These add up to its duration.
 */
#ifndef ASSAY_WIRE_KERNEL_SPAN_H
#define ASSAY_WIRE_KERNEL_SPAN_H

#include "kernel_record.h"
#include "wait_reason.h"

#define SPANS_MAX    256 /* probed functions or pairs of functions */
#define SPAN_REASONS 32  /* WAIT_NR, rounded up so that an index can be masked */

struct span_key {
	wire_u64 stack;      /* reference of the stack at its start; the function is the leaf */
	wire_u32 second_idx; /* second in which it ended, from the capture's start */
	wire_s32 tgid;
	wire_s32 pid;
	wire_u16 span;   /* index of the probed function or pair (the attachment's cookie) */
	wire_u8 log2_ns; /* duration bucket: floor(log2(duration in ns)) */
	wire_u8 pad;
};

struct span_sum {
	wire_u64 nr;         /* of spans */
	wire_u64 ns;         /* sum of their durations */
	wire_u64 longest_ns; /* longest duration of one span */
	wire_u64 on_cpu_ns;
	wire_u64 rest_ns[SPAN_REASONS];
};

/* Waits of a span with the same stacks and reason that are kept with their stacks: the largest 8. */
#define SPAN_WAITS 8

/*
 * Time off the CPU in one place of a span. Times in the run queue after a wake-up have the stacks of
 * the wait before and reason WAIT_RUN_QUEUE.
 */
struct span_wait {
	wire_u64 user_ref; /* stack references, 0 = none */
	wire_u64 kernel_ref;
	wire_u64 ns;
	wire_u8 reason;   /* enum wait_reason */
	wire_u8 evidence; /* enum wait_evidence: EVIDENCE_LOCK_WORD */
	wire_s16 syscall; /* -1: none; in the run queue: sched_yield, or -1 */
	wire_u8 pad[4];
};

struct span_wait_key {
	wire_u64 user_ref;
	wire_u64 kernel_ref;
	wire_u32 second_idx; /* as in span_key */
	wire_s32 tgid;
	wire_s32 pid;
	wire_u16 span;
	wire_u8 reason;
	wire_u8 evidence;
	wire_s16 syscall; /* as in span_wait */
	wire_u8 pad[6];
};

struct span_wait_sum {
	wire_u64 nr; /* of spans with such a wait */
	wire_u64 ns;
	wire_u64 longest_ns; /* in one span */
};

/* The longest interval of a span off the CPU, its time in the run queue included. */
struct span_longest {
	wire_u64 ns;       /* off the CPU; 0 = it never was */
	wire_u64 queue_ns; /* of that in the run queue, after a wake-up */
	wire_u64 user_ref;
	wire_u64 kernel_ref;
	wire_u64 waker_ref; /* stack of the thread that woke it, 0 = none */
	wire_s32 waker_tgid;
	wire_s32 waker_tid; /* 0 = not woken by a thread, or not known */
	wire_u8 reason;
	wire_u8 evidence;
	wire_s16 syscall; /* as in span_wait */
	wire_u8 pad[4];
};

/* Counters of one probed function or pair; index: span_key.span. */
struct span_slot {
	wire_u64 nr_started;
	wire_u64 nr_ended;
	wire_u64 nr_abandoned; /* never returned: longjmp, an exception, the thread's end */
	wire_u64 nr_inside;    /* calls within a span of another function: not measured */
	wire_u64 nr_lost;      /* spans not counted: no room in the map */
	wire_u64 nr_unsent;    /* slow spans that were not sent: the ring was full */
};

/* RECORD_SPAN */
struct kernel_span {
	struct kernel_record head; /* time_ns: end of the span */
	wire_u64 start_ns;         /* CLOCK_MONOTONIC */
	wire_u64 stack;            /* reference of the stack at its start */
	wire_u64 on_cpu_ns;
	wire_u64 rest_ns[SPAN_REASONS];
	struct span_wait waits[SPAN_WAITS]; /* unused ones have ns 0 */
	struct span_longest longest;
	wire_u32 nr_waits; /* intervals off the CPU */
	wire_u16 span;     /* see span_key */
	wire_u16 pad;
};

#ifndef __bpf__
_Static_assert(sizeof(struct span_key) == 24, "span row key");
_Static_assert(sizeof(struct span_sum) == 32 + 8 * SPAN_REASONS, "span row");
_Static_assert(sizeof(struct span_wait) == 32, "wait of a span");
_Static_assert(sizeof(struct span_wait_key) == 40, "span wait row key");
_Static_assert(sizeof(struct span_longest) == 56, "longest wait of a span");
_Static_assert(sizeof(struct kernel_span) == 24 + 24 + 8 * SPAN_REASONS + 32 * SPAN_WAITS + 56 + 8,
	       "span record");
_Static_assert(WAIT_NR <= SPAN_REASONS, "reasons fit");
#endif

#endif
