/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Heap growth: anonymous memory at its first touch, by stack, which needs no knowledge of the
 * allocator; and the system calls that map memory.
 *
 * A fault on anonymous memory for which the kernel allocates pages is growth by that many bytes:
 * mm_page_alloc reports them, huge pages included. Faults without an allocation (reads of the zero
 * page; a copy-on-write page that no other process shares any more) are not growth. The start of a
 * fault is seen by exceptions:page_fault_*; without these tracepoints each fault counts as one
 * page. Memory that is populated when it is mapped (MAP_POPULATE, mlockall) is counted at the end
 * of the call. The rows are those of io.bpf.h.
 */
#ifndef ASSAY_BPF_GROWTH_H
#define ASSAY_BPF_GROWTH_H

#include "faults.bpf.h"

#define PAGE_BYTES             4096
#define MIGRATE_MOVABLE        1   /* user and file pages; not page tables */
#define FAULT_IS_WRITE         0x2 /* x86's error code */
#define MAP_ANONYMOUS___growth 0x20

enum growth_flags {
	GROWTH_IN_FAULT = 1 << 0,
	GROWTH_WRITE = 1 << 1,
};

/* ---- page allocations ---- */

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(io_growth_page, void *page, unsigned int order, unsigned int gfp, int migratetype)
{
	if (migratetype != MIGRATE_MOVABLE || !page)
		return 0;
	struct io_state *s = io_state_of(bpf_get_current_task_btf());
	if (s)
		s->growth_pages += 1u << (order & 31);
	return 0;
}

static __always_inline int growth_begin(unsigned long error_code)
{
	struct io_state *s = io_state_of(bpf_get_current_task_btf());
	if (!s)
		return 0;
	s->growth_pages = 0;
	s->growth_flags = GROWTH_IN_FAULT | (error_code & FAULT_IS_WRITE ? GROWTH_WRITE : 0);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(io_growth_user, unsigned long addr, void *regs, unsigned long error_code)
{
	return COSTED(COST_FAULT, growth_begin(error_code));
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(io_growth_kernel, unsigned long addr, void *regs, unsigned long error_code)
{
	return COSTED(COST_FAULT, growth_begin(error_code));
}

/* ---- faults ---- */

/*
 * Returns the number of anonymous pages that the fault added. A write to a private file page adds
 * one (copy on write); other pages allocated during that fault are read-ahead.
 */
static __always_inline __u64 growth_count_pages(struct task_struct *t, struct io_state *s,
						__u64 addr, __u64 sp, __u64 *ret_object)
{
	/* read first: the code below may itself cause a fault, which changes them */
	__u32 nr_pages = s->growth_pages;
	__u32 flags = s->growth_flags;
	bool is_exact = flags & GROWTH_IN_FAULT;
	s->growth_pages = 0;
	s->growth_flags = 0;
	if (is_exact && !nr_pages)
		return 0;
	struct vma_cache *m = &s->vma;
	vma_find(t, m, addr);
	*ret_object = m->object;
	if (m->flags & VMA_IS_SHARED)
		return 0;
	if (m->flags & VMA_HAS_FILE)
		return is_exact && flags & GROWTH_WRITE;
	if (vma_is_stack(m, sp))
		*ret_object = IO_OBJECT_STACK;
	return is_exact ? nr_pages : 1;
}

static __always_inline int growth_account(struct bpf_perf_event_data *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	if (!s)
		return 0;
	struct io_key key = io_key_of(t, IO_TABLE_GROWTH, IO_NONE);
	__u64 sp = PT_REGS_SP(&ctx->regs);
	__u64 nr = growth_count_pages(t, s, ctx->addr, sp, &key.object);
	if (!nr)
		return 0;
	key.stack = user_stack(IO_STACK_MAX);
	return io_account_one(&key, nr * PAGE_BYTES, 0);
}

/* Attached to the perf events of minor and of major faults. */
SEC("perf_event")
int io_growth_fault(struct bpf_perf_event_data *ctx)
{
	return COSTED(COST_FAULT, growth_account(ctx));
}

/* ---- calls that map ---- */

static __always_inline int map_begin(__u32 what)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	if (!s)
		return 0;
	struct pt_regs___kernel *regs = regs_of(t);
	s->map_stack = user_stack(IO_STACK_MAX);
	s->map_bytes = what == IO_BRK ? BPF_CORE_READ(t, mm, brk) : REGS_ARG_1(regs);
	s->map_flags = 0;
	if (what == IO_MREMAP) {
		s->map_old_bytes = REGS_ARG_1(regs);
		s->map_bytes = REGS_ARG_2(regs);
	} else if (what == IO_MMAP) {
		s->map_flags = REGS_ARG_3(regs);
		if (!(s->map_flags & MAP_ANONYMOUS___growth))
			what = IO_MMAP_FILE;
	}
	s->map_what = what;
	s->growth_pages = 0;
	return 0;
}

/* Sets v->bytes to the bytes that the call mapped, or v->ns to the bytes that it unmapped. */
static __always_inline void map_amount(struct io_state *s, long ret, struct io_sum *v)
{
	__u64 had = s->map_bytes;
	__u64 got = s->map_bytes;
	if (s->map_what == IO_MUNMAP) {
		got = 0;
	} else if (s->map_what == IO_MREMAP) {
		had = s->map_old_bytes;
	} else if (s->map_what == IO_BRK) {
		got = ret;
	} else {
		had = 0;
	}
	if (got > had)
		v->bytes = got - had;
	else
		v->ns = had - got;
}

static __always_inline int map_end(long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	if (!s || !s->map_what)
		return 0;
	struct io_sum v = {.nr = 1};
	map_amount(s, ret, &v);
	bool has_failed = ret < 0 && ret > -PAGE_BYTES;
	struct io_key key = io_key_of(t, IO_TABLE_MAPPED, s->map_what);
	key.stack = s->map_stack;
	__u64 nr_pages = s->growth_pages;
	bool is_anon = s->map_what == IO_MMAP || s->map_what == IO_BRK;
	s->map_what = 0;
	s->growth_pages = 0;
	/* brk(0) only asks for the end of the heap */
	if (!has_failed && (v.bytes || v.ns))
		io_account(&key, &v);
	if (has_failed || !is_anon || !nr_pages)
		return 0;
	struct io_sum grown = {.nr = nr_pages, .bytes = nr_pages * PAGE_BYTES};
	key.object = IO_OBJECT_ANON;
	key.table = IO_TABLE_GROWTH;
	key.what = IO_NONE;
	return io_account(&key, &grown);
}

/* The cookie is the kind of call (enum io_what). */
SEC("tracepoint")
int io_map_enter(struct call_enter *ctx)
{
	return COSTED(COST_IO, map_begin(bpf_get_attach_cookie(ctx)));
}

SEC("tracepoint")
int io_map_exit(struct call_exit *ctx)
{
	return COSTED(COST_IO, map_end(ctx->ret));
}

#endif
