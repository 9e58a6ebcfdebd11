/* Stack ids: index + 1 in a set of stack hashes that all threads share. See heap_walk.h. */
#include "heap_stackcache.h"
#include "heap_slot.h"
#include "heap_walk.h"

#define SET_PROBES 64u

static bool emit_stack(struct heap_ctx *x, uint32_t top, uint32_t stack_id)
{
	const struct heap_thread_state *m = x->thread;
	uint32_t nr = 0;
	uint64_t head;

	for (uint32_t i = top; i < HEAP_FRAMES_MAX; i++)
		nr += !(m->frames[i].pc & FRAME_HIDDEN);
	uint64_t *p = ring_reserve(x, 2 + nr, &head);
	if (!p)
		return false;
	*p++ = HEAP_RECORD_STACK | (uint64_t)HEAP_SITE_NONE << HEAP_SITE_SHIFT |
	       x->tsc << HEAP_TSC_SHIFT;
	*p++ = stack_id | (uint64_t)nr << 32 | (uint64_t)m->end << 48;
	for (uint32_t i = top; i < HEAP_FRAMES_MAX; i++)
		if (!(m->frames[i].pc & FRAME_HIDDEN))
			*p++ = frame_pc(&m->frames[i]);
	ring_commit(x, head);
	return true;
}

static uint32_t no_stack(struct heap_ctx *x)
{
	__atomic_fetch_add(&x->shared->nr_no_stack, 1, __ATOMIC_RELAXED);
	return 0;
}

/*
 * An entry is a hash whose lowest bit says that the STACK record was written. While it was not,
 * because a ring was full, each thread that finds the entry tries again.
 */
static uint32_t find_stack_id(struct heap_ctx *x, uint64_t hash, uint32_t top)
{
	uint64_t *set = (uint64_t *)x->local->stacks;
	uint32_t mask = x->local->nr_stacks - 1;
	uint32_t at = (uint32_t)(hash >> 32) & mask;
	uint64_t is_reported = hash | 1;
	uint64_t is_unreported = hash & ~(uint64_t)1;

	for (uint32_t i = 0; i < SET_PROBES && i <= mask; i++, at = (at + 1) & mask) {
		uint64_t v = __atomic_load_n(&set[at], __ATOMIC_ACQUIRE);
		if (LIKELY(v == is_reported))
			return at + 1;
		if (!v && __atomic_compare_exchange_n(&set[at], &v, is_unreported, false,
						      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			v = is_unreported;
		if (v == is_reported)
			return at + 1;
		if (v != is_unreported)
			continue;
		if (!emit_stack(x, top, at + 1))
			return no_stack(x);
		__atomic_store_n(&set[at], is_reported, __ATOMIC_RELEASE);
		return at + 1;
	}
	return no_stack(x);
}

uint32_t walk_stack_id(struct heap_ctx *x, const struct heap_call *c, bool is_hook)
{
	struct heap_thread_state *m = x->thread;
	uint32_t stack_id = 0;

	m->stackcache_key = 0;
	uint32_t top = walk_stack(x, c, is_hook, &stack_id);
	if (LIKELY(stack_id))
		return stack_id;
	if (LIKELY(m->stack && m->top == top))
		return m->stack;
	if (top >= HEAP_FRAMES_MAX || !x->local->nr_stacks)
		return no_stack(x);
	uint64_t hash = m->origins[top].hash;
	stack_id = find_stack_id(x, hash > 1 ? hash : hash + 2, top);
	m->stack = m->top == top ? stack_id : 0;
	if (m->stack && m->stackcache_key)
		stackcache_store(m, m->stackcache_key, top, stack_id);
	return stack_id;
}
