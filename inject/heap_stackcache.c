/* Adds entries to the stack cache; see heap_stackcache.h. */
#include "heap_stackcache.h"

struct entry {
	uint64_t *words;
	uint64_t base;
	uint32_t nr;
	uint32_t max;
	uint64_t reach; /* number of words from base that the entry covers */
};

/* Adds a word; false: it cannot be encoded in an entry. */
static bool add_word(struct entry *n, uint64_t at, uint64_t value)
{
	uint64_t position = (at - n->base) / 8;

	if (n->nr >= n->max || at < n->base || (at - n->base) % 8 ||
	    position >> STACKCACHE_POSITION_BITS || value >> HEAP_ADDR_BITS)
		return false;
	n->words[STACKCACHE_HEAD + n->nr++] = value | position << HEAP_ADDR_BITS;
	if (position >= n->reach)
		n->reach = position + 1;
	return true;
}

static bool add_frames(struct entry *n, const struct heap_thread_state *m, uint32_t top)
{
	for (uint32_t i = top; i < HEAP_FRAMES_MAX; i++) {
		const struct heap_frame *f = &m->frames[i];
		const struct heap_origin *o = &m->origins[i];
		if (!add_word(n, f->sp - 8, frame_pc(f)))
			return false;
		if (f->pc & FRAME_HAS_WORD && !add_word(n, o->fp_at, o->fp))
			return false;
	}
	return !m->end_addr || add_word(n, m->end_addr, m->end_word);
}

/* Inserts the newest first; replaces the entry with the same tag, or else the oldest. */
static void put_in_set(uint32_t *set, uint32_t entry)
{
	uint32_t i = 0;

	while (i < HEAP_STACKCACHE_WAYS - 1 && (set[i] ^ entry) >> 16)
		i++;
	for (; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = entry;
}

void stackcache_store(struct heap_thread_state *m, uint64_t key, uint32_t top, uint32_t stack_id)
{
	const struct heap_frame *leaf = &m->frames[top];
	uint32_t at = m->stackcache_next;
	uint32_t max = STACKCACHE_HEAD + 2 * (HEAP_FRAMES_MAX - top) + 2;

	/* The words do not determine the caller of a complex frame. */
	if (m->plain > top || max > HEAP_STACKCACHE_WORDS)
		return;
	if (at + max > HEAP_STACKCACHE_WORDS)
		at = 0;
	struct entry n = {&m->stackcache[at], leaf->sp - 16, 0, max - STACKCACHE_HEAD, 0};
	n.words[0] = 0;
	if ((leaf->pc & FRAME_NEEDS_FP && !add_word(&n, n.base, m->origins[top].fp)) ||
	    !add_frames(&n, m, top))
		return;
	n.words[0] = key;
	n.words[1] = leaf->sp;
	n.words[2] = stack_id | (uint64_t)n.nr << 32;
	n.words[3] = m->generation | n.reach << 32;
	put_in_set(&m->stackcache_at[stackcache_set(key)], at | stackcache_tag(key));
	m->stackcache_next = at + STACKCACHE_HEAD + n.nr;
}
