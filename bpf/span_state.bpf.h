/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The span that a thread is in, if any (bpf/spans.bpf.h), and what it waited for in it. */
#ifndef ASSAY_BPF_SPAN_STATE_H
#define ASSAY_BPF_SPAN_STATE_H

#include "kernel_span.h"

struct span_state {
	__u64 start_ns; /* 0 = in none */
	__u64 sp;       /* at its begin: calls from within lie below it */
	__u64 stack;
	__u32 span;
	__u32 depth; /* of recursion */
	__u64 by_reason_ns[SPAN_REASONS];
	__u64 longest_ns;
	__u64 longest_ref;
	__u64 longest_kernel_ref;
	__u32 longest_reason;
	__u32 nr_waits;
};

/*
 * The ledger of waits tells each interval off the CPU here (bpf/waits.bpf.h): off from @start,
 * queued from @woken, on a CPU again at @end. Where a switch was not seen, an interval is told
 * late, when the thread may have begun a span since: what was before the span is not the span's.
 */
static __always_inline void span_waited(struct span_state *s, __u32 reason, __u64 start,
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
