/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CPU samples and CPU time. The program cpu_sample runs at each overflow of a sampling perf event (PERF_EVENT_IOC_SET_BPF)
 * and returns 0, so that perf writes no record of its own. The leaf is sent in the sample and the
 * callers as a stack, since callers repeat more often.
 */
#ifndef ASSAY_BPF_CPU_H
#define ASSAY_BPF_CPU_H

#include "engine.bpf.h"
#include "kernel_sample.h"

/* Set before loading: most frames of a sample's user stack. */
const volatile __u32 sample_depth = WALK_FRAMES_MAX - 1;

DEFINE_MAP(PERCPU_ARRAY, cpu_times, 1, __u32, struct kernel_cpu_time);
/* Set when the programs are attached: threads that run since then count from this time on. */
__u64 cpu_from_ns;

static __always_inline struct kernel_cpu_time *cpu_time(void)
{
	__u32 key = 0;
	return bpf_map_lookup_elem(&cpu_times, &key);
}

/* Counts a thread that runs since before its CPU's first switch, or since before it became a target. */
static __always_inline void cpu_time_found(void)
{
	struct kernel_cpu_time *c = cpu_time();
	if (c && !c->since_ns && cpu_from_ns)
		c->since_ns = c->nr_switches ? bpf_ktime_get_ns() : cpu_from_ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(cpu_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	struct kernel_cpu_time *c = cpu_time();
	if (!c)
		return 0;
	__u64 since = c->since_ns;
	bool is_next = next->pid && is_target(next);
	c->nr_switches++;
	if (!since && !is_next)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	c->since_ns = is_next ? now : 0;
	c->sum_ns += since ? now - since : 0;
	return 0;
}

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	bool is_user = PERF_REGS_ARE_USER(ctx);
	__u64 user_ref = 0, kernel_ref = 0;

	/*
	 * A per-CPU event fires for all threads. An event of a thread fires for it and, by
	 * inheritance, for the threads that it created.
	 */
	if (watch_system ? (__u32)t->tgid == own_tgid : !watch_threads && !is_target(t))
		return 0;
	COST_BEGIN(COST_SAMPLE);
	cpu_time_found();
	if (t->pid)
		user_ref = user_stack_of_sample(is_user, sample_depth);
	if (!is_user)
		kernel_ref = kernel_stack(ctx, 0);
	struct kernel_sample *r = ring_reserve(sizeof(*r));
	if (r) {
		record_head(&r->head, RECORD_SAMPLE, sizeof(*r), t);
		r->head.flags = is_user ? KSAMPLE_USER : 0;
		r->cpu = bpf_get_smp_processor_id();
		r->pad = 0;
		r->ip = PERF_REGS_IP(ctx);
		r->user_ref = user_ref;
		r->kernel_ref = kernel_ref;
		r->period = ctx->sample_period;
		ring_submit(r);
	} else {
		count_loss(KLOSS_SAMPLES);
	}
	COST_END(COST_SAMPLE);
	return 0;
}

#endif
