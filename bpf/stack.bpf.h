/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks by reference. The reference is a hash of what the stack is: the generation of the
 * process's mappings, the addresses, and whether the first of them is a return address. Each is
 * told once through the ring; `told` remembers which were, and forgets the oldest of a set.
 */
#ifndef ASSAY_BPF_STACK_H
#define ASSAY_BPF_STACK_H

#include "stack_walk.bpf.h"

#include "stack_copy.bpf.h"
#include "stack_trail.bpf.h"

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
	struct reported *all = only_of(&reported);

	return all ? &all->refs[ref >> 20 & (REPORTED_NR - REPORTED_WAYS)] : NULL;
}

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

static __always_inline struct walk *walk_take(void)
{
	for (__u32 i = 0; i < WALK_NESTING; i++) {
		__u32 key = i;
		struct walk *w = bpf_map_lookup_elem(&walks, &key);
		if (w && !__sync_lock_test_and_set(&w->is_busy, 1))
			return w;
	}
	count_loss(KLOSS_SCRATCH);
	return NULL;
}

static __always_inline void walk_give_back(struct walk *w)
{
	WRITE_ONCE(w->is_busy, 0);
}

/* Tells the frames of a walk (or of the kernel); false: no room in the ring. */
__noinline bool stack_emit(struct walk *w, __u64 ref, __u32 flags, __u32 end)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (!w)
		return false;
	__u32 nr = w->nr_frames;
	if (nr > WALK_FRAMES_MAX - 1)
		nr = WALK_FRAMES_MAX - 1;
	__u32 nr_bytes = sizeof(w->record) + nr * 8;
	struct kernel_stack *r = (void *)w->record;
	record_head(&r->head, RECORD_STACK, nr_bytes, t);
	r->head.flags = flags;
	r->ref = ref;
	r->nr_frames = nr;
	r->end = end;
	if (bpf_ringbuf_output(&ring, w->record, nr_bytes, BPF_RB_NO_WAKEUP)) {
		count_loss(KLOSS_RING_FULL);
		return false;
	}
	count_done(nr_stacks);
	reported_add(ref);
	return true;
}

/* Whether user space could find more than was found here. */
static __always_inline bool stack_is_unfinished(__u32 end)
{
	return end == WALK_NO_MAP || end == WALK_NO_RULE || end == WALK_NO_FILE ||
	       end == WALK_JIT || end == WALK_FULL;
}

/* An unfinished stack as registers and bytes; 0: it cannot be told so. */
__noinline __u64 stack_refer_copy(struct walk *w, __u32 flags, __u32 copy_max)
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

/* The reference of what was walked, told if it was not; 0: it could not be told. */
__noinline __u64 stack_refer(struct walk *w, __u32 flags, __u32 copy_max)
{
	if (!w)
		return 0;
	__u32 end = w->end;
	__u64 ref = hash_mix(w->hash, end) | 1;

	if (UNLIKELY(stack_is_unfinished(end))) {
		__u64 copied = stack_refer_copy(w, flags, copy_max);
		if (copied)
			return copied;
	}
	if (!w->nr_frames)
		return 0;
	if (reported_has(ref))
		return ref;
	return stack_emit(w, ref, flags & ~KSTACK_NO_LEAF, end) ? ref : 0;
}

static __always_inline void walk_count(struct walk *w)
{
	struct kernel_counts *counts = only_of(&engine_counts);

	if (!counts)
		return;
	counts->nr_walks++;
	counts->nr_frames += w->nr_frames;
	counts->nr_rule_misses += w->nr_rule_misses;
	counts->nr_map_searches += w->nr_map_searches;
	counts->nr_ends[w->end & 15]++;
}

/* False: it has no user stack that can be followed. */
static __always_inline bool walk_init(struct walker *k, struct task_struct *t,
				      struct task_state *st, __u32 max_depth, bool is_exact)
{
	struct walk *w = k->w;
	struct pt_regs___kernel *r = regs_of(t);

	if (t->flags & (PF_KTHREAD | PF_EXITING) || !REGS_IS_64(r))
		return false;
	k->tables = only_of(&tables);
	k->rules = only_of(&rule_cache);
	if (!k->tables || !k->rules)
		return false;
	struct kspace *space = space_of(k->tables, t, st);
	if (!space)
		return false;
	__u64 now = READ_ONCE(space->now);
	w->generation = now >> 32;
	w->nr_maps = now >> 16 & 0xffff;
	w->first_map = now & 0xffff;
	w->pc = w->pc_0 = REGS_IP(r);
	w->sp = w->sp_0 = REGS_SP(r);
	w->fp = w->fp_0 = REGS_FP(r);
	w->is_call = w->is_call_0 = !is_exact && REGS_IS_SYSCALL(r);
	w->max_frames = max_depth < WALK_FRAMES_MAX ? max_depth : WALK_FRAMES_MAX - 1;
	w->map_bytes = 0;
	walk_forget_maps(w);
	w->window_bytes = 0;
	w->nr_frames = w->nr_words = w->nr_rule_misses = w->nr_map_searches = 0;
	w->end = WALK_DEPTH;
	w->is_chained = w->has_regs = w->is_odd = false;
	return true;
}

static __always_inline __u64 hash_seed(struct walk *w, __u32 flags)
{
	return hash_mix((__u64)w->generation << 8 | flags, 0x6a09e667f3bcc909ull);
}

#include "stack_remember.bpf.h"

static __always_inline __u64 user_stack_by(struct walker *k, struct walk_memo *m)
{
	struct walk *w = k->w;

	if (memo_holds(w, m)) {
		count_done(nr_memo_hits);
		return m->ref;
	}
	__u32 flags = w->is_call ? KSTACK_CALLERS : 0;
	w->hash = hash_seed(w, flags);
	if (walk_leaf(k))
		walk_callers(k);
	walk_count(w);
	m->ref = 0;
	__u64 ref = stack_refer(w, flags, COPY_BYTES_WAIT);
	if (ref)
		memo_keep(w, m, ref);
	return ref;
}

__noinline __u64 user_stack(__u32 slot, __u32 max_depth)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = state_of(t, true);
	struct walker k = {.w = walk_take()};
	__u64 ref = 0;

	if (!k.w)
		return 0;
	if (st && walk_init(&k, t, st, max_depth, false))
		ref = user_stack_by(&k, &st->memos[memo_idx(k.w, slot)]);
	walk_give_back(k.w);
	return ref;
}

/* In an exec the old stack goes before the registers do: there is none, rather than a part. */
static __always_inline bool is_stack_gone(struct walk *w, struct task_struct *t)
{
	__u64 word;

	if (w->end == WALK_ROOT || w->nr_frames > 1 || !BPF_CORE_READ_BITFIELD(t, in_execve))
		return false;
	return bpf_probe_read_user(&word, sizeof(word), (void *)w->sp_0) != 0;
}

/*
 * For a CPU sample: the user stack; where it hit in user mode (@is_user), that of the callers.
 */
__noinline __u64 user_stack_of_sample(__u32 is_user, __u32 max_depth)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = state_of(t, true);
	struct walker k = {.w = walk_take()};
	struct walk *w = k.w;
	__u64 ref = 0;

	if (!w)
		return 0;
	if (st && walk_init(&k, t, st, max_depth, is_user)) {
		__u32 flags = is_user      ? KSTACK_CALLERS | KSTACK_NO_LEAF
			      : w->is_call ? KSTACK_CALLERS
					   : 0;
		w->hash = hash_seed(w, flags & KSTACK_CALLERS);
		bool goes_on = walk_leaf(&k);
		if (is_user) {
			w->nr_frames = 0;
			w->hash = hash_seed(w, flags & KSTACK_CALLERS);
		}
		if (goes_on)
			walk_trail(&k, t);
		walk_count(w);
		if (!is_stack_gone(w, t))
			ref = stack_refer(w, flags, COPY_BYTES_SAMPLE);
	}
	walk_give_back(w);
	return ref;
}

static long kernel_hash(__u32 i, struct walker *k)
{
	struct walk *w = k->w;

	if (i >= w->nr_frames)
		return 1;
	w->hash = hash_mix(w->hash, w->frames[i & (WALK_FRAMES_MAX - 1)]);
	return 0;
}

__noinline __u64 kernel_stack_by(struct walk *w, long nr_bytes)
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

static __always_inline __u64 kernel_stack(void *ctx, __u32 skip)
{
	struct walk *w = walk_take();
	__u64 ref = 0;

	if (!w)
		return 0;
	long nr_bytes =
		bpf_get_stack(ctx, w->frames, KERNEL_FRAMES_MAX * 8, skip & BPF_F_SKIP_FIELD_MASK);
	if (nr_bytes > 0)
		ref = kernel_stack_by(w, nr_bytes);
	walk_give_back(w);
	return ref;
}

#endif
