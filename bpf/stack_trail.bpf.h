/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way of a thread's last sample to its start. Three quarters of a sample's frames are those of
 * the one before (rustc); where a walk comes to a frame that it was at then, with the same pc, sp
 * and fp, it goes on by comparing the words of stack with what they were, which needs neither
 * mapping nor rule. In programs whose code is large these are what a frame costs: each is a line
 * of memory and a page that nobody has touched lately, while a trail is one piece of memory.
 *
 * Sound for the same reason as stack_memo.bpf.h: a frame's caller follows from pc, sp and fp, the
 * mappings, and one or two words of stack. Frames that need more are walked anew.
 */
#ifndef ASSAY_BPF_STACK_TRAIL_H
#define ASSAY_BPF_STACK_TRAIL_H

#define TRAIL_NO_SLOT 0x4000 /* past 15 bits: the step was not by a row of kind SP, FP or PLT */

/* The frame nearest to the thread's start is the first. */
struct walk_trail {
	__u32 generation;
	__u32 nr;
	struct trail_frame frames[TRAIL_FRAMES];
};

DEFINE_TASK_STORAGE(trails, struct walk_trail);

static __always_inline bool trail_is_at(const struct trail_frame *f, const struct walk *w)
{
	return f->sp == w->sp && f->pc == w->pc && f->fp == w->fp;
}

/* From @f, which the walk is at, to @next; false: the stack has changed. */
static __always_inline bool trail_follow(struct walk *w, const struct trail_frame *f,
					 const struct trail_frame *next)
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

static long trail_next(__u32 i, struct walker *k)
{
	struct walk *w = k->w;
	struct walk_trail *t = k->trail;
	__u32 n = w->nr_steps++;
	struct trail_frame *step = &w->steps[n & (TRAIL_FRAMES - 1)];
	__u32 at = w->trail_at;
	bool is_at = false;

	step->pc = w->pc;
	step->sp = w->sp;
	step->fp = w->fp;
	step->is_plain = 0;
	/* Some frames of the trail may have returned since. */
	if (at && t->frames[(at - 1) & (TRAIL_FRAMES - 1)].sp < w->sp)
		at--;
	if (at && t->frames[(at - 1) & (TRAIL_FRAMES - 1)].sp < w->sp)
		at--;
	if (at && t->frames[(at - 1) & (TRAIL_FRAMES - 1)].sp < w->sp)
		at--;
	w->trail_at = at;
	if (at > 1 && w->is_call && w->nr_frames < w->max_frames) {
		struct trail_frame *f = &t->frames[(at - 1) & (TRAIL_FRAMES - 1)];
		struct trail_frame *next = &t->frames[(at - 2) & (TRAIL_FRAMES - 1)];
		is_at = trail_is_at(f, w);
		if (is_at && f->is_plain && trail_follow(w, f, next)) {
			step->fp_slot = f->fp_slot;
			step->is_plain = 1;
			if (!w->met_at) {
				w->met_at = at;
				w->met_steps = n;
			}
			w->trail_at = at - 1;
			return 0;
		}
	} else if (at == 1) {
		is_at = trail_is_at(&t->frames[0], w);
	}
	if (w->met_at && !is_at)
		w->is_trail_broken = true;
	/* An interrupted frame's rule is another than that of a call at the same address. */
	bool is_call = w->is_call;
	w->fp_slot = TRAIL_NO_SLOT;
	if (walk_one(k, false) != STEP_OK)
		return 1;
	if (w->fp_slot != TRAIL_NO_SLOT && is_call) {
		step->fp_slot = w->fp_slot;
		step->is_plain = 1;
	}
	return 0;
}

static __always_inline void trail_begin(struct walk *w, const struct walk_trail *t)
{
	w->nr_steps = 0;
	w->met_at = 0;
	w->met_steps = 0;
	w->is_trail_broken = false;
	w->trail_at = t->generation == w->generation ? t->nr : 0;
	if (w->trail_at > TRAIL_FRAMES)
		w->trail_at = 0;
}

/* After a walk to the thread's start: what of the trail is other now. */
__noinline int trail_keep(struct walk *w, struct walk_trail *t)
{
	if (!w || !t)
		return 0;
	__u32 nr = w->nr_steps;
	__u32 nr_new = nr;

	if (w->end != WALK_ROOT || nr > TRAIL_FRAMES)
		return 0;
	if (w->met_at && !w->is_trail_broken && w->met_steps + w->met_at == nr)
		nr_new = w->met_steps;
	for (__u32 i = 0; i < TRAIL_FRAMES; i++) {
		if (i >= nr_new)
			break;
		t->frames[(nr - 1 - i) & (TRAIL_FRAMES - 1)] = w->steps[i];
	}
	t->nr = nr;
	t->generation = w->generation;
	return 0;
}

/* All callers of the leaf. */
static __always_inline void walk_trail(struct walker *k, struct task_struct *t)
{
	struct walk *w = k->w;

	k->trail = bpf_task_storage_get(&trails, t, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!k->trail) {
		walk_callers(k);
		return;
	}
	trail_begin(w, k->trail);
	bpf_loop(WALK_FRAMES_MAX, trail_next, k, 0);
	trail_keep(w, k->trail);
}

#endif
