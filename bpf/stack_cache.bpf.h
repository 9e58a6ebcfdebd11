/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions of the per-thread stack cache (stack_cache_state.bpf.h). To check an entry, one call
 * reads the stack words into the walk's window. If the entry is not valid, the walk uses this
 * window.
 */
#ifndef ASSAY_BPF_STACK_CACHE_H
#define ASSAY_BPF_STACK_CACHE_H

/* Hashes the words at the entry's offsets. They are in the walk's window, which starts at sp_0. */
static __always_inline __u64 stack_cache_hash(struct walk *w, struct stack_cache_entry *m)
{
	/*
	 * Read again: with a bound that the verifier knows from an earlier loop, the number of
	 * states that it explores would multiply.
	 */
	__u32 nr = READ_ONCE(m->nr);
	__u64 h = nr;

	for (__u32 i = 0; i < STACK_CACHE_WORDS && i < nr; i++)
		h = hash_mix(h, w->window[m->offs[i] & (WALK_WINDOW_BYTES / 8 - 1)]);
	return h;
}

/* Whether the thread's stack is still the one of the entry. */
__noinline bool stack_cache_is_valid(struct walk *w, struct stack_cache_entry *m)
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
	return stack_cache_hash(w, m) == m->words_hash;
}

/*
 * Index of the entry to use for a slot; the two entries for waits are chosen by a hash of pc and
 * sp.
 */
static __always_inline __u32 stack_cache_idx(const struct walk *w, __u32 slot)
{
	if (slot != STACK_CACHE_WAIT)
		return slot < STACK_CACHE_NR_SLOTS ? slot : STACK_CACHE_EVENT;
	__u32 way = hash_mix(w->pc_0, w->sp_0) >> 63;
	return way ? STACK_CACHE_NR_SLOTS - 1 + way : STACK_CACHE_WAIT;
}

/*
 * Stores the walk and its stack reference @ref in @m, which the caller has emptied (ref 0). @m
 * stays empty if the walk did not reach the thread's start, does not fit into an entry, or if its
 * stack words cannot be read again. Always returns 0: the verifier requires that a function that is
 * not static returns a number.
 */
__noinline int stack_cache_store(struct walk *w, struct stack_cache_entry *m, __u64 ref)
{
	if (!w || !m)
		return 0;
	__u32 nr = w->nr_words;

	if (w->end != WALK_ROOT || w->is_uncacheable || nr > STACK_CACHE_WORDS || w->sp_0 & 7)
		return 0;
	m->span = 0;
	for (__u32 i = 0; i < STACK_CACHE_WORDS && i < nr; i++) {
		__u64 off = w->offs[i];
		if (off >= STACK_CACHE_SPAN)
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
	m->words_hash = stack_cache_hash(w, m);
	m->ref = ref;
	return 0;
}

#endif
