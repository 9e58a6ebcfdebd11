/*
 * A thread's slot, its ring, and what guards both: entering and leaving the recorder.
 *
 * Nesting. An allocator's functions call one another (calloc and malloc, malloc and mmap): only
 * the outermost call counts. memo.nest names its frame on the stack; it is over when the frame is
 * not there any more, which a longjmp brings about: below the stack pointer, or written over.
 *
 * Signals. A handler that allocates while its thread is in the recorder gets its memory, and the
 * event is counted as dropped. While its thread is in the original function it counts as a nested
 * call: nothing tells the two apart. A fork from a handler that interrupted the recorder is the one
 * thing that is not safe: the child goes on in memory that it does not have.
 */
#ifndef ASSAY_INJECT_HEAP_SLOT_H
#define ASSAY_INJECT_HEAP_SLOT_H

#include "heap_inner.h"

#define SLOT_PROBES 256u

/* The slot of the thread pointer @tp; NULL: there is none, and none is left. */
struct heap_memo *slot_claim(struct heap_local *l, uint64_t tp);
/* @c would be within the call memo->nest: is that one still going on? */
bool slot_is_nested(struct heap_local *l, struct heap_memo *m, const struct heap_call *c);
/* The slot says that its thread is in the recorder: is that still so? */
bool slot_is_inside(struct heap_local *l, struct heap_memo *m, const void *at);
/* A record was dropped: of a block with @size (0: something else). */
void slot_drop(struct heap_slot *s, uint64_t size);
/* An event of a thread without a slot. */
void slot_miss(struct heap_local *l, uint64_t size);
/* True: assay is gone; nothing is recorded any more, whoever asks. */
bool slot_is_silent(struct heap_ctx *x, uint64_t now);
/* The thread is another one than the slot says. */
void slot_check_owner(struct heap_ctx *x);
/* The slot is not the thread's, who is inside: it may have been given up. False: it is gone. */
bool slot_regain(struct heap_local *l, struct heap_slot *s, uint64_t tp);

/*
 * Room for a record of @nr_words in the ring; NULL: none, after waiting for it. *ret_head is to be
 * given to ring_commit when the words are written.
 */
uint64_t *ring_reserve(struct heap_ctx *x, uint32_t nr_words, uint64_t *ret_head);
static inline void ring_commit(struct heap_ctx *x, uint64_t head)
{
	__atomic_store_n(&x->slot->head, head, __ATOMIC_RELEASE);
}

/* 0: the thread has none yet. */
static inline uint64_t slot_thread_pointer(const struct heap_local *l)
{
	uint64_t tp;

	if (UNLIKELY((ONCE(l->flags) & (HEAP_HAS_FSGSBASE | HEAP_FS_IS_SET)) == HEAP_HAS_FSGSBASE))
		__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xc0" : "=a"(tp)); /* rdfsbase */
	else
		__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline struct heap_slot *slot_at(const struct heap_local *l, uint32_t i)
{
	return (struct heap_slot *)(l->shared + l->slots_off) + i;
}

static inline struct heap_memo *slot_memo(const struct heap_local *l, const struct heap_slot *s)
{
	return (struct heap_memo *)(l->memos + (uint64_t)(s - slot_at(l, 0)) * HEAP_MEMO_BYTES);
}

static inline uint32_t slot_home(const struct heap_local *l, uint64_t tp)
{
	uint32_t hash = (uint32_t)(tp >> 6) * HASH_32;
	return (uint32_t)((uint64_t)hash * l->nr_slots >> 32);
}

/* The calling thread's; NULL: it has no slot, and there is none left. */
static inline struct heap_memo *slot_find(struct heap_local *l)
{
	uint64_t tp = slot_thread_pointer(l);
	uint64_t memos = ONCE(l->memos);
	struct heap_memo *m =
		(struct heap_memo *)(memos + (uint64_t)slot_home(l, tp) * HEAP_MEMO_BYTES);

	/* 0: memory was cleared while a signal's handler kept this thread just here. */
	if (UNLIKELY(!memos))
		return NULL;
	/* NULL: memory was cleared for another attach. */
	const struct heap_slot *s = ONCE(m->slot);

	return LIKELY(m->tp == tp && s && ONCE(s->owner) == tp) && tp ? m : slot_claim(l, tp);
}

/*
 * Whoever is inside may write to shared memory. False: recording has been stopped, or the thread
 * is inside already, further up.
 */
static inline bool slot_enter(struct heap_local *l, struct heap_memo *m, const void *at)
{
	struct heap_slot *s = ONCE(m->slot);

	/* NULL: memory was cleared for another attach while this call went on. */
	if (UNLIKELY(!s) || (UNLIKELY(s->is_inside) && slot_is_inside(l, m, at)))
		return false;
	m->inside_at = (uint64_t)at;
	ONCE(s->is_inside) = 1;
	BARRIER();
	uint64_t tp = slot_thread_pointer(l);
	if (LIKELY(ONCE(l->is_active)) && (LIKELY(ONCE(s->owner) == tp) || slot_regain(l, s, tp)))
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
