/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Latency of operations: from a function's entry to its return, or from one function to another, in
 * one thread. A thread is in one span at a time, the outermost one: recursion counts once, and
 * calls of other probed functions within a span are counted but not measured. A function that a
 * measured one jumps to at its end (a tail call) is within it: both return at once.
 *
 * A function that is left by longjmp or an exception does not return. This is detected when the
 * stack pointer at a later entry is not below that of the span's start.
 */
#ifndef ASSAY_BPF_SPANS_H
#define ASSAY_BPF_SPANS_H

#include "io.bpf.h"

#include "kernel_span.h"

#define SPAN_ROWS      8192
#define SPAN_STACK_MAX 256

DEFINE_MAP(HASH, span_rows_a, SPAN_ROWS, struct span_key, struct span_sum);
DEFINE_MAP(HASH, span_rows_b, SPAN_ROWS, struct span_key, struct span_sum);
DEFINE_MAP(HASH, span_waits_a, SPAN_ROWS, struct span_wait_key, struct span_wait_sum);
DEFINE_MAP(HASH, span_waits_b, SPAN_ROWS, struct span_wait_key, struct span_wait_sum);

DEFINE_MAP(ARRAY, span_slots, SPANS_MAX, __u32, struct span_slot);

/* An empty row: too large for the stack of a BPF program. */
DEFINE_MAP(PERCPU_ARRAY, span_scratch, 1, __u32, struct span_sum);

/* Slow spans. A ring of their own, since user space needs them before the capture's end. */
DEFINE_RING(span_ring, 4 << 20);

/* Written by user space; as those of io.bpf.h. */
volatile __u32 span_active_map = 0;
volatile __u64 span_epoch_ns = 0;
volatile __u64 span_stop_ns = 0;
/* By span: spans up to this duration are not sent singly. Written by user space. */
volatile __u64 span_min_ns[SPANS_MAX] = {};

/* Finds or adds a row of the active map; NULL: the map is full. */
static __always_inline struct span_sum *span_row(const struct span_key *key)
{
	bool is_b = span_active_map & 1;
	struct span_sum *s = is_b ? bpf_map_lookup_elem(&span_rows_b, key)
				  : bpf_map_lookup_elem(&span_rows_a, key);
	if (s)
		return s;
	struct span_sum *none = single_elem(&span_scratch);
	if (!none)
		return NULL;
	if (is_b) {
		bpf_map_update_elem(&span_rows_b, key, none, BPF_NOEXIST);
		return bpf_map_lookup_elem(&span_rows_b, key);
	}
	bpf_map_update_elem(&span_rows_a, key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&span_rows_a, key);
}

/* Adds to a row of a map of waits; false: the map is full. */
static __always_inline bool span_wait_add(void *map, const struct span_wait_key *key, __u64 ns)
{
	struct span_wait_sum *w = bpf_map_lookup_elem(map, key);
	if (!w) {
		struct span_wait_sum none = {};
		bpf_map_update_elem(map, key, &none, BPF_NOEXIST);
		w = bpf_map_lookup_elem(map, key);
	}
	if (!w)
		return false;
	__sync_fetch_and_add(&w->nr, 1);
	__sync_fetch_and_add(&w->ns, ns);
	raise_to(&w->longest_ns, ns);
	return true;
}

/* Adds the span's waits to their rows; without room to rest_ns of the span's row @sum. */
static __always_inline void span_add_waits(const struct span_state *s, const struct span_key *of,
					   struct span_sum *sum)
{
	struct span_wait_key key = {
		.second_idx = of->second_idx, .tgid = of->tgid, .pid = of->pid, .span = of->span};
	for (__u32 i = 0; i < SPAN_WAITS; i++) {
		const struct span_wait *w = &s->waits[i];
		if (i >= s->nr_kept)
			break;
		key.user_ref = w->user_ref;
		key.kernel_ref = w->kernel_ref;
		key.reason = w->reason;
		key.evidence = w->evidence;
		key.syscall = w->syscall;
		bool is_added = span_active_map & 1 ? span_wait_add(&span_waits_b, &key, w->ns)
						    : span_wait_add(&span_waits_a, &key, w->ns);
		if (!is_added)
			__sync_fetch_and_add(&sum->rest_ns[w->reason & (SPAN_REASONS - 1)], w->ns);
	}
	for (int i = 0; i < WAIT_NR; i++)
		if (s->rest_ns[i])
			__sync_fetch_and_add(&sum->rest_ns[i], s->rest_ns[i]);
}

/* Sends a slow span through its ring; if the ring is full, it is counted in nr_unsent. */
static __always_inline void span_send(struct task_struct *t, const struct span_state *s,
				      struct span_slot *slot, __u64 start, __u64 now,
				      __u64 on_cpu_ns)
{
	struct kernel_span *r = bpf_ringbuf_reserve(&span_ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&slot->nr_unsent, 1);
		return;
	}
	record_head_at(&r->head, RECORD_SPAN, sizeof(*r), now, t->tgid, t->pid);
	r->start_ns = start;
	r->stack = s->stack;
	r->on_cpu_ns = on_cpu_ns;
	__builtin_memcpy(r->rest_ns, s->rest_ns, sizeof(r->rest_ns));
	__builtin_memcpy(r->waits, s->waits, sizeof(r->waits));
	r->longest = s->longest;
	r->nr_waits = s->nr_waits;
	r->span = s->span;
	r->pad = 0;
	ring_submit(r);
}

/*
 * Ends the span: returns the time of its end, up to which all waits have been added. A program at a
 * probe can be preempted: if a wait was added between reading nr_waits and clearing start_ns, the
 * function tries again, at most 4 times. 0: failed.
 */
static __always_inline __u64 span_stop(struct span_state *s)
{
	__u64 start = s->start_ns;
	for (int i = 0; i < 4; i++) {
		__u32 nr = *(volatile __u32 *)&s->nr_waits;
		__u64 now = bpf_ktime_get_ns();
		*(volatile __u64 *)&s->start_ns = 0;
		if (*(volatile __u32 *)&s->nr_waits == nr)
			return now;
		*(volatile __u64 *)&s->start_ns = start;
	}
	return 0;
}

/* Ends the span and adds it to its row; sends it singly if it was slow. */
static __noinline int span_close(struct task_struct *t, struct span_state *s)
{
	if (!t || !s)
		return 0;
	__u32 idx = s->span;
	struct span_slot *slot = bpf_map_lookup_elem(&span_slots, &idx);
	__u64 epoch = span_epoch_ns; /* read once: user space may set it to 0 meanwhile */
	__u64 start = s->start_ns;
	__u64 now = slot && epoch ? span_stop(s) : 0;
	if (!slot || now <= start || now < epoch)
		return 0;
	__u64 ns = now - start;
	__u64 waited = 0;
	for (int i = 0; i < SPAN_REASONS; i++)
		waited += s->rest_ns[i];
	for (int i = 0; i < SPAN_WAITS; i++)
		waited += s->waits[i].ns;
	__u64 on_cpu_ns = ns > waited ? ns - waited : 0;
	struct span_key key = {
		.stack = s->stack,
		.second_idx = (now - epoch) / SECOND_NS,
		.tgid = t->tgid,
		.pid = t->pid,
		.span = idx,
		.log2_ns = log2_of(ns | 1),
	};
	__sync_fetch_and_add(&slot->nr_ended, 1);
	struct span_sum *sum = span_row(&key);
	if (sum) {
		__sync_fetch_and_add(&sum->nr, 1);
		__sync_fetch_and_add(&sum->ns, ns);
		raise_to(&sum->longest_ns, ns);
		__sync_fetch_and_add(&sum->on_cpu_ns, on_cpu_ns);
		span_add_waits(s, &key, sum);
	} else {
		__sync_fetch_and_add(&slot->nr_lost, 1);
	}
	if (ns > span_min_ns[idx & (SPANS_MAX - 1)])
		span_send(t, s, slot, start, now, on_cpu_ns);
	return 0;
}

/* The span state of a thread; NULL: no target, or no capture is running. */
static __always_inline struct span_state *span_of(struct task_struct *t, bool create)
{
	if (!span_epoch_ns || (span_stop_ns && bpf_ktime_get_ns() >= span_stop_ns) || !is_target(t))
		return NULL;
	struct task_state *state = state_of(t, create);
	return state ? &state->span : NULL;
}

/*
 * Starts a span. @sp: stack pointer at the entry; 0: not used (pairs of points). A span that is
 * still open was abandoned.
 */
static __always_inline void span_begin(struct task_struct *t, struct span_state *s,
				       struct span_slot *slot, __u32 idx, __u64 sp)
{
	if (s->start_ns)
		__sync_fetch_and_add(&slot->nr_abandoned, 1);
	__builtin_memset(s, 0, sizeof(*s));
	s->span = idx;
	s->sp = sp;
	s->stack = user_stack(SPAN_STACK_MAX);
	__sync_fetch_and_add(&slot->nr_started, 1);
	s->start_ns = bpf_ktime_get_ns();
}

/*
 * Whether the function that is entered was jumped to by one with a return probe (a tail call): the
 * return address that it found is the kernel's trampoline.
 */
static __always_inline bool is_tail_call(struct task_struct *t, struct pt_regs *ctx)
{
	__u64 ra = 0;
#ifdef ARCH_RA_BESIDE_FP
	ra = PT_REGS_RET(ctx);
#else
	if (bpf_probe_read_user(&ra, sizeof(ra), (void *)PT_REGS_SP(ctx)))
		return false;
#endif
	return ra && ra == uprobe_page(t);
}

/* Whether the open span of @s contains what is entered now as span @idx. */
static __always_inline bool is_inside(struct task_struct *t, const struct span_state *s,
				      struct pt_regs *ctx, __u32 idx)
{
	if (!s->start_ns)
		return false;
	/* each start of a pair starts anew, since its end may never be reached */
	if (!s->sp)
		return s->span != idx;
	return PT_REGS_SP(ctx) < s->sp || (PT_REGS_SP(ctx) == s->sp && is_tail_call(t, ctx));
}

static __always_inline int on_enter(struct pt_regs *ctx, bool is_pair)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct span_state *s = span_of(t, true);
	__u32 idx = bpf_get_attach_cookie(ctx);
	struct span_slot *slot = bpf_map_lookup_elem(&span_slots, &idx);
	if (!s || !slot)
		return 0;
	if (!is_inside(t, s, ctx, idx))
		span_begin(t, s, slot, idx, is_pair ? 0 : PT_REGS_SP(ctx));
	else if (s->span != idx)
		__sync_fetch_and_add(&slot->nr_inside, 1);
	return 0;
}

/*
 * The return of an inner call of the same function leaves the span open: its stack pointer is below
 * that of the outermost one. Entries are not counted for this, since the kernel probes the return of
 * 64 nested calls at most.
 */
static __always_inline int on_leave(struct pt_regs *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct span_state *s = span_of(t, false);
	__u32 idx = bpf_get_attach_cookie(ctx);
	if (!s || !s->start_ns || s->span != idx)
		return 0;
	if (s->sp && PT_REGS_SP(ctx) < s->sp + URETPROBE_RA_BYTES)
		return 0;
	return span_close(t, s);
}

/* The measured cost does not include the trap itself, which costs more. */
SEC("uprobe")
int span_enter(struct pt_regs *ctx)
{
	return COSTED(COST_SPAN, on_enter(ctx, false));
}

SEC("uretprobe")
int span_leave(struct pt_regs *ctx)
{
	return COSTED(COST_SPAN, on_leave(ctx));
}

SEC("uprobe")
int span_from(struct pt_regs *ctx)
{
	return COSTED(COST_SPAN, on_enter(ctx, true));
}

SEC("uprobe")
int span_to(struct pt_regs *ctx)
{
	return COSTED(COST_SPAN, on_leave(ctx));
}

#endif
