/*
 * The recorder inside a target: what happens before and after each patched function. heap_entry.S
 * calls heap_before_* and heap_after_* around the original function. wire/heap_wire.h describes
 * its input and the records that it writes.
 *
 * A free removes the block from the set of sampled blocks before the allocator frees it: right
 * after the free another thread may allocate and add the same address. If the call fails, the block
 * is added again.
 */
#include "heap_recorder.h"
#include "heap_sample.h"
#include "heap_slot.h"
#include "heap_walk.h"

/* heap_before_*, heap_after_* and heap_hooked_* are called by heap_entry.S only. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct heap_data heap_data = {.magic = HEAP_WIRE_MAGIC, .version = HEAP_WIRE_VERSION};

#define SIZE_FITS(size) ((size) < HEAP_ADDR_MASK ? (size) : HEAP_ADDR_MASK)

static inline struct heap_ctx ctx_of(struct heap_local *l, struct heap_thread_state *m,
				     uint64_t tsc)
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
		slot_count_drop(x->slot, kind == HEAP_RECORD_ALLOC || kind == HEAP_RECORD_ALLOC_ALL
						 ? size
						 : 0);
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
		slot_count_drop(x->slot, 0);
		return;
	}
	p[0] = word_0(HEAP_RECORD_FREE, site, x->tsc);
	p[1] = block & HEAP_ADDR_MASK;
	ring_commit(x, head);
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline void count_size(struct heap_slot *s, uint64_t size)
{
	struct heap_class_count *of_size = &s->classes[heap_count_class(size)];

	s->nr_allocs++;
	of_size->nr++;
	of_size->nr_bytes += size;
}

/* Counts and samples an allocation. The thread is inside; the caller of @c allocated. */
static void count_alloc(struct heap_local *l, struct heap_thread_state *m,
			const struct heap_call *c, uint64_t site, uint64_t block, uint64_t size)
{
	struct heap_ctx x = ctx_of(l, m, 0);

	count_size(x.slot, size);
	m->always_bytes = ONCE(l->always_bytes);
	if (!sample_is_chosen(m, l->interval_bytes, size))
		return;
	bool is_all = !m->always_bytes && !l->is_full_trace;
	/* A block whose free could not be recorded must not be recorded: it would stay live. */
	if (is_all && UNLIKELY(!blocks_add(l, block))) {
		l->always_bytes = l->interval_bytes;
		return;
	}
	x.tsc = heap_tsc();
	uint32_t stack = walk_stack_id(&x, c, site == HEAP_SITE_NONE);
	if (!put_block(&x, is_all ? HEAP_RECORD_ALLOC_ALL : HEAP_RECORD_ALLOC, site, block, size,
		       stack)) {
		if (is_all)
			(void)blocks_remove(l, block);
		return;
	}
	if (!is_all && m->hash_mask && UNLIKELY(!blocks_add(l, block)))
		__atomic_fetch_add(&x.shared->nr_no_block, 1, __ATOMIC_RELAXED);
}

/* Returns whether a free needs a record; removes a sampled block from the set. */
static bool needs_free_record(const struct heap_local *l, const struct heap_thread_state *m,
			      uint64_t block)
{
	if (m->hash_mask)
		return blocks_may_have(l, block) && blocks_remove(l, block);
	return l->is_full_trace;
}

static void count_free(struct heap_local *l, struct heap_thread_state *m, uint64_t site,
		       uint64_t block)
{
	struct heap_ctx x = ctx_of(l, m, 0);

	x.slot->nr_frees++;
	if (!needs_free_record(l, m, block))
		return;
	x.tsc = heap_tsc();
	put_free(&x, site, block);
}

/* ---- before and after ------------------------------------------------------------------------ */

/* heap_call.thread of a thread without a slot. Only its first cache line is accessed. */
static uint64_t no_slot[8] __attribute__((aligned(64)));
#define NO_SLOT ((struct heap_thread_state *)no_slot)

/* Makes @c the outermost call. False: nested call, or the thread has no slot. */
static bool call_begin(struct heap_call *c, struct heap_local *l)
{
	struct heap_thread_state *m = slot_find(l);

	c->thread = NULL;
	c->local = l;
	if (UNLIKELY(!m)) {
		c->thread = NO_SLOT;
		return false;
	}
	if (UNLIKELY(m->slot->is_inside) && slot_is_inside(l, m, c)) {
		slot_count_drop(m->slot, 0);
		return false;
	}
	if (UNLIKELY(m->outer_call) && slot_is_nested(l, m, c))
		return false;
	c->thread = m;
	BARRIER();
	m->outer_call = c;
	return true;
}

/*
 * Enters the recorder after the original function returned. False: nothing can be recorded, since
 * recording was stopped meanwhile or this is a child forked during the call. True: call_leave
 * must follow.
 */
static inline bool call_end(struct heap_call *c, uint64_t block, uint64_t size)
{
	struct heap_local *l = c->local;
	struct heap_thread_state *m = c->thread;

	if (UNLIKELY(m == NO_SLOT)) {
		if (block)
			slot_count_no_slot(l, size);
		return false;
	}
	if (UNLIKELY(m->outer_call != c))
		return false;
	if (LIKELY(ONCE(l->is_active)) && slot_enter(l, m, c))
		return true;
	m->outer_call = NULL;
	return false;
}

static inline void call_leave(struct heap_call *c)
{
	slot_leave(c->thread->slot);
	c->thread->outer_call = NULL;
}

void heap_before_alloc(struct heap_call *c, struct heap_local *l)
{
	(void)call_begin(c, l);
}

static NOINLINE void after_alloc_slow(struct heap_call *c, uint64_t block, uint64_t size)
{
	if (!call_end(c, block, size))
		return;
	if (LIKELY(block))
		count_alloc(c->local, c->thread, c, c->site, block, size);
	call_leave(c);
}

/*
 * Fast path: a block that is not sampled is only counted. This does not set is_inside: the slot's
 * memory stays mapped even when recording stops, and the count may be off by one at the end.
 */
static inline void after_alloc(struct heap_call *c, uint64_t block, uint64_t size)
{
	struct heap_thread_state *m = c->thread;
	struct heap_slot *s = ONCE(m->slot);

	if (LIKELY(size < m->always_bytes && (int64_t)size < m->countdown && block && s &&
		   m->outer_call == c && ONCE(c->local->is_active))) {
		m->countdown -= (int64_t)size;
		count_size(s, size);
		m->outer_call = NULL;
		return;
	}
	after_alloc_slow(c, block, size);
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

/* heap_entry.S has done call_begin, and found that the block may be in the set. */
void heap_before_free_slow(struct heap_call *c, struct heap_local *l)
{
	if (!slot_enter(l, c->thread, c))
		return;
	count_free(l, c->thread, c->site, c->args[0]);
	slot_leave(c->thread->slot);
}

void heap_before_free(struct heap_call *c, struct heap_local *l)
{
	if (LIKELY(call_begin(c, l))) {
		heap_before_free_slow(c, l);
		return;
	}
	if (c->thread == NO_SLOT)
		slot_count_no_slot(l, 0);
	c->thread = NULL;
}

/* The call may free @block. */
static inline void before_realloc(struct heap_call *c, struct heap_local *l, uint64_t block)
{
	c->block = block;
	c->flags = 0;
	if (!call_begin(c, l) || (block && !needs_free_record(l, c->thread, block)))
		return;
	c->tsc = heap_tsc();
	c->flags = CALL_RECORDS_FREE;
}

void heap_before_realloc_0(struct heap_call *c, struct heap_local *l)
{
	before_realloc(c, l, c->args[0]);
}

void heap_before_realloc_1(struct heap_call *c, struct heap_local *l)
{
	before_realloc(c, l, c->args[1]);
}

/* @is_gone: the old block was freed or resized; @block: the resulting block, or 0. */
static inline void after_realloc(struct heap_call *c, bool is_gone, uint64_t block, uint64_t size)
{
	bool is_reported = c->block && c->flags & CALL_RECORDS_FREE;

	if (!call_end(c, block, size))
		return;
	if (is_gone && c->block) {
		struct heap_ctx x = ctx_of(c->local, c->thread, c->tsc);
		x.slot->nr_frees++;
		if (is_reported)
			put_free(&x, c->site, c->block);
	} else if (is_reported && c->thread->hash_mask) {
		(void)blocks_add(c->local, c->block);
	}
	if (block)
		count_alloc(c->local, c->thread, c, c->site, block, size);
	call_leave(c);
}

/* Size 0 frees the block; some allocators return a new one even so. */
static inline void after_realloc_block(struct heap_call *c, uint64_t size)
{
	after_realloc(c, c->result || !size, c->result, size);
}

void heap_after_realloc_1(struct heap_call *c)
{
	after_realloc_block(c, c->args[1]);
}

/* On overflow the call fails; a size of 0 would be taken for a free. */
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

/* ---- mappings -------------------------------------------------------------------------------- */

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
	struct heap_ctx x = ctx_of(c->local, c->thread, c->tsc);
	if (gone_len)
		(void)put_block(&x, HEAP_RECORD_UNMAP, c->site, gone, gone_len, 0);
	if (len) {
		x.tsc = heap_tsc();
		uint32_t stack = walk_stack_id(&x, c, false);
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

/* brk returns only success or failure, sbrk the old break. */
enum { SYS_BRK = 12 };

void heap_before_brk(struct heap_call *c, struct heap_local *l)
{
	c->block = 0;
	if (!call_begin(c, l))
		return;
	c->tsc = heap_tsc();
	if (l->flags & HEAP_SYSCALLS_ALLOWED)
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

/* Called from heap_entry.S; heap_call.args are the hook's arguments. */

/* Values of jemalloc's enum hook_alloc_e that decide which argument is the size. */
enum { HOOK_POSIX_MEMALIGN = 1, HOOK_ALIGNED_ALLOC, HOOK_CALLOC, HOOK_MEMALIGN, HOOK_REALLOC = 7 };

/* hook_expand_e: realloc, rallocx, xallocx; xallocx may have left the size as it was. */
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

/* Begins a call and enters the recorder; call_leave must follow. NULL: not recorded. */
static struct heap_thread_state *hook_enter(struct heap_call *c)
{
	struct heap_local *l = (struct heap_local *)ONCE(heap_data.local);

	if (!l || !ONCE(l->is_active))
		return NULL;
	if (!call_begin(c, l)) {
		if (c->thread == NO_SLOT)
			slot_count_no_slot(l, 0);
		return NULL;
	}
	if (slot_enter(l, c->thread, c))
		return c->thread;
	c->thread->outer_call = NULL;
	return NULL;
}

/* alloc(extra, type, result, raw result, raw arguments) */
void heap_hooked_alloc(struct heap_call *c)
{
	uint32_t type = (uint32_t)c->args[1];
	uint64_t block = c->args[2];

	if (!block || (type == HOOK_POSIX_MEMALIGN && (uint32_t)c->args[3]))
		return;
	struct heap_thread_state *m = hook_enter(c);
	if (!m)
		return;
	uint64_t size = hook_size(c->args[0], type, (const uint64_t *)c->args[4]);
	count_alloc(c->local, m, c, HEAP_SITE_NONE, block, size);
	call_leave(c);
}

/* dalloc(extra, type, block, raw arguments), before it is freed */
void heap_hooked_dalloc(struct heap_call *c)
{
	uint64_t block = c->args[2];
	struct heap_thread_state *m = block ? hook_enter(c) : NULL;

	if (!m)
		return;
	count_free(c->local, m, HEAP_SITE_NONE, block);
	call_leave(c);
}

/* expand(extra, type, block, old size, new size, raw result, raw arguments), in place, afterwards
 */
void heap_hooked_expand(struct heap_call *c)
{
	uint64_t block = c->args[2];
	/* A realloc within its size class counts as an allocation, as with other allocators. */
	bool is_call = (uint32_t)c->args[1] != HOOK_XALLOCX || c->args[3] != c->args[4];
	struct heap_thread_state *m = block && is_call ? hook_enter(c) : NULL;

	if (!m)
		return;
	/* Of realloc, rallocx and xallocx alike: block, size. The seventh argument is in result. */
	uint64_t size = ((const uint64_t *)c->result)[1];
	count_free(c->local, m, HEAP_SITE_NONE, block);
	count_alloc(c->local, m, c, HEAP_SITE_NONE, block, size);
	call_leave(c);
}

/* prof_backtrace(vec, &len, max). Returns 0: call jemalloc's own function */
uint32_t heap_hooked_backtrace(struct heap_call *c)
{
	uint64_t *vec = (uint64_t *)c->args[0];
	uint32_t *ret_len = (uint32_t *)c->args[1];
	uint32_t max = (uint32_t)c->args[2];
	uint32_t n = 0;

	struct heap_thread_state *m = hook_enter(c);
	if (!m)
		return 0;
	struct heap_ctx x = ctx_of(c->local, m, 0);
	/* If assay is gone, the mappings in the tables are out of date. */
	if (!slot_is_assay_gone(&x, heap_tsc())) {
		for (uint32_t i = walk_stack(&x, c, true, NULL); i < HEAP_FRAMES_MAX && n < max;
		     i++)
			if (!(m->frames[i].pc & FRAME_HIDDEN))
				vec[n++] = frame_pc(&m->frames[i]);
		*ret_len = n;
	}
	call_leave(c);
	return n;
}
