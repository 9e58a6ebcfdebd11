/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults, each one of them, by the perf software events (period 1) that the kernel counts
 * itself by; and reclaim of memory that a thread had to do. Rows as in io.bpf.h.
 *
 * The event comes at the end of a fault, when it is known whether it was major; where the fault
 * began is told by exceptions:page_fault_* (x86), so that its time is known as well.
 */
#ifndef ASSAY_BPF_FAULTS_H
#define ASSAY_BPF_FAULTS_H

#include "io.bpf.h"

struct mm_struct___io {
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
} CORE;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct___io *vm_mm;
	struct file___io *vm_file;
} CORE;

struct fault_place {
	struct file___io *file;
	__u64 sp;
	__u64 object; /* where there is no file */
};

static long fault_vma(struct task_struct *t, struct vm_area_struct *vma, void *ctx)
{
	struct fault_place *place = ctx;
	unsigned long start = vma->vm_start;
	unsigned long end = vma->vm_end;
	place->file = vma->vm_file;
	struct mm_struct___io *mm = vma->vm_mm;
	unsigned long stack = BPF_CORE_READ(mm, start_stack);
	bool is_heap = start <= BPF_CORE_READ(mm, brk) && end >= BPF_CORE_READ(mm, start_brk);
	bool is_stack = (stack >= start && stack < end) || (place->sp >= start && place->sp < end);
	place->object = is_stack ? IO_OBJECT_STACK : is_heap ? IO_OBJECT_HEAP : IO_OBJECT_ANON;
	return 0;
}

static __always_inline __u64 fault_object(struct task_struct *t, __u64 addr, __u64 sp)
{
	struct fault_place place = {.sp = sp, .object = IO_OBJECT_UNKNOWN};
	long rc = bpf_find_vma(t, addr, fault_vma, &place, 0);
	if (rc)
		__sync_fetch_and_add(&io_counts.nr_busy_maps, 1);
	return place.file ? file_object(place.file) : place.object;
}

static __always_inline int fault_book(struct bpf_perf_event_data *ctx, __u8 what)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct task_state *state = state_of(t, true);
	struct io_key key = {
		.stack = user_stack(t, WALK_EVENT, IO_STACK_MAX),
		.object = fault_object(t, ctx->addr, PT_REGS_SP(&ctx->regs)),
		.tgid = t->tgid,
		.pid = t->pid,
		.syscall = -1,
		.table = IO_TABLE_FAULTS,
		.what = what,
	};
	struct io_sum v = {.nr = 1};
	if (state && state->io.fault_ns) {
		v.ns = bpf_ktime_get_ns() - state->io.fault_ns;
		v.longest_ns = v.ns;
		state->io.fault_ns = 0;
	}
	return io_book(&key, &v);
}

SEC("perf_event")
int io_fault_major(struct bpf_perf_event_data *ctx)
{
	COST_BEGIN(COST_FAULT);
	int rc = fault_book(ctx, IO_MAJOR);
	COST_END(COST_FAULT);
	return rc;
}

SEC("perf_event")
int io_fault_minor(struct bpf_perf_event_data *ctx)
{
	COST_BEGIN(COST_FAULT);
	int rc = fault_book(ctx, IO_MINOR);
	COST_END(COST_FAULT);
	return rc;
}

static __always_inline int fault_begin(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct task_state *state = state_of(t, true);
	if (state)
		state->io.fault_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(io_fault_user)
{
	COST_BEGIN(COST_FAULT);
	int rc = fault_begin();
	COST_END(COST_FAULT);
	return rc;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(io_fault_kernel)
{
	COST_BEGIN(COST_FAULT);
	int rc = fault_begin();
	COST_END(COST_FAULT);
	return rc;
}

/* ---- reclaim ---- */

/* At the beginnings of all three sorts: attached by hand, as it is one program. */
SEC("raw_tp")
int io_reclaim_begin(void *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct task_state *state = state_of(t, true);
	if (!state)
		return 0;
	state->io.reclaim_stack = user_stack(t, WALK_EVENT, IO_STACK_MAX);
	state->io.reclaim_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int reclaim_end(__u8 what, __u64 nr_pages)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct task_state *state = state_of(t, false);
	if (!state || !state->io.reclaim_ns)
		return 0;
	struct io_key key = {
		.stack = state->io.reclaim_stack,
		.tgid = t->tgid,
		.pid = t->pid,
		.syscall = -1,
		.table = IO_TABLE_RECLAIM,
		.what = what,
	};
	__u64 ns = bpf_ktime_get_ns() - state->io.reclaim_ns;
	struct io_sum v = {.nr = 1, .bytes = nr_pages, .ns = ns, .longest_ns = ns};
	state->io.reclaim_ns = 0;
	return io_book(&key, &v);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(io_reclaim_direct_end, unsigned long nr_pages)
{
	return reclaim_end(IO_DIRECT, nr_pages);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(io_reclaim_memcg_end, unsigned long nr_pages)
{
	return reclaim_end(IO_MEMCG, nr_pages);
}

SEC("tp_btf/mm_vmscan_node_reclaim_end")
int BPF_PROG(io_reclaim_node_end, unsigned long nr_pages)
{
	return reclaim_end(IO_NODE, nr_pages);
}

/* The machine's own reclaimer, whoever it works for. */
SEC("tp_btf/mm_vmscan_kswapd_wake")
int BPF_PROG(io_reclaim_kswapd)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_key key = {
		.tgid = t->tgid,
		.pid = t->pid,
		.syscall = -1,
		.table = IO_TABLE_RECLAIM,
		.what = IO_KSWAPD,
	};
	struct io_sum v = {.nr = 1};
	return io_book(&key, &v);
}

#endif
