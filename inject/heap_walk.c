/*
 * Incremental unwinding. A walk goes from the leaf outwards until a frame equals one of the
 * thread's last stack: same pc, sp and, if anything depends on it, fp. From there on the stack is
 * unchanged if all words that the last walk read are unchanged; comparing them costs a nanosecond
 * each. Hashes are computed from the outermost frame inwards, so frames that stay keep theirs.
 */
#include "heap_walk.h"

#include "heap_stackcache.h"
#include "heap_slot.h"
#include "kernel_tables.h"

enum { SYS_RT_SIGPROCMASK = 14 };

#define PAGE ((uint64_t)4096)
#define STACK_GAP_MAX \
	((uint64_t)1 << 20) /* an address farther beyond the known range is not on this stack */
#define TP_STACK_MAX ((uint64_t)8 << 20)
#define ADDR_MIN     4096u
#define END_IDX      HEAP_FRAMES_MAX

/* Why there is no unwind row; stored in a ROW_PSEUDO rule above the kind. */
enum pseudo_rule { PSEUDO_NONE = 0, PSEUDO_NO_MAP = 1, PSEUDO_UNKNOWN = 2 };

struct walk {
	struct heap_ctx *x;
	const struct heap_local *l;
	struct heap_thread_state *m;
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	bool is_call;
	bool is_chained;
	int32_t fp_slot; /* unwind_core.h */
	/* The readable range. */
	uint64_t lo;
	uint64_t hi;
	bool is_start_stack; /* lo..hi is the stack on which the walk began, not a signal stack's */
	/* The mappings of the process. */
	const struct ktables_head *tables;
	uint32_t first_map;
	uint32_t nr_maps;
	uint32_t generation;
	enum walk_end end;
};

/* ---- memory ---------------------------------------------------------------------------- */

/* The kernel reads the set before it checks `how`, which is invalid: EINVAL means readable. */
bool walk_is_readable(const struct heap_local *l, uint64_t page)
{
	if (!(l->flags & HEAP_SYSCALLS_ALLOWED))
		return false;
	return heap_syscall(SYS_RT_SIGPROCMASK, 0x7fffffff, page, 0, 8) == -22; /* EINVAL */
}

/*
 * Drops the known range when the stack may have been unmapped: programs create and unmap their own
 * stacks (coroutines), and a smaller stack may replace a larger one. In a full trace patched
 * munmap calls are counted; when sampling, the range is checked again each time.
 */
static void drop_stale_range(const struct heap_local *l, struct heap_thread_state *m)
{
	uint32_t nr_unmaps = __atomic_load_n(&l->nr_unmaps, __ATOMIC_ACQUIRE);

	if (LIKELY(l->is_full_trace && m->readable_unmaps == nr_unmaps))
		return;
	m->readable_unmaps = nr_unmaps;
	m->readable_lo = m->readable_hi = 0;
}

static void find_stack_range(struct walk *w)
{
	const struct heap_local *l = w->l;
	struct heap_thread_state *m = w->m;
	uint64_t page = w->sp & ~(PAGE - 1);

	drop_stale_range(l, m);
	w->is_start_stack = true;
	w->lo = w->sp;
	if (w->sp - l->main_stack_lo < l->main_stack_hi - l->main_stack_lo) {
		w->hi = l->main_stack_hi;
		return;
	}
	if (w->sp - m->readable_lo < m->readable_hi - m->readable_lo) {
		w->hi = m->readable_hi;
		return;
	}
	/* Deeper in the same stack, or on another stack. */
	uint64_t at = page + PAGE;
	if (at < m->readable_lo && m->readable_lo - at < 64 * PAGE)
		while (at < m->readable_lo && walk_is_readable(l, at))
			at += PAGE;
	w->hi = at == m->readable_lo ? m->readable_hi : page + PAGE;
	if (!(l->flags & HEAP_SYSCALLS_ALLOWED) && m->tp - w->sp < TP_STACK_MAX)
		w->hi = m->tp & ~(uint64_t)7;
	m->readable_lo = page;
	m->readable_hi = w->hi;
}

static bool extend_range(struct walk *w, uint64_t addr)
{
	const struct heap_local *l = w->l;

	if (w->hi == l->main_stack_hi || w->hi % PAGE)
		return false;
	while (w->hi <= addr) {
		if (w->hi == l->main_stack_lo)
			w->hi = l->main_stack_hi;
		else if (walk_is_readable(l, w->hi))
			w->hi += PAGE;
		else
			return false;
	}
	if (w->is_start_stack) {
		/* If the main stack has grown since the attach, this range includes the new part. */
		w->m->readable_hi = w->hi;
	}
	return true;
}

/* Extends the readable range to [addr, + 8); false: not readable. */
static NOINLINE bool make_readable(struct walk *w, uint64_t addr)
{
	const struct heap_local *l = w->l;

	if (addr & 7)
		return false;
	if (addr - w->hi < STACK_GAP_MAX)
		return extend_range(w, addr);
	/* Another stack is possible only after a signal frame (sigaltstack). */
	if (w->is_call)
		return false;
	if (addr - l->main_stack_lo < l->main_stack_hi - l->main_stack_lo) {
		w->hi = l->main_stack_hi;
	} else if (walk_is_readable(l, addr & ~(PAGE - 1))) {
		w->hi = (addr & ~(PAGE - 1)) + PAGE;
	} else {
		return false;
	}
	w->lo = addr;
	w->is_start_stack = false;
	return true;
}

static inline bool walk_read(struct walk *w, uint64_t addr, uint64_t *ret_v)
{
	/* hi and all accepted addresses are multiples of 8. */
	if (UNLIKELY(addr - w->lo >= w->hi - w->lo || addr & 7) && !make_readable(w, addr))
		return false;
	*ret_v = *(const volatile uint64_t *)addr;
	return true;
}

/* ---- rules ------------------------------------------------------------------------------- */

static inline uint32_t pseudo_row(enum pseudo_rule why)
{
	return ROW_PSEUDO | (uint32_t)why << ROW_KIND_BITS;
}

static const struct kmap *find_map(const struct walk *w, uint64_t addr)
{
	const struct kmap *maps = w->tables->maps;
	uint32_t lo = 0, hi = w->nr_maps;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (maps[(w->first_map + mid) & (KTABLES_NR_MAPS - 1)].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	const struct kmap *map = &maps[(w->first_map + lo - 1) & (KTABLES_NR_MAPS - 1)];
	return addr < map->end ? map : NULL;
}

static inline const struct unwind_row *row_at(const struct walk *w, uint32_t idx)
{
	const struct unwind_row *rows =
		(const void *)((const uint8_t *)w->tables + KTABLES_HEAD_BYTES);
	return &rows[idx & (w->l->tables_rows - 1)];
}

/* Converts a map-relative index of a special rule to a global one. */
static uint32_t absolute_rule(const struct kmap *map, uint32_t rule)
{
	if (row_kind(rule) != ROW_SPECIAL)
		return rule;
	uint32_t idx = (map->first_special + row_special_idx(rule)) & (KTABLES_NR_SPECIALS - 1);
	return ROW_SPECIAL | idx << ROW_KIND_BITS;
}

static uint32_t search_rule(const struct walk *w, uint64_t addr)
{
	const struct kmap *map = find_map(w, addr);

	if (!map)
		return pseudo_row(PSEUDO_NO_MAP);
	uint64_t off = addr - map->base;
	if (map->kind != KMAP_RULES || addr < map->base || off >> 12 >= map->nr_pages)
		return pseudo_row(PSEUDO_NONE);
	uint32_t page = map->first_page + (uint32_t)(off >> 12);
	uint32_t lo = w->tables->pages[page & (KTABLES_NR_PAGES - 1)];
	uint32_t hi = w->tables->pages[(page + 1) & (KTABLES_NR_PAGES - 1)];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (row_at(w, mid)->pc <= (uint32_t)off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo <= map->first_row)
		return pseudo_row(PSEUDO_NONE);
	uint32_t rule = row_at(w, lo - 1)->rule;
	if (w->is_call && lo < map->end_row) {
		/* Signal trampoline: the kernel sets its first byte as return address, without a
		 * call instruction before it. */
		const struct unwind_row *next = row_at(w, lo);
		if (next->pc == (uint32_t)off + 1 && row_kind(next->rule) == ROW_SIGNAL)
			rule = next->rule;
	}
	return row_kind(rule) == ROW_NONE ? pseudo_row(PSEUDO_NONE) : absolute_rule(map, rule);
}

/*
 * An entry of the rule cache has two words that are not written atomically together; part of the
 * key is in both, so a torn entry is detected.
 */
static inline uint64_t *rule_entry(const struct walk *w, uint64_t addr, uint64_t *ret_key,
				   uint32_t *ret_tag)
{
	uint64_t key = addr | (uint64_t)w->generation << HEAP_ADDR_BITS;
	uint64_t hash = key * 0x9e3779b97f4a7c15u;

	*ret_key = key;
	*ret_tag = (uint32_t)(hash >> 20);
	return (uint64_t *)w->l->rules + (hash >> 40 & (w->l->nr_rules - 1)) * 2;
}

static NOINLINE uint32_t fill_rule(const struct walk *w, uint64_t addr)
{
	uint64_t key;
	uint32_t tag;

	if (!w->nr_maps)
		return pseudo_row(PSEUDO_UNKNOWN);
	uint32_t rule = search_rule(w, addr);
	if (!w->l->nr_rules || addr >> HEAP_ADDR_BITS)
		return rule;
	uint64_t *e = rule_entry(w, addr, &key, &tag);
	__atomic_store_n(&e[1], (uint64_t)rule << 32 | tag, __ATOMIC_RELAXED);
	__atomic_store_n(&e[0], key, __ATOMIC_RELAXED);
	return rule;
}

static inline uint32_t find_rule(const struct walk *w, uint64_t addr)
{
	uint64_t key;
	uint32_t tag;

	if (LIKELY(w->nr_maps && w->l->nr_rules)) {
		const uint64_t *e = rule_entry(w, addr, &key, &tag);
		uint64_t v = __atomic_load_n(&e[1], __ATOMIC_RELAXED);
		if (LIKELY(__atomic_load_n(&e[0], __ATOMIC_RELAXED) == key && (uint32_t)v == tag))
			return (uint32_t)(v >> 32);
	}
	return fill_rule(w, addr);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Only pc, sp and fp are known, also for the leaf. */
static inline bool walk_leaf_reg(const struct walk *w, uint32_t reg, uint64_t *ret_v)
{
	(void)w, (void)reg, (void)ret_v;
	return false;
}

static inline bool is_rule(uint32_t rule)
{
	return row_kind(rule) != ROW_NONE && row_kind(rule) != ROW_PSEUDO;
}

static bool walk_is_caller(struct walk *w, uint64_t ra, bool needs_rule)
{
	w->is_call = true;
	if (ra < ADDR_MIN || ra > HEAP_ADDR_MASK)
		return false;
	uint32_t rule = find_rule(w, ra - 1);
	return rule != pseudo_row(PSEUDO_NO_MAP) && (!needs_rule || is_rule(rule));
}

static int walk_step_special(struct walk *w, uint32_t rule);
static int walk_step_norule(struct walk *w);

#include "unwind_core.h"

static int walk_step_special(struct walk *w, uint32_t rule)
{
	return unwind_step_special(
		w, &w->tables->specials[row_special_idx(rule) & (KTABLES_NR_SPECIALS - 1)]);
}

static NOINLINE int walk_step_norule(struct walk *w)
{
	return unwind_step_chain(w);
}

/* ---- the last stack ------------------------------------------------------------------------- */

/*
 * Returns whether all frames outside of @i are unchanged. Otherwise *ret_i is the first one that
 * may still be.
 */
static inline bool is_unchanged(struct walk *w, uint32_t i, uint32_t *ret_i)
{
	const struct heap_thread_state *m = w->m;

	*ret_i = END_IDX;
	if (UNLIKELY(m->outermost > w->hi) &&
	    (!w->is_start_stack || !extend_range(w, m->outermost - 8)))
		return false;
	for (uint32_t k = i + 1; k < END_IDX; k++) {
		const struct heap_frame *f = &m->frames[k];
		uint64_t pc = *(const volatile uint64_t *)(f->sp - 8);
		if (UNLIKELY((f->pc ^ pc) & (HEAP_ADDR_MASK | FRAME_HAS_WORD))) {
			const struct heap_origin *o = &m->origins[k];
			*ret_i = k + 1;
			if (pc != frame_pc(f) || *(const volatile uint64_t *)o->fp_at != o->fp)
				return false;
		}
	}
	return !m->end_addr || *(const volatile uint64_t *)m->end_addr == m->end_word;
}

static inline bool is_same_frame(const struct heap_thread_state *m, uint32_t i, uint64_t pc,
				 uint64_t sp, uint64_t fp)
{
	const struct heap_frame *f = &m->frames[i];

	return f->sp == sp && !((f->pc ^ pc) & HEAP_ADDR_MASK) &&
	       (!(f->pc & FRAME_NEEDS_FP) || m->origins[i].fp == fp);
}

/* The part of struct walk that the inner loop keeps in registers. */
struct walk_regs {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	uint64_t fp_at;
	uint64_t bits;
};

static inline void regs_to_walk(struct walk *w, const struct walk_regs *p)
{
	w->pc = p->pc;
	w->sp = p->sp;
	w->fp = p->fp;
}

/*
 * Steps to the caller by a row of kind SP or FP, which nearly all rows are, with loads from
 * readable memory only. False: not possible this way, @p is unchanged.
 */
static inline bool step_fast(struct walk_regs *p, uint32_t rule, uint64_t hi)
{
	bool is_fp = row_kind(rule) == ROW_FP;
	uint64_t cfa = (is_fp ? p->fp : p->sp) + row_cfa_bytes(rule);
	int32_t slot = row_fp_slot(rule);

	if (UNLIKELY((uint32_t)(row_kind(rule) - ROW_SP) > ROW_FP - ROW_SP || cfa & 7 ||
		     cfa <= p->sp || cfa > hi))
		return false;
	uint64_t ra = *(const volatile uint64_t *)(cfa - 8);
	if (UNLIKELY(!ra))
		return false;
	p->fp_at = 0;
	if (slot != ROW_FP_SAME) {
		uint64_t at = cfa + (uint64_t)((int64_t)slot * 8);
		if (UNLIKELY(at - p->sp >= cfa - p->sp))
			return false;
		p->fp_at = at;
		p->fp = *(const volatile uint64_t *)at;
	}
	p->bits |= is_fp ? FRAME_NEEDS_FP : 0;
	p->pc = ra;
	p->sp = cfa;
	return true;
}

static NOINLINE int step_slow(struct walk *w, struct walk_regs *p, uint32_t rule)
{
	uint32_t kind = row_kind(rule);
	bool is_gap = !is_rule(rule);

	regs_to_walk(w, p);
	w->fp_slot = ROW_FP_SAME;
	int next = unwind_step(w, rule);
	if (is_gap)
		p->fp_at = p->fp;
	else if (w->fp_slot != ROW_FP_SAME)
		p->fp_at = w->sp + (uint64_t)((int64_t)w->fp_slot * 8);
	else
		p->fp_at = 0;
	p->pc = w->pc;
	p->sp = w->sp;
	p->fp = w->fp;
	p->bits |= kind == ROW_FP || is_gap ? FRAME_NEEDS_FP : 0;
	p->bits |= kind == ROW_SIGNAL || kind == ROW_SPECIAL ? FRAME_COMPLEX : 0;
	return next;
}

/*
 * Adds the caller of the allocator as a frame although its address is in no known mapping: it may
 * be in a library just loaded, which the tables do not have yet.
 */
static NOINLINE uint32_t add_caller(struct heap_thread_state *m, const struct walk_regs *p)
{
	m->frames[0] = (struct heap_frame){.pc = p->pc & HEAP_ADDR_MASK, .sp = p->sp};
	m->origins[0].fp = p->fp;
	m->origins[0].fp_at = 0;
	return 1;
}

/*
 * Collects frames until the walk ends or reaches the last stack; *ret_known is then the index of
 * the first unchanged frame (END_IDX: none). Returns the number of new frames. *ret_stack_id != 0:
 * found in the stack cache, the frames are incomplete. NULL: no cache lookup.
 */
static inline uint32_t walk_new_frames(struct walk *w, bool is_hook, uint32_t *ret_known,
				       uint32_t *ret_stack_id)
{
	const struct heap_local *l = w->l;
	struct heap_thread_state *m = w->m;
	uint64_t image_lo = l->image_lo, image_bytes = l->image_hi - l->image_lo;
	uint64_t skip_lo = l->skip_lo, skip_bytes = is_hook ? l->skip_hi - l->skip_lo : 0;
	uint32_t known = m->top > m->plain ? m->top : m->plain;
	struct walk_regs p = {w->pc, w->sp, w->fp, 0, 0};
	uint32_t n = 0;

	*ret_known = END_IDX;
	for (;; n++) {
		while (known < END_IDX && m->frames[known].sp < p.sp)
			known++;
		if (known < END_IDX && is_same_frame(m, known, p.pc, p.sp, p.fp)) {
			uint32_t next;
			if (LIKELY(is_unchanged(w, known, &next))) {
				*ret_known = known;
				break;
			}
			known = next;
		}
		if (n == STACKCACHE_DEPTH && ret_stack_id) {
			m->stackcache_key = stackcache_key(m, p.pc);
			*ret_stack_id = stackcache_find(m, m->stackcache_key, w->hi);
			if (LIKELY(*ret_stack_id))
				return n;
		}
		uint32_t rule = find_rule(w, p.pc - w->is_call);
		/* A return address in no mapping is not a frame; an interrupted pc is. */
		if (UNLIKELY(rule == pseudo_row(PSEUDO_NO_MAP) && w->is_call)) {
			w->end = WALK_NO_MAP;
			if (!n)
				n = add_caller(m, &p);
			break;
		}
		if (UNLIKELY(n >= known)) {
			known = END_IDX; /* new frames overwrite the known ones */
			if (n >= END_IDX) {
				w->end = WALK_DEPTH;
				break;
			}
		}
		p.bits = p.pc & HEAP_ADDR_MASK;
		if (UNLIKELY(p.pc - image_lo < image_bytes || p.pc - skip_lo < skip_bytes))
			p.bits |= FRAME_HIDDEN;
		else
			skip_bytes = 0;
		m->frames[n].sp = p.sp;
		m->origins[n].fp = p.fp;
		int next = STEP_OK;
		if (LIKELY(w->is_call && step_fast(&p, rule, w->hi)))
			w->is_chained = false;
		else
			next = step_slow(w, &p, rule);
		m->frames[n].pc = p.bits;
		m->origins[n].fp_at = p.fp_at;
		if (UNLIKELY(next != STEP_OK)) {
			w->end = (enum walk_end)next;
			n++;
			break;
		}
	}
	regs_to_walk(w, &p);
	return n;
}

/*
 * Finishes the new frames [at, + n). The walk stored per frame where its caller's fp was loaded
 * from and whether the step used fp; this computes which words must be unchanged for the frame to
 * be valid, and its hash.
 */
static inline void link_frames(struct heap_thread_state *m, uint32_t at, uint32_t n, uint64_t seed)
{
	uint64_t is_needed = 0; /* FRAME_NEEDS_FP */
	uint64_t hash = seed;

	if (at + n < END_IDX) {
		is_needed = m->frames[at + n].pc & FRAME_NEEDS_FP;
		hash = m->origins[at + n].hash;
	}
	for (uint32_t i = at + n; i-- > at;) {
		struct heap_frame *f = &m->frames[i];
		struct heap_origin *o = &m->origins[i];
		uint64_t from = o->fp_at;
		if (i + 1 < END_IDX) {
			o[1].fp_at = from;
			f[1].pc &= ~FRAME_HAS_WORD;
			if (from && is_needed)
				f[1].pc |= FRAME_HAS_WORD;
		}
		if (from)
			is_needed = 0;
		is_needed |= f->pc & FRAME_NEEDS_FP;
		f->pc |= is_needed;
		if (LIKELY(!(f->pc & FRAME_HIDDEN)))
			hash = heap_mix(hash, frame_pc(f));
		o->hash = hash;
		if (UNLIKELY(f->pc & FRAME_COMPLEX) && m->plain <= i)
			m->plain = i + 1;
	}
	m->frames[at].pc &= ~FRAME_HAS_WORD;
}

static void save_end(struct walk *w, struct heap_thread_state *m)
{
	m->end = w->end;
	m->end_addr = 0;
	m->outermost = m->frames[END_IDX - 1].sp;
	/* The word after the outermost frame, which is not a frame itself. */
	if (w->sp > m->outermost) {
		m->end_addr = w->sp - 8;
		m->end_word = w->pc;
		m->outermost = w->sp;
	}
}

static void walk_init(struct walk *w, struct heap_ctx *x, const struct heap_call *c)
{
	struct heap_thread_state *m = x->thread;

	w->x = x;
	w->l = x->local;
	w->m = m;
	w->pc = c->caller_pc;
	w->sp = (uint64_t)(c + 1);
	w->fp = c->caller_fp;
	w->is_call = true;
	w->is_chained = false;
	w->end = WALK_ROOT;
	w->tables = (const struct ktables_head *)w->l->tables;
	w->nr_maps = 0;
	w->generation = 0;
	if (w->tables) {
		uint64_t now = __atomic_load_n(&w->tables->spaces[0].now, __ATOMIC_ACQUIRE);
		w->first_map = (uint32_t)now & 0xffff;
		w->nr_maps = (uint32_t)(now >> 16) & 0xffff;
		w->generation = (uint32_t)(now >> 32);
	}
	if (UNLIKELY(m->generation != w->generation)) {
		m->generation = w->generation;
		m->top = END_IDX;
	}
	if (UNLIKELY(m->top >= END_IDX)) {
		m->top = END_IDX;
		m->plain = 0;
	}
	find_stack_range(w);
}

uint32_t walk_stack(struct heap_ctx *x, const struct heap_call *c, bool is_hook,
		    uint32_t *ret_stack_id)
{
	struct heap_thread_state *m = x->thread;
	struct walk w;
	uint32_t known_idx;

	walk_init(&w, x, c);
	uint32_t n = walk_new_frames(&w, is_hook, &known_idx, ret_stack_id);
	if (ret_stack_id && *ret_stack_id)
		return END_IDX;
	if (LIKELY(known_idx < END_IDX && n == 0 && known_idx == m->top))
		return known_idx;
	m->stack = 0;
	uint32_t top = known_idx - n;
	for (uint32_t i = n; i-- > 0 && top;) {
		m->frames[top + i] = m->frames[i];
		m->origins[top + i] = m->origins[i];
	}
	m->plain = 0;
	if (known_idx == END_IDX) {
		if (n)
			save_end(&w, m);
		else
			m->end = w.end;
	} else if (n) {
		m->origins[known_idx].fp = w.fp;
	}
	if (n)
		link_frames(m, top, n, (uint64_t)m->end + 1);
	m->top = top;
	/* A stack that cannot be compared later is not kept. */
	if (m->end == WALK_DEPTH || m->end == WALK_BAD_FRAME || m->end == WALK_UNREADABLE)
		m->top = END_IDX;
	return top;
}
