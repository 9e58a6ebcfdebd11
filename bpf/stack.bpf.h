/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * User and kernel stacks by reference. A reference is a 64-bit hash of the stack: the generation of
 * the process's mappings, the addresses, and whether the first one is a return address. Each stack
 * is sent once through the ring; other records contain only its reference. `reported` is the set of
 * references that were sent. It is a 4-way set-associative cache: the oldest of a set is evicted,
 * and such a stack is sent again.
 */
#ifndef ASSAY_BPF_STACK_H
#define ASSAY_BPF_STACK_H

#include "stack_walk.bpf.h"

#include "stack_copy.bpf.h"
#include "stack_memo.bpf.h"
#include "stack_prevwalk.bpf.h"

#define KERNEL_FRAMES_MAX 127

#define REPORTED_WAYS 4
#define REPORTED_BITS 16
#define REPORTED_NR   (1u << REPORTED_BITS)
struct reported {
	__u64 refs[REPORTED_NR];
};

DEFINE_MAP(ARRAY, reported, 1, __u32, struct reported);

/* The first way of the reference's set, or NULL; its set has REPORTED_WAYS of them. */
static __always_inline __u64 *reported_set(__u64 ref)
{
	struct reported *all = single_elem(&reported);

	return all ? &all->refs[ref >> 20 & (REPORTED_NR - REPORTED_WAYS)] : NULL;
}

/* Two CPUs may write a set at the same time: then a stack is sent twice, which is harmless. */
static __always_inline bool reported_has(__u64 ref)
{
	__u64 *set = reported_set(ref);

	return set && (READ_ONCE(set[0]) == ref || READ_ONCE(set[1]) == ref ||
		       READ_ONCE(set[2]) == ref || READ_ONCE(set[3]) == ref);
}

static __always_inline void reported_add(__u64 ref)
{
	__u64 *set = reported_set(ref);

	if (!set)
		return;
	WRITE_ONCE(set[3], READ_ONCE(set[2]));
	WRITE_ONCE(set[2], READ_ONCE(set[1]));
	WRITE_ONCE(set[1], READ_ONCE(set[0]));
	WRITE_ONCE(set[0], ref);
}

#include "python.bpf.h"

/* Reserves the memory for a walk. NULL: WALK_NESTING BPF programs use it already; counted. */
static __always_inline struct walk *walk_get(void)
{
	for (__u32 i = 0; i < WALK_NESTING; i++) {
		__u32 key = i;
		struct walk *w = bpf_map_lookup_elem(&walks, &key);
		if (w && !__sync_lock_test_and_set(&w->is_in_use, 1))
			return w;
	}
	count_loss(KLOSS_SCRATCH);
	return NULL;
}

static __always_inline void walk_put(struct walk *w)
{
	WRITE_ONCE(w->is_in_use, 0);
}

/* kernel_stack.gap_log2 of a walk of @nr_frames. */
static __always_inline __u32 gap_log2(__u32 nr_frames)
{
	__u32 bits = 0;

	if (nr_frames <= KSTACK_FRAMES_MAX)
		return 0;
	for (__u32 i = 0; i < 16; i++)
		bits += (nr_frames - KSTACK_FRAMES_MAX) >> i != 0;
	return bits;
}

/* bpf_loop callback: adds frame @i of the outer half to the hash. */
static long outer_hash(__u32 i, struct walker *k)
{
	struct walk *w = k->w;

	w->hash = hash_mix(
		w->hash,
		w->frames[KSTACK_LEAF_FRAMES | ((w->nr_frames + i) & (KSTACK_LEAF_FRAMES - 1))]);
	return 0;
}

/* Makes the hash of a stack with a gap that of what is sent (kernel_stack.h). */
__noinline int hash_without_gap(struct walk *w)
{
	struct walker k = {.w = w};

	if (!w)
		return 0;
	w->hash = hash_mix(w->leaf_hash, gap_log2(w->nr_frames));
	bpf_loop(KSTACK_LEAF_FRAMES, outer_hash, &k, 0);
	return 0;
}

/* Sends the frames of a walk (or the kernel's frames); false: no room in the ring. */
__noinline bool stack_emit(struct walk *w, __u64 ref, __u32 flags, __u32 end)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (!w)
		return false;
	__u32 nr = w->nr_frames;
	if (nr > WALK_FRAMES_MAX)
		nr = WALK_FRAMES_MAX;
	__u32 nr_bytes = sizeof(w->record) + nr * 8;
	struct kernel_stack *r = (void *)w->record;
	record_head(&r->head, RECORD_STACK, nr_bytes, t);
	r->head.flags = flags;
	r->ref = ref;
	r->nr_frames = nr;
	r->end = end;
	r->gap_log2 = gap_log2(w->nr_frames);
	r->gap_end = KSTACK_LEAF_FRAMES | (w->nr_frames & (KSTACK_LEAF_FRAMES - 1));
	if (bpf_ringbuf_output(&ring, w->record, nr_bytes, BPF_RB_NO_WAKEUP)) {
		count_loss(KLOSS_RING_FULL);
		return false;
	}
	ring_added();
	count_done(nr_stacks);
	reported_add(ref);
	return true;
}

/* Whether user space may find more frames than the BPF walk did. */
static __always_inline bool stack_is_unfinished(__u32 end)
{
	return end == WALK_NO_MAP || end == WALK_NO_RULE || end == WALK_NO_FILE ||
	       end == WALK_JIT || end == WALK_NEEDS_FULL;
}

/* The reference of an unfinished stack, sent as registers and stack bytes; 0: not sent. */
__noinline __u64 stack_ref_of_copy(struct walk *w, __u32 flags, __u32 copy_max)
{
	__u64 ref;

	if (!w)
		return 0;
	if (flags & KSTACK_NO_LEAF)
		w->hash = hash_mix(w->hash, w->pc_0);
	ref = copy_ref(w, copy_max / 8 < COPY_WORDS_MAX ? copy_max / 8 : COPY_WORDS_MAX);
	if (!ref || reported_has(ref))
		return ref;
	if (!copy_send(w, ref, flags, copy_max))
		return 0;
	count_done(nr_copies);
	reported_add(ref);
	return ref;
}

/* The reference of a walked stack, which is sent if it is new; 0: it could not be sent. */
__noinline __u64 stack_ref(struct walk *w, __u32 flags, __u32 copy_max)
{
	if (!w)
		return 0;
	__u32 end = w->end;
	if (UNLIKELY(w->nr_frames > KSTACK_FRAMES_MAX))
		hash_without_gap(w);
	__u64 ref = hash_mix(w->hash, end) | 1;

	if (UNLIKELY(stack_is_unfinished(end))) {
		__u64 copied = stack_ref_of_copy(w, flags, copy_max);
		if (copied)
			return copied;
	}
	if (!w->nr_frames)
		return 0;
	if (reported_has(ref))
		return ref;
	return stack_emit(w, ref, flags & ~KSTACK_NO_LEAF, end) ? ref : 0;
}

/* Adds the numbers of a finished walk to the engine's counts. */
static __always_inline void walk_count(struct walk *w)
{
	struct kernel_counts *counts = single_elem(&engine_counts);

	if (!counts)
		return;
	counts->nr_walks++;
	counts->nr_frames += w->nr_frames;
	counts->nr_rule_misses += w->nr_rule_misses;
	counts->nr_map_searches += w->nr_map_searches;
	counts->nr_ends[w->end & 15]++;
}

/* Registers and mappings of the thread's user stack; false: it has none that can be walked. */
static __always_inline bool stack_start_of(struct task_struct *t, struct task_state *st,
					   bool is_exact, struct stack_start *ret)
{
	struct ktables_head *h = single_elem(&tables);
	struct pt_regs___kernel *r = regs_of(t);

	if (t->flags & (PF_IN_KERNEL | PF_EXITING) || !REGS_IS_64(r) || !h)
		return false;
	struct kspace *space = space_of(h, t, st);
	if (!space)
		return false;
	ret->generation = READ_ONCE(space->now) >> 32;
	ret->ip = REGS_IP(r);
	ret->sp = REGS_SP(r);
	ret->fp = REGS_FP(r);
	ret->is_call = !is_exact && REGS_IS_SYSCALL(r);
	return true;
}

/* Prepares a walk of the thread's user stack; false: it has none that can be walked. */
static __always_inline bool walk_init(struct walker *k, struct task_struct *t,
				      struct task_state *st, __u32 max_depth, bool is_exact)
{
	struct walk *w = k->w;
	struct stack_start s;

	k->tables = single_elem(&tables);
	k->rules = single_elem(&rule_cache);
	if (!k->tables || !k->rules || !stack_start_of(t, st, is_exact, &s))
		return false;
	struct kspace *space = space_of(k->tables, t, st);
	if (!space)
		return false;
	__u64 now = READ_ONCE(space->now);
	w->generation = now >> 32;
	w->nr_maps = now >> 16 & 0xffff;
	w->first_map = now & 0xffff;
	w->pc = s.ip;
	w->sp = s.sp;
	w->fp = w->fp_0 = s.fp;
	w->is_call = s.is_call;
	bool is_moved = walk_has_probes && !is_exact && walk_leave_uprobe(w);
	w->pc_0 = w->pc;
	w->sp_0 = w->sp;
	w->is_call_0 = w->is_call;
	w->max_frames = max_depth < WALK_FRAMES_MAX ? max_depth : WALK_FRAMES_MAX - 1;
	w->map_bytes = 0;
	walk_flush_maps(w);
	w->window_bytes = 0;
	w->nr_frames = w->nr_words = w->nr_rule_misses = w->nr_map_searches = 0;
	w->end = WALK_DEPTH;
	w->is_chained = w->has_regs = false;
	w->is_uncacheable = is_moved;
	if (is_moved && walk_load_regs(w)) {
		w->regs[ARCH_DWARF_PC] = w->pc;
		w->regs[ARCH_DWARF_SP] = w->sp;
	}
	return true;
}

static __always_inline __u64 hash_seed(struct walk *w, __u32 flags)
{
	return hash_mix((__u64)w->generation << 8 | flags, 0x6a09e667f3bcc909ull);
}

/* Walks the user stack and stores the walk in @m, if any. Returns the reference of the stack. */
static __always_inline __u64 user_stack_walk(struct walker *k, struct stack_memo *m,
					     __u64 *ret_caller_sp)
{
	struct walk *w = k->w;
	__u32 flags = w->is_call ? KSTACK_CALLERS : 0;

	w->hash = hash_seed(w, flags);
	*ret_caller_sp = flags ? 0 : NO_CALLER_SP;
	if (walk_leaf(k)) {
		*ret_caller_sp = flags ? 0 : w->sp;
		walk_callers(k);
	}
	walk_count(w);
	__u64 ref = stack_ref(w, flags, COPY_BYTES_WAIT);
	if (ref && m)
		stack_memo_store(w, m, ref);
	return ref;
}

/*
 * Returns the reference of the current thread's user stack, at most @max_depth frames; 0: none.
 * @st: the thread's state. @is_preempted: the thread can be anywhere in its code, so that the cache is
 * of no use unless it is in a system call.
 */
__noinline __u64 user_stack_of(struct task_state *st, __u32 max_depth, bool is_preempted)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct stack_start s;

	if (!st || !stack_start_of(t, st, false, &s))
		return 0;
	struct stack_memo *m = is_preempted && !s.is_call ? NULL : stack_memo_of(&s);
	__u64 ref = m ? stack_memo_get(m, &s) : 0;
	if (ref) {
		count_done(nr_stack_cache_hits);
		return stack_with_python(t, st, ref, 0, 0);
	}
	struct walker k = {.w = walk_get()};
	__u64 caller_sp = 0;
	if (!k.w)
		return 0;
	if (walk_init(&k, t, st, max_depth, false))
		ref = user_stack_walk(&k, m, &caller_sp);
	walk_put(k.w);
	return stack_with_python(t, st, ref, caller_sp, 0);
}

/* The same for callers that do not have the thread's state, which is created if needed. */
static __always_inline __u64 user_stack(__u32 max_depth)
{
	struct task_state *st = state_of(bpf_get_current_task_btf(), true);

	return st ? user_stack_of(st, max_depth, false) : 0;
}

/*
 * During an exec the old stack is unmapped before the registers change: no stack, not a part of it.
 */
static __always_inline bool is_stack_unmapped(struct walk *w, struct task_struct *t)
{
	__u64 word;

	if (w->end == WALK_ROOT || w->nr_frames > 1 || !BPF_CORE_READ_BITFIELD(t, in_execve))
		return false;
	return bpf_probe_read_user(&word, sizeof(word), (void *)w->sp_0) != 0;
}

/*
 * Returns the reference of the user stack for a CPU sample. For a hit in user mode (@is_user) the
 * leaf is not part of it: the stack consists of the callers, and the sample carries the leaf.
 */
__noinline __u64 user_stack_of_sample(__u32 is_user, __u32 max_depth)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = state_of(t, true);
	struct walker k = {.w = walk_get()};
	struct walk *w = k.w;
	__u64 ref = 0;
	__u64 caller_sp = 0;

	if (!w)
		return 0;
	if (st && walk_init(&k, t, st, max_depth, is_user)) {
		__u32 flags = is_user      ? KSTACK_CALLERS | KSTACK_NO_LEAF
			      : w->is_call ? KSTACK_CALLERS
					   : 0;
		w->hash = hash_seed(w, flags & KSTACK_CALLERS);
		bool goes_on = walk_leaf(&k);
		caller_sp = NO_CALLER_SP;
		if (is_user) {
			w->nr_frames = 0;
			w->hash = hash_seed(w, flags & KSTACK_CALLERS);
		}
		if (goes_on) {
			caller_sp = w->sp;
			walk_callers_reusing(&k, t);
		}
		if (flags == KSTACK_CALLERS)
			caller_sp = 0;
		walk_count(w);
		if (!is_stack_unmapped(w, t))
			ref = stack_ref(w, flags, COPY_BYTES_SAMPLE);
	}
	walk_put(w);
	if (!st)
		return ref;
	return stack_with_python(t, st, ref, caller_sp, is_user ? PYSTACK_NO_LEAF : 0);
}

/* bpf_loop callback: adds frame @i to the hash. */
static long kernel_hash(__u32 i, struct walker *k)
{
	struct walk *w = k->w;

	if (i >= w->nr_frames)
		return 1;
	w->hash = hash_mix(w->hash, w->frames[i & (WALK_FRAMES_MAX - 1)]);
	return 0;
}

/* Returns the reference of the kernel stack in w->frames. Sends it if it is new; 0: not sent. */
__noinline __u64 kernel_stack_ref(struct walk *w, long nr_bytes)
{
	struct walker k = {.w = w};

	if (!w)
		return 0;
	w->nr_frames = (__u32)nr_bytes / 8;
	w->hash = 0xbb67ae8584caa73bull;
	bpf_loop(KERNEL_FRAMES_MAX, kernel_hash, &k, 0);
	__u64 ref = w->hash | 1;
	if (reported_has(ref))
		return ref;
	return stack_emit(w, ref, KSTACK_KERNEL, WALK_ROOT) ? ref : 0;
}

/* Returns the reference of the kernel stack without its innermost @skip frames; 0: none. */
static __always_inline __u64 kernel_stack(void *ctx, __u32 skip)
{
	struct walk *w = walk_get();
	__u64 ref = 0;

	if (!w)
		return 0;
	long nr_bytes =
		bpf_get_stack(ctx, w->frames, KERNEL_FRAMES_MAX * 8, skip & BPF_F_SKIP_FIELD_MASK);
	if (nr_bytes > 0)
		ref = kernel_stack_ref(w, nr_bytes);
	walk_put(w);
	return ref;
}

#endif
