/* Slots, rings and nesting; see heap_slot.h. */
#include "heap_slot.h"

#include "heap_sample.h"

enum { SYS_SCHED_YIELD = 24, SYS_NANOSLEEP = 35, SYS_GETTID = 186, SYS_FUTEX = 202 };
enum { FUTEX_WAKE = 1 };
#define WAIT_SLEEP_NS 50000
#define WAIT_YIELDS   16
#define WAIT_PAUSES   64
/* More nested calls than any call has: outer_call must have ended by an undetected longjmp. */
#define NESTED_MAX (1u << 20)

static uint32_t thread_id(const struct heap_local *l, uint64_t tp)
{
	if (l->tid_off)
		return *(const volatile uint32_t *)(tp + l->tid_off);
	if (l->flags & HEAP_SYSCALLS_ALLOWED)
		return (uint32_t)heap_syscall(SYS_GETTID, 0, 0, 0, 0);
	return 0;
}

/* The ring size in the slot if it is plausible (shared memory is not trusted), else the default. */
static uint32_t slot_ring_bytes(const struct heap_local *l, const struct heap_slot *s)
{
	uint32_t n = ONCE(s->ring_bytes);

	return n < l->ring_bytes && n >= HEAP_SMALL_RING_BYTES && !(n & (n - 1)) ? n
										 : l->ring_bytes;
}

static void thread_state_init(struct heap_local *l, struct heap_thread_state *m,
			      struct heap_slot *s, uint64_t tp)
{
	m->outer_call = NULL;
	m->slot = s;
	m->nr_nested = 0;
	m->inside_sp = 0;
	m->is_full = 0;
	m->ring_bytes = slot_ring_bytes(l, s);
	m->readable_lo = m->readable_hi = 0;
	m->top = HEAP_FRAMES_MAX;
	m->stack = 0;
	m->rng = heap_mix(heap_mix(heap_tsc(), tp), l->generation) | 1;
	m->countdown = sample_draw(m, l->interval_bytes);
	m->always_bytes = ONCE(l->always_bytes);
	m->hash_mask = l->is_full_trace || !l->nr_blocks ? 0 : l->nr_blocks - 1;
	BARRIER();
	m->tp = tp;
}

/* Sets the ring size of a slot never used before, unless a signal handler has already done so. */
static void choose_ring(const struct heap_local *l, struct heap_slot *s)
{
	uint32_t none = 0;
	uint32_t nr_bytes = l->ring_bytes;
	struct heap_shared *sh = (struct heap_shared *)l->shared;
	uint32_t nr = __atomic_fetch_add(&sh->nr_taken, 1, __ATOMIC_RELEASE);

	if (nr >= HEAP_LARGE_RINGS && nr_bytes > HEAP_SMALL_RING_BYTES) {
		nr_bytes /= HEAP_SMALL_RING_PART;
		nr_bytes = nr_bytes > HEAP_SMALL_RING_BYTES ? nr_bytes : HEAP_SMALL_RING_BYTES;
	}
	(void)__atomic_compare_exchange_n(&s->ring_bytes, &none, nr_bytes, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
}

/*
 * Returns the slot of @tp, or the first free one; NULL: none. *ret_owner: its current owner word,
 * which the caller swaps for @tp unless it is @tp.
 */
static struct heap_slot *slot_search(const struct heap_local *l, uint64_t tp, uint64_t *ret_owner)
{
	uint32_t nr = l->nr_slots;
	uint32_t at = slot_home(l, tp);
	struct heap_slot *found = NULL;

	for (uint32_t i = 0; i < SLOT_PROBES && i < nr; i++, at++) {
		struct heap_slot *s = slot_at(l, at < nr ? at : at - nr);
		uint64_t owner = ONCE(s->owner);
		bool is_own = (owner | 1) == (tp | 1);
		if (!is_own && (found || (owner && owner != HEAP_OWNER_FREE)))
			continue;
		found = s;
		*ret_owner = owner;
		if (is_own || !owner)
			break;
	}
	return found;
}

NOINLINE struct heap_thread_state *slot_claim(struct heap_local *l, uint64_t tp)
{
	struct heap_slot *s;
	uint64_t owner = 0;

	if (!tp || tp & 1 || !ONCE(l->is_active))
		return NULL;
	/* The C libraries store it there, for each thread before it starts. */
	if (*(const volatile uint64_t *)tp == tp)
		__atomic_fetch_or(&l->flags, HEAP_FS0_IS_TP, __ATOMIC_RELAXED);
	do {
		s = slot_search(l, tp, &owner);
		if (!s)
			return NULL;
	} while (owner != tp && !__atomic_compare_exchange_n(&s->owner, &owner, tp, false,
							     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	struct heap_thread_state *m = slot_thread_state(l, s);
	if (owner != tp || !s->tid)
		s->tid = thread_id(l, tp);
	/* Keep the state: the slot was retired by mistake, perhaps in the middle of a call. */
	if ((owner | 1) == (tp | 1) && m->tp == tp && ONCE(m->slot))
		return m;
	if (!ONCE(s->ring_bytes))
		choose_ring(l, s);
	s->is_inside = 0;
	BARRIER();
	ONCE(s->generation) = l->generation;
	thread_state_init(l, m, s, tp);
	return m;
}

NOINLINE bool slot_reclaim(struct heap_local *l, struct heap_slot *s, uint64_t tp)
{
	uint64_t retiring = tp | 1;

	if (!__atomic_compare_exchange_n(&s->owner, &retiring, tp, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		slot_count_no_slot(l, 0);
		return false;
	}
	uint32_t tid = thread_id(l, tp);
	if (tid)
		s->tid = tid;
	return true;
}

/* Returns whether both addresses are in one known stack, which may be unmapped by now. */
static bool is_one_stack(const struct heap_local *l, const struct heap_thread_state *m, uint64_t a,
			 uint64_t b)
{
	uint64_t lo = m->readable_lo, hi = m->readable_hi;

	if (a - b < 4096 || b - a < 4096)
		return true;
	if (a - lo < hi - lo && b - lo < hi - lo)
		return true;
	lo = l->main_stack_lo;
	hi = l->main_stack_hi;
	return a - lo < hi - lo && b - lo < hi - lo;
}

NOINLINE bool slot_is_nested(struct heap_local *l, struct heap_thread_state *m,
			     const struct heap_call *c)
{
	uint64_t here = (uint64_t)c;
	uint64_t outer = (uint64_t)m->outer_call;

	/* Read the outer call only if its stack is known to be mapped. */
	bool is_known = is_one_stack(l, m, here, outer);
	bool is_there = is_known && m->readable_unmaps == ONCE(l->nr_unmaps);
	if ((is_known && outer <= here) ||
	    (is_there && (m->outer_call->thread != m || m->outer_call->local != l))) {
		m->outer_call = NULL;
		return false;
	}
	uint64_t nr_events = m->slot->nr_allocs + m->slot->nr_frees;
	if (m->nested_events != nr_events)
		m->nr_nested = 0;
	m->nested_events = nr_events;
	if (++m->nr_nested < NESTED_MAX)
		return true;
	m->nr_nested = 0;
	m->outer_call = NULL;
	return false;
}

NOINLINE bool slot_is_inside(struct heap_local *l, struct heap_thread_state *m, const void *at)
{
	uint64_t here = (uint64_t)at;

	return m->inside_sp > here || !is_one_stack(l, m, here, m->inside_sp);
}

NOINLINE void slot_count_drop(struct heap_slot *s, uint64_t size)
{
	__atomic_fetch_add(&s->nr_dropped, 1, __ATOMIC_RELAXED);
	if (size)
		__atomic_fetch_add(&s->dropped_bytes, size, __ATOMIC_RELAXED);
}

NOINLINE void slot_count_no_slot(struct heap_local *l, uint64_t size)
{
	struct heap_shared *sh = (struct heap_shared *)l->shared;

	if (!ONCE(l->is_active))
		return;
	__atomic_fetch_add(&sh->nr_no_slot, 1, __ATOMIC_RELAXED);
	if (size)
		__atomic_fetch_add(&sh->nr_no_slot_bytes, size, __ATOMIC_RELAXED);
}

NOINLINE void slot_update_tid(struct heap_ctx *x)
{
	struct heap_slot *s = x->slot;
	uint32_t tid = thread_id(x->local, x->thread->tp);

	if (tid)
		s->tid = tid;
}

bool slot_is_assay_gone(struct heap_ctx *x, uint64_t now)
{
	uint64_t alive = ONCE(x->shared->alive_tsc);

	if (LIKELY((int64_t)(now - alive) < (int64_t)x->local->assay_timeout_tsc))
		return false;
	if (ONCE(x->local->is_active)) {
		ONCE(x->local->is_active) = 0;
		ONCE(x->shared->went_inert_tsc) = now;
	}
	return true;
}

static NOINLINE void wake_reader(struct heap_ctx *x)
{
	if (!(x->local->flags & HEAP_SYSCALLS_ALLOWED))
		return;
	ONCE(x->shared->wake_futex) = 1;
	(void)heap_syscall(SYS_FUTEX, (uint64_t)&x->shared->wake_futex, FUTEX_WAKE, 1, 0);
}

static bool has_room(struct heap_ctx *x, uint64_t head, uint64_t nr_bytes)
{
	uint64_t used = head - __atomic_load_n(&x->slot->tail, __ATOMIC_ACQUIRE);
	uint64_t size = x->thread->ring_bytes;

	if (UNLIKELY(used > size / HEAP_WAKE_PARTS) && UNLIKELY(!ONCE(x->shared->wake_futex)))
		wake_reader(x);
	return used <= size && nr_bytes <= size - used;
}

static NOINLINE bool wait_for_room(struct heap_ctx *x, uint64_t head, uint64_t nr_bytes)
{
	uint64_t begin = heap_tsc();
	uint64_t sleep_time[2] = {0, WAIT_SLEEP_NS};

	if (x->thread->is_full)
		return false;
	for (uint32_t i = 0;; i++) {
		if (has_room(x, head, nr_bytes))
			return true;
		uint64_t now = heap_tsc();
		if (!ONCE(x->local->is_active) || slot_is_assay_gone(x, now))
			return false;
		if (now - begin >= x->local->wait_tsc)
			break;
		if (!(x->local->flags & HEAP_SYSCALLS_ALLOWED)) {
			for (int k = 0; k < WAIT_PAUSES; k++)
				__asm__ volatile("pause");
		} else if (i < WAIT_YIELDS) {
			(void)heap_syscall(SYS_SCHED_YIELD, 0, 0, 0, 0);
		} else {
			(void)heap_syscall(SYS_NANOSLEEP, (uint64_t)sleep_time, 0, 0, 0);
		}
	}
	x->thread->is_full = 1;
	return false;
}

uint64_t *ring_reserve(struct heap_ctx *x, uint32_t nr_words, uint64_t *ret_head)
{
	const struct heap_local *l = x->local;
	struct heap_slot *s = x->slot;
	uint64_t need = (uint64_t)nr_words * 8;
	uint64_t head = s->head & ~(uint64_t)7;
	uint64_t off = head & (x->thread->ring_bytes - 1);
	uint64_t left = x->thread->ring_bytes - off;
	uint64_t pad = need > left ? left : 0;
	uint8_t *ring = (uint8_t *)(l->shared + l->rings_off) +
			(uint64_t)(s - slot_at(l, 0)) * l->ring_bytes;

	if (UNLIKELY(slot_is_assay_gone(x, x->tsc)))
		return NULL;
	slot_check_tid(x);
	if (UNLIKELY(!has_room(x, head, need + pad))) {
		if (!wait_for_room(x, head, need + pad))
			return NULL;
	} else if (UNLIKELY(x->thread->is_full)) {
		x->thread->is_full = 0;
	}
	if (UNLIKELY(pad)) {
		*(uint64_t *)(ring + off) = HEAP_RECORD_PAD;
		head += pad;
		off = 0;
	}
	*ret_head = head + need;
	return (uint64_t *)(ring + off);
}
