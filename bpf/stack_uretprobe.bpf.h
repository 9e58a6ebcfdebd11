/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Return addresses that a return probe (uretprobe, see spans.bpf.h) has replaced. The kernel writes
 * the address of its trampoline to the stack and keeps the original return address in a list of the
 * task (task_struct.utask). These functions read the original address from that list.
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
} CORE;

#define URETPROBE_DEPTH_MAX 64 /* the kernel's own limit (MAX_URETPROBE_DEPTH) */
#ifdef ARCH_RA_BESIDE_FP
#define URETPROBE_RA_BYTES 0
#else
#define URETPROBE_RA_BYTES 8
#endif

struct uretprobe_search {
	struct walk *w;
	struct return_instance *r;
	bool is_found;
};

static long uretprobe_next(__u32 i, struct uretprobe_search *s)
{
	struct return_instance *r = s->r;
	struct walk *w = s->w;

	if (!r)
		return 1;
	bool is_here = BPF_CORE_READ(r, stack) + URETPROBE_RA_BYTES == w->sp;
	if (is_here && !BPF_CORE_READ(r, chained)) {
		w->pc = BPF_CORE_READ(r, orig_ret_vaddr);
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

/* If the walk's pc is the trampoline, replaces it with the original return address. */
__noinline bool walk_resolve_uretprobe(struct walk *w)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!w || !bpf_core_field_exists(t->utask))
		return false;
	struct xol_area *area = BPF_CORE_READ(t, mm, uprobes_state.xol_area);
	if (!area || BPF_CORE_READ(area, vaddr) != w->pc)
		return false;
	struct uretprobe_search s = {.w = w, .r = BPF_CORE_READ(t, utask, return_instances)};
	bpf_loop(URETPROBE_DEPTH_MAX, uretprobe_next, &s, 0);
	return s.is_found;
}

#endif
