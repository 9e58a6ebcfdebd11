/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Return addresses that a return probe (uretprobe, see spans.bpf.h) has replaced. The kernel writes
 * the address of its trampoline to the stack and keeps the original return address in a list of the
 * task (task_struct.utask). These functions read the original address from that list.
 *
 * The trampoline is in a page of its own ("[uprobes]"), in which also copies of instructions under
 * probes are executed. A thread that runs there is treated as being where it came from or returns to.
 */
#ifndef ASSAY_BPF_STACK_URETPROBE_H
#define ASSAY_BPF_STACK_URETPROBE_H

struct return_instance {
	unsigned long stack; /* sp at the function's entry */
	unsigned long orig_ret_vaddr;
	bool chained; /* orig_ret_vaddr is the trampoline too: several probes on this function */
	struct return_instance *next;
} CORE;

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;     /* the probe whose instruction is executed in the page */
	unsigned long xol_vaddr; /* address of that copy; 0: none */
} CORE;

/* Set before loading: this capture has return probes, so a stack may contain the trampoline. */
const volatile bool walk_has_probes = false;

#define UPROBE_COPY_MAX     16 /* bytes of the longest instruction */
#define URETPROBE_DEPTH_MAX 64 /* the kernel's own limit (MAX_URETPROBE_DEPTH) */
#ifdef ARCH_RA_BESIDE_FP
#define URETPROBE_RA_BYTES 0
#else
#define URETPROBE_RA_BYTES 8
#endif

/*
 * How far below its final value the stack pointer is in the trampoline: since Linux 6.11 it saves
 * three registers on x86-64.
 */
#define URETPROBE_PUSHED_BYTES 24

struct uretprobe_search {
	struct walk *w;
	struct return_instance *r;
	__u64 max_bytes; /* the return address may be so far above the walk's sp */
	bool is_found;
};

static long uretprobe_next(__u32 i, struct uretprobe_search *s)
{
	struct return_instance *r = s->r;
	struct walk *w = s->w;

	if (!r)
		return 1;
	__u64 sp = BPF_CORE_READ(r, stack) + URETPROBE_RA_BYTES;
	if (sp - w->sp <= s->max_bytes && !BPF_CORE_READ(r, chained)) {
		w->pc = BPF_CORE_READ(r, orig_ret_vaddr);
		w->sp = sp;
		/*
		 * words on the stack do not determine this caller: the stack cache cannot compare
		 * it
		 */
		w->is_uncacheable = true;
		s->is_found = true;
		return 1;
	}
	s->r = BPF_CORE_READ(r, next);
	return 0;
}

/* Address of the page in which probes execute code; 0: none. */
static __always_inline __u64 uprobe_page(struct task_struct *t)
{
	if (!bpf_core_field_exists(t->utask))
		return 0;
	struct xol_area *area = BPF_CORE_READ(t, mm, uprobes_state.xol_area);
	return area ? BPF_CORE_READ(area, vaddr) : 0;
}

static __always_inline bool uretprobe_find(struct walk *w, struct task_struct *t, __u64 max_bytes)
{
	struct uretprobe_search s = {
		.w = w, .r = BPF_CORE_READ(t, utask, return_instances), .max_bytes = max_bytes};
	bpf_loop(URETPROBE_DEPTH_MAX, uretprobe_next, &s, 0);
	return s.is_found;
}

/* If the walk's pc is the trampoline, replaces it with the original return address. */
__noinline bool walk_resolve_uretprobe(struct walk *w)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!w || uprobe_page(t) != w->pc)
		return false;
	return uretprobe_find(w, t, 0);
}

/*
 * Where the trampoline finds the address to which it returns after its system call, which has removed
 * it from the task's list: @off: of the pc in the trampoline. Returns the distance from sp, -1:
 * unknown.
 */
static __always_inline int uretprobe_final(__u64 off)
{
#ifdef ARCH_RA_BESIDE_FP
	return -1;
#else
	/* pop %r11; pop %rcx; ret */
	return off == 0xd ? 16 : off == 0xf ? 8 : off == 0x10 ? 0 : -1;
#endif
}

/*
 * At the start of a walk: if the thread runs code in the page of the probes, moves pc and sp to the
 * probed instruction, or to where the function returns. False: it does not.
 */
__noinline bool walk_leave_uprobe(struct walk *w)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!w)
		return false;
	__u64 page = uprobe_page(t);
	if (!page || w->pc - page >= WALK_PAGE_BYTES)
		return false;
	__u64 copy = BPF_CORE_READ(t, utask, xol_vaddr);
	if (copy && w->pc - copy <= UPROBE_COPY_MAX) {
		w->pc += BPF_CORE_READ(t, utask, vaddr) - copy;
		return true;
	}
	w->is_call = true;
	if (uretprobe_find(w, t, URETPROBE_PUSHED_BYTES))
		return true;
	int at = uretprobe_final(w->pc - page);
	__u64 ra;
	if (at < 0 || bpf_probe_read_user(&ra, sizeof(ra), (void *)(w->sp + at)))
		return false;
	w->pc = ra;
	w->sp += at + URETPROBE_RA_BYTES;
	return true;
}

/* bpf_loop callback: stores the return address that a probe has replaced; see walk.returns. */
static long uretprobe_store(__u32 i, struct uretprobe_search *s)
{
	struct return_instance *r = s->r;
	struct walk *w = s->w;

	if (!r || w->nr_returns >= WALK_RETURNS)
		return 1;
	s->r = BPF_CORE_READ(r, next);
	if (BPF_CORE_READ(r, chained))
		return 0;
	struct walk_return *to = &w->returns[w->nr_returns++ & (WALK_RETURNS - 1)];
	to->addr = BPF_CORE_READ(r, stack);
	to->ra = BPF_CORE_READ(r, orig_ret_vaddr);
	w->hash = hash_mix(w->hash, to->ra);
	return 0;
}

/* Stores the replaced return addresses of the thread, and adds them to the walk's hash. */
__noinline int walk_store_returns(struct walk *w)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!w)
		return 0;
	w->nr_returns = 0;
	if (!walk_has_probes || !uprobe_page(t))
		return 0;
	struct uretprobe_search s = {.w = w, .r = BPF_CORE_READ(t, utask, return_instances)};
	bpf_loop(URETPROBE_DEPTH_MAX, uretprobe_store, &s, 0);
	return 0;
}

#endif
