/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * BPF programs of kstack.c. They measure the BPF walker's time and that of the kernel's walk by
 * frame pointers in the same sample, or send the walker's frames together with registers and stack
 * bytes.
 */
#include "kernel.bpf.h"

#include "kernel_record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "engine.bpf.h"

#include "kstack.h"

const volatile bool has_no_stack_cache = false; /* clear the stack cache before each walk */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} judged SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[KSTACK_FRAMES]);
} fp_frames SEC(".maps");

static __always_inline __u32 walk_by_fp(void *ctx)
{
	__u32 zero = 0;
	void *frames = bpf_map_lookup_elem(&fp_frames, &zero);

	if (!frames)
		return 0;
	long n = bpf_get_stack(ctx, frames, KSTACK_FRAMES * 8, BPF_F_USER_STACK);
	return n > 0 ? (__u32)n / 8 : 0;
}

static __always_inline void counts_so_far(struct kernel_counts *c)
{
	struct kernel_counts *counts = single_elem(&engine_counts);

	if (!counts)
		return;
	c->nr_frames = counts->nr_frames;
	c->nr_rule_misses = counts->nr_rule_misses;
	c->nr_map_searches = counts->nr_map_searches;
}

static __always_inline void put_counts(struct kstack_timing *t, const struct kernel_counts *from)
{
	struct kernel_counts to = {};

	counts_so_far(&to);
	t->nr_own = to.nr_frames - from->nr_frames;
	t->nr_rule_misses = to.nr_rule_misses - from->nr_rule_misses;
	t->nr_map_searches = to.nr_map_searches - from->nr_map_searches;
}

static __always_inline void send_timing(struct kstack_timing *t)
{
	bpf_ringbuf_output(&judged, t, sizeof(*t), BPF_RB_NO_WAKEUP);
}

SEC("perf_event")
int time_sample(struct bpf_perf_event_data *ctx)
{
	struct kstack_timing t = {.kind = KSTACK_SAMPLE};
	bool is_user = PERF_REGS_ARE_USER(ctx);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_listed(task) || !is_user)
		return 0;
	struct kernel_counts before = {};
	counts_so_far(&before);
	bool is_first = bpf_get_prandom_u32() & 1;
	__u64 t0 = bpf_ktime_get_ns();
	if (is_first)
		t.nr_fp = walk_by_fp(ctx);
	else
		t.ref = user_stack_of_sample(true, 2047);
	__u64 t1 = bpf_ktime_get_ns();
	if (is_first)
		t.ref = user_stack_of_sample(true, 2047);
	else
		t.nr_fp = walk_by_fp(ctx);
	__u64 t2 = bpf_ktime_get_ns();
	t.fp_ns = is_first ? t1 - t0 : t2 - t1;
	t.own_ns = is_first ? t2 - t1 : t1 - t0;
	put_counts(&t, &before);
	t.nr_own++; /* the leaf */
	t0 = bpf_ktime_get_ns();
	user_stack_of_sample(true, 2047);
	t.again_ns = bpf_ktime_get_ns() - t0;
	send_timing(&t);
	return 0;
}

/* Empties the cache's entry for the thread's stack. */
static __always_inline void forget_stack(struct task_struct *t, struct task_state *st)
{
	struct stack_start s;
	struct stack_memo *m = stack_start_of(t, st, false, &s) ? stack_memo_of(&s) : NULL;

	if (m)
		m->ref = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(time_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	struct kstack_timing t = {.kind = KSTACK_SWITCH};
	__u64 t0 = bpf_ktime_get_ns();
	struct task_state *st = target_state(prev);

	if (!st || is_preempted)
		return 0;
	struct kernel_counts before = {};
	counts_so_far(&before);
	if (has_no_stack_cache)
		forget_stack(prev, st);
	t.ref = user_stack(256);
	t.own_ns = bpf_ktime_get_ns() - t0;
	put_counts(&t, &before);
	send_timing(&t);
	return 0;
}

SEC("perf_event")
int emit_both(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_listed(task))
		return 0;
	struct task_state *st = state_of(task, true);
	struct walker k = {.w = walk_get()};
	if (!k.w)
		return 0;
	struct kstack_both *b = NULL;
	if (st && walk_init(&k, task, st, KSTACK_FRAMES, true))
		b = bpf_ringbuf_reserve(&judged, sizeof(*b), 0);
	if (b) {
		if (walk_leaf(&k))
			walk_callers_reusing(&k, task);
		b->kind = KSTACK_BOTH;
		b->end = k.w->end;
		b->nr_frames = k.w->nr_frames;
		bpf_probe_read_kernel(b->frames, sizeof(b->frames), k.w->frames);
		k.w->has_regs = false;
		walk_load_regs(k.w);
		for (__u32 i = 0; i < ARCH_NR_DWARF_REG; i++)
			b->regs[i] = k.w->regs[i];
		__u32 at = 0;
		for (__u32 i = 0; i < KSTACK_BYTES / WALK_PAGE_BYTES; i++) {
			__u32 n = WALK_PAGE_BYTES - ((k.w->sp_0 + at) & (WALK_PAGE_BYTES - 1));
			if (at > KSTACK_BYTES - WALK_PAGE_BYTES ||
			    bpf_probe_read_user(b->stack + at, n, (void *)(k.w->sp_0 + at)))
				break;
			at += n;
		}
		b->nr_stack = at;
		bpf_ringbuf_submit(b, BPF_RB_NO_WAKEUP);
	}
	walk_put(k.w);
	return 0;
}
