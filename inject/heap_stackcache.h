/*
 * Stacks that a thread had lately, known again without a walk. What a walk read of a stack is a few
 * words: return addresses, and frame pointers that mattered. Whoever comes by with the same leaf
 * and finds the same words in the same places would walk the same way: it has the same number.
 *
 * A note lies in memo.recall: key, stack pointer, stack | words << 32, generation | reach << 32,
 * then the words, each a value of 48 bits and above it its place, in words from the saved frame
 * pointer of the call on. memo.stackcache_at has where the notes of a set of keys begin, and a part of
 * the key above it. Notes are written one behind another and over the oldest ones, of which the
 * first word is gone first.
 */
#ifndef ASSAY_INJECT_HEAP_STACKCACHE_H
#define ASSAY_INJECT_HEAP_STACKCACHE_H

#include "heap_inner.h"

/* A stack is looked for when so many of its frames were walked. */
#define STACKCACHE_DEPTH      2
#define STACKCACHE_HEAD       4
#define STACKCACHE_PLACE_BITS (64 - HEAP_ADDR_BITS)

/* Of the first frames of a stack, and the one that they lead to. Never 0. */
static inline uint64_t stackcache_key(const struct heap_memo *m, uint64_t pc)
{
	uint64_t h = heap_mix(m->frames[0].sp, frame_pc(&m->frames[0]));
	return heap_mix(heap_mix(h, frame_pc(&m->frames[1])), pc) | 1;
}

/* Where the notes of keys like that one are told. */
static inline uint32_t stackcache_set(uint64_t key)
{
	return (uint32_t)(key >> 56) * HEAP_STACKCACHE_WAYS;
}

static inline uint32_t stackcache_tag(uint64_t key)
{
	return (uint32_t)(key >> 24) << 16;
}

/* Whether the words are there; memory from @sp, of the leaf, to @hi is readable. */
static inline bool stackcache_holds(const uint64_t *note, uint64_t sp, uint64_t hi)
{
	const uint64_t *base = (const uint64_t *)sp - 2;
	uint32_t nr = (uint32_t)(note[2] >> 32);

	if (note[3] >> 32 > (hi - (uint64_t)base) / 8)
		return false;
	for (uint32_t i = STACKCACHE_HEAD; i < STACKCACHE_HEAD + nr; i++)
		if (UNLIKELY(ONCE(base[note[i] >> HEAP_ADDR_BITS]) != (note[i] & HEAP_ADDR_MASK)))
			return false;
	return true;
}

/* The number of the stack with that key, of which the leaf is the memo's first frame; 0: none. */
static inline uint32_t stackcache_find(const struct heap_memo *m, uint64_t key, uint64_t hi)
{
	const uint32_t *set = &m->stackcache_at[stackcache_set(key)];
	uint64_t sp = m->frames[0].sp;

	for (uint32_t i = 0; i < HEAP_STACKCACHE_WAYS; i++) {
		const uint64_t *note = &m->stackcache[set[i] & 0xffff];
		if ((set[i] ^ stackcache_tag(key)) >> 16 || note[0] != key)
			continue;
		bool is_it = note[1] == sp && (uint32_t)note[3] == m->generation;
		return is_it && stackcache_holds(note, sp, hi) ? (uint32_t)note[2] : 0;
	}
	return 0;
}

/* The memo's stack, of which @top is the leaf, has that number. */
void stackcache_keep(struct heap_memo *m, uint64_t key, uint32_t top, uint32_t number);

#endif
