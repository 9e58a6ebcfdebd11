/*
 * A per-thread cache of recent stacks: finds a stack's id without walking it. A walk reads only a
 * few words of the stack: return addresses, and the saved frame pointers that it uses. If the two
 * innermost frames are the same and all those words are unchanged, the walk would give the same
 * result, so the stack has the same id.
 *
 * Entries are in heap_thread_state.stackcache, in 64-bit words:
 *
 *	[0]   key (stackcache_key)
 *	[1]   stack pointer of the leaf (sp)
 *	[2]   stack id | number of stack words << 32
 *	[3]   generation of the mappings | reach << 32
 *	[4..] stack words: value (48 bits) | position << 48
 *
 * Positions count 8-byte words from sp - 16, where the leaf's caller saved its frame pointer. reach
 * is the largest position + 1. stackcache_at is the index, a set-associative table: its elements
 * are an entry's offset in words (low 16 bits) and a tag, which is part of the key (high 16 bits).
 * Entries are written one after another and overwrite the oldest. Word [0] of the space is cleared
 * before an entry is written there.
 */
#ifndef ASSAY_INJECT_HEAP_STACKCACHE_H
#define ASSAY_INJECT_HEAP_STACKCACHE_H

#include "heap_recorder.h"

/* Number of frames that are walked before the lookup. */
#define STACKCACHE_DEPTH         2
#define STACKCACHE_HEAD          4 /* words of an entry before its stack words */
#define STACKCACHE_POSITION_BITS (64 - HEAP_ADDR_BITS)

/* Key of a stack: its two innermost frames and the pc of the third. Never 0. */
static inline uint64_t stackcache_key(const struct heap_thread_state *m, uint64_t pc)
{
	uint64_t h = heap_mix(m->frames[0].sp, frame_pc(&m->frames[0]));
	return heap_mix(heap_mix(h, frame_pc(&m->frames[1])), pc) | 1;
}

/* Index in stackcache_at of the first element of the set for @key. */
static inline uint32_t stackcache_set(uint64_t key)
{
	return (uint32_t)(key >> 56) * HEAP_STACKCACHE_WAYS;
}

/* The tag of @key, in the high 16 bits. */
static inline uint32_t stackcache_tag(uint64_t key)
{
	return (uint32_t)(key >> 24) << 16;
}

/*
 * Returns whether all stack words of an entry are unchanged. @sp: stack pointer of the leaf. The
 * caller guarantees that the stack up to @hi is readable.
 */
static inline bool stackcache_matches(const uint64_t *entry, uint64_t sp, uint64_t hi)
{
	const uint64_t *base = (const uint64_t *)sp - 2;
	uint32_t nr = (uint32_t)(entry[2] >> 32);

	if (entry[3] >> 32 > (hi - (uint64_t)base) / 8)
		return false;
	for (uint32_t i = STACKCACHE_HEAD; i < STACKCACHE_HEAD + nr; i++)
		if (UNLIKELY(ONCE(base[entry[i] >> HEAP_ADDR_BITS]) != (entry[i] & HEAP_ADDR_MASK)))
			return false;
	return true;
}

/*
 * Returns the id of the stack with @key whose leaf is m->frames[0]; 0: not cached. @hi: as above.
 */
static inline uint32_t stackcache_find(const struct heap_thread_state *m, uint64_t key, uint64_t hi)
{
	const uint32_t *set = &m->stackcache_at[stackcache_set(key)];
	uint64_t sp = m->frames[0].sp;

	for (uint32_t i = 0; i < HEAP_STACKCACHE_WAYS; i++) {
		const uint64_t *entry = &m->stackcache[set[i] & 0xffff];
		if ((set[i] ^ stackcache_tag(key)) >> 16 || entry[0] != key)
			continue;
		bool is_it = entry[1] == sp && (uint32_t)entry[3] == m->generation;
		return is_it && stackcache_matches(entry, sp, hi) ? (uint32_t)entry[2] : 0;
	}
	return 0;
}

/* Adds the thread's last stack, with its leaf at index @top, to the cache. */
void stackcache_store(struct heap_thread_state *m, uint64_t key, uint32_t top, uint32_t stack_id);

#endif
