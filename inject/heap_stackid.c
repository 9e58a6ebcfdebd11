/* Stack ids: index + 1 in a set of hashes that all threads share. See heap_walk.h. */
#include "heap_python.h"
#include "heap_stackcache.h"
#include "heap_slot.h"
#include "heap_walk.h"

#define SET_PROBES 64u

/*
 * An entry of the set is a hash whose lowest bits say that its record was written, and what the record
 * is about. While it was not written, because a ring was full, each thread that finds the entry tries
 * again.
 */
enum entry_bits {
	ENTRY_REPORTED = 1 << 0,
	ENTRY_HAS_LOOP = 1 << 1, /* a stack in which the loop of the Python interpreter runs */
	ENTRY_BITS = 3,
};

struct new_stack {
	struct stackid_new head;
	uint32_t top;
};

static bool emit_stack(struct heap_ctx *x, struct stackid_new *n, uint32_t stack_id)
{
	struct new_stack *s = (struct new_stack *)n;
	const struct heap_thread_state *m = x->thread;
	uint32_t nr = 0;
	uint64_t head;

	for (uint32_t i = s->top; i < HEAP_FRAMES_MAX; i++)
		nr += !(m->frames[i].pc & FRAME_HIDDEN);
	uint64_t *p = ring_reserve(x, 2 + nr, &head);
	if (!p)
		return false;
	*p++ = HEAP_RECORD_STACK | (uint64_t)HEAP_SITE_NONE << HEAP_SITE_SHIFT |
	       x->tsc << HEAP_TSC_SHIFT;
	*p++ = stack_id | (uint64_t)nr << 32 | (uint64_t)m->end << 48;
	for (uint32_t i = s->top; i < HEAP_FRAMES_MAX; i++)
		if (!(m->frames[i].pc & FRAME_HIDDEN))
			*p++ = frame_pc(&m->frames[i]);
	ring_commit(x, head);
	s->head.has_loop = python_space(x->local) && python_has_loop(x, s->top);
	return true;
}

uint32_t stackid_find(struct heap_ctx *x, uint64_t hash, struct stackid_new *n)
{
	uint64_t *set = (uint64_t *)x->local->stacks;
	uint32_t mask = x->local->nr_stacks - 1;
	uint32_t at = (uint32_t)(hash >> 32) & mask;
	uint64_t key = hash & ~(uint64_t)ENTRY_BITS;

	key = key ? key : ENTRY_BITS + 1;
	for (uint32_t i = 0; i < SET_PROBES && i <= mask; i++, at = (at + 1) & mask) {
		uint64_t v = __atomic_load_n(&set[at], __ATOMIC_ACQUIRE);
		if (LIKELY((v & ~(uint64_t)ENTRY_HAS_LOOP) == (key | ENTRY_REPORTED)))
			return at + 1;
		if (!v && __atomic_compare_exchange_n(&set[at], &v, key, false, __ATOMIC_ACQ_REL,
						      __ATOMIC_ACQUIRE))
			v = key;
		if ((v & ~(uint64_t)ENTRY_HAS_LOOP) == (key | ENTRY_REPORTED))
			return at + 1;
		if (v != key)
			continue;
		if (!n->emit(x, n, at + 1))
			return 0;
		__atomic_store_n(&set[at],
				 key | ENTRY_REPORTED | (n->has_loop ? ENTRY_HAS_LOOP : 0),
				 __ATOMIC_RELEASE);
		return at + 1;
	}
	return 0;
}

static uint32_t no_stack(struct heap_ctx *x)
{
	__atomic_fetch_add(&x->shared->nr_no_stack, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline uint32_t native_stack_id(struct heap_ctx *x, const struct heap_call *c, bool is_hook)
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
	struct new_stack n = {.head = {.emit = emit_stack}, .top = top};
	stack_id = stackid_find(x, m->origins[top].hash, &n.head);
	if (!stack_id)
		(void)no_stack(x);
	m->stack = m->top == top ? stack_id : 0;
	if (m->stack && m->stackcache_key)
		stackcache_store(m, m->stackcache_key, top, stack_id);
	return stack_id;
}

uint32_t walk_stack_id(struct heap_ctx *x, const struct heap_call *c, bool is_hook)
{
	uint32_t stack_id = native_stack_id(x, c, is_hook);

	if (LIKELY(!python_space(x->local)) || !stack_id)
		return stack_id;
	const uint64_t *set = (const uint64_t *)x->local->stacks;
	uint64_t entry = __atomic_load_n(&set[stack_id - 1], __ATOMIC_RELAXED);
	return entry & ENTRY_HAS_LOOP ? python_stack_id(x, stack_id) : stack_id;
}
