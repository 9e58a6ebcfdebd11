/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks that the BPF walk could not finish. They are sent as registers and copied stack bytes, and
 * user space walks them. The reference is a hash of the frames that were found, of where and why the
 * walk stopped, and of each word above (at most COPY_WORDS_MAX) that could be a return address. So a
 * stack that occurs again with other data in it is sent once, and stacks that differ in a caller
 * have different references.
 */
#ifndef ASSAY_BPF_STACK_COPY_H
#define ASSAY_BPF_STACK_COPY_H

/* Ring space reserved for a copy; larger ones reserve COPY_BYTES_SAMPLE. */
#define COPY_ROOM_SMALL  (16u << 10)
#define COPY_ROOM_MIDDLE (40u << 10)
/* So many unreadable bytes in sequence are taken as the end of the stack. */
#define COPY_HOLE_BYTES (64u << 10)
/* The most words that are hashed into the reference. */
#define COPY_WORDS_MAX 4096
/* The largest copy: of a waiting thread and of a CPU sample. */
#define COPY_BYTES_WAIT   (16u << 10)
#define COPY_BYTES_SAMPLE (128u << 10)
/* Limit for each CPU: bounds the cost of targets whose stacks never repeat. */
#define COPY_BYTES_PER_SECOND (24u << 20)
/* A word with a value this close to the stack pointer is a pointer into the stack, not code. */
#define COPY_STACK_REACH (16ull << 20)

struct copy_budget {
	__u64 second;
	__u64 nr_bytes;
};

DEFINE_MAP(PERCPU_ARRAY, copy_budgets, 1, __u32, struct copy_budget);

static __always_inline bool copy_is_within_budget(__u32 nr_bytes)
{
	struct copy_budget *b = single_elem(&copy_budgets);
	__u64 second = bpf_ktime_get_ns() >> 30;

	if (!b)
		return false;
	if (b->second != second) {
		b->second = second;
		b->nr_bytes = 0;
	}
	b->nr_bytes += nr_bytes;
	return b->nr_bytes <= COPY_BYTES_PER_SECOND;
}

/*
 * bpf_loop callback: adds word @i of the stack to the hash if it could be a return address. w->lo is
 * the last unreadable page, w->hi the number of unreadable pages.
 */
static long copy_hash_word(__u32 i, struct walker *k)
{
	struct walk *w = k->w;
	__u64 addr = (w->sp & ~7ull) + (__u64)i * 8;
	__u32 page = addr / WALK_PAGE_BYTES;
	__u64 v;

	if (page == w->lo) /* known to be unreadable */
		return 0;
	if (!walk_read(w, addr, &v)) {
		w->lo = page;
		return ++w->hi >= COPY_HOLE_BYTES / WALK_PAGE_BYTES;
	}
	if (v - 0x10000 < (1ull << 47) && v - w->sp + COPY_STACK_REACH > 2 * COPY_STACK_REACH)
		w->hash = hash_mix(w->hash, v);
	return 0;
}

/* The reference of the stack that the walk has not finished; @nr_words of the stack are hashed. */
__noinline __u64 copy_ref(struct walk *w, __u32 nr_words)
{
	struct walker k = {.w = w};

	if (!w || !walk_load_regs(w))
		return 0;
	w->hash = hash_mix(w->hash, w->sp);
	w->hash = hash_mix(w->hash, w->end);
	/* Which of the leaf's registers point into the stack. */
	for (__u32 i = 0; i < ARCH_NR_DWARF_REG; i++)
		if (w->regs[i] - w->sp_0 + COPY_STACK_REACH <= 2 * COPY_STACK_REACH)
			w->hash = hash_mix(w->hash, w->regs[i] ^ i);
	walk_store_returns(w);
	w->lo = 0;
	w->hi = 0;
	bpf_loop(nr_words, copy_hash_word, &k, 0);
	return w->hash | 1;
}

/*
 * How many bytes to copy from @sp upwards, at most @max: up to the last readable page. A large
 * frame may have pages that were never touched, so the first unreadable page is not the end of the
 * stack.
 */
__noinline __u32 copy_readable(__u64 sp, __u32 max)
{
	__u32 at = 0;
	__u32 nr = 0;
	__u64 word;

	for (__u32 i = 0; i < COPY_BYTES_SAMPLE / WALK_PAGE_BYTES; i++) {
		__u32 n = WALK_PAGE_BYTES - ((sp + at) & (WALK_PAGE_BYTES - 1));
		if (at >= max || at - nr >= COPY_HOLE_BYTES)
			break;
		if (!bpf_probe_read_user(&word, 8, (void *)(sp + at)))
			nr = at + n;
		at += n;
	}
	return nr < max ? nr : max;
}

/* Sends a copy of @nr bytes. @room must be a constant: bpf_ringbuf_reserve takes no other size. */
static __always_inline bool copy_send_room(struct walk *w, struct task_struct *t, __u64 ref,
					   __u32 flags, __u32 nr, const __u32 room)
{
	struct kernel_copy *r = ring_reserve(sizeof(*r) + room);
	__u32 at = 0;

	if (!r)
		return false;
	for (__u32 i = 0; i < room / WALK_PAGE_BYTES; i++) {
		__u32 n = WALK_PAGE_BYTES - ((w->sp_0 + at) & (WALK_PAGE_BYTES - 1));
		if (at > room - WALK_PAGE_BYTES || at >= nr)
			break;
		/*
		 * A page that was never touched is all zeros; the helper zeroes the buffer on
		 * failure.
		 */
		bpf_probe_read_user(r->stack + at, n, (void *)(w->sp_0 + at));
		at += n;
	}
	for (__u32 i = 0; i < WALK_RETURNS && i < w->nr_returns; i++) {
		__u64 off = w->returns[i].addr - w->sp_0;
		barrier_var(off);
		if (off <= room - 8)
			*(__u64 *)(r->stack + off) = w->returns[i].ra;
	}
	record_head(&r->head, RECORD_COPY, sizeof(*r) + at, t);
	r->head.flags = flags;
	r->ref = ref;
	r->nr_stack = at;
	r->end = w->end;
	for (__u32 i = 0; i < ARCH_NR_DWARF_REG; i++)
		r->regs[i] = w->regs[i];
	ring_submit(r);
	return true;
}

/* Sends registers and up to @max stack bytes; false: over the budget or no room in the ring. */
__noinline bool copy_send(struct walk *w, __u64 ref, __u32 flags, __u32 max)
{
	struct task_struct *t = bpf_get_current_task_btf();
	__u32 nr;

	if (!w || !walk_load_regs(w))
		return false;
	nr = copy_readable(w->sp_0, max);
	if (!copy_is_within_budget(nr)) {
		count_done(nr_copies_over_limit);
		return false;
	}
	/* One page less, since the first piece may be less than a page. */
	if (nr <= COPY_ROOM_SMALL - WALK_PAGE_BYTES)
		return copy_send_room(w, t, ref, flags, nr, COPY_ROOM_SMALL);
	if (nr <= COPY_ROOM_MIDDLE - WALK_PAGE_BYTES)
		return copy_send_room(w, t, ref, flags, nr, COPY_ROOM_MIDDLE);
	return copy_send_room(w, t, ref, flags, nr, COPY_BYTES_SAMPLE);
}

#endif
