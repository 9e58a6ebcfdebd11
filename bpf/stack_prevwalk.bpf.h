/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reuse of the outer frames of a thread's previous CPU sample. On average three quarters of a
 * sample's frames are those of the previous sample (measured with rustc). When the walk reaches a
 * frame with the same pc, sp and fp as in the previous sample, it continues by comparing the stack
 * words with the previous ones. This needs neither the mapping nor the unwind rule of the frame. In
 * programs with much code, looking these two up takes most of the time: each is a cache miss and
 * often a TLB miss, while the previous walk is one contiguous array.
 *
 * Correct for the same reason as stack_memo.bpf.h: a frame's caller depends only on pc, sp,
 * fp, the mappings, and one or two stack words. Frames whose rule reads other words are unwound
 * again.
 */
#ifndef ASSAY_BPF_STACK_PREVWALK_H
#define ASSAY_BPF_STACK_PREVWALK_H

/*
 * Marks that a step did not use a row of kind SP, FP or PLT. Valid values of fp_slot have 15 bits
 * with sign, so none of them equals it.
 */
#define PREV_WALK_NO_SLOT 0x4000

/* The previous walk of a thread; frames[0] is the outermost frame. */
struct prev_walk {
	__u32 generation; /* of the process's mappings */
	__u32 nr;         /* of frames */
	struct walk_step frames[PREV_WALK_STEPS];
};

DEFINE_TASK_STORAGE(prev_walks, struct prev_walk);

static __always_inline bool prev_walk_is_at(const struct walk_step *f, const struct walk *w)
{
	return f->sp == w->sp && f->pc == w->pc && f->fp == w->fp;
}

/*
 * Moves the walk from its current frame @f to the caller @next, both of the previous walk. False:
 * the stack words have changed.
 */
static __always_inline bool prev_walk_follow(struct walk *w, const struct walk_step *f,
					     const struct walk_step *next)
{
	__u64 fp = w->fp;
	__u64 sp = next->sp;
	__u64 ra;

	if (f->fp_slot != ROW_FP_SAME && !walk_read(w, sp + (__u64)((__s64)f->fp_slot * 8), &fp))
		return false;
	if (!walk_read(w, sp - 8, &ra) || ra != next->pc || fp != next->fp)
		return false;
	w->frames[w->nr_frames & (WALK_FRAMES_MAX - 1)] = w->pc;
	w->nr_frames++;
	w->hash = hash_mix(w->hash, w->pc);
	w->pc = ra;
	w->sp = sp;
	w->fp = fp;
	w->is_chained = false;
	return true;
}

/* One step of a walk: by the previous walk where possible, else by the unwind rule. */
static long walk_next_reusing(__u32 i, struct walker *k)
{
	struct walk *w = k->w;
	struct prev_walk *t = k->prev;
	__u32 n = w->nr_steps++;
	struct walk_step *step = &w->steps[n & (PREV_WALK_STEPS - 1)];
	__u32 at = w->prev_at;
	bool is_at = false;

	step->pc = w->pc;
	step->sp = w->sp;
	step->fp = w->fp;
	step->is_plain = 0;
	/*
	 * Skips frames of the previous walk whose functions have returned since then, at most three
	 * at each step.
	 */
	if (at && t->frames[(at - 1) & (PREV_WALK_STEPS - 1)].sp < w->sp)
		at--;
	if (at && t->frames[(at - 1) & (PREV_WALK_STEPS - 1)].sp < w->sp)
		at--;
	if (at && t->frames[(at - 1) & (PREV_WALK_STEPS - 1)].sp < w->sp)
		at--;
	w->prev_at = at;
	if (at > 1 && w->is_call && w->nr_frames < w->max_frames) {
		struct walk_step *f = &t->frames[(at - 1) & (PREV_WALK_STEPS - 1)];
		struct walk_step *next = &t->frames[(at - 2) & (PREV_WALK_STEPS - 1)];
		is_at = prev_walk_is_at(f, w);
		if (is_at && f->is_plain && prev_walk_follow(w, f, next)) {
			step->fp_slot = f->fp_slot;
			step->is_plain = 1;
			if (!w->reuse_at) {
				w->reuse_at = at;
				w->reuse_steps = n;
			}
			w->prev_at = at - 1;
			return 0;
		}
	} else if (at == 1) {
		is_at = prev_walk_is_at(&t->frames[0], w);
	}
	if (w->reuse_at && !is_at)
		w->has_diverged = true;
	/* An interrupted pc and a return address have different rules, even at the same address. */
	bool is_call = w->is_call;
	w->fp_slot = PREV_WALK_NO_SLOT;
	if (walk_one(k, false) != STEP_OK)
		return 1;
	if (w->fp_slot != PREV_WALK_NO_SLOT && is_call) {
		step->fp_slot = w->fp_slot;
		step->is_plain = 1;
	}
	return 0;
}

static __always_inline void prev_walk_begin(struct walk *w, const struct prev_walk *t)
{
	w->nr_steps = 0;
	w->reuse_at = 0;
	w->reuse_steps = 0;
	w->has_diverged = false;
	w->prev_at = t->generation == w->generation ? t->nr : 0;
	if (w->prev_at > PREV_WALK_STEPS)
		w->prev_at = 0;
}

/*
 * Stores a walk that reached the thread's start as the thread's previous walk. If the rest of the
 * walk was reused without a difference, only the new frames are written. Always returns 0.
 */
__noinline int prev_walk_store(struct walk *w, struct prev_walk *t)
{
	if (!w || !t)
		return 0;
	__u32 nr = w->nr_steps;
	__u32 nr_new = nr;

	if (w->end != WALK_ROOT || nr > PREV_WALK_STEPS)
		return 0;
	if (w->reuse_at && !w->has_diverged && w->reuse_steps + w->reuse_at == nr)
		nr_new = w->reuse_steps;
	for (__u32 i = 0; i < PREV_WALK_STEPS; i++) {
		if (i >= nr_new)
			break;
		t->frames[(nr - 1 - i) & (PREV_WALK_STEPS - 1)] = w->steps[i];
	}
	t->nr = nr;
	t->generation = w->generation;
	return 0;
}

/* Walks all callers of the leaf. If task storage cannot be allocated, uses unwind rules only. */
static __always_inline void walk_callers_reusing(struct walker *k, struct task_struct *t)
{
	struct walk *w = k->w;

	k->prev = bpf_task_storage_get(&prev_walks, t, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!k->prev) {
		walk_callers(k);
		return;
	}
	prev_walk_begin(w, k->prev);
	bpf_loop(WALK_DEEP_MAX, walk_next_reusing, k, 0);
	prev_walk_store(w, k->prev);
}

#endif
