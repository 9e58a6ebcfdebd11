/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allocations by uprobes on the functions of an allocator, for processes that cannot be traced by
 * ptrace while BPF programs can be loaded. There is a probe at the entry, whose cookie says what
 * the function does, and one at the return if the block is needed.
 *
 * One program serves both. It recognises a return by the stack pointer, which is then one word
 * above that of the entry. An entry cannot have such a stack pointer, since the ABI aligns it. In a
 * uprobe session (BPF_TRACE_UPROBE_SESSION) the result at the entry decides whether the return is
 * probed, so that calls that are not sampled cost one trap. Calls within an allocator function are
 * not counted: only the outermost call is.
 *
 * Sampling: sample points have exponentially distributed distances in the bytes that a thread
 * allocates; blocks as large as the mean distance are always sampled. So a block of s bytes is
 * sampled with probability 1 - exp(-s / interval), independent of earlier ones.
 */
#ifndef ASSAY_BPF_HEAP_H
#define ASSAY_BPF_HEAP_H

#include "io.bpf.h"

#include "heap_wire.h"
#include "kernel_heap.h"

#define HEAP_STACK_MAX 256
#define HEAP_BLOCKS    262144
#define LOG_BITS       24
#define LN2_24         11629080u /* ln 2 * 2^24 */

DEFINE_RING(heap_ring, 8 << 20);

/* With sampling: the set of sampled live blocks, whose frees must be sent. */
DEFINE_MAP_FLAGS(HASH, heap_blocks, BPF_F_NO_PREALLOC, HEAP_BLOCKS, struct kernel_heap_block,
		 __u64);

volatile __u64 heap_epoch_ns = 0;
volatile __u64 heap_interval_bytes = 0; /* 0: every allocation */
struct kernel_heap_counts heap_counts = {};

#define HEAP_RETURN_BYTES 8 /* x86-64: the return address; elsewhere nothing is attached */

struct heap_call {
	__u64 arg[3];
	__u64 sp;
	__u64 ret;
};

/* ---- sampling ---- */

/* -log2(r / 2^32) * 2^24, r > 0 */
static __always_inline __u64 minus_log2(__u32 r)
{
	__u32 nr_zeros = 31 - log2_of(r);
	__u64 x = (__u64)r << nr_zeros; /* [1, 2) * 2^31 */
	__u64 frac = 0;
	for (int i = 0; i < LOG_BITS; i++) {
		x = x * x >> 31;
		__u64 bit = x >> 32;
		frac = frac << 1 | bit;
		x >>= bit;
	}
	return ((__u64)(nr_zeros + 1) << LOG_BITS) - frac;
}

/* A random distance to the next sample, exponentially distributed. */
static __noinline __s64 heap_next_sample_bytes(__u64 interval_bytes)
{
	__u64 ln = minus_log2(bpf_get_prandom_u32() | 1) * LN2_24 >> LOG_BITS;
	return (__s64)(ln * (interval_bytes & 0xffffffffffull) >> LOG_BITS) + 1;
}

static __always_inline void heap_count(__u64 nr_bytes)
{
	__u32 i = log2_of(nr_bytes | 8) - 3;
	struct heap_class_count *c =
		&heap_counts.classes[i < HEAP_COUNT_CLASSES ? i : HEAP_COUNT_CLASSES - 1];
	__sync_fetch_and_add(&c->nr, 1);
	__sync_fetch_and_add(&c->nr_bytes, nr_bytes);
}

/* Whether an allocation is sampled; counts its bytes. */
static __always_inline bool heap_is_sampled(struct heap_state *s, __u64 nr_bytes)
{
	__u64 interval = heap_interval_bytes;
	if (!interval || nr_bytes >= interval)
		return true;
	if (!(s->flags & HEAP_HAS_COUNTDOWN)) {
		s->left_bytes = heap_next_sample_bytes(interval);
		s->flags |= HEAP_HAS_COUNTDOWN;
	}
	s->left_bytes -= nr_bytes;
	if (s->left_bytes >= 0)
		return false;
	s->left_bytes = heap_next_sample_bytes(interval);
	return true;
}

/* ---- records ---- */

static __always_inline bool heap_emit(__u16 kind, __u64 time_ns, __u64 block, __u64 nr_bytes,
				      __u64 stack)
{
	struct kernel_heap *r = bpf_ringbuf_reserve(&heap_ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&heap_counts.nr_dropped, 1);
		__sync_fetch_and_add(&heap_counts.dropped_bytes, nr_bytes);
		return false;
	}
	__u64 who = bpf_get_current_pid_tgid();
	record_head_at(&r->head, kind, sizeof(*r), time_ns, who >> 32, (__u32)who);
	r->block = block;
	r->nr_bytes = nr_bytes;
	r->stack = stack;
	ring_submit(r);
	return true;
}

static __always_inline struct kernel_heap_block heap_key(__u64 block)
{
	struct kernel_heap_block key = {.block = block, .tgid = bpf_get_current_pid_tgid() >> 32};
	return key;
}

/* Removes a block from the set heap_blocks. Returns whether its free must be sent. */
static __always_inline bool heap_block_remove(__u64 block)
{
	if (!heap_interval_bytes)
		return true;
	struct kernel_heap_block key = heap_key(block);
	return !bpf_map_delete_elem(&heap_blocks, &key);
}

/* Adds a block to the set heap_blocks, so that its free is sent. */
static __always_inline void heap_block_add(__u64 block)
{
	struct kernel_heap_block key = heap_key(block);
	__u64 one = 1;
	if (heap_interval_bytes && bpf_map_update_elem(&heap_blocks, &key, &one, BPF_ANY))
		__sync_fetch_and_add(&heap_counts.nr_no_room, 1);
}

static __always_inline void heap_emit_block(struct heap_state *s, __u64 block)
{
	if (heap_emit(RECORD_ALLOC, bpf_ktime_get_ns(), block, s->nr_bytes, s->stack))
		heap_block_add(block);
}

/* ---- entry and return of a call ---- */

static __always_inline __u64 heap_requested_bytes(__u32 shape, const struct heap_call *c)
{
	switch (shape) {
	case HEAP_ALLOC_0:
		return c->arg[0];
	case HEAP_ALLOC_1:
	case HEAP_REALLOC_1:
	case HEAP_RESIZE:
		return c->arg[1];
	case HEAP_ALLOC_01:
		return c->arg[0] * c->arg[1];
	case HEAP_ALLOC_12:
	case HEAP_REALLOC_12:
		return c->arg[1] * c->arg[2];
	case HEAP_ALLOC_OUT:
	case HEAP_REALLOC_2:
		return c->arg[2];
	}
	return 0;
}

static __always_inline __u64 heap_old_block(__u32 shape, const struct heap_call *c)
{
	if (shape == HEAP_REALLOC_1 || shape == HEAP_REALLOC_12 || shape == HEAP_RESIZE)
		return c->arg[0];
	return shape == HEAP_REALLOC_2 ? c->arg[1] : 0;
}

static __always_inline int heap_free_enter(struct heap_state *s, __u64 block)
{
	/* operator delete calls free: the block's free is counted once */
	if (!block || block == s->last_free)
		return 1;
	s->last_free = block;
	__sync_fetch_and_add(&heap_counts.nr_frees, 1);
	if (heap_block_remove(block))
		heap_emit(RECORD_FREE, bpf_ktime_get_ns(), block, 0, 0);
	return 1;
}

/*
 * Whether this entry is a tail call from another function of the allocator (reallocarray to
 * realloc). In that case stack pointer and return address are those of the previous entry.
 */
static __always_inline bool heap_is_tail_call(struct heap_state *s, __u32 site, __u64 sp)
{
	bool is_same = s->last_sp == sp && s->last_site != site;
	if (s->sp == sp && is_same)
		return true;
	__u64 ret = 0;
	bpf_probe_read_user(&ret, sizeof(ret), (void *)sp);
	is_same = is_same && ret && ret == s->last_ret;
	s->last_sp = sp;
	s->last_ret = ret;
	s->last_site = site;
	return is_same;
}

/* At an entry. Returns 0 if the return must be probed, else 1. */
static __always_inline int heap_enter(struct heap_state *s, __u64 cookie, const struct heap_call *c)
{
	__u32 shape = HEAP_COOKIE_SHAPE(cookie);
	__sync_fetch_and_add(&heap_counts.nr_hits, 1);
	if (s->sp && c->sp < s->sp)
		return 1;
	if (shape == HEAP_FREE_0)
		return heap_free_enter(s, c->arg[0]);
	if (heap_is_tail_call(s, HEAP_COOKIE_SITE(cookie), c->sp))
		return 1;
	__u64 nr_bytes = heap_requested_bytes(shape, c);
	s->last_free = 0;
	s->sp = 0;
	heap_count(nr_bytes);
	bool is_sampled = heap_is_sampled(s, nr_bytes);
	s->old = heap_old_block(shape, c);
	bool is_old_reported = s->old && heap_block_remove(s->old);
	s->flags &= HEAP_HAS_COUNTDOWN;
	if (is_sampled)
		s->flags |= HEAP_IS_SAMPLED;
	if (is_old_reported)
		s->flags |= HEAP_OLD_IS_REPORTED;
	if (!is_sampled && !is_old_reported)
		return 1;
	s->shape = shape;
	s->nr_bytes = nr_bytes;
	s->out = c->arg[0];
	s->old_ns = bpf_ktime_get_ns();
	s->stack = 0;
	if (is_sampled)
		s->stack = user_stack(HEAP_STACK_MAX);
	s->sp = c->sp;
	return 0;
}

/* The block that a call returned, 0 = none. */
static __always_inline __u64 heap_returned_block(struct heap_state *s, __u64 ret)
{
	__u64 block = 0;
	if (s->shape == HEAP_ALLOC_OUT) {
		if (!(__u32)ret)
			bpf_probe_read_user(&block, sizeof(block), (void *)s->out);
		return block;
	}
	if (s->shape == HEAP_RESIZE) {
		s->nr_bytes = ret;
		return s->old;
	}
	return ret;
}

static __always_inline int heap_leave(struct heap_state *s, __u64 ret)
{
	__u64 block = heap_returned_block(s, ret);
	s->sp = 0;
	/* realloc(p, 0) frees and returns NULL; a realloc that failed keeps the old block */
	bool has_failed = !block && s->nr_bytes;
	if (s->flags & HEAP_OLD_IS_REPORTED) {
		if (has_failed)
			heap_block_add(s->old);
		else
			heap_emit(RECORD_FREE, s->old_ns, s->old, 0, 0);
	}
	if (block && s->flags & HEAP_IS_SAMPLED)
		heap_emit_block(s, block);
	return 0;
}

static __always_inline int heap_hit(struct pt_regs *ctx, __u64 cookie)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!heap_epoch_ns)
		return 1;
	struct task_state *state = state_of(t, true);
	if (!state)
		return 1;
	struct heap_state *s = &state->heap;
	struct heap_call c = {
		.arg = {PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx)},
		.sp = PT_REGS_SP(ctx),
		.ret = PT_REGS_RC(ctx),
	};
	__u32 shape = HEAP_COOKIE_SHAPE(cookie);
	if (shape != HEAP_FREE_0 && (c.sp & 15) == 0)
		return s->sp && c.sp == s->sp + HEAP_RETURN_BYTES ? heap_leave(s, c.ret) : 1;
	return heap_enter(s, cookie, &c);
}

SEC("uprobe")
int heap_probe(struct pt_regs *ctx)
{
	return COSTED(COST_HEAP, heap_hit(ctx, bpf_get_attach_cookie(ctx)));
}

#endif
