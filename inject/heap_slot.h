/*
 * Slots and rings: finds the slot of a thread, marks the thread as inside the recorder, and
 * reserves room for records.
 *
 * Nesting. Allocator functions call one another (calloc and malloc, malloc and mmap); only the
 * outermost call counts. heap_thread_state.outer_call points to its frame on the stack. After a
 * longjmp out of the call the pointer is stale; this is detected when the frame is below the stack
 * pointer or overwritten.
 *
 * Signals. If a handler allocates while its thread is in the recorder, the allocation works and the
 * event is counted as dropped. If its thread is in the original function, the event counts as a
 * nested call: the two cases look the same. Not supported: fork() in a handler that interrupted the
 * recorder, as the child would continue in memory that it does not have.
 */
#ifndef ASSAY_INJECT_HEAP_SLOT_H
#define ASSAY_INJECT_HEAP_SLOT_H

#include "heap_recorder.h"

#define SLOT_PROBES 256u

/*
 * Finds or claims the slot of thread pointer @tp and initializes its thread state. NULL: no free
 * slot, or recording is off.
 */
struct heap_thread_state *slot_claim(struct heap_local *l, uint64_t tp);
/*
 * Returns whether @c is nested in m->outer_call. Clears outer_call if that call ended without
 * returning (longjmp).
 */
bool slot_is_nested(struct heap_local *l, struct heap_thread_state *m, const struct heap_call *c);
/*
 * Called when slot.is_inside is set: returns whether the thread is still in the recorder. @at: an
 * address in the caller's stack frame.
 */
bool slot_is_inside(struct heap_local *l, struct heap_thread_state *m, const void *at);
/* Counts a dropped record; @size: of the allocation, 0 for other records. */
void slot_count_drop(struct heap_slot *s, uint64_t size);
/* Counts an event of a thread without a slot. */
void slot_count_no_slot(struct heap_local *l, uint64_t size);
/*
 * Returns whether assay has not updated alive_tsc for assay_timeout_tsc; then it also stops the
 * recorder for all threads.
 */
bool slot_is_assay_gone(struct heap_ctx *x, uint64_t now);
/* Stores the current thread's id in the slot, which has the id of an earlier thread. */
void slot_update_tid(struct heap_ctx *x);
static inline void slot_check_tid(struct heap_ctx *x)
{
	uint32_t off = x->local->tid_off;

	if (UNLIKELY(off && *(const volatile uint32_t *)(x->thread->tp + off) != x->slot->tid))
		slot_update_tid(x);
}
/*
 * Called when the slot's owner is not @tp although the thread is inside: claims a retiring slot
 * (@tp | 1) again. False: another thread has the slot.
 */
bool slot_reclaim(struct heap_local *l, struct heap_slot *s, uint64_t tp);

/*
 * Reserves @nr_words in the ring, waiting up to wait_tsc. NULL: no room. When the words are
 * written, pass *ret_head to ring_commit.
 */
uint64_t *ring_reserve(struct heap_ctx *x, uint32_t nr_words, uint64_t *ret_head);
static inline void ring_commit(struct heap_ctx *x, uint64_t head)
{
	__atomic_store_n(&x->slot->head, head, __ATOMIC_RELEASE);
}

/* Returns the thread pointer (fs base); 0: not set yet. */
static inline uint64_t slot_thread_pointer(const struct heap_local *l)
{
	uint64_t tp;

	if (UNLIKELY((ONCE(l->flags) & (HEAP_HAS_FSGSBASE | HEAP_FS0_IS_TP)) == HEAP_HAS_FSGSBASE))
		__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xc0" : "=a"(tp)); /* rdfsbase */
	else
		__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline struct heap_slot *slot_at(const struct heap_local *l, uint32_t i)
{
	return (struct heap_slot *)(l->shared + l->slots_off) + i;
}

static inline struct heap_thread_state *slot_thread_state(const struct heap_local *l,
							  const struct heap_slot *s)
{
	return (struct heap_thread_state *)(l->thread_states + (uint64_t)(s - slot_at(l, 0)) *
								       HEAP_THREAD_STATE_BYTES);
}

/* Index of the slot where the search for the slot of @tp begins. */
static inline uint32_t slot_home(const struct heap_local *l, uint64_t tp)
{
	uint32_t hash = (uint32_t)(tp >> 6) * HASH_32;
	return (uint32_t)((uint64_t)hash * l->nr_slots >> 32);
}

/* Returns the calling thread's state; NULL: it has no slot and none is free. */
static inline struct heap_thread_state *slot_find(struct heap_local *l)
{
	uint64_t tp = slot_thread_pointer(l);
	uint64_t thread_states = ONCE(l->thread_states);
	struct heap_thread_state *m =
		(struct heap_thread_state *)(thread_states +
					     (uint64_t)slot_home(l, tp) * HEAP_THREAD_STATE_BYTES);

	/* 0: local memory was zeroed while a signal handler interrupted this thread here. */
	if (UNLIKELY(!thread_states))
		return NULL;
	/* NULL: local memory was zeroed for another attach. */
	const struct heap_slot *s = ONCE(m->slot);

	return LIKELY(m->tp == tp && s && ONCE(s->owner) == tp) && tp ? m : slot_claim(l, tp);
}

/*
 * Marks the thread as inside, which permits writes to shared memory until slot_leave. False:
 * recording has stopped, or the thread is already inside in an outer call.
 */
static inline bool slot_enter(struct heap_local *l, struct heap_thread_state *m, const void *at)
{
	struct heap_slot *s = ONCE(m->slot);

	/* NULL: local memory was zeroed for another attach during this call. */
	if (UNLIKELY(!s) || (UNLIKELY(s->is_inside) && slot_is_inside(l, m, at)))
		return false;
	m->inside_sp = (uint64_t)at;
	ONCE(s->is_inside) = 1;
	BARRIER();
	uint64_t tp = slot_thread_pointer(l);
	if (LIKELY(ONCE(l->is_active)) && (LIKELY(ONCE(s->owner) == tp) || slot_reclaim(l, s, tp)))
		return true;
	ONCE(s->is_inside) = 0;
	return false;
}

static inline void slot_leave(struct heap_slot *s)
{
	BARRIER();
	ONCE(s->is_inside) = 0;
}

#endif
