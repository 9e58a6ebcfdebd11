/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CPU samples. The program runs at each overflow of a sampling perf event (PERF_EVENT_IOC_SET_BPF)
 * and returns 0, so that perf writes no record of its own. The leaf is sent in the sample and the
 * callers as a stack, since callers repeat more often.
 */
#ifndef ASSAY_BPF_CPU_H
#define ASSAY_BPF_CPU_H

#include "engine.bpf.h"
#include "kernel_sample.h"

/* Set before loading: most frames of a sample's user stack. */
const volatile __u32 sample_depth = WALK_FRAMES_MAX - 1;

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
