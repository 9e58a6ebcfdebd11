/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cache of walks of user stacks, one for each CPU, for all threads and events.
 *
 * The result of a walk depends only on the registers at its start, the process's mappings, and the
 * stack words that it read. An entry stores these with the reference of the stack that was found.
 * If all of them are unchanged, the stack is not walked again. Threads of one program wait in the
 * same places, and forked processes at the same stack addresses, so entries are shared by all.
 *
 * Of the stack only the words are compared that the walk read. They are copied in segments: words
 * close to each other are in one, since each copy is a call.
 *
 * A program can interrupt another one that writes an entry. So an entry has a check, a hash of its
 * key, its reference and the words, which no mixture of two entries has.
 */
#ifndef ASSAY_BPF_STACK_MEMO_H
#define ASSAY_BPF_STACK_MEMO_H

#define STACK_MEMO_BITS    11
#define STACK_MEMO_WORDS   40  /* a walk that read more words is not stored */
#define STACK_MEMO_SEGS    8   /* nor one whose words are in more segments */
#define STACK_MEMO_COPIED  512 /* nor one whose segments have more words together */
#define STACK_MEMO_SEG_MAX 256 /* words of a segment, a power of two */
/* At most so many words between two in one segment: copying them costs less than another call. */
#define STACK_MEMO_GAP 48

/* What a walk starts with. */
struct stack_start {
	__u64 ip;
	__u64 sp;
	__u64 fp;
	__u32 generation; /* of the process's mappings */
	__u32 is_call;    /* ip is a return address */
};

struct stack_memo {
	struct stack_start start;
	__u64 ref; /* reference of the stack; 0: the entry is empty */
	__u64 check;
	__u8 nr_words;
	__u8 nr_segs;
	__u8 pad[6];
	/* Segments: distance from sp, and length, in words. */
	__u16 seg_off[STACK_MEMO_SEGS];
	__u16 seg_nr[STACK_MEMO_SEGS];
	__u16 at[STACK_MEMO_WORDS]; /* of the words that the walk read: where in the copy */
};

DEFINE_MAP(PERCPU_ARRAY, stack_memos, 1 << STACK_MEMO_BITS, __u32, struct stack_memo);

/* Copied stack words. */
struct stack_copied {
	__u64 words[STACK_MEMO_COPIED + STACK_MEMO_SEG_MAX];
};
DEFINE_MAP(PERCPU_ARRAY, stack_copied, 1, __u32, struct stack_copied);

static __always_inline struct stack_memo *stack_memo_of(const struct stack_start *s)
{
	__u64 hash = (s->ip ^ s->fp << 20) * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ s->sp ^ (__u64)s->generation << 48) * 0xff51afd7ed558ccdull;
	__u32 idx = hash >> (64 - STACK_MEMO_BITS);

	return bpf_map_lookup_elem(&stack_memos, &idx);
}

/* Copies the segments of an entry and computes its check; 0: not readable. */
static __always_inline __u64 stack_memo_check(struct stack_memo *m, __u64 sp, __u64 ref)
{
	struct stack_copied *c = single_elem(&stack_copied);
	__u32 nr_segs = READ_ONCE(m->nr_segs);
	__u32 nr_words = READ_ONCE(m->nr_words);
	__u32 at = 0;

	if (!c)
		return 0;
	for (__u32 i = 0; i < STACK_MEMO_SEGS && i < nr_segs; i++) {
		__u32 nr = READ_ONCE(m->seg_nr[i]) & (STACK_MEMO_SEG_MAX - 1);
		at &= STACK_MEMO_COPIED - 1;
		if (bpf_probe_read_user(&c->words[at], nr * 8,
					(void *)(sp + (__u64)m->seg_off[i] * 8)))
			return 0;
		at += nr;
	}
	__u64 h = m->start.ip * 0x9e3779b97f4a7c15ull ^ m->start.sp * 0xff51afd7ed558ccdull ^
		  m->start.fp * 0xc4ceb9fe1a85ec53ull ^ ref;
	h = hash_mix(h, (__u64)m->start.generation << 8 | nr_words);
	/* The products do not depend on each other, so they are computed in parallel. */
	__u64 sum = 0;
	for (__u32 i = 0; i < STACK_MEMO_WORDS && i < nr_words; i++) {
		__u64 word = c->words[m->at[i] & (STACK_MEMO_COPIED - 1)];
		__u64 product = (word ^ i * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
		sum += product ^ product >> 29;
	}
	return hash_mix(h, sum) | 1;
}

/* The reference of the stack if the entry is that of this start and its words are unchanged; or 0. */
__noinline __u64 stack_memo_get(struct stack_memo *m, const struct stack_start *s)
{
	if (!m || !s)
		return 0;
	__u64 ref = READ_ONCE(m->ref);
	if (!ref || m->start.ip != s->ip || m->start.sp != s->sp || m->start.fp != s->fp ||
	    m->start.generation != s->generation || m->start.is_call != s->is_call)
		return 0;
	return stack_memo_check(m, s->sp, ref) == m->check ? ref : 0;
}

/* Adds the word at distance @off from sp to the segments; false: no room. */
static __always_inline bool stack_memo_add(struct stack_memo *m, __u32 i, __u64 off,
					   __u32 *nr_copied)
{
	__u32 seg = READ_ONCE(m->nr_segs);
	__u64 in_seg = 0;

	if (off > 0xffff)
		return false;
	if (seg) {
		__u32 last = (seg - 1) & 15;
		if (last >= STACK_MEMO_SEGS)
			return false;
		in_seg = off - m->seg_off[last];
		if (off >= m->seg_off[last] && in_seg < STACK_MEMO_SEG_MAX - 1 &&
		    in_seg < m->seg_nr[last] + STACK_MEMO_GAP) {
			__u32 nr = m->seg_nr[last];
			m->at[i] = *nr_copied - nr + in_seg;
			if (in_seg >= nr) {
				m->seg_nr[last] = in_seg + 1;
				*nr_copied += in_seg + 1 - nr;
			}
			return *nr_copied < STACK_MEMO_COPIED;
		}
	}
	if (seg >= STACK_MEMO_SEGS)
		return false;
	m->seg_off[seg] = off;
	m->seg_nr[seg] = 1;
	m->at[i] = *nr_copied;
	*nr_copied += 1;
	WRITE_ONCE(m->nr_segs, seg + 1);
	return *nr_copied < STACK_MEMO_COPIED;
}

/*
 * Stores the walk and its stack reference @ref in @m. @m stays empty if the walk did not reach the
 * thread's start, does not fit into an entry, or if its stack words cannot be read again. Always
 * returns 0: the verifier requires that a function that is not static returns a number.
 */
__noinline int stack_memo_store(struct walk *w, struct stack_memo *m, __u64 ref)
{
	if (!w || !m)
		return 0;
	__u32 nr = w->nr_words;
	__u32 nr_copied = 0;

	WRITE_ONCE(m->ref, 0);
	if (w->end != WALK_ROOT || w->is_uncacheable || nr > STACK_MEMO_WORDS || w->sp_0 & 7)
		return 0;
	WRITE_ONCE(m->nr_segs, 0);
	for (__u32 i = 0; i < STACK_MEMO_WORDS && i < nr; i++)
		if (!stack_memo_add(m, i, w->offs[i], &nr_copied))
			return 0;
	m->start.ip = w->pc_0;
	m->start.sp = w->sp_0;
	m->start.fp = w->fp_0;
	m->start.generation = w->generation;
	m->start.is_call = w->is_call_0;
	m->nr_words = nr;
	__u64 check = stack_memo_check(m, w->sp_0, ref);
	if (!check)
		return 0;
	m->check = check;
	WRITE_ONCE(m->ref, ref);
	return 0;
}

#endif
