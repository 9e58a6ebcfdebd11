/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Walks the current thread's user stack by the published rows (wire/kernel_tables.h), in the
 * steps of wire/unwind_core.h, as src/unwind/walk.c does; tests compare the two. What this one
 * cannot say is left to that one (stack_copy.bpf.h).
 *
 * A frame costs three small things: is the address still in the mapping of the frame before;
 * the rule, from a cache; two words of stack, from a window that was read at once.
 *
 * The cache is keyed by `code`: the number of the address among all published code (first page of
 * the binary << 12 | offset in it), so it is exact, needs no clearing when mappings change, and
 * all processes that run a binary share it. One store writes an entry {code, rule}. Interrupted
 * addresses have a cache apart, since there are far more of them than return addresses.
 *
 * Functions that are not static are verified once, by themselves, whoever calls them: the
 * verifier has a budget for each program, and these hold the loops.
 */
#ifndef ASSAY_BPF_STACK_WALK_H
#define ASSAY_BPF_STACK_WALK_H

#include "arch.h"

#define WALK_FRAMES_MAX   2048u
#define WALK_WINDOW_BYTES (WALK_MEMO_SPAN * 8u)
#define WALK_FILL_BYTES   1024u
#define WALK_PAGE_BYTES   4096u
#define WALK_ROWS_NEAR    6
#define WALK_OFFS         64u /* a power of two, at least WALK_MEMO_WORDS */
#define WALK_NR_REGS      64u /* room for ARCH_NR_DWARF_REG, a power of two */

#define RULES_CALL_BITS 16
#define RULES_LEAF_BITS 14
#define RULES_CALL      (1u << RULES_CALL_BITS)
#define RULES_LEAF      (1u << RULES_LEAF_BITS)

/* code << 32 | rule; the rule ROW_OWN says that there is none. */
struct rule_cache {
	__u64 call[RULES_CALL];
	__u64 leaf[RULES_LEAF];
};

DEFINE_MAP(ARRAY, rule_cache, 1, __u32, struct rule_cache);

/* A mapping as far as its table covers it. */
struct walk_map {
	__u64 start;
	__u64 nr_bytes; /* 0: none */
	__u32 code;
	__u16 kind;
	__u16 idx;
};
#define WALK_RECENT 4

/* A frame and how its caller was found (stack_trail.bpf.h). */
#define TRAIL_FRAMES 64
struct trail_frame {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__s32 fp_slot;  /* where the caller's fp was, in words from its sp; ROW_FP_SAME: not read */
	__u32 is_plain; /* by that and the word below the caller's sp alone */
};

/*
 * One walk, and all of its memory. It lies in a map, one for each program that can run on a CPU at
 * a time, as a program's stack is too small for it.
 */
struct walk {
	__u32 is_busy;
	__u32 generation;
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 hash;
	/* Of the mapping that the last frame was in. */
	__u64 map_start;
	__u64 map_bytes;
	__u32 map_code; /* code of map_start */
	__u16 map_kind;
	__u16 map_idx; /* in the tables */
	__u32 first_map;
	__u32 nr_maps;
	__u32 nr_frames;
	__u32 max_frames;
	__u32 end; /* enum walk_end */
	__u32 window_bytes;
	__u64 window_start;
	__u64 pc_0;
	__u64 sp_0;
	__u64 fp_0;
	__u32 nr_words; /* that were read, of which offs has the first */
	__u32 nr_rule_misses;
	__u32 nr_map_searches;
	/* Mappings that walks here were in lately, of the space with this generation. */
	__u32 recent_generation;
	__u32 recent_idx;
	struct walk_map recent[WALK_RECENT];
	__u32 lo; /* of a search */
	__u32 hi;
	bool is_call;
	bool is_call_0;
	bool is_chained;
	bool is_leaf; /* no frame was left yet: all registers are known */
	bool has_regs;
	bool is_odd; /* depended on more than the words read */
	bool is_trail_broken;
	__s32 fp_slot; /* unwind_core.h */
	__u32 nr_steps;
	__u32 trail_at; /* 1 + index into the trail, of the frame that comes next; 0: none */
	__u32 met_at;   /* the same, where the walk came upon the trail */
	__u32 met_steps;
	struct trail_frame steps[TRAIL_FRAMES];
	__u64 offs[WALK_OFFS]; /* in words from sp_0 */
	__u64 window[WALK_WINDOW_BYTES / 8];
	__u64 regs[WALK_NR_REGS];                      /* of the leaf, once asked for */
	__u64 record[sizeof(struct kernel_stack) / 8]; /* the frames follow */
	__u64 frames[WALK_FRAMES_MAX];
};

/* A program can be interrupted by another (sample in a switch), to this depth. */
#define WALK_NESTING 6
DEFINE_MAP(PERCPU_ARRAY, walks, WALK_NESTING, __u32, struct walk);

/* What a walk uses, on the program's stack: a map cannot hold pointers. */
struct walker {
	struct walk *w;
	struct ktables_head *tables;
	struct rule_cache *rules;
	struct walk_trail *trail;
};

static __always_inline __u64 hash_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Reads [addr, +WALK_FILL_BYTES) or to the end of the page: a page is there or is not. */
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

/* @addr: a multiple of 8. */
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
	/* Without a branch, which each step would have several times over: of more words than are
	 * remembered, what is in here does not matter. */
	w->offs[w->nr_words++ & (WALK_OFFS - 1)] = (addr - w->sp_0) / 8;
	return true;
}

#include "stack_probed.bpf.h"

/* The mapping of @addr becomes the walk's; false: there is none. */
__noinline bool walk_search_map(struct walk *w, __u64 addr)
{
	struct ktables_head *h = only_of(&tables);

	if (!w || !h)
		return false;
	w->nr_map_searches++;
	w->lo = 0;
	w->hi = w->nr_maps;
	/* The bounds lie in memory, where the verifier does not follow what they may be: it would
	 * follow each way through the search. */
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

/* Before a walk: what was remembered of other mappings goes. */
static __always_inline void walk_forget_maps(struct walk *w)
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

/* @addr: in the walk's mapping, of kind RULES. ROW_OWN: there is no rule. */
__noinline __u32 walk_find_rule(struct walk *w, __u64 addr)
{
	struct ktables_head *h = only_of(&tables);

	if (!w || !h)
		return ROW_OWN;
	struct kmap *m = &h->maps[w->map_idx & (KTABLES_NR_MAPS - 1)];
	__u32 code = w->map_code + (__u32)(addr - w->map_start);
	__u32 page = code >> 12;
	__u32 pc = code - (m->first_page << 12);

	w->nr_rule_misses++;
	w->lo = h->pages[page & (KTABLES_NR_PAGES - 1)];
	w->hi = h->pages[(page + 1) & (KTABLES_NR_PAGES - 1)];
	/* Rows are spread evenly, so the first guess is near; each further line of memory costs. */
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
		return ROW_OWN;
	__u32 rule = row_at(h, lo - 1)->rule;
	if (w->is_call && lo < m->end_row) {
		/* The kernel returns to a restorer's first byte, and no call stands before it. */
		struct unwind_row *next = row_at(h, lo);
		__u32 next_rule = next->rule;
		if (next->pc == pc + 1 && row_kind(next_rule) == ROW_SIGNAL)
			rule = next_rule;
	}
	return row_kind(rule) == ROW_NONE ? ROW_OWN : rule;
}

/* The same by the cache. */
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

/* The registers of the leaf, by DWARF number. */
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

static __always_inline bool walk_leaf_reg(struct walk *w, __u32 reg, __u64 *ret_v)
{
	if (!w->is_leaf || reg >= ARCH_NR_DWARF_REG || !walk_load_regs(w))
		return false;
	w->is_odd = true;
	*ret_v = w->regs[reg & (WALK_NR_REGS - 1)];
	return true;
}

static __always_inline bool walk_is_caller(struct walk *w, __u64 ra, bool needs_rule)
{
	w->is_call = true;
	if (ra - 1 - w->map_start >= w->map_bytes && !walk_find_map(w, ra - 1))
		return false;
	return !needs_rule ||
	       (w->map_kind == KMAP_RULES && row_kind(walk_find_rule(w, ra - 1)) != ROW_OWN);
}

__noinline int walk_step_special(struct walk *w, __u32 rule);
__noinline int walk_step_gap(struct walk *w);

#include "unwind_core.h"

__noinline int walk_step_special(struct walk *w, __u32 rule)
{
	struct ktables_head *h = only_of(&tables);

	if (!w || !h)
		return WALK_FULL;
	__u32 first = h->maps[w->map_idx & (KTABLES_NR_MAPS - 1)].first_special;
	return unwind_step_special(
		w, &h->specials[(first + row_special_idx(rule)) & (KTABLES_NR_SPECIALS - 1)]);
}

__noinline int walk_step_gap(struct walk *w)
{
	if (!w)
		return WALK_NO_RULE;
	__u32 kind = w->map_kind;
	int end = WALK_NO_RULE;

	/* A leaf that has not touched the stack is for user space to tell. */
	if (!w->is_leaf || w->is_call || kind == KMAP_JIT)
		end = unwind_step_chain(w);
	if (end != WALK_NO_RULE)
		return end;
	return kind == KMAP_JIT ? WALK_JIT : kind == KMAP_MISSING ? WALK_NO_FILE : WALK_NO_RULE;
}

/* STEP_OK, or the walk is over. */
static __always_inline int walk_one(struct walker *k, bool is_leaf)
{
	struct walk *w = k->w;
	__u64 addr = w->pc - w->is_call;
	__u32 n = w->nr_frames;
	bool has_map = true;

	if (UNLIKELY(addr - w->map_start >= w->map_bytes))
		has_map = walk_find_map(w, addr);
	if (UNLIKELY(!has_map && w->is_call && walk_see_through_probe(w))) {
		addr = w->pc - 1;
		has_map = walk_find_map(w, addr);
	}
	/* A return address that is nowhere is not a frame; an interrupted pc is one. */
	if (UNLIKELY(!has_map && w->is_call))
		return w->end = WALK_NO_MAP;
	if (UNLIKELY(n >= w->max_frames))
		return w->end = WALK_DEPTH;
	w->frames[n & (WALK_FRAMES_MAX - 1)] = w->pc;
	w->nr_frames = n + 1;
	w->hash = hash_mix(w->hash, w->pc);
	if (UNLIKELY(!has_map))
		return w->end = WALK_NO_MAP;
	int end = LIKELY(w->map_kind == KMAP_RULES) ? unwind_step(w, walk_rule(k, addr, is_leaf))
						    : walk_step_gap(w);
	if (end != STEP_OK)
		w->end = end;
	return end;
}

static long walk_next(__u32 i, struct walker *k)
{
	return walk_one(k, false) != STEP_OK;
}

/* Both begin with pc, sp, fp and is_call of the thread. False: the walk is over. */
static __always_inline bool walk_leaf(struct walker *k)
{
	struct walk *w = k->w;
	w->is_leaf = true;
	bool goes_on = walk_one(k, true) == STEP_OK;
	w->is_leaf = false;
	return goes_on;
}

static __always_inline void walk_callers(struct walker *k)
{
	bpf_loop(WALK_FRAMES_MAX, walk_next, k, 0);
}

#endif
