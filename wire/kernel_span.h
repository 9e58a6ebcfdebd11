/*
 * Spans of operations (bpf/spans.bpf.h): sums by second, thread, stack and duration class in a pair
 * of maps, and the slow ones singly through the ring (RECORD_SPAN).
 *
 * A span's ledger: ns[reason] for each reason of waiting, WAIT_ON_CPU is what is left of its wall
 * time. So it adds up to the wall time, always.
 */
#ifndef ASSAY_WIRE_KERNEL_SPAN_H
#define ASSAY_WIRE_KERNEL_SPAN_H

#include "kernel_record.h"
#include "wait_reason.h"

#define SPANS_MAX    256 /* functions, or pairs of them */
#define SPAN_REASONS 32  /* WAIT_NR, rounded up so that an index can be masked */

struct span_key {
	wire_u64 stack; /* at its begin; the function is the leaf */
	wire_u32 slice; /* second in which it ended, since the capture's start */
	wire_s32 tgid;
	wire_s32 pid;
	wire_u16 span; /* index of the probe, as given when it was attached */
	wire_u8 log2_ns;
	wire_u8 pad;
};

struct span_sum {
	wire_u64 nr;
	wire_u64 ns;
	wire_u64 longest_ns;
	wire_u64 by_reason_ns[SPAN_REASONS];
};

/* By span. */
struct span_slot {
	wire_u64 nr_started;
	wire_u64 nr_ended;
	wire_u64 nr_abandoned; /* never returned: longjmp, an exception, the thread's end */
	wire_u64 nr_inside;    /* calls within a span of another function: not counted */
	wire_u64 nr_lost;      /* no room in the map */
	wire_u64 nr_unsent;    /* slow ones that found the ring full */
};

/* RECORD_SPAN */
struct kernel_span {
	struct kernel_record head; /* time_ns: its end */
	wire_u64 start_ns;
	wire_u64 stack;
	wire_u64 by_reason_ns[SPAN_REASONS];
	wire_u64 longest_ns; /* its longest wait */
	wire_u64 longest_ref;
	wire_u64 longest_kernel_ref;
	wire_u32 nr_waits;
	wire_u16 span;
	wire_u8 longest_reason;
	wire_u8 pad;
};

#ifndef __bpf__
_Static_assert(sizeof(struct span_key) == 24, "span row key");
_Static_assert(sizeof(struct span_sum) == 24 + 8 * SPAN_REASONS, "span row");
_Static_assert(sizeof(struct kernel_span) == 24 + 48 + 8 * SPAN_REASONS, "span record");
_Static_assert(WAIT_NR <= SPAN_REASONS, "reasons fit");
#endif

#endif
