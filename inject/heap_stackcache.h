/*
 * A per-thread cache of recent stacks: finds a stack's id without walking it. A walk depends on few
 * words of the stack: return addresses, and saved frame pointers that were used. If the leaf frames
 * are the same and all those words are unchanged, the walk would give the same result, so the stack
 * has the same id.
 *
 * Entries are in heap_thread_state.stackcache: key, stack pointer, stack id | nr_words << 32,
 * generation | reach << 32, then the words. A word has its 48-bit value and above it its position,
 * in 8-byte units from the caller's saved frame pointer (sp - 16). stackcache_at holds, per set of
 * keys, the offset of each entry with a tag (part of the key) above. Entries are written one after
 * another and overwrite the oldest; the first word of an overwritten entry is cleared first.
 */
#ifndef ASSAY_INJECT_HEAP_STACKCACHE_H
#define ASSAY_INJECT_HEAP_STACKCACHE_H

#include "heap_recorder.h"

/* Number of frames that are walked before the lookup. */
#define STACKCACHE_DEPTH      2
#define STACKCACHE_HEAD       4
#define STACKCACHE_PLACE_BITS (64 - HEAP_ADDR_BITS)

/* Key of a stack: its two innermost frames and the pc of the third. Never 0. */
static inline uint64_t stackcache_key(const struct heap_thread_state *m, uint64_t pc)
{
	uint64_t h = heap_mix(m->frames[0].sp, frame_pc(&m->frames[0]));
	return heap_mix(heap_mix(h, frame_pc(&m->frames[1])), pc) | 1;
}

/* Index in stackcache_at of the set for @key. */
static inline uint32_t stackcache_set(uint64_t key)
{
	return (uint32_t)(key >> 56) * HEAP_STACKCACHE_WAYS;
}

static inline uint32_t stackcache_tag(uint64_t key)
{
	return (uint32_t)(key >> 24) << 16;
}

/*
 * Returns whether all words of an entry are unchanged. @sp: of the leaf; memory from there to @hi
 * is readable.
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

/* Returns the id of the stack with @key whose leaf is m->frames[0]; 0: not cached. */
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
