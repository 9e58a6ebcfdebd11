/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all BPF programs share: the target check, the state of a thread, stacks, the ring buffer,
 * counters.
 *
 *	is_target(t)                       whether the thread is a target; the answer is stored
 *	target_state(t)                    state of a target thread, created when new; NULL: not a
 *	                                   target (or no memory, counted). One look-up for is_target
 *	                                   and state_of together
 *	state_of(t, create)                state of a thread; NULL: none, or no memory (counted)
 *	user_stack(max_depth)              reference of the current thread's user stack; 0: it has
 *	                                   none. Sends the stack if it is new. user_stack_of: the
 *	                                   same with the thread's state, which the caller has
 *	kernel_stack(ctx, skip)            reference of the kernel stack without its first @skip
 *	                                   frames; 0: none
 *	ring_reserve, ring_submit          records; user space polls and is woken only if the ring
 *	                                   fills up
 *	count_loss(loss)                   adds one to a counter of enum kernel_loss
 *	count_done(field)                  adds one to a field of struct kernel_counts
 *	COST_BEGIN(id) ... COST_END(id)    around a program's body: measures the run time of every
 *	                                   64th run; COSTED(id, call) where the body is one call
 */
#ifndef ASSAY_BPF_ENGINE_H
#define ASSAY_BPF_ENGINE_H

#include "kernel.bpf.h"

#include "kernel_record.h"
#include "kernel_stack.h"
#include "kernel_tables.h"
#include "task_state.bpf.h"

DEFINE_RING(ring, 16 << 20);

/* Bytes in the ring from which on user space is woken. Set before loading. */
const volatile __u32 ring_wake_bytes = 0;
__u32 ring_is_woken; /* user space was woken because of the ring; it clears this when it reads */
/* Becomes readable when a ring fills up. Its records have no content. */
DEFINE_RING(wakeups, 64 << 10); /* the largest page */
DEFINE_MAP(PERCPU_ARRAY, losses, KLOSS_NR, __u32, __u64);
DEFINE_MAP(PERCPU_ARRAY, engine_counts, 1, __u32, struct kernel_counts);
DEFINE_MAP(PERCPU_ARRAY, costs, COST_NR, __u32, struct kernel_cost);

static __always_inline void count_loss(__u32 loss)
{
	__u64 *v = bpf_map_lookup_elem(&losses, &loss);
	if (v)
		*v += 1;
}

/* Adds one to a field of struct kernel_counts. */
#define count_done(field)                                                  \
	do {                                                               \
		struct kernel_counts *done_ = single_elem(&engine_counts); \
		if (done_)                                                 \
			done_->field++;                                    \
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

/* Must be used as a pair in one function, without a return in between. */
#define COST_BEGIN(id)      \
	__u64 cost_ns_##id; \
	struct kernel_cost *cost_##id = cost_begin(id, &cost_ns_##id)
#define COST_END(id) cost_end(cost_##id, cost_ns_##id)
/* Evaluates to the result of a call whose run time is measured. */
#define COSTED(id, call)              \
	({                            \
		COST_BEGIN(id);       \
		int cost_rc = (call); \
		COST_END(id);         \
		cost_rc;              \
	})

/* Reserves a record; NULL: the ring is full (counted). @nr_bytes must be a constant. */
#define ring_reserve(nr_bytes)                                              \
	({                                                                  \
		void *ring_rec = bpf_ringbuf_reserve(&ring, (nr_bytes), 0); \
		if (!ring_rec)                                              \
			count_loss(KLOSS_RING_FULL);                        \
		ring_rec;                                                   \
	})
/*
 * Wakes user space, which polls seldom while nothing happens; once until it clears @is_woken. The
 * kernel does that from an interrupt of its own, so it is safe in a context switch.
 */
static __always_inline void user_wake(__u32 *is_woken)
{
	if (*is_woken)
		return;
	*is_woken = 1;
	__u64 *none = bpf_ringbuf_reserve(&wakeups, sizeof(*none), 0);
	if (!none)
		return;
	*none = 0;
	bpf_ringbuf_submit(none, BPF_RB_FORCE_WAKEUP);
}

/* After a record was added to the ring. */
static __always_inline void ring_added(void)
{
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= ring_wake_bytes)
		user_wake(&ring_is_woken);
}

#define ring_submit(rec)                                     \
	({                                                   \
		bpf_ringbuf_submit((rec), BPF_RB_NO_WAKEUP); \
		ring_added();                                \
	})

/*
 * tgid << 32 | tid. For functions that are verified on their own: a task cannot be passed to them.
 */
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
