/*
 * The recorder inside a target; see wire/heap_wire.h for what it is told and what it tells.
 * heap_entry.S calls heap_before_* and heap_after_* around the original function.
 *
 * A block that is freed leaves the set of sampled blocks before it is freed, as another thread may
 * get and put in the same address right after. If the call fails it is put back.
 */
#include "heap_inner.h"
#include "heap_sample.h"
#include "heap_slot.h"
#include "heap_walk.h"

/* heap_before_*, heap_free_begun, heap_after_* and heap_inner_* are called by heap_entry.S alone. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct heap_data heap_data = {.magic = HEAP_WIRE_MAGIC, .version = HEAP_WIRE_VERSION};

#define SIZE_FITS(size) ((size) < HEAP_ADDR_MASK ? (size) : HEAP_ADDR_MASK)

static inline struct heap_ctx ctx_of(struct heap_local *l, struct heap_memo *m, uint64_t tsc)
{
	return (struct heap_ctx){l, m->slot, m, (struct heap_shared *)l->shared, tsc};
}

/* ---- records -------------------------------------------------------------------------------- */

static inline uint64_t word_0(enum heap_record kind, uint64_t site, uint64_t tsc)
{
	return (uint64_t)kind | (site & 0xff) << HEAP_SITE_SHIFT | tsc << HEAP_TSC_SHIFT;
}

static bool put_block(struct heap_ctx *x, enum heap_record kind, uint64_t site, uint64_t block,
		      uint64_t size, uint32_t stack)
{
	uint64_t head;
	uint64_t *p = ring_reserve(x, 3, &head);

	if (UNLIKELY(!p)) {
		slot_drop(x->slot, kind == HEAP_RECORD_ALLOC ? size : 0);
		return false;
	}
	p[0] = word_0(kind, site, x->tsc);
	p[1] = (block & HEAP_ADDR_MASK) | (uint64_t)stack << HEAP_STACK_SHIFT;
	p[2] = SIZE_FITS(size) | (uint64_t)(stack >> 16) << HEAP_STACK_SHIFT;
	ring_commit(x, head);
	return true;
}

static void put_free(struct heap_ctx *x, uint64_t site, uint64_t block)
{
	uint64_t head;
	uint64_t *p = ring_reserve(x, 2, &head);

	if (UNLIKELY(!p)) {
		slot_drop(x->slot, 0);
		return;
	}
	p[0] = word_0(HEAP_RECORD_FREE, site, x->tsc);
	p[1] = block & HEAP_ADDR_MASK;
	ring_commit(x, head);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The thread is in the recorder; @c: whose caller allocated. */
static void count_alloc(struct heap_local *l, struct heap_memo *m, const struct heap_call *c,
			uint64_t site, uint64_t block, uint64_t size)
{
	struct heap_ctx x = ctx_of(l, m, 0);

	x.slot->nr_allocs++;
	x.slot->nr_bytes += size;
	if (!sample_takes(m, l->interval_bytes, size))
		return;
	x.tsc = heap_tsc();
	uint32_t stack = walk_number(&x, c, site == HEAP_SITE_NONE);
	if (!put_block(&x, HEAP_RECORD_ALLOC, site, block, size, stack))
		return;
	if (m->hash_mask && UNLIKELY(!blocks_add(l, block)))
		__atomic_fetch_add(&x.shared->nr_no_block, 1, __ATOMIC_RELAXED);
}

/* Whether the free of a block is to be told. Sampled blocks are forgotten by it. */
static bool is_free_reported(const struct heap_local *l, const struct heap_memo *m, uint64_t block)
{
	if (m->hash_mask)
		return blocks_may_have(l, block) && blocks_take(l, block);
	return l->is_every;
}

static void count_free(struct heap_local *l, struct heap_memo *m, uint64_t site, uint64_t block)
{
	struct heap_ctx x = ctx_of(l, m, 0);

	x.slot->nr_frees++;
	if (!is_free_reported(l, m, block))
		return;
	x.tsc = heap_tsc();
	put_free(&x, site, block);
}

/* ---- before and after --------------------------------------------------------------------------
 */

/* What memo is for a thread without a slot. Nothing of it but its first line is used. */
static uint64_t nobody[8] __attribute__((aligned(64)));
#define NOBODY ((struct heap_memo *)nobody)

/* Begins the call; false: it does not count, or its thread has no slot. */
static bool call_begin(struct heap_call *c, struct heap_local *l)
{
	struct heap_memo *m = slot_find(l);

	c->memo = NULL;
	c->local = l;
	if (UNLIKELY(!m)) {
		c->memo = NOBODY;
		return false;
	}
	if (UNLIKELY(m->slot->is_inside) && slot_is_inside(l, m, c)) {
		slot_drop(m->slot, 0);
		return false;
	}
	if (UNLIKELY(m->nest) && slot_is_nested(l, m, c))
		return false;
	c->memo = m;
	BARRIER();
	m->nest = c;
	return true;
}

/*
 * The call is over. False: nothing can be written, as recording was stopped meanwhile, or this is
 * a child that was forked in it. True: call_leave is to follow.
 */
static inline bool call_end(struct heap_call *c, uint64_t block, uint64_t size)
{
	struct heap_local *l = c->local;
	struct heap_memo *m = c->memo;

	if (UNLIKELY(m == NOBODY)) {
		if (block)
			slot_miss(l, size);
		return false;
	}
	if (UNLIKELY(m->nest != c))
		return false;
	if (LIKELY(ONCE(l->is_active)) && slot_enter(l, m, c))
		return true;
	m->nest = NULL;
	return false;
}

static inline void call_leave(struct heap_call *c)
{
	slot_leave(c->memo->slot);
	c->memo->nest = NULL;
}

void heap_before_alloc(struct heap_call *c, struct heap_local *l)
{
	(void)call_begin(c, l);
}

static NOINLINE void after_alloc_far(struct heap_call *c, uint64_t block, uint64_t size)
{
	if (!call_end(c, block, size))
		return;
	if (LIKELY(block))
		count_alloc(c->local, c->memo, c, c->site, block, size);
	call_leave(c);
}

/*
 * Blocks that are not recorded are only counted. Nothing waits for that: memory is there whatever
 * happens to the recording, and the count of one block more or less at its end is nobody's.
 */
static inline void after_alloc(struct heap_call *c, uint64_t block, uint64_t size)
{
	struct heap_memo *m = c->memo;
	struct heap_slot *s = ONCE(m->slot);

	if (LIKELY(size < m->always && (int64_t)size < m->countdown && block && s && m->nest == c &&
		   ONCE(c->local->is_active))) {
		m->countdown -= (int64_t)size;
		s->nr_allocs++;
		s->nr_bytes += size;
		m->nest = NULL;
		return;
	}
	after_alloc_far(c, block, size);
}

void heap_after_alloc_0(struct heap_call *c)
{
	after_alloc(c, c->result, c->args[0]);
}

void heap_after_alloc_1(struct heap_call *c)
{
	after_alloc(c, c->result, c->args[1]);
}

void heap_after_alloc_01(struct heap_call *c)
{
	after_alloc(c, c->result, c->args[0] * c->args[1]);
}

void heap_after_alloc_12(struct heap_call *c)
{
	after_alloc(c, c->result, c->args[1] * c->args[2]);
}

void heap_after_alloc_out(struct heap_call *c)
{
	bool is_good = (uint32_t)c->result == 0;
	after_alloc(c, is_good ? *(const uint64_t *)c->args[0] : 0, c->args[2]);
}

/* heap_entry.S begins calls by itself, and counts blocks that are not in the set. */
void heap_free_begun(struct heap_call *c, struct heap_local *l)
{
	if (!slot_enter(l, c->memo, c))
		return;
	count_free(l, c->memo, c->site, c->args[0]);
	slot_leave(c->memo->slot);
}

void heap_before_free(struct heap_call *c, struct heap_local *l)
{
	if (LIKELY(call_begin(c, l))) {
		heap_free_begun(c, l);
		return;
	}
	if (c->memo == NOBODY)
		slot_miss(l, 0);
	c->memo = NULL;
}

/* @block is perhaps about to go. */
static inline void before_realloc(struct heap_call *c, struct heap_local *l, uint64_t block)
{
	c->block = block;
	c->flags = 0;
	if (!call_begin(c, l) || (block && !is_free_reported(l, c->memo, block)))
		return;
	c->tsc = heap_tsc();
	c->flags = CALL_IS_FREE_REPORTED;
}

void heap_before_realloc_0(struct heap_call *c, struct heap_local *l)
{
	before_realloc(c, l, c->args[0]);
}

void heap_before_realloc_1(struct heap_call *c, struct heap_local *l)
{
	before_realloc(c, l, c->args[1]);
}

/* @is_gone: what was there before is not any more; @block: what is there now, or 0. */
static inline void after_realloc(struct heap_call *c, bool is_gone, uint64_t block, uint64_t size)
{
	bool is_reported = c->block && c->flags & CALL_IS_FREE_REPORTED;

	if (!call_end(c, block, size))
		return;
	if (is_gone && c->block) {
		struct heap_ctx x = ctx_of(c->local, c->memo, c->tsc);
		x.slot->nr_frees++;
		if (is_reported)
			put_free(&x, c->site, c->block);
	} else if (is_reported && c->memo->hash_mask) {
		(void)blocks_add(c->local, c->block);
	}
	if (block)
		count_alloc(c->local, c->memo, c, c->site, block, size);
	call_leave(c);
}

/* A size of 0 frees; some give a block even so. */
static inline void after_realloc_block(struct heap_call *c, uint64_t size)
{
	after_realloc(c, c->result || !size, c->result, size);
}

void heap_after_realloc_1(struct heap_call *c)
{
	after_realloc_block(c, c->args[1]);
}

/* More than can be is refused: 0 would be taken for a free. */
void heap_after_realloc_12(struct heap_call *c)
{
	uint64_t size;
	bool is_over = __builtin_mul_overflow(c->args[1], c->args[2], &size);
	after_realloc_block(c, is_over ? UINT64_MAX : size);
}

void heap_after_realloc_2(struct heap_call *c)
{
	after_realloc_block(c, c->args[2]);
}

void heap_after_resize(struct heap_call *c)
{
	bool is_good = c->result >= c->args[1];
	after_realloc(c, is_good, is_good ? c->args[0] : 0, c->args[1]);
}

/* ---- mappings -----------------------------------------------------------------------------------
 */

#define NR_ERRNO 4095u

static inline bool is_failure(uint64_t result)
{
	return result > (uint64_t)-1 - NR_ERRNO;
}

void heap_before_map(struct heap_call *c, struct heap_local *l)
{
	__atomic_fetch_add(&l->nr_unmaps, 1, __ATOMIC_RELEASE);
	if (call_begin(c, l))
		c->tsc = heap_tsc();
}

static inline void after_map(struct heap_call *c, uint64_t gone, uint64_t gone_len, uint64_t addr,
			     uint64_t len)
{
	if (!call_end(c, 1, 0))
		return;
	struct heap_ctx x = ctx_of(c->local, c->memo, c->tsc);
	if (gone_len)
		(void)put_block(&x, HEAP_RECORD_UNMAP, c->site, gone, gone_len, 0);
	if (len) {
		x.tsc = heap_tsc();
		uint32_t stack = walk_number(&x, c, false);
		(void)put_block(&x, HEAP_RECORD_MAP, c->site, addr, len, stack);
	}
	call_leave(c);
}

void heap_after_mmap(struct heap_call *c)
{
	after_map(c, 0, 0, c->result, is_failure(c->result) ? 0 : c->args[1]);
}

void heap_after_munmap(struct heap_call *c)
{
	after_map(c, c->args[0], (uint32_t)c->result ? 0 : c->args[1], 0, 0);
}

void heap_after_mremap(struct heap_call *c)
{
	bool is_good = !is_failure(c->result);
	after_map(c, c->args[0], is_good ? c->args[1] : 0, c->result, is_good ? c->args[2] : 0);
}

/* brk gives no more than success, sbrk where the end was. */
enum { SYS_BRK = 12 };

void heap_before_brk(struct heap_call *c, struct heap_local *l)
{
	c->block = 0;
	if (!call_begin(c, l))
		return;
	c->tsc = heap_tsc();
	if (l->flags & HEAP_MAY_CALL_KERNEL)
		c->block = (uint64_t)heap_syscall(SYS_BRK, 0, 0, 0, 0);
}

static inline void after_break(struct heap_call *c, uint64_t from, uint64_t to)
{
	uint64_t up = to > from ? to - from : 0;
	uint64_t down = from > to ? from - to : 0;

	after_map(c, to, down, from, up);
}

void heap_after_brk(struct heap_call *c)
{
	bool is_good = (uint32_t)c->result == 0 && c->block;
	after_break(c, c->block, is_good ? c->args[0] : c->block);
}

void heap_after_sbrk(struct heap_call *c)
{
	after_break(c, c->result, is_failure(c->result) ? c->result : c->result + c->args[0]);
}

/* ---- jemalloc's hooks ------------------------------------------------------------------------ */

/* Through heap_entry.S; a call's args are the hook's. */

/* Which of a function's arguments are the size: jemalloc's enum hook_alloc_e, in order. */
enum { HOOK_POSIX_MEMALIGN = 1, HOOK_ALIGNED_ALLOC, HOOK_CALLOC, HOOK_MEMALIGN, HOOK_REALLOC = 7 };

/* hook_expand_e: realloc, rallocx, xallocx, which may have done nothing. */
enum { HOOK_XALLOCX = 2 };

static uint64_t hook_size(uint64_t extra, uint32_t type, const uint64_t *raw)
{
	uint32_t nr_plain = HOOK_REALLOC + (extra == HEAP_HOOK_PVALLOC);

	if (type == HOOK_CALLOC)
		return raw[0] * raw[1];
	if (type == HOOK_POSIX_MEMALIGN)
		return raw[2];
	if (type == HOOK_ALIGNED_ALLOC || type == HOOK_MEMALIGN || type >= nr_plain)
		return raw[1];
	return raw[0];
}

/* NULL: not now. Else the thread is in the recorder, and call_leave is to follow. */
static struct heap_memo *hook_enter(struct heap_call *c)
{
	struct heap_local *l = (struct heap_local *)ONCE(heap_data.local);

	if (!l || !ONCE(l->is_active))
		return NULL;
	if (!call_begin(c, l)) {
		if (c->memo == NOBODY)
			slot_miss(l, 0);
		return NULL;
	}
	if (slot_enter(l, c->memo, c))
		return c->memo;
	c->memo->nest = NULL;
	return NULL;
}

/* alloc(extra, type, result, raw result, raw arguments) */
void heap_inner_alloc(struct heap_call *c)
{
	uint32_t type = (uint32_t)c->args[1];
	uint64_t block = c->args[2];

	if (!block || (type == HOOK_POSIX_MEMALIGN && (uint32_t)c->args[3]))
		return;
	struct heap_memo *m = hook_enter(c);
	if (!m)
		return;
	uint64_t size = hook_size(c->args[0], type, (const uint64_t *)c->args[4]);
	count_alloc(c->local, m, c, HEAP_SITE_NONE, block, size);
	call_leave(c);
}

/* dalloc(extra, type, block, raw arguments), before it is freed */
void heap_inner_dalloc(struct heap_call *c)
{
	uint64_t block = c->args[2];
	struct heap_memo *m = block ? hook_enter(c) : NULL;

	if (!m)
		return;
	count_free(c->local, m, HEAP_SITE_NONE, block);
	call_leave(c);
}

/* expand(extra, type, block, old size, new size, raw result, raw arguments), in place, afterwards
 */
void heap_inner_expand(struct heap_call *c)
{
	uint64_t block = c->args[2];
	/* A realloc within its class of sizes is a call that gave a block, as elsewhere. */
	bool is_call = (uint32_t)c->args[1] != HOOK_XALLOCX || c->args[3] != c->args[4];
	struct heap_memo *m = block && is_call ? hook_enter(c) : NULL;

	if (!m)
		return;
	/* Of realloc, rallocx and xallocx alike: block, size. The seventh argument is in result. */
	uint64_t size = ((const uint64_t *)c->result)[1];
	count_free(c->local, m, HEAP_SITE_NONE, block);
	count_alloc(c->local, m, c, HEAP_SITE_NONE, block, size);
	call_leave(c);
}

/* prof_backtrace(vec, &len, max); 0: the former function is to be asked */
uint32_t heap_inner_backtrace(struct heap_call *c)
{
	uint64_t *vec = (uint64_t *)c->args[0];
	uint32_t *ret_len = (uint32_t *)c->args[1];
	uint32_t max = (uint32_t)c->args[2];
	uint32_t n = 0;

	struct heap_memo *m = hook_enter(c);
	if (!m)
		return 0;
	struct heap_ctx x = ctx_of(c->local, m, 0);
	/* Without assay nobody tells what is mapped meanwhile. */
	if (!slot_is_silent(&x, heap_tsc())) {
		for (uint32_t i = walk_stack(&x, c, true, NULL); i < HEAP_FRAMES_MAX && n < max;
		     i++)
			if (!(m->frames[i].pc & FRAME_HIDDEN))
				vec[n++] = frame_pc(&m->frames[i]);
		*ret_len = n;
	}
	call_leave(c);
	return n;
}
