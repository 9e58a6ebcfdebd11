/* See heap_stackcache.h. */
#include "heap_stackcache.h"

struct note {
	uint64_t *words;
	uint64_t base;
	uint32_t nr;
	uint32_t max;
	uint64_t reach; /* words from base on that are looked at */
};

/* False: it cannot be said in a note. */
static bool add_word(struct note *n, uint64_t at, uint64_t value)
{
	uint64_t place = (at - n->base) / 8;

	if (n->nr >= n->max || at < n->base || (at - n->base) % 8 ||
	    place >> STACKCACHE_PLACE_BITS || value >> HEAP_ADDR_BITS)
		return false;
	n->words[STACKCACHE_HEAD + n->nr++] = value | place << HEAP_ADDR_BITS;
	if (place >= n->reach)
		n->reach = place + 1;
	return true;
}

static bool add_frames(struct note *n, const struct heap_memo *m, uint32_t top)
{
	for (uint32_t i = top; i < HEAP_FRAMES_MAX; i++) {
		const struct heap_frame *f = &m->frames[i];
		const struct heap_origin *o = &m->origins[i];
		if (!add_word(n, f->sp - 8, frame_pc(f)))
			return false;
		if (f->pc & FRAME_HAS_WORD && !add_word(n, o->fp_at, o->fp))
			return false;
	}
	return !m->end_at || add_word(n, m->end_at, m->end_word);
}

/* The newest first; one with the same tag is given up, or else the oldest. */
static void put_in_set(uint32_t *set, uint32_t entry)
{
	uint32_t i = 0;

	while (i < HEAP_STACKCACHE_WAYS - 1 && (set[i] ^ entry) >> 16)
		i++;
	for (; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = entry;
}

void stackcache_keep(struct heap_memo *m, uint64_t key, uint32_t top, uint32_t number)
{
	const struct heap_frame *leaf = &m->frames[top];
	uint32_t at = m->stackcache_next;
	uint32_t max = STACKCACHE_HEAD + 2 * (HEAP_FRAMES_MAX - top) + 2;

	/* Words do not lead through an odd frame. */
	if (m->plain > top || max > HEAP_STACKCACHE_WORDS)
		return;
	if (at + max > HEAP_STACKCACHE_WORDS)
		at = 0;
	struct note n = {&m->stackcache[at], leaf->sp - 16, 0, max - STACKCACHE_HEAD, 0};
	n.words[0] = 0;
	if ((leaf->pc & FRAME_NEEDS_FP && !add_word(&n, n.base, m->origins[top].fp)) ||
	    !add_frames(&n, m, top))
		return;
	n.words[0] = key;
	n.words[1] = leaf->sp;
	n.words[2] = number | (uint64_t)n.nr << 32;
	n.words[3] = m->generation | n.reach << 32;
	put_in_set(&m->stackcache_at[stackcache_set(key)], at | stackcache_tag(key));
	m->stackcache_next = at + STACKCACHE_HEAD + n.nr;
}
