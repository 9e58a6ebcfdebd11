/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counting of named events. There are two programs, one for tracepoints and one for perf software
 * events; each is attached once for each event. The cookie of the attachment is the event's index
 * in count_configs.
 *
 * Every hit is counted. Only stacks are limited: if the stacks of an event take more than their
 * share of a CPU's time, one of 2^n hits gets a stack, and reports show that share.
 */
#ifndef ASSAY_BPF_COUNTS_H
#define ASSAY_BPF_COUNTS_H

#include "engine.bpf.h"

#include "kernel_event.h"

/* Set before loading. */
const volatile __u64 count_stack_budget_ns = 0; /* for stacks in each 0.1 s; 0 = no limit */

/* Written by user space during the capture. */
volatile __u64 count_start_ns = 0;   /* 0: nothing is counted */
volatile __u32 count_no_singles = 0; /* 1: send no single events, since a size limit is reached */

#define COUNT_WINDOW_NS     100000000ull
#define COUNT_DEPTH         1024u
#define COUNT_SKIP_LOG2_MAX 12

/* Their sizes are set before loading. */
DEFINE_MAP(ARRAY, count_configs, 1, __u32, struct count_config);
DEFINE_MAP(PERCPU_ARRAY, count_totals, 1, __u32, struct count_total);
DEFINE_MAP(HASH, count_sums, 1, struct count_key, struct count_value);
/* Sums by thread without stacks, for hits for which count_sums had no room. */
DEFINE_MAP(HASH, count_spills, 1, struct count_key, struct count_value);

/*
 * Whether the event occurred in an interrupt, so that it is not the thread's. Interrupts run on
 * stacks of their own: @sp is then outside of the thread's kernel stack.
 */
static __always_inline bool in_interrupt(struct task_struct *t, __u64 sp)
{
	bool is_kernel = (__s64)sp < 0; /* a system call's registers are those of user space */
	return is_kernel && sp - (__u64)t->stack >= KERNEL_STACK_BYTES;
}

static __always_inline bool was_entered_by_interrupt(struct task_struct *t)
{
	struct pt_regs___kernel *r = regs_of(t);
	return !REGS_IS_SYSCALL(r);
}

/* A tracepoint's context begins with a pointer to the registers at the tracepoint. */
static __always_inline __u64 tracepoint_sp(void *ctx)
{
	struct pt_regs___kernel *regs = NULL;
	bpf_probe_read_kernel(&regs, sizeof(regs), ctx);
	return BPF_CORE_READ(regs, sp);
}

static __always_inline __u64 payload_number(void *ctx, __u32 at, __u32 nr_bytes)
{
	__u64 v = 0;
	if (nr_bytes == 8)
		bpf_probe_read_kernel(&v, 8, ctx + at);
	else if (nr_bytes == 4)
		bpf_probe_read_kernel(&v, 4, ctx + at);
	else
		bpf_probe_read_kernel(&v, 1, ctx + at);
	return v;
}

static __always_inline __s32 payload_outcome(const struct count_config *c, void *ctx)
{
	__u64 v;
	if (c->outcome == OUTCOME_NONE)
		return 0;
	v = payload_number(ctx, c->outcome_at, c->nr_outcome);
	switch (c->outcome) {
	case OUTCOME_RETURN:
		return (__s64)v < 0 && (__s64)v >= -4095 ? (__s32)v : 0;
	case OUTCOME_COMMAND:
		return (__s32)(v & 0x7f);
	case OUTCOME_STATE:
		return (v & 0xff) != 0;
	default:
		return (__s32)v;
	}
}

/* The amount of a hit. That of a failed call is 0, since its field contains the error. */
static __always_inline __u64 payload_amount(const struct count_config *c, void *ctx)
{
	__u64 v;
	if (!c->nr_amount)
		return 0;
	v = payload_number(ctx, c->amount_at, c->nr_amount);
	if (c->outcome == OUTCOME_RETURN && (__s64)v < 0)
		return 0;
	return v << (c->amount_shift & 63);
}

/* Whether this hit gets a stack; the rate is adjusted to what stacks cost. */
static __always_inline bool is_stack_sampled(struct count_total *t, __u64 now)
{
	__u64 window = now / COUNT_WINDOW_NS;
	if (!count_stack_budget_ns)
		return true;
	if (t->window != window) {
		if (t->stack_ns < count_stack_budget_ns / 4 && t->skip_log2)
			t->skip_log2--;
		t->window = window;
		t->stack_ns = 0;
	}
	if (t->stack_ns > count_stack_budget_ns && t->skip_log2 < COUNT_SKIP_LOG2_MAX) {
		t->skip_log2++;
		t->stack_ns = 0;
	}
	return !t->skip_log2 || !(bpf_get_prandom_u32() & ((1u << (t->skip_log2 & 31)) - 1));
}

static __always_inline void take_stacks(struct count_total *t, const struct count_config *c,
					struct count_key *k, struct task_struct *task, void *ctx,
					__u64 now)
{
	if ((c->flags & COUNT_NO_STACK) || !is_stack_sampled(t, now))
		return;
	k->user_ref = user_stack(COUNT_DEPTH);
	/* These have no user stack. */
	if ((c->flags & COUNT_KERNEL_STACK) || (task->flags & PF_IN_KERNEL))
		k->kernel_ref = kernel_stack(ctx, 0);
	t->stack_ns += bpf_ktime_get_ns() - now;
	t->nr_stacks += k->user_ref || k->kernel_ref;
}

static __always_inline bool add_to(void *map, const struct count_key *k, __u64 amount)
{
	struct count_value *v = bpf_map_lookup_elem(map, k);
	if (!v) {
		struct count_value zero = {};
		bpf_map_update_elem(map, k, &zero, BPF_NOEXIST);
		v = bpf_map_lookup_elem(map, k);
		if (!v)
			return false;
	}
	__sync_fetch_and_add(&v->nr, 1);
	if (amount)
		__sync_fetch_and_add(&v->amount, amount);
	return true;
}

/*
 * Adds a hit to its sum; without room, to the thread's sum; without room there, to the event's
 * total.
 */
static __always_inline void count_sum(struct count_total *t, struct count_key *k, __u64 amount)
{
	if (add_to(&count_sums, k, amount))
		return;
	t->nr_stacks -= k->user_ref || k->kernel_ref;
	k->user_ref = 0;
	k->kernel_ref = 0;
	if (add_to(&count_spills, k, amount))
		return;
	t->nr_full++;
	t->full_amount += amount;
}

static __always_inline __u32 read_payload(struct kernel_event *r, __u32 room,
					  const struct count_config *c, void *ctx)
{
	__u32 nr = c->nr_raw;
	for (int i = 0; i < COUNTS_LOCS_MAX; i++) {
		__u32 loc = 0;
		if (i >= c->nr_locs)
			break;
		bpf_probe_read_kernel(&loc, sizeof(loc), ctx + c->loc_at[i]);
		if ((loc & 0xffff) + (loc >> 16) > nr)
			nr = (loc & 0xffff) + (loc >> 16);
	}
	__u64 bounded = nr; /* in one register, so that the verifier knows its bound */
	barrier_var(bounded);
	if (bounded > room)
		bounded = room;
	if (bpf_probe_read_kernel(r->raw, bounded, ctx))
		return 0;
	return bounded;
}

/* Sends a single event. @nr_bytes must be a constant: there are a small and a large record. */
static __always_inline bool send_record(__u32 nr_bytes, const struct count_config *c,
					const struct count_key *k, __u64 now, __u64 amount,
					bool has_payload, void *ctx)
{
	struct kernel_event *r = bpf_ringbuf_reserve(&ring, nr_bytes, 0);
	if (!r) /* not a loss: it is summed up instead */
		return false;
	record_head_at(&r->head, RECORD_EVENT, nr_bytes, now, k->tgid, k->tid);
	r->user_ref = k->user_ref;
	r->kernel_ref = k->kernel_ref;
	r->event = k->event;
	r->cpu = (__s32)bpf_get_smp_processor_id();
	r->outcome = k->outcome;
	r->amount = amount;
	r->nr_raw = has_payload ? read_payload(r, nr_bytes - (__u32)sizeof(*r), c, ctx) : 0;
	ring_submit(r);
	return true;
}

static __always_inline bool send_singly(const struct count_config *c, const struct count_key *k,
					__u64 now, __u64 amount, bool has_payload, void *ctx)
{
	if (has_payload && (c->nr_raw > COUNTS_RAW_SMALL || c->nr_locs))
		return send_record(sizeof(struct kernel_event) + COUNTS_RAW_MAX, c, k, now, amount,
				   true, ctx);
	return send_record(sizeof(struct kernel_event) + COUNTS_RAW_SMALL, c, k, now, amount,
			   has_payload, ctx);
}

/* Counts a hit that count_filter has accepted. */
static __always_inline void count_hit(void *ctx, const struct count_config *c, __u32 event,
				      struct task_struct *task, bool is_of_target, bool has_payload)
{
	struct count_total *t = bpf_map_lookup_elem(&count_totals, &event);
	struct count_key k = {};
	__u64 amount = 0;
	__u64 start = count_start_ns; /* read once: user space may set it to 0 at any time */
	__u64 now;

	if (!t || !start)
		return;
	t->nr++;
	now = bpf_ktime_get_ns();
	k.event = event;
	k.slice_idx = now > start ? (now - start) / COUNT_SLICE_NS : 0;
	k.tgid = is_of_target ? task->tgid : COUNT_ELSEWHERE;
	k.tid = is_of_target ? task->pid : COUNT_ELSEWHERE;
	if (has_payload) {
		k.outcome = payload_outcome(c, ctx);
		amount = payload_amount(c, ctx);
	}
	if (is_of_target)
		take_stacks(t, c, &k, task, ctx, now);
	if ((c->flags & COUNT_SINGLY) && !count_no_singles &&
	    send_singly(c, &k, now, amount, has_payload, ctx)) {
		t->nr_singly++;
		return;
	}
	count_sum(t, &k, amount);
}

/*
 * Returns the configuration of an event if its hit is counted, else NULL. Does little else, since
 * most hits are in threads that are not targets. *ret_is_of_target: the thread is a target.
 */
static __always_inline const struct count_config *count_filter(__u32 event,
							       struct task_struct *task,
							       bool *ret_is_of_target)
{
	const struct count_config *c = bpf_map_lookup_elem(&count_configs, &event);
	if (!c || !count_start_ns)
		return NULL;
	*ret_is_of_target = is_target(task);
	if (*ret_is_of_target || (c->flags & COUNT_MACHINE))
		return c;
	/* In system mode only idle CPUs and assay itself are not targets. */
	return watch_system && !(c->flags & COUNT_IN_THREAD) ? c : NULL;
}

/* Returns 1: with 0 the kernel would not pass the event to perf events on this tracepoint. */
SEC("tracepoint")
int count_tracepoint(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 event = (__u32)bpf_get_attach_cookie(ctx);
	bool is_of_target;
	const struct count_config *c = count_filter(event, task, &is_of_target);
	if (!c)
		return 1;
	COST_BEGIN(COST_EVENT);
	if (is_of_target && !(c->flags & COUNT_IN_THREAD))
		is_of_target = !in_interrupt(task, tracepoint_sp(ctx));
	if (is_of_target && (c->flags & COUNT_OF_INTERRUPTS))
		is_of_target = !was_entered_by_interrupt(task);
	if (is_of_target || (c->flags & COUNT_MACHINE) || watch_system)
		count_hit(ctx, c, event, task, is_of_target, true);
	COST_END(COST_EVENT);
	return 1;
}

SEC("perf_event")
int count_software(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 event = (__u32)bpf_get_attach_cookie(ctx);
	bool is_of_target;
	const struct count_config *c = count_filter(event, task, &is_of_target);
	if (!c)
		return 0;
	COST_BEGIN(COST_EVENT);
	count_hit(ctx, c, event, task, is_of_target, false);
	COST_END(COST_EVENT);
	return 0;
}

#endif
