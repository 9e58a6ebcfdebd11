/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of a thread's former walk (stack_memo.bpf.h): checked with one read of the stack,
 * which the walk goes on with when it does not hold.
 */
#ifndef ASSAY_BPF_STACK_REMEMBER_H
#define ASSAY_BPF_STACK_REMEMBER_H

/* Of the words at the memo's offsets, in the window, which starts at sp_0. */
static __always_inline __u64 memo_hash(struct walk *w, struct walk_memo *m)
{
	/* Read anew: what the verifier knows of it by a loop before would multiply its ways. */
	__u32 nr = READ_ONCE(m->nr);
	__u64 h = nr;

	for (__u32 i = 0; i < WALK_MEMO_WORDS && i < nr; i++)
		h = hash_mix(h, w->window[m->offs[i] & (WALK_WINDOW_BYTES / 8 - 1)]);
	return h;
}

__noinline bool memo_holds(struct walk *w, struct walk_memo *m)
{
	if (!w || !m)
		return false;
	__u32 nr_bytes = m->span * 8u;
	barrier_var(nr_bytes);
	if (!m->ref || m->ip != w->pc_0 || m->sp != w->sp_0 || m->fp != w->fp_0 ||
	    m->generation != w->generation || m->is_call != w->is_call_0)
		return false;
	if (nr_bytes == 0 || nr_bytes > WALK_WINDOW_BYTES ||
	    bpf_probe_read_user(w->window, nr_bytes, (void *)w->sp_0))
		return false;
	w->window_start = w->sp_0;
	w->window_bytes = nr_bytes;
	return memo_hash(w, m) == m->words;
}

static __always_inline __u32 memo_idx(const struct walk *w, __u32 slot)
{
	if (slot != WALK_WAIT)
		return slot < WALK_NR ? slot : WALK_EVENT;
	__u32 way = hash_mix(w->pc_0, w->sp_0) >> 63;
	return way ? WALK_NR - 1 + way : WALK_WAIT;
}

/* After a walk that found the thread's start. */
__noinline int memo_keep(struct walk *w, struct walk_memo *m, __u64 ref)
{
	if (!w || !m)
		return 0;
	__u32 nr = w->nr_words;

	if (w->end != WALK_ROOT || w->is_odd || nr > WALK_MEMO_WORDS || w->sp_0 & 7)
		return 0;
	m->span = 0;
	for (__u32 i = 0; i < WALK_MEMO_WORDS && i < nr; i++) {
		__u64 off = w->offs[i];
		if (off >= WALK_MEMO_SPAN)
			return 0;
		m->offs[i] = off;
		if (off >= READ_ONCE(m->span))
			WRITE_ONCE(m->span, off + 1);
	}
	__u32 nr_bytes = m->span * 8u;
	barrier_var(nr_bytes);
	if (nr_bytes > WALK_WINDOW_BYTES ||
	    bpf_probe_read_user(w->window, nr_bytes, (void *)w->sp_0))
		return 0;
	m->ip = w->pc_0;
	m->sp = w->sp_0;
	m->fp = w->fp_0;
	m->generation = w->generation;
	m->is_call = w->is_call_0;
	m->nr = nr;
	m->words = memo_hash(w, m);
	m->ref = ref;
	return 0;
}

#endif
