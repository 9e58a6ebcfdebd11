/* See heap_slot.h. */
#include "heap_slot.h"

#include "heap_sample.h"

enum { SYS_SCHED_YIELD = 24, SYS_NANOSLEEP = 35, SYS_GETTID = 186, SYS_FUTEX = 202 };
enum { FUTEX_WAKE = 1 };
#define WAIT_NAP_NS 50000
#define WAIT_YIELDS 16
#define WAIT_PAUSES 64
/* No call has so many within it: it was left in a way that cannot be seen. */
#define NESTED_MAX (1u << 20)

static inline uint32_t slot_tcb_tid(const struct heap_local *l, const struct heap_slot *s)
{
	return *(const volatile uint32_t *)(slot_memo(l, s)->tp + l->tid_off);
}

static uint32_t thread_id(const struct heap_local *l, uint64_t tp)
{
	if (l->tid_off)
		return *(const volatile uint32_t *)(tp + l->tid_off);
	if (l->flags & HEAP_MAY_CALL_KERNEL)
		return (uint32_t)heap_syscall(SYS_GETTID, 0, 0, 0, 0);
	return 0;
}

/* What the slot says, if it can be: it is in shared memory. */
static uint32_t slot_ring_bytes(const struct heap_local *l, const struct heap_slot *s)
{
	uint32_t n = ONCE(s->ring_bytes);

	return n < l->ring_bytes && n >= HEAP_NARROW_BYTES && !(n & (n - 1)) ? n : l->ring_bytes;
}

static void memo_begin(struct heap_local *l, struct heap_memo *m, struct heap_slot *s, uint64_t tp)
{
	m->nest = NULL;
	m->slot = s;
	m->nr_nested = 0;
	m->inside_at = 0;
	m->is_full = 0;
	m->ring_bytes = slot_ring_bytes(l, s);
	m->ok_lo = m->ok_hi = 0;
	m->top = HEAP_FRAMES_MAX;
	m->stack = 0;
	m->rng = heap_mix(heap_mix(heap_tsc(), tp), l->generation) | 1;
	m->countdown = sample_draw(m, l->interval_bytes);
	m->always = l->is_every ? 0 : l->interval_bytes;
	m->hash_mask = l->is_every || !l->nr_blocks ? 0 : l->nr_blocks - 1;
	BARRIER();
	m->tp = tp;
}

/* How much of its ring a slot uses that nobody had before. A handler may have come first. */
static void choose_ring(const struct heap_local *l, struct heap_slot *s)
{
	uint32_t none = 0;
	uint32_t nr_bytes = l->ring_bytes;
	struct heap_shared *sh = (struct heap_shared *)l->shared;
	uint32_t nr = __atomic_fetch_add(&sh->nr_taken, 1, __ATOMIC_RELEASE);

	if (nr >= HEAP_WIDE_SLOTS && nr_bytes > HEAP_NARROW_BYTES) {
		nr_bytes /= HEAP_NARROW_PART;
		nr_bytes = nr_bytes > HEAP_NARROW_BYTES ? nr_bytes : HEAP_NARROW_BYTES;
	}
	(void)__atomic_compare_exchange_n(&s->ring_bytes, &none, nr_bytes, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
}

/*
 * The slot of @tp, or the first one that may be taken; *ret_owner: what is to be swapped for @tp
 * (itself: nothing). NULL: there is none.
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
		if (!is_own && (found || (owner && owner != HEAP_OWNER_NONE)))
			continue;
		found = s;
		*ret_owner = owner;
		if (is_own || !owner)
			break;
	}
	return found;
}

NOINLINE struct heap_memo *slot_claim(struct heap_local *l, uint64_t tp)
{
	struct heap_slot *s;
	uint64_t owner = 0;

	if (!tp || tp & 1 || !ONCE(l->is_active))
		return NULL;
	/* The C libraries have it there, threads that they start have it from birth. */
	if (*(const volatile uint64_t *)tp == tp)
		__atomic_fetch_or(&l->flags, HEAP_FS_IS_SET, __ATOMIC_RELAXED);
	do {
		s = slot_search(l, tp, &owner);
		if (!s)
			return NULL;
	} while (owner != tp && !__atomic_compare_exchange_n(&s->owner, &owner, tp, false,
							     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	struct heap_memo *m = slot_memo(l, s);
	if (owner != tp || !s->tid)
		s->tid = thread_id(l, tp);
	/* Perhaps in the middle of a call: it was taken for dead under the id of another. */
	if ((owner | 1) == (tp | 1) && m->tp == tp && ONCE(m->slot))
		return m;
	if (!ONCE(s->ring_bytes))
		choose_ring(l, s);
	s->is_inside = 0;
	BARRIER();
	ONCE(s->generation) = l->generation;
	memo_begin(l, m, s, tp);
	return m;
}

NOINLINE bool slot_regain(struct heap_local *l, struct heap_slot *s, uint64_t tp)
{
	uint64_t given_up = tp | 1;

	if (!__atomic_compare_exchange_n(&s->owner, &given_up, tp, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		slot_miss(l, 0);
		return false;
	}
	uint32_t tid = thread_id(l, tp);
	if (tid)
		s->tid = tid;
	return true;
}

/* Whether both addresses are known to be in one stack, or were: it may have been unmapped. */
static bool is_one_stack(const struct heap_local *l, const struct heap_memo *m, uint64_t a,
			 uint64_t b)
{
	uint64_t lo = m->ok_lo, hi = m->ok_hi;

	if (a - b < 4096 || b - a < 4096)
		return true;
	if (a - lo < hi - lo && b - lo < hi - lo)
		return true;
	lo = l->main_stack_lo;
	hi = l->main_stack_hi;
	return a - lo < hi - lo && b - lo < hi - lo;
}

NOINLINE bool slot_is_nested(struct heap_local *l, struct heap_memo *m, const struct heap_call *c)
{
	uint64_t here = (uint64_t)c;
	uint64_t outer = (uint64_t)m->nest;

	/* A stack of which nothing is known may be unmapped. */
	bool is_known = is_one_stack(l, m, here, outer);
	bool is_there = is_known && m->ok_unmaps == ONCE(l->nr_unmaps);
	if ((is_known && outer <= here) ||
	    (is_there && (m->nest->memo != m || m->nest->local != l))) {
		m->nest = NULL;
		return false;
	}
	uint64_t nr_events = m->slot->nr_allocs + m->slot->nr_frees;
	if (m->nested_at != nr_events)
		m->nr_nested = 0;
	m->nested_at = nr_events;
	if (++m->nr_nested < NESTED_MAX)
		return true;
	m->nr_nested = 0;
	m->nest = NULL;
	return false;
}

NOINLINE bool slot_is_inside(struct heap_local *l, struct heap_memo *m, const void *at)
{
	uint64_t here = (uint64_t)at;

	return m->inside_at > here || !is_one_stack(l, m, here, m->inside_at);
}

NOINLINE void slot_drop(struct heap_slot *s, uint64_t size)
{
	__atomic_fetch_add(&s->nr_dropped, 1, __ATOMIC_RELAXED);
	if (size)
		__atomic_fetch_add(&s->dropped_bytes, size, __ATOMIC_RELAXED);
}

NOINLINE void slot_miss(struct heap_local *l, uint64_t size)
{
	struct heap_shared *sh = (struct heap_shared *)l->shared;

	if (!ONCE(l->is_active))
		return;
	__atomic_fetch_add(&sh->nr_no_slot, 1, __ATOMIC_RELAXED);
	if (size)
		__atomic_fetch_add(&sh->nr_no_slot_bytes, size, __ATOMIC_RELAXED);
}

NOINLINE void slot_check_owner(struct heap_ctx *x)
{
	struct heap_slot *s = x->slot;
	uint32_t tid = thread_id(x->local, x->memo->tp);

	if (tid)
		s->tid = tid;
}

bool slot_is_silent(struct heap_ctx *x, uint64_t now)
{
	uint64_t alive = ONCE(x->shared->alive_tsc);

	if (LIKELY((int64_t)(now - alive) < (int64_t)x->local->silent_tsc))
		return false;
	if (ONCE(x->local->is_active)) {
		ONCE(x->local->is_active) = 0;
		ONCE(x->shared->went_inert_tsc) = now;
	}
	return true;
}

static NOINLINE void wake_reader(struct heap_ctx *x)
{
	if (!(x->local->flags & HEAP_MAY_CALL_KERNEL))
		return;
	ONCE(x->shared->wake_futex) = 1;
	(void)heap_syscall(SYS_FUTEX, (uint64_t)&x->shared->wake_futex, FUTEX_WAKE, 1, 0);
}

static bool has_room(struct heap_ctx *x, uint64_t head, uint64_t nr_bytes)
{
	uint64_t used = head - __atomic_load_n(&x->slot->tail, __ATOMIC_ACQUIRE);
	uint64_t size = x->memo->ring_bytes;

	if (UNLIKELY(used > size / HEAP_WAKE_PARTS) && UNLIKELY(!ONCE(x->shared->wake_futex)))
		wake_reader(x);
	return used <= size && nr_bytes <= size - used;
}

static NOINLINE bool wait_for_room(struct heap_ctx *x, uint64_t head, uint64_t nr_bytes)
{
	uint64_t begin = heap_tsc();
	uint64_t ringwait[2] = {0, WAIT_NAP_NS};

	if (x->memo->is_full)
		return false;
	for (uint32_t i = 0;; i++) {
		if (has_room(x, head, nr_bytes))
			return true;
		uint64_t now = heap_tsc();
		if (!ONCE(x->local->is_active) || slot_is_silent(x, now))
			return false;
		if (now - begin >= x->local->wait_tsc)
			break;
		if (!(x->local->flags & HEAP_MAY_CALL_KERNEL)) {
			for (int k = 0; k < WAIT_PAUSES; k++)
				__asm__ volatile("pause");
		} else if (i < WAIT_YIELDS) {
			(void)heap_syscall(SYS_SCHED_YIELD, 0, 0, 0, 0);
		} else {
			(void)heap_syscall(SYS_NANOSLEEP, (uint64_t)ringwait, 0, 0, 0);
		}
	}
	x->memo->is_full = 1;
	return false;
}

uint64_t *ring_reserve(struct heap_ctx *x, uint32_t nr_words, uint64_t *ret_head)
{
	const struct heap_local *l = x->local;
	struct heap_slot *s = x->slot;
	uint64_t need = (uint64_t)nr_words * 8;
	uint64_t head = s->head & ~(uint64_t)7;
	uint64_t off = head & (x->memo->ring_bytes - 1);
	uint64_t left = x->memo->ring_bytes - off;
	uint64_t pad = need > left ? left : 0;
	uint8_t *ring = (uint8_t *)(l->shared + l->rings_off) +
			(uint64_t)(s - slot_at(l, 0)) * l->ring_bytes;

	if (UNLIKELY(slot_is_silent(x, x->tsc)))
		return NULL;
	if (UNLIKELY(l->tid_off && slot_tcb_tid(l, s) != s->tid))
		slot_check_owner(x);
	if (UNLIKELY(!has_room(x, head, need + pad))) {
		if (!wait_for_room(x, head, need + pad))
			return NULL;
	} else if (UNLIKELY(x->memo->is_full)) {
		x->memo->is_full = 0;
	}
	if (UNLIKELY(pad)) {
		*(uint64_t *)(ring + off) = HEAP_RECORD_PAD;
		head += pad;
		off = 0;
	}
	*ret_head = head + need;
	return (uint64_t *)(ring + off);
}
