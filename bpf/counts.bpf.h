/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counting events by name. Two programs, one for tracepoints and one for events that the kernel
 * counts itself, are attached once an event; the cookie of the attachment is the event's index in
 * count_configs.
 *
 * Every hit is counted. What is limited is the taking of stacks: where an event's stacks cost a CPU
 * more than its share of the time, one of 2^n hits gets one, and the share is told.
 */
#ifndef ASSAY_BPF_COUNTS_H
#define ASSAY_BPF_COUNTS_H

#include "engine.bpf.h"

#include "kernel_event.h"

/* Set before loading. */
const volatile __u64 count_stack_budget_ns = 0; /* of each tenth of a second; 0 = no limit */

/* What user space changes while it runs. */
volatile __u64 count_start_ns = 0;   /* 0: nothing is counted */
volatile __u32 count_no_singles = 0; /* the file has reached its limit */

#define COUNT_WINDOW_NS  100000000ull
#define COUNT_DEPTH      1024u
#define COUNT_SPARSE_MAX 12

/* How many elements these have is set before loading. */
DEFINE_MAP(ARRAY, count_configs, 1, __u32, struct count_config);
DEFINE_MAP(PERCPU_ARRAY, count_totals, 1, __u32, struct count_total);
DEFINE_MAP(HASH, count_sums, 1, struct count_key, struct count_value);
DEFINE_MAP(HASH, count_spills, 1, struct count_key, struct count_value);

/*
 * Whether it hit in an interrupt: the thread that was interrupted has nothing to do with it.
 * Interrupts run on stacks of their own, so the stack pointer tells. A tracepoint's payload begins
 * with a pointer to the registers at the hit.
 */
static __always_inline bool in_interrupt(struct task_struct *t, __u64 sp)
{
	bool is_kernel = (__s64)sp < 0; /* a system call's registers are those of user space */
	return is_kernel && sp - (__u64)t->stack >= KERNEL_STACK_BYTES;
}

static __always_inline bool was_interrupted(struct task_struct *t)
{
	struct pt_regs___kernel *r = regs_of(t);
	return !REGS_IS_SYSCALL(r);
}

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

/* A failed call's amount is its error: nothing. */
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

/* Whether this hit's stack is taken; how many are follows from what they cost. */
static __always_inline bool wants_stack(struct count_total *t, __u64 now)
{
	__u64 window = now / COUNT_WINDOW_NS;
	if (!count_stack_budget_ns)
		return true;
	if (t->window != window) {
		if (t->stack_ns < count_stack_budget_ns / 4 && t->sparse)
			t->sparse--;
		t->window = window;
		t->stack_ns = 0;
	}
	if (t->stack_ns > count_stack_budget_ns && t->sparse < COUNT_SPARSE_MAX) {
		t->sparse++;
		t->stack_ns = 0;
	}
	return !t->sparse || !(bpf_get_prandom_u32() & ((1u << (t->sparse & 31)) - 1));
}

static __always_inline void take_stacks(struct count_total *t, const struct count_config *c,
					struct count_key *k, struct task_struct *task, void *ctx,
					__u64 now)
{
	if ((c->flags & COUNT_NO_STACK) || !wants_stack(t, now))
		return;
	k->user_ref = user_stack(WALK_EVENT, COUNT_DEPTH);
	/* Kernel threads have no other. */
	if ((c->flags & COUNT_KERNEL_STACK) || (task->flags & PF_KTHREAD))
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

/* Where there is no room for the stack, the thread's counts remain; then only the event's. */
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
	__u64 bounded = nr; /* in one register, or the verifier loses sight of it */
	barrier_var(bounded);
	if (bounded > room)
		bounded = room;
	if (bpf_probe_read_kernel(r->raw, bounded, ctx))
		return 0;
	return bounded;
}

/* @nr_bytes is a constant: a record has room for the largest payload, or for that of most calls. */
static __always_inline bool send_record(__u32 nr_bytes, const struct count_config *c,
					const struct count_key *k, __u64 now, __u64 amount,
					bool has_payload, void *ctx)
{
	struct kernel_event *r = bpf_ringbuf_reserve(&ring, nr_bytes, 0);
	if (!r) /* no loss: it is added up instead */
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

/* What is left of a hit after everything that is nobody's has been turned away. */
static __always_inline void count_hit(void *ctx, const struct count_config *c, __u32 event,
				      struct task_struct *task, bool is_ours, bool has_payload)
{
	struct count_total *t = bpf_map_lookup_elem(&count_totals, &event);
	struct count_key k = {};
	__u64 amount = 0;
	__u64 start = count_start_ns; /* once: user space ends it on another CPU */
	__u64 now;

	if (!t || !start)
		return;
	t->nr++;
	now = bpf_ktime_get_ns();
	k.event = event;
	k.slice = now > start ? (now - start) / 1000000000ull : 0;
	k.tgid = is_ours ? task->tgid : COUNT_ELSEWHERE;
	k.tid = is_ours ? task->pid : COUNT_ELSEWHERE;
	if (has_payload) {
		k.outcome = payload_outcome(c, ctx);
		amount = payload_amount(c, ctx);
	}
	if (is_ours)
		take_stacks(t, c, &k, task, ctx, now);
	if ((c->flags & COUNT_SINGLY) && !count_no_singles &&
	    send_singly(c, &k, now, amount, has_payload, ctx)) {
		t->nr_singly++;
		return;
	}
	count_sum(t, &k, amount);
}

/* Most hits are in programs that are no targets: they pay for this much. */
static __always_inline const struct count_config *count_filter(__u32 event,
							       struct task_struct *task,
							       bool *ret_is_ours)
{
	const struct count_config *c = bpf_map_lookup_elem(&count_configs, &event);
	if (!c || !count_start_ns)
		return NULL;
	*ret_is_ours = is_target(task);
	if (*ret_is_ours || (c->flags & COUNT_MACHINE))
		return c;
	/* Of the whole system only idle CPUs and assay itself are no targets. */
	return watch_system && !(c->flags & COUNT_IN_THREAD) ? c : NULL;
}

/* 0 would take the event from whoever else listens to it. */
SEC("tracepoint")
int count_tracepoint(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 event = (__u32)bpf_get_attach_cookie(ctx);
	bool is_ours;
	const struct count_config *c = count_filter(event, task, &is_ours);
	if (!c)
		return 1;
	COST_BEGIN(COST_EVENT);
	if (is_ours && !(c->flags & COUNT_IN_THREAD))
		is_ours = !in_interrupt(task, tracepoint_sp(ctx));
	if (is_ours && (c->flags & COUNT_OF_INTERRUPTS))
		is_ours = !was_interrupted(task);
	if (is_ours || (c->flags & COUNT_MACHINE) || watch_system)
		count_hit(ctx, c, event, task, is_ours, true);
	COST_END(COST_EVENT);
	return 1;
}

SEC("perf_event")
int count_software(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 event = (__u32)bpf_get_attach_cookie(ctx);
	bool is_ours;
	const struct count_config *c = count_filter(event, task, &is_ours);
	if (!c)
		return 0;
	COST_BEGIN(COST_EVENT);
	count_hit(ctx, c, event, task, is_ours, false);
	COST_END(COST_EVENT);
	return 0;
}

#endif
