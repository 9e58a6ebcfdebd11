/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Return addresses that a return probe (spans.bpf.h) has replaced: the kernel puts the address of a
 * trampoline of its own on the stack and keeps the true one with the thread.
 */
#ifndef ASSAY_BPF_STACK_PROBED_H
#define ASSAY_BPF_STACK_PROBED_H

struct return_instance {
	unsigned long stack; /* sp at the function's entry */
	unsigned long orig_ret_vaddr;
	bool chained; /* orig_ret_vaddr is the trampoline: another probe was there before */
	struct return_instance *next;
} CORE;

struct uprobe_task {
	struct return_instance *return_instances;
} CORE;

#define PROBED_DEPTH_MAX 64 /* the kernel's own limit (MAX_URETPROBE_DEPTH) */
#ifdef ARCH_RA_BESIDE_FP
#define PROBED_RA_BYTES 0
#else
#define PROBED_RA_BYTES 8
#endif

struct probed_search {
	struct walk *w;
	struct return_instance *r;
	bool is_found;
};

static long probed_next(__u32 i, struct probed_search *s)
{
	struct return_instance *r = s->r;
	struct walk *w = s->w;

	if (!r)
		return 1;
	bool is_here = BPF_CORE_READ(r, stack) + PROBED_RA_BYTES == w->sp;
	if (is_here && !BPF_CORE_READ(r, chained)) {
		w->pc = BPF_CORE_READ(r, orig_ret_vaddr);
		/* the same words on the stack may stand for another caller */
		w->is_odd = true;
		s->is_found = true;
		return 1;
	}
	s->r = BPF_CORE_READ(r, next);
	return 0;
}

/* The walk's pc is the trampoline: the true address takes its place. */
__noinline bool walk_see_through_probe(struct walk *w)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!w || !bpf_core_field_exists(t->utask))
		return false;
	struct xol_area *area = BPF_CORE_READ(t, mm, uprobes_state.xol_area);
	if (!area || BPF_CORE_READ(area, vaddr) != w->pc)
		return false;
	struct probed_search s = {.w = w, .r = BPF_CORE_READ(t, utask, return_instances)};
	bpf_loop(PROBED_DEPTH_MAX, probed_next, &s, 0);
	return s.is_found;
}

#endif
