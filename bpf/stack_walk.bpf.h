/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Walks the current thread's user stack by the published unwind rows (wire/kernel_tables.h). The
 * steps are those of wire/unwind_core.h, as in src/unwind/walk.c; tests/oracle/kstack.c compares the
 * two walkers. Stacks that this walker cannot finish are sent to user space (stack_copy.bpf.h).
 *
 * A frame costs three checks and reads: whether the address is in the mapping of the previous
 * frame; the unwind rule, from a cache; two stack words, from a window that was read at once.
 *
 * The rule cache is keyed by `code`, an address in the space of all published code: first page of
 * the binary << 12 | offset in it. So the key is exact, the cache needs no flush when mappings
 * change, and all processes that run a binary share it. An entry {code, rule} is one 64-bit store.
 * Interrupted addresses have a cache of their own, since there are far more of them than return
 * addresses.
 *
 * Functions that are not static are verified once, on their own, not once for each caller. The
 * verifier has a budget for each program, so these functions hold the loops.
 */
#ifndef ASSAY_BPF_STACK_WALK_H
#define ASSAY_BPF_STACK_WALK_H

#include "arch.h"

#define WALK_FRAMES_MAX   KSTACK_FRAMES_MAX
#define WALK_WINDOW_BYTES 2048u
#define WALK_FILL_BYTES   1024u /* bytes that one read of the stack fetches */
#define WALK_PAGE_BYTES   4096u
#define WALK_ROWS_NEAR    6   /* rows between the first and the second guess of a search */
#define WALK_OFFS         64u /* a power of two, at least STACK_MEMO_WORDS */
#define WALK_NR_REGS      64u /* room for ARCH_NR_DWARF_REG, a power of two */

/*
 * Deeper stacks are walked on to their start, and their middle is dropped (kernel_stack.h), as long as
 * all of a CPU's walks have at most WALK_DEEP_PER_SECOND such frames, of 30 ns each.
 */
#define WALK_DEEP_MAX        32768u
#define WALK_DEEP_PER_SECOND (4u << 20)
#define WALK_DEEP_STEP       256u /* frames that are taken from the budget at once; a power of two */

#define RULES_CALL_BITS 16
#define RULES_LEAF_BITS 14
#define RULES_CALL      (1u << RULES_CALL_BITS)
#define RULES_LEAF      (1u << RULES_LEAF_BITS)

/* Entries are code << 32 | rule. The rule ROW_PSEUDO means that the address has no rule. */
struct rule_cache {
	__u64 call[RULES_CALL];
	__u64 leaf[RULES_LEAF];
};

DEFINE_MAP(ARRAY, rule_cache, 1, __u32, struct rule_cache);

/* The part of a mapping that the binary's unwind table covers. */
struct walk_map {
	__u64 start;
	__u64 nr_bytes; /* 0: unused */
	__u32 code;     /* of start; see above */
	__u16 kind;     /* enum kmap_kind */
	__u16 idx;      /* into ktables_head.maps */
};
#define WALK_RECENT 4

/* A frame and how its caller was found; kept for the next sample (stack_prevwalk.bpf.h). */
#define PREV_WALK_STEPS 64
struct walk_step {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__s32 fp_slot;  /* as in wire/unwind_core.h */
	__u32 is_plain; /* the caller was found by fp_slot and the word below its sp alone */
};

/* A return address that a return probe has replaced: where it was, and its value. */
#define WALK_RETURNS 16
struct walk_return {
	__u64 addr;
	__u64 ra;
};

/*
 * The state of one walk. It is too large for the stack of a BPF program, so it is in a per-CPU map,
 * which has WALK_NESTING elements because one program can interrupt another.
 */
struct walk {
	__u32 is_in_use;
	__u32 generation; /* of the process's mappings */
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 hash;
	__u64 leaf_hash; /* after the innermost KSTACK_LEAF_FRAMES frames, if there are more */
	/* The mapping that contains the last frame. */
	__u64 map_start;
	__u64 map_bytes;
	__u32 map_code; /* code of map_start */
	__u16 map_kind;
	__u16 map_idx;   /* into ktables_head.maps */
	__u32 first_map; /* of the process's maps */
	__u32 nr_maps;
	__u32 nr_frames;
	__u32 max_frames;
	__u32 end;          /* enum walk_end */
	__u32 window_bytes; /* 0: nothing was read */
	__u64 window_start; /* address of window[0] */
	__u64 pc_0;         /* pc, sp and fp at the start of the walk */
	__u64 sp_0;
	__u64 fp_0;
	__u32 nr_words; /* stack words read; offs has the first WALK_OFFS of them */
	__u32 nr_rule_misses;
	__u32 nr_map_searches;
	/* Recently used mappings of the space with this generation; kept between walks. */
	__u32 recent_generation;
	__u32 recent_idx;
	struct walk_map recent[WALK_RECENT];
	__u32 lo;     /* bounds of a binary search; copy_hash_word: the last unreadable page */
	__u32 hi;     /* copy_hash_word: number of unreadable pages */
	bool is_call; /* pc is a return address */
	bool is_call_0;
	bool is_chained;     /* the frame was found by a frame pointer */
	bool is_leaf;        /* at the leaf: the values of all registers are known */
	bool has_regs;       /* regs is filled */
	bool is_uncacheable; /* the result depends on more than the words that were read */
	bool has_diverged;   /* differed from the previous walk after a part that was equal */
	__s32 fp_slot;       /* unwind_core.h */
	__u32 nr_steps;
	__u32 prev_at;     /* 1 + index of the next frame in the previous walk; 0: none */
	__u32 reuse_at;    /* prev_at of the first reused frame; 0: none was reused */
	__u32 reuse_steps; /* nr_steps at that frame */
	struct walk_step steps[PREV_WALK_STEPS];
	struct walk_return returns[WALK_RETURNS]; /* for copies: stack_copy.bpf.h */
	__u32 nr_returns;
	__u64 offs[WALK_OFFS]; /* of the words that were read: distance from sp_0, in words */
	__u64 window[WALK_WINDOW_BYTES / 8];
	__u64 regs[WALK_NR_REGS]; /* of the leaf, by DWARF number; see has_regs */
	/* Head of a RECORD_STACK; frames must follow it directly. */
	__u64 record[sizeof(struct kernel_stack) / 8];
	__u64 frames[WALK_FRAMES_MAX];
};

/* How deep programs can interrupt each other (a sample during a switch). */
#define WALK_NESTING 6
DEFINE_MAP(PERCPU_ARRAY, walks, WALK_NESTING, __u32, struct walk);

/*
 * The pointers that a walk uses. They are on the program's stack since a map cannot hold pointers.
 */
struct walker {
	struct walk *w;
	struct ktables_head *tables;
	struct rule_cache *rules;
	struct prev_walk *prev; /* of the thread's previous sample; NULL: not used */
};

static __always_inline __u64 hash_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/*
 * Reads WALK_FILL_BYTES from @addr into the window, but not beyond the page; false: not readable.
 */
__noinline bool window_fill(struct walk *w, __u64 addr)
{
	__u32 nr = WALK_PAGE_BYTES - (addr & (WALK_PAGE_BYTES - 1));

	if (!w)
		return false;
	if (nr > WALK_FILL_BYTES)
		nr = WALK_FILL_BYTES;
	w->window_bytes = 0;
	if (bpf_probe_read_user(w->window, nr, (void *)addr))
		return false;
	w->window_start = addr;
	w->window_bytes = nr;
	return true;
}

/* Reads a stack word. @addr: a multiple of 8. False: not readable. */
static __always_inline bool walk_read(struct walk *w, __u64 addr, __u64 *ret_v)
{
	__u64 off = addr - w->window_start;

	if (UNLIKELY(off >= w->window_bytes)) {
		if (!window_fill(w, addr))
			return false;
		off = 0;
	}
	__u32 at = (__u32)off / 8 & (WALK_WINDOW_BYTES / 8 - 1);
	*ret_v = w->window[at];
	/* Wraps around instead of checking a bound, which would add a branch to each step. With
	 * more words than STACK_MEMO_WORDS the walk is not cached and offs is not used. */
	w->offs[w->nr_words++ & (WALK_OFFS - 1)] = (addr - w->sp_0) / 8;
	return true;
}

#include "stack_uretprobe.bpf.h"

/* Sets the walk's mapping to that of @addr, by binary search; false: @addr is not mapped. */
__noinline bool walk_search_map(struct walk *w, __u64 addr)
{
	struct ktables_head *h = single_elem(&tables);

	if (!w || !h)
		return false;
	w->nr_map_searches++;
	w->lo = 0;
	w->hi = w->nr_maps;
	/* The bounds are kept in memory, where the verifier does not track their values; it would
	 * otherwise explore each path through the search. */
	for (__u32 i = 0; i < 17; i++) {
		__u32 lo = READ_ONCE(w->lo);
		__u32 hi = READ_ONCE(w->hi);
		if (lo >= hi)
			break;
		__u32 mid = (lo + hi) / 2;
		if (h->maps[(w->first_map + mid) & (KTABLES_NR_MAPS - 1)].start <= addr)
			WRITE_ONCE(w->lo, mid + 1);
		else
			WRITE_ONCE(w->hi, mid);
	}
	__u32 lo = w->lo;
	w->map_bytes = 0;
	if (!lo)
		return false;
	w->map_idx = w->first_map + lo - 1;
	struct kmap *m = &h->maps[w->map_idx & (KTABLES_NR_MAPS - 1)];
	if (addr >= m->end)
		return false;
	w->map_kind = m->kind;
	w->map_start = m->start;
	w->map_bytes = m->end - m->start;
	if (m->kind == KMAP_RULES) {
		__u64 last = m->base + ((__u64)m->nr_pages << 12);
		__u64 start = m->start > m->base ? m->start : m->base;
		__u64 end = m->end < last ? m->end : last;
		if (addr < start || addr >= end) {
			w->map_kind = KMAP_NONE;
			w->map_start = addr;
			w->map_bytes = 1;
			return true;
		}
		w->map_start = start;
		w->map_bytes = end - start;
		w->map_code = (m->first_page << 12) + (__u32)(start - m->base);
	}
	struct walk_map *r = &w->recent[w->recent_idx++ & (WALK_RECENT - 1)];
	r->start = w->map_start;
	r->nr_bytes = w->map_bytes;
	r->code = w->map_code;
	r->kind = w->map_kind;
	r->idx = w->map_idx;
	return true;
}

struct deep_budget {
	__u64 second;
	__u64 nr_frames;
};

DEFINE_MAP(PERCPU_ARRAY, deep_budgets, 1, __u32, struct deep_budget);

/* Whether a walk may go on for WALK_DEEP_STEP frames beyond its limit. */
__noinline bool walk_goes_deeper(struct walk *w)
{
	struct deep_budget *b = single_elem(&deep_budgets);
	__u64 second = bpf_ktime_get_ns() >> 30;

	if (!w || !b || w->nr_frames >= WALK_DEEP_MAX)
		return false;
	if (b->second != second) {
		b->second = second;
		b->nr_frames = 0;
	}
	b->nr_frames += WALK_DEEP_STEP;
	w->max_frames = w->nr_frames + WALK_DEEP_STEP;
	return b->nr_frames <= WALK_DEEP_PER_SECOND;
}

/* Like walk_search_map, but tries the recently used mappings first. */
static __always_inline bool walk_find_map(struct walk *w, __u64 addr)
{
#pragma unroll
	for (__u32 i = 0; i < WALK_RECENT; i++) {
		struct walk_map *r = &w->recent[i];
		if (addr - r->start >= r->nr_bytes)
			continue;
		w->map_start = r->start;
		w->map_bytes = r->nr_bytes;
		w->map_code = r->code;
		w->map_kind = r->kind;
		w->map_idx = r->idx;
		return true;
	}
	return walk_search_map(w, addr);
}

/* Before a walk: drops the recently used mappings if they are of another generation. */
static __always_inline void walk_flush_maps(struct walk *w)
{
	if (w->recent_generation == w->generation)
		return;
	w->recent_generation = w->generation;
#pragma unroll
	for (__u32 i = 0; i < WALK_RECENT; i++)
		w->recent[i].nr_bytes = 0;
}

static __always_inline struct unwind_row *row_at(struct ktables_head *h, __u32 idx)
{
	struct unwind_row *rows = (void *)h + KTABLES_HEAD_BYTES;

	return &rows[idx & row_mask];
}

/*
 * Returns the rule of @addr, which must be in the walk's mapping, of kind RULES; ROW_PSEUDO: it has
 * no rule.
 */
__noinline __u32 walk_find_rule(struct walk *w, __u64 addr)
{
	struct ktables_head *h = single_elem(&tables);

	if (!w || !h)
		return ROW_PSEUDO;
	struct kmap *m = &h->maps[w->map_idx & (KTABLES_NR_MAPS - 1)];
	__u32 code = w->map_code + (__u32)(addr - w->map_start);
	__u32 page = code >> 12;
	__u32 pc = code - (m->first_page << 12);

	w->nr_rule_misses++;
	w->lo = h->pages[page & (KTABLES_NR_PAGES - 1)];
	w->hi = h->pages[(page + 1) & (KTABLES_NR_PAGES - 1)];
	/*
	 * Interpolates first: rows are spread evenly within a page, and each probe is a cache miss.
	 */
	__u32 mid = w->lo + ((w->hi - w->lo) * (pc & (WALK_PAGE_BYTES - 1)) >> 12);
	for (__u32 i = 0; i < 15; i++) {
		__u32 lo = READ_ONCE(w->lo);
		__u32 hi = READ_ONCE(w->hi);
		if (lo >= hi)
			break;
		if (i == 1)
			mid = lo == mid + 1 ? mid + WALK_ROWS_NEAR : mid - WALK_ROWS_NEAR;
		if (i > 1 || mid < lo || mid >= hi)
			mid = (lo + hi) / 2;
		if (row_at(h, mid)->pc <= pc)
			WRITE_ONCE(w->lo, mid + 1);
		else
			WRITE_ONCE(w->hi, mid);
	}
	__u32 lo = w->lo;
	if (lo <= m->first_row)
		return ROW_PSEUDO;
	__u32 rule = row_at(h, lo - 1)->rule;
	if (w->is_call && lo < m->end_row) {
		/* A signal handler returns to the first byte of the restorer, which no call
		 * precedes: the rule is that of the return address, not of the byte before. */
		struct unwind_row *next = row_at(h, lo);
		__u32 next_rule = next->rule;
		if (next->pc == pc + 1 && row_kind(next_rule) == ROW_SIGNAL)
			rule = next_rule;
	}
	return row_kind(rule) == ROW_NONE ? ROW_PSEUDO : rule;
}

/* Like walk_find_rule, but tries the rule cache first; stores the rule there after a miss. */
static __always_inline __u32 walk_rule(struct walker *k, __u64 addr, bool is_leaf)
{
	struct walk *w = k->w;
	struct rule_cache *cache = k->rules;
	__u32 code = w->map_code + (__u32)(addr - w->map_start);
	__u32 hash = code * 0x9e3779b1u;
	__u64 *at;

	if (is_leaf)
		at = &cache->leaf[hash >> (32 - RULES_LEAF_BITS) & (RULES_LEAF - 1)];
	else
		at = &cache->call[hash >> (32 - RULES_CALL_BITS) & (RULES_CALL - 1)];
	__u64 entry = READ_ONCE(*at);
	if (LIKELY(entry >> 32 == code && (__u32)entry))
		return (__u32)entry;
	__u32 rule = walk_find_rule(w, addr);
	WRITE_ONCE(*at, (__u64)code << 32 | rule);
	return rule;
}

/* Fills w->regs with the registers of the leaf, by DWARF number, if they are not yet. */
__noinline bool walk_load_regs(struct walk *w)
{
	if (!w)
		return false;

	if (w->has_regs)
		return true;
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs___kernel *r = regs_of(t);
	regs_by_dwarf(r, w->regs);
	w->has_regs = true;
	return true;
}

/* For unwind_core.h, which describes it; also marks the walk as uncacheable. */
static __always_inline bool walk_leaf_reg(struct walk *w, __u32 reg, __u64 *ret_v)
{
	if (!w->is_leaf || reg >= ARCH_NR_DWARF_REG || !walk_load_regs(w))
		return false;
	w->is_uncacheable = true;
	*ret_v = w->regs[reg & (WALK_NR_REGS - 1)];
	return true;
}

/* For unwind_core.h, which describes it. */
static __always_inline bool walk_is_caller(struct walk *w, __u64 ra, bool needs_rule)
{
	w->is_call = true;
	if (ra - 1 - w->map_start >= w->map_bytes && !walk_find_map(w, ra - 1))
		return false;
	return !needs_rule ||
	       (w->map_kind == KMAP_RULES && row_kind(walk_find_rule(w, ra - 1)) != ROW_PSEUDO);
}

__noinline int walk_step_special(struct walk *w, __u32 rule);
__noinline int walk_step_norule(struct walk *w);

#include "unwind_core.h"

__noinline int walk_step_special(struct walk *w, __u32 rule)
{
	struct ktables_head *h = single_elem(&tables);

	if (!w || !h)
		return WALK_NEEDS_FULL;
	__u32 first = h->maps[w->map_idx & (KTABLES_NR_MAPS - 1)].first_special;
	return unwind_step_special(
		w, &h->specials[(first + row_special_idx(rule)) & (KTABLES_NR_SPECIALS - 1)]);
}

__noinline int walk_step_norule(struct walk *w)
{
	if (!w)
		return WALK_NO_RULE;
	__u32 kind = w->map_kind;
	int end = WALK_NO_RULE;

	/* An interrupted leaf may not have set up its frame yet: user space walks such a stack. */
	if (!w->is_leaf || w->is_call || kind == KMAP_JIT)
		end = unwind_step_chain(w);
	if (end != WALK_NO_RULE)
		return end;
	return kind == KMAP_JIT ? WALK_JIT : kind == KMAP_MISSING ? WALK_NO_FILE : WALK_NO_RULE;
}

/* Stores the frame and moves to its caller. Returns STEP_OK, or why the walk ends. */
static __always_inline int walk_one(struct walker *k, bool is_leaf)
{
	struct walk *w = k->w;
	__u64 addr = w->pc - w->is_call;
	__u32 n = w->nr_frames;
	bool has_map = true;

	if (UNLIKELY(addr - w->map_start >= w->map_bytes))
		has_map = walk_find_map(w, addr);
	bool may_be_probe = !has_map || (walk_has_probes && w->map_kind != KMAP_RULES);
	if (UNLIKELY(may_be_probe && w->is_call && walk_resolve_uretprobe(w))) {
		addr = w->pc - 1;
		has_map = walk_find_map(w, addr);
	}
	/* A return address in no mapping is not stored as a frame; an interrupted pc is. */
	if (UNLIKELY(!has_map && w->is_call))
		return w->end = WALK_NO_MAP;
	if (UNLIKELY(n >= w->max_frames) && !walk_goes_deeper(w))
		return w->end = WALK_DEPTH;
	if (UNLIKELY(n == KSTACK_LEAF_FRAMES))
		w->leaf_hash = w->hash;
	/* Up to KSTACK_FRAMES_MAX the index is n; from there on the outer half is a ring. */
	__u32 at = n < KSTACK_LEAF_FRAMES ? n : KSTACK_LEAF_FRAMES | (n & (KSTACK_LEAF_FRAMES - 1));
	w->frames[at & (WALK_FRAMES_MAX - 1)] = w->pc;
	w->nr_frames = n + 1;
	w->hash = hash_mix(w->hash, w->pc);
	if (UNLIKELY(!has_map))
		return w->end = WALK_NO_MAP;
	int end = LIKELY(w->map_kind == KMAP_RULES) ? unwind_step(w, walk_rule(k, addr, is_leaf))
						    : walk_step_norule(w);
	if (end != STEP_OK)
		w->end = end;
	return end;
}

static long walk_next(__u32 i, struct walker *k)
{
	return walk_one(k, false) != STEP_OK;
}

/* Walks the leaf's frame. False: the walk has ended. */
static __always_inline bool walk_leaf(struct walker *k)
{
	struct walk *w = k->w;
	w->is_leaf = true;
	bool goes_on = walk_one(k, true) == STEP_OK;
	w->is_leaf = false;
	return goes_on;
}

/* Walks all callers of the leaf, after walk_leaf. */
static __always_inline void walk_callers(struct walker *k)
{
	bpf_loop(WALK_DEEP_MAX, walk_next, k, 0);
}

#endif
