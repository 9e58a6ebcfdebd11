/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every program shares: who is a target, the state of a task, the stack engine, the ring.
 *
 *	is_target(t)                       is this thread watched? cheap after its first time
 *	target_state(t)                    the state of a watched thread, made when new; NULL: it is
 *	                                   not watched (or no memory, counted). One look-up for
 *	                                   is_target and state_of together
 *	state_of(t, create)                its state, NULL: none (yet), or no memory (counted)
 *	user_stack(slot, max_depth)     ref of the current thread's user stack, 0 = it has none
 *	kernel_stack(ctx, skip)            ref of the kernel stack without its first frames, 0 =
 *	                                   none
 *	ring_reserve, ring_submit          records; the reader polls, so no wake-ups
 *	count_loss(loss)                   one more of enum kernel_loss
 *	count_done(field)                  one more of struct kernel_counts
 *	COST_BEGIN(id) ... COST_END(id)    around a program's body: its cost, timed every 64th run;
 *	                                   COSTED(id, call) where that is one call
 */
#ifndef ASSAY_BPF_ENGINE_H
#define ASSAY_BPF_ENGINE_H

#include "kernel.bpf.h"

#include "kernel_record.h"
#include "kernel_stack.h"
#include "kernel_tables.h"
#include "task_state.bpf.h"

DEFINE_RING(ring, 16 << 20);
DEFINE_MAP(PERCPU_ARRAY, losses, KLOSS_NR, __u32, __u64);
DEFINE_MAP(PERCPU_ARRAY, engine_counts, 1, __u32, struct kernel_counts);
DEFINE_MAP(PERCPU_ARRAY, costs, COST_NR, __u32, struct kernel_cost);

static __always_inline void count_loss(__u32 loss)
{
	__u64 *v = bpf_map_lookup_elem(&losses, &loss);
	if (v)
		*v += 1;
}

/* One more of a field of struct kernel_counts. */
#define count_done(field)                                              \
	do {                                                           \
		struct kernel_counts *done_ = only_of(&engine_counts); \
		if (done_)                                             \
			done_->field++;                                \
	} while (0)

#define COST_EVERY 64u

static __always_inline struct kernel_cost *cost_begin(__u32 id, __u64 *ret_ns)
{
	struct kernel_cost *c = bpf_map_lookup_elem(&costs, &id);
	*ret_ns = c && (c->nr_runs++ & (COST_EVERY - 1)) == 0 ? bpf_ktime_get_ns() : 0;
	return c;
}

static __always_inline void cost_end(struct kernel_cost *c, __u64 begin_ns)
{
	if (!begin_ns || !c)
		return;
	c->timed_ns += bpf_ktime_get_ns() - begin_ns;
	c->nr_timed++;
}

/* A pair of them in one function; no return in between. */
#define COST_BEGIN(id)      \
	__u64 cost_ns_##id; \
	struct kernel_cost *cost_##id = cost_begin(id, &cost_ns_##id)
#define COST_END(id) cost_end(cost_##id, cost_ns_##id)
/* A call with its cost. */
#define COSTED(id, call)              \
	({                            \
		COST_BEGIN(id);       \
		int cost_rc = (call); \
		COST_END(id);         \
		cost_rc;              \
	})

/* NULL: the ring is full, and that is counted. @nr_bytes is a constant. */
#define ring_reserve(nr_bytes)                                              \
	({                                                                  \
		void *ring_rec = bpf_ringbuf_reserve(&ring, (nr_bytes), 0); \
		if (!ring_rec)                                              \
			count_loss(KLOSS_RING_FULL);                        \
		ring_rec;                                                   \
	})
#define ring_submit(rec) bpf_ringbuf_submit((rec), BPF_RB_NO_WAKEUP)

/* A thread's numbers as one, for functions that are verified by themselves: no task is given to them. */
static __always_inline __u64 ids_of(struct task_struct *t)
{
	return (__u64)(__u32)t->tgid << 32 | (__u32)t->pid;
}

static __always_inline void record_head_at(struct kernel_record *r, __u16 kind, __u32 nr_bytes,
					   __u64 time_ns, __s32 tgid, __s32 pid)
{
	r->kind = kind;
	r->flags = 0;
	r->nr_bytes = nr_bytes;
	r->time_ns = time_ns;
	r->tgid = tgid;
	r->pid = pid;
}

static __always_inline void record_head(struct kernel_record *r, __u16 kind, __u32 nr_bytes,
					struct task_struct *t)
{
	record_head_at(r, kind, nr_bytes, bpf_ktime_get_ns(), t->tgid, t->pid);
}

#include "stack_space.bpf.h"

#include "stack.bpf.h"

#endif
