/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Per-thread state of spans.bpf.h: the span that the thread is in, and its waits in it. */
#ifndef ASSAY_BPF_SPAN_STATE_H
#define ASSAY_BPF_SPAN_STATE_H

#include "kernel_span.h"

struct span_state {
	__u64 start_ns; /* 0 = in no span */
	__u64 sp;       /* at its start: calls within it have a smaller one; 0: a pair of points */
	__u64 stack;    /* stack reference */
	__u32 span;     /* index of the probe */
	__u32 nr_waits; /* intervals off the CPU */
	__u32 nr_kept;  /* used elements of waits */
	struct span_wait waits[SPAN_WAITS];
	__u64 rest_ns[SPAN_REASONS]; /* waits for which there was no room in waits, by reason */
	struct span_longest longest;
};

/* An interval off the CPU; called by waits.bpf.h for each one. */
struct span_interval {
	__u64 start_ns; /* switched out */
	__u64 woken_ns; /* in the run queue from here on */
	__u64 end_ns;   /* switched in */
	__u64 user_ref;
	__u64 kernel_ref;
	__u64 waker_ref;
	__s32 waker_tgid;
	__s32 waker_tid;
	__u32 reason;
	__u32 evidence;
	__s32 syscall;
};

/*
 * Adds time to the place of the span that it belongs to. If there is no room for a new place, the
 * smallest one loses its stack.
 */
static __always_inline void span_add_time(struct span_state *s, const struct span_interval *v,
					  __u32 reason, __u64 ns)
{
	__u8 evidence = reason == WAIT_SYNC ? v->evidence & EVIDENCE_LOCK_WORD : 0;
	__s16 syscall = reason == v->reason ? v->syscall : -1;
	__u32 least = 0;
	if (!ns)
		return;
	for (__u32 i = 0; i < SPAN_WAITS; i++) {
		struct span_wait *w = &s->waits[i];
		if (i == s->nr_kept) {
			s->nr_kept = i + 1;
			least = i;
			break;
		}
		if (w->user_ref == v->user_ref && w->kernel_ref == v->kernel_ref &&
		    w->reason == reason && w->evidence == evidence && w->syscall == syscall) {
			w->ns += ns;
			return;
		}
		if (w->ns < s->waits[least & (SPAN_WAITS - 1)].ns)
			least = i;
	}
	struct span_wait *w = &s->waits[least & (SPAN_WAITS - 1)];
	if (w->ns > ns) {
		s->rest_ns[reason & (SPAN_REASONS - 1)] += ns;
		return;
	}
	s->rest_ns[w->reason & (SPAN_REASONS - 1)] += w->ns;
	w->user_ref = v->user_ref;
	w->kernel_ref = v->kernel_ref;
	w->reason = reason;
	w->evidence = evidence;
	w->syscall = syscall;
	w->ns = ns;
}

/*
 * Adds an interval off the CPU to the span. If a switch was not seen, the call comes late, and the
 * thread may have entered a span since: only the part within the span counts.
 */
static __always_inline void span_add_wait(struct span_state *s, const struct span_interval *v)
{
	__u64 start = v->start_ns > s->start_ns ? v->start_ns : s->start_ns;
	__u64 woken = v->woken_ns > start ? v->woken_ns : start;
	if (!s->start_ns || v->end_ns <= s->start_ns)
		return;
	s->nr_waits++;
	span_add_time(s, v, v->reason, woken - start);
	span_add_time(s, v, WAIT_RUN_QUEUE, v->end_ns - woken);
	if (v->end_ns - start <= s->longest.ns)
		return;
	s->longest.ns = v->end_ns - start;
	s->longest.queue_ns = v->reason == WAIT_RUN_QUEUE ? 0 : v->end_ns - woken;
	s->longest.user_ref = v->user_ref;
	s->longest.kernel_ref = v->kernel_ref;
	s->longest.waker_ref = v->waker_ref;
	s->longest.waker_tgid = v->waker_tgid;
	s->longest.waker_tid = v->waker_tid;
	s->longest.reason = v->reason;
	s->longest.evidence = v->evidence;
	s->longest.syscall = v->syscall;
}

#endif
