/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counts each page fault by perf software events with period 1, memory reclaim by target threads,
 * and wake-ups of kswapd by any thread. The rows are those of io.bpf.h.
 *
 * The perf event occurs at the end of a fault, when it is known whether the fault was major. The
 * tracepoints exceptions:page_fault_* (x86) give its start; without them the duration is unknown.
 */
#ifndef ASSAY_BPF_FAULTS_H
#define ASSAY_BPF_FAULTS_H

#include "io.bpf.h"

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	struct mm_struct *vm_mm;
	struct file *vm_file;
} CORE;

#define VM_SHARED    0x8
#define VMA_SEQ_NONE 1u /* odd: the cache is not used */

/*
 * Sequence count of the process's mappings, which changes with them. Odd: they are being changed,
 * or this kernel has no such count.
 */
static __always_inline __u32 mm_seq(struct mm_struct *mm)
{
	if (!bpf_core_field_exists(mm->mm_lock_seq.sequence))
		return VMA_SEQ_NONE;
	return BPF_CORE_READ(mm, mm_lock_seq.sequence);
}

/* bpf_find_vma callback: fills the cache entry. */
static long mapping_vma(struct task_struct *t, struct vm_area_struct *vma, void *ctx)
{
	struct vma_cache *m = ctx;
	struct mm_struct *mm = vma->vm_mm;
	unsigned long stack = BPF_CORE_READ(mm, start_stack);
	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->flags = BPF_CORE_READ(vma, vm_flags) & VM_SHARED ? VMA_IS_SHARED : 0;
	if (vma->vm_file) {
		m->flags |= VMA_HAS_FILE;
		m->object = file_object(vma->vm_file);
		return 0;
	}
	bool is_heap = m->start <= BPF_CORE_READ(mm, brk) && m->end >= BPF_CORE_READ(mm, start_brk);
	bool is_stack = stack >= m->start && stack < m->end;
	m->object = is_stack ? IO_OBJECT_STACK : is_heap ? IO_OBJECT_HEAP : IO_OBJECT_ANON;
	return 0;
}

/*
 * Finds the mapping of an address. bpf_find_vma takes several microseconds, and there are often
 * hundreds of faults in one mapping: the last mapping is cached until mappings change.
 */
static __always_inline void vma_find(struct task_struct *t, struct vma_cache *m, __u64 addr)
{
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	__u32 seq = mm_seq(mm);
	bool is_steady = !(seq & 1);
	if (is_steady && m->mm == (__u64)mm && m->seq == seq && addr >= m->start && addr < m->end)
		return;
	struct vma_cache found = {.mm = (__u64)mm, .seq = seq, .object = IO_OBJECT_UNKNOWN};
	if (bpf_find_vma(t, addr, mapping_vma, &found, 0))
		__sync_fetch_and_add(&io_counts.nr_busy_maps, 1);
	*m = found;
	if (mm_seq(mm) != seq)
		m->end = 0;
}

/* Go's heap, of which goroutines have their stacks: see src/host/memory/anon.h. */
#define GO_HEAP_FROM 0xc000000000ull
#define GO_HEAP_TO   0xe000000000ull

/* An anonymous mapping that contains @sp is the thread's stack. */
static __always_inline bool vma_is_stack(const struct vma_cache *m, __u64 sp)
{
	return !(m->flags & VMA_HAS_FILE) && sp >= m->start && sp < m->end &&
	       !(sp >= GO_HEAP_FROM && sp < GO_HEAP_TO);
}

/* Returns the object mapped at @addr. */
static __always_inline __u64 fault_object(struct task_struct *t, struct task_state *state,
					  __u64 addr, __u64 sp)
{
	if (!state)
		return IO_OBJECT_UNKNOWN;
	struct vma_cache *m = &state->io.vma;
	vma_find(t, m, addr);
	return vma_is_stack(m, sp) ? IO_OBJECT_STACK : m->object;
}

static __always_inline int fault_account(struct bpf_perf_event_data *ctx, __u8 what)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct task_state *state = state_of(t, true);
	struct io_key key = io_key_of(t, IO_TABLE_FAULTS, what);
	__u64 ns = 0;
	key.stack = user_stack(IO_STACK_MAX);
	key.object = fault_object(t, state, ctx->addr, PT_REGS_SP(&ctx->regs));
	if (state && state->io.fault_ns) {
		ns = bpf_ktime_get_ns() - state->io.fault_ns;
		state->io.fault_ns = 0;
	}
	return io_account_one(&key, 0, ns);
}

SEC("perf_event")
int io_fault_major(struct bpf_perf_event_data *ctx)
{
	return COSTED(COST_FAULT, fault_account(ctx, IO_MAJOR));
}

SEC("perf_event")
int io_fault_minor(struct bpf_perf_event_data *ctx)
{
	return COSTED(COST_FAULT, fault_account(ctx, IO_MINOR));
}

static __always_inline int fault_begin(void)
{
	struct io_state *s = io_state_of(bpf_get_current_task_btf());
	if (s)
		s->fault_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(io_fault_user)
{
	return COSTED(COST_FAULT, fault_begin());
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(io_fault_kernel)
{
	return COSTED(COST_FAULT, fault_begin());
}

/* ---- reclaim ---- */

/*
 * Runs at the start of reclaim. User space attaches this program to the tracepoints of all three
 * kinds of reclaim, so its section name has no tracepoint.
 */
SEC("raw_tp")
int io_reclaim_begin(void *ctx)
{
	struct io_state *s = io_state_of(bpf_get_current_task_btf());
	if (!s)
		return 0;
	s->reclaim_stack = user_stack(IO_STACK_MAX);
	s->reclaim_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int reclaim_end(__u8 what, __u64 nr_pages)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	if (!s || !s->reclaim_ns)
		return 0;
	struct io_key key = io_key_of(t, IO_TABLE_RECLAIM, what);
	__u64 ns = bpf_ktime_get_ns() - s->reclaim_ns;
	key.stack = s->reclaim_stack;
	s->reclaim_ns = 0;
	return io_account_one(&key, nr_pages, ns);
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

/* Counts wake-ups of kswapd. The current thread wakes it and may be any thread of the machine. */
SEC("tp_btf/mm_vmscan_kswapd_wake")
int BPF_PROG(io_reclaim_kswapd)
{
	struct io_key key = io_key_of(bpf_get_current_task_btf(), IO_TABLE_RECLAIM, IO_KSWAPD);
	return io_account_one(&key, 0, 0);
}

#endif
