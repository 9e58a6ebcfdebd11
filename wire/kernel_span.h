/*
 * Spans of operations (bpf/spans.bpf.h): a span is the time from a function's entry to its return,
 * or from one function to another. Sums by second, thread, stack and duration bucket are in two
 * maps: BPF programs write one while user space reads and empties the other. Slow spans are also
 * sent one by one through the ring (RECORD_SPAN).
 *
 * by_reason_ns[reason] is the time of a span by wait reason (enum wait_reason). WAIT_ON_CPU is the
 * rest of its duration, so the array always adds up to the duration.
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
	wire_u64 by_reason_ns[SPAN_REASONS];
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
	wire_u64 by_reason_ns[SPAN_REASONS];
	wire_u64 longest_ns;  /* its longest wait */
	wire_u64 longest_ref; /* user and kernel stack of that wait, 0 = none */
	wire_u64 longest_kernel_ref;
	wire_u32 nr_waits;      /* intervals off the CPU */
	wire_u16 span;          /* see span_key */
	wire_u8 longest_reason; /* enum wait_reason of the longest wait */
	wire_u8 pad;
};

#ifndef __bpf__
_Static_assert(sizeof(struct span_key) == 24, "span row key");
_Static_assert(sizeof(struct span_sum) == 24 + 8 * SPAN_REASONS, "span row");
_Static_assert(sizeof(struct kernel_span) == 24 + 48 + 8 * SPAN_REASONS, "span record");
_Static_assert(WAIT_NR <= SPAN_REASONS, "reasons fit");
#endif

#endif
