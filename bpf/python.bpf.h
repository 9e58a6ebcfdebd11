/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Python frames of a thread (wire/kernel_python.h). A native stack of a process with an interpreter
 * gets a second reference, which stands for the native frames and the Python frames together.
 *
 * The thread state is found by the thread's TID in the interpreters' lists and stored with the
 * thread; it is used again if it is still linked. A process without an interpreter costs the
 * comparison in stack_with_python.
 */
#ifndef ASSAY_BPF_PYTHON_H
#define ASSAY_BPF_PYTHON_H

/* A thread without a thread state is not searched again for so long. */
#define PYTHON_NONE_NS 1000000u
/* How deep programs that read Python frames can interrupt each other. */
#define PYTHON_NESTING 3

struct python_walk {
	__u32 is_in_use;
	__u32 nr_frames;
	__u64 frame;
	__u64 hash;
	__u64 seed;     /* of keys: differs between processes */
	__u64 anchor;   /* python_core.h */
	__u64 map_base; /* kmap.base of the interpreter's binary */
	__u32 end;      /* enum python_end */
	__u32 python;   /* index into ktables_head.pythons */
	bool is_known;  /* user space has all code objects */
	/* Search for the thread state. */
	__u32 tid;
	__u32 nr_found;
	__u64 interp;
	__u64 thread;
	__u64 found;
	__u64 found_frame; /* its python_layout.thread_frame */
	__u64 raw[32];
	/* Head of a RECORD_PYSTACK; frames must follow it directly. */
	__u64 record[sizeof(struct kernel_pystack) / 8];
	struct python_frame frames[PYTHON_FRAMES_MAX];
	__u64 code[sizeof(struct kernel_pycode) / 8]; /* its lines must follow it directly */
	__u8 lines[PYTHON_LINES_BYTES];
};

DEFINE_MAP(PERCPU_ARRAY, python_walks, PYTHON_NESTING, __u32, struct python_walk);

struct pythoner {
	struct python_walk *w;
	struct python_layout *l;
};

static void python_add_code(struct python_walk *w, const struct python_layout *l, __u64 code,
			    __u64 key);

#define PYTHON_READ(w, to, nr_bytes, addr) bpf_probe_read_user(to, nr_bytes, (void *)(addr))
#include "python_core.h"

/* ---- code objects -------------------------------------------------------------------------- */

/* Sends part @i of the line table, or the name alone if it has none; false: no room. */
static __always_inline bool python_send_part(struct python_walk *w, __u64 lines, __u32 i)
{
	struct kernel_pycode *r = (void *)w->code;
	__u32 at = i * PYTHON_LINES_BYTES;
	__u32 nr = r->nr_lines - at;

	if (nr > PYTHON_LINES_BYTES)
		nr = PYTHON_LINES_BYTES;
	if (r->nr_lines && bpf_probe_read_user(w->lines, nr, (void *)(lines + at)))
		r->nr_lines = nr = 0;
	r->lines_at = at;
	r->head.nr_bytes = sizeof(*r) + nr;
	if (!bpf_ringbuf_output(&ring, r, sizeof(*r) + nr, BPF_RB_NO_WAKEUP)) {
		ring_added();
		return true;
	}
	count_loss(KLOSS_RING_FULL);
	return false;
}

/* Sends the code object in w->raw. Not static, so that it is verified once. */
__noinline int python_send_code(struct python_walk *w, __u64 key)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct ktables_head *h = single_elem(&tables);

	if (!w || !h)
		return 0;
	struct python_layout *l = &h->pythons[w->python & (KTABLES_NR_PYTHONS - 1)];
	struct kernel_pycode *r = (void *)w->code;

	__u64 lines = python_read_code(w, l, key, r);
	record_head(&r->head, RECORD_PYCODE, 0, t);
	for (__u32 i = 0; i < PYTHON_LINES_PARTS; i++) {
		if (i && i * PYTHON_LINES_BYTES >= r->nr_lines)
			break;
		if (!python_send_part(w, lines, i))
			return 0;
	}
	reported_add(key);
	return 1;
}

static __always_inline void python_add_code(struct python_walk *w, const struct python_layout *l,
					    __u64 code, __u64 key)
{
	(void)code;
	(void)l;
	if (UNLIKELY(!reported_has(key)) && !python_send_code(w, key))
		w->is_known = false;
}

/* ---- thread states ------------------------------------------------------------------------- */

/* bpf_loop callback: looks at the next interpreter or thread state. */
static long python_search(__u32 i, struct pythoner *k)
{
	return !python_search_step(k->w, k->l, !i);
}

/* Returns the state of the thread, 0: it has none. */
__noinline __u64 python_thread_of(struct python_walk *w, struct task_state *st)
{
	struct ktables_head *h = single_elem(&tables);
	struct pythoner k = {.w = w};

	if (!w || !h || !st)
		return 0;
	k.l = &h->pythons[w->python & (KTABLES_NR_PYTHONS - 1)];
	struct python_state *p = &st->python;
	if (!p->tid)
		p->tid = ns_tid_of(bpf_get_current_task_btf());
	w->tid = p->tid;
	w->thread = w->found = 0;
	w->nr_found = 0;
	w->interp = python_pointer(w, w->map_base + k.l->runtime + k.l->interp_head);
	if (!w->interp)
		return 0;
	bool is_only = !python_pointer(w, w->interp + k.l->interp_next);
	if (is_only) {
		__u64 head = python_pointer(w, w->interp + k.l->thread_head);
		if (p->thread && python_is_thread(w, k.l, p->thread, head, p->tid))
			return p->thread;
		if (bpf_ktime_get_ns() - p->none_ns < PYTHON_NONE_NS)
			return 0;
	}
	bpf_loop(PYTHON_THREADS_MAX, python_search, &k, 0);
	p->thread = w->found;
	if (!w->found)
		p->none_ns = bpf_ktime_get_ns();
	/* Without cframes it is not known which of several states is the innermost. */
	return w->nr_found > 1 && k.l->cframe_frame == PYTHON_NO_FIELD ? 0 : w->found;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static long python_next(__u32 i, struct pythoner *k)
{
	return !python_step(k->w, k->l);
}

/* Reads the frames of the thread; false: it runs no Python code. */
__noinline bool python_walk_frames(struct python_walk *w, struct task_state *st)
{
	struct ktables_head *h = single_elem(&tables);
	struct pythoner k = {.w = w};

	if (!w || !h || !st)
		return false;
	k.l = &h->pythons[w->python & (KTABLES_NR_PYTHONS - 1)];
	__u64 thread = python_thread_of(w, st);
	if (!thread || !python_first_frame(w, k.l, thread))
		return false;
	w->nr_frames = 0;
	w->end = PYTHON_WHOLE;
	w->is_known = true;
	bpf_loop(2 * PYTHON_FRAMES_MAX, python_next, &k, 0);
	return w->nr_frames > 0;
}

static __always_inline void python_count(const struct python_walk *w)
{
	struct kernel_counts *counts = single_elem(&engine_counts);

	if (!counts)
		return;
	counts->nr_pythons++;
	counts->nr_python_frames += w->nr_frames;
	counts->nr_pythons_partly += w->end != PYTHON_WHOLE;
}

/* Sends the frames of a walk if they are new; returns their reference, or @native_ref: not sent. */
static __always_inline __u64 python_report(struct python_walk *w, struct task_struct *t,
					   __u64 native_ref, __u32 flags)
{
	struct kernel_pystack *r = (void *)w->record;
	__u64 ref = hash_mix(w->hash, w->end << 8 | flags) | 1;
	__u32 nr = w->nr_frames;

	if (reported_has(ref))
		return ref;
	if (!w->is_known)
		return native_ref;
	if (nr > PYTHON_FRAMES_MAX)
		nr = PYTHON_FRAMES_MAX;
	__u32 nr_bytes = sizeof(*r) + nr * sizeof(struct python_frame);
	record_head(&r->head, RECORD_PYSTACK, nr_bytes, t);
	r->head.flags = flags;
	r->ref = ref;
	r->native_ref = native_ref;
	r->nr_frames = nr;
	r->end = w->end;
	if (bpf_ringbuf_output(&ring, r, nr_bytes, BPF_RB_NO_WAKEUP)) {
		count_loss(KLOSS_RING_FULL);
		return native_ref;
	}
	ring_added();
	reported_add(ref);
	return ref;
}

/*
 * Returns the reference of the native stack and the thread's Python frames. @map_1: of kspace.python.
 * @caller_sp: as in stack_with_python.
 */
__noinline __u64 python_stack(struct task_state *st, __u64 native_ref, __u32 map_1, __u64 caller_sp,
			      __u32 flags)
{
	struct ktables_head *h = single_elem(&tables);
	struct python_walk *w = NULL;

	if (!h || !st)
		return native_ref;
	for (__u32 i = 0; i < PYTHON_NESTING; i++) {
		__u32 key = i;
		w = bpf_map_lookup_elem(&python_walks, &key);
		if (w && !__sync_lock_test_and_set(&w->is_in_use, 1))
			break;
		w = NULL;
	}
	if (!w)
		return native_ref;
	struct kmap *m = &h->maps[(map_1 - 1) & (KTABLES_NR_MAPS - 1)];
	w->map_base = m->base;
	w->python = m->python_1 - 1;
	w->seed = (__u64)bpf_get_current_pid_tgid() >> 32;
	w->hash = python_mix(native_ref, w->seed);
	__u64 ref = native_ref;
	if (m->python_1 && python_walk_frames(w, st)) {
		python_count(w);
		if (w->anchor && w->anchor < caller_sp)
			flags |= PYSTACK_IN_LEAF;
		ref = python_report(w, bpf_get_current_task_btf(), native_ref, flags);
	}
	WRITE_ONCE(w->is_in_use, 0);
	return ref;
}

/*
 * Adds the Python frames to the native stack @ref of the current thread, if its process has any.
 * @caller_sp: the stack pointer of the leaf's caller; 0: the leaf is a system call; NO_CALLER_SP: not
 * known, so that it would not be known either which native frame the first Python frames belong to.
 */
#define NO_CALLER_SP (~0ull)
static __always_inline __u64 stack_with_python(struct task_struct *t, struct task_state *st,
					       __u64 ref, __u64 caller_sp, __u32 flags)
{
	struct ktables_head *h = single_elem(&tables);
	struct kspace *space = h && ref && caller_sp != NO_CALLER_SP ? space_of(h, t, st) : NULL;

	if (!space)
		return ref;
	__u64 python = READ_ONCE(space->python);
	if (LIKELY(!python) || python >> 32 != READ_ONCE(space->now) >> 32)
		return ref;
	return python_stack(st, ref, (__u32)python, caller_sp, flags);
}

#endif
