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

/* The ledger of waits tells each interval off the CPU here (bpf/waits.bpf.h). */
static __always_inline void span_waited(struct span_state *s, __u32 reason, __u64 ns,
					__u64 queue_ns, __u64 ref, __u64 kernel_ref)
{
	if (!s->start_ns)
		return;
	s->by_reason_ns[reason & (SPAN_REASONS - 1)] += ns;
	s->by_reason_ns[WAIT_RUN_QUEUE] += queue_ns;
	s->nr_waits++;
	if (ns <= s->longest_ns)
		return;
	s->longest_ns = ns;
	s->longest_ref = ref;
	s->longest_kernel_ref = kernel_ref;
	s->longest_reason = reason;
}

#endif
