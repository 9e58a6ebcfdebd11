/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Per-thread state of spans.bpf.h: the span that the thread is in, and its waits in it. */
#ifndef ASSAY_BPF_SPAN_STATE_H
#define ASSAY_BPF_SPAN_STATE_H

#include "kernel_span.h"

struct span_state {
	__u64 start_ns; /* 0 = in no span */
	__u64 sp;       /* at its start: calls within the span have a smaller one */
	__u64 stack;    /* stack reference */
	__u32 span;     /* index of the probe */
	__u32 depth;    /* of recursion */
	__u64 by_reason_ns[SPAN_REASONS]; /* time off the CPU, by enum wait_reason */
	/* The longest wait: blocked time, references of its stacks, reason. */
	__u64 longest_ns;
	__u64 longest_ref;
	__u64 longest_kernel_ref;
	__u32 longest_reason;
	__u32 nr_waits;
};

/*
 * Adds an interval off the CPU to the span; called by waits.bpf.h for each one: off the CPU from
 * @start, in the run queue from @woken, on a CPU again at @end. If a switch was not seen, the call
 * comes late, and the thread may have entered a span since: only the part within the span counts.
 */
static __always_inline void span_add_wait(struct span_state *s, __u32 reason, __u64 start,
					  __u64 woken, __u64 end, __u64 ref, __u64 kernel_ref)
{
	__u64 begin = s->start_ns;
	if (!begin || end <= begin)
		return;
	if (start < begin)
		start = begin;
	if (woken < start)
		woken = start;
	__u64 ns = woken - start;
	s->by_reason_ns[reason & (SPAN_REASONS - 1)] += ns;
	s->by_reason_ns[WAIT_RUN_QUEUE] += end - woken;
	s->nr_waits++;
	if (ns <= s->longest_ns)
		return;
	s->longest_ns = ns;
	s->longest_ref = ref;
	s->longest_kernel_ref = kernel_ref;
	s->longest_reason = reason;
}

#endif
