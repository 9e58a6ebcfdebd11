/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which threads are targets, and which published address space (wire/kernel_tables.h) a process
 * has. Tracepoints handle forks, execs and exits here at once. User space handles the same events
 * later, from perf records. So mappings that user space publishes are used only if the process has
 * not called execve since the time for which they are valid.
 */
#ifndef ASSAY_BPF_STACK_SPACE_H
#define ASSAY_BPF_STACK_SPACE_H

/* Set before loading. */
const volatile bool watch_system = false;                 /* every thread is a target */
const volatile bool watch_threads = false;                /* the map "tids" lists single threads */
const volatile __u32 own_tgid = 0;                        /* assay itself: never a target */
const volatile __u32 row_mask = KTABLES_ROWS_DEFAULT - 1; /* number of rows - 1 */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, KTABLES_HEAD_BYTES + KTABLES_ROWS_DEFAULT * 8);
} tables SEC(".maps");

DEFINE_MAP(HASH, procs, KTABLES_NR_SPACES, __u32, struct kproc);

DEFINE_MAP_FLAGS(HASH, tids, BPF_F_NO_PREALLOC, 65536, __u32, __u8);

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, KTABLES_NR_SPACES);
	__uint(value_size, 4);
} free_spaces SEC(".maps");

DEFINE_TASK_STORAGE(task_states, struct task_state);

/*
 * Removes the published mappings of a space. The upper half of sp->now (generation) gets a new
 * value each time, so that a compare-and-swap by user space against an older value fails.
 */
static __always_inline void space_reset(struct kspace *sp, __u64 now)
{
	__u64 none = __builtin_bswap32((__u32)now) ^ (__u32)(now >> 32);

	WRITE_ONCE(sp->exec_ns, now);
	WRITE_ONCE(sp->python, 0);
	barrier();
	WRITE_ONCE(sp->now, none << 32);
}

/* Returns the index of a free space for a new process; KTABLES_NR_SPACES: none is left. */
static __always_inline __u32 space_alloc(struct ktables_head *h)
{
	__u32 idx;

	if (READ_ONCE(h->next_space) < KTABLES_NR_SPACES) {
		idx = __sync_fetch_and_add(&h->next_space, 1);
		if (idx < KTABLES_NR_SPACES)
			return idx;
	}
	if (bpf_map_pop_elem(&free_spaces, &idx))
		return KTABLES_NR_SPACES;
	return idx;
}

static __always_inline void space_free(__u32 idx)
{
	bpf_map_push_elem(&free_spaces, &idx, 0);
}

/*
 * Adds a process. @from: index of the space whose mappings it starts with (its parent's), or
 * KTABLES_NR_SPACES for none. False: there is no free space (counted) or the map is full.
 */
__noinline bool proc_add(__u32 tgid, __u32 flags, __u32 from)
{
	struct ktables_head *h = single_elem(&tables);
	struct kproc p = {.flags = flags};

	if (!h)
		return false;
	p.space_idx = space_alloc(h);
	if (p.space_idx >= KTABLES_NR_SPACES) {
		count_loss(KLOSS_PROCS_FULL);
		return false;
	}
	struct kspace *sp = &h->spaces[p.space_idx & (KTABLES_NR_SPACES - 1)];
	space_reset(sp, bpf_ktime_get_ns());
	if (from < KTABLES_NR_SPACES) {
		WRITE_ONCE(sp->python, READ_ONCE(h->spaces[from].python));
		WRITE_ONCE(sp->now, READ_ONCE(h->spaces[from].now));
	}
	if (bpf_map_update_elem(&procs, &tgid, &p, BPF_NOEXIST)) {
		space_free(p.space_idx);
		/* Another CPU added it at the same time, or the map is full. */
		return bpf_map_lookup_elem(&procs, &tgid) != NULL;
	}
	return true;
}

/*
 * Returns the thread's state. NULL: it has none; with @create: it could not be allocated, which is
 * counted as a loss.
 */
static __always_inline struct task_state *state_of(struct task_struct *t, bool create)
{
	struct task_state *s = bpf_task_storage_get(&task_states, t, NULL,
						    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!s && create)
		count_loss(KLOSS_STATE);
	return s;
}

/* Looks up in the maps whether the thread is a target. */
static __always_inline bool is_listed(struct task_struct *t)
{
	__u32 tgid = (__u32)t->tgid;
	__u32 tid = (__u32)t->pid;

	if (watch_system)
		return tid != 0 && tgid != own_tgid;
	struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
	if (!p)
		return false;
	if (p->flags & KPROC_TARGET)
		return true;
	return watch_threads && bpf_map_lookup_elem(&tids, &tid);
}

/* The same, but uses and updates the result stored in the thread's state, if it has one. */
static __always_inline bool is_target(struct task_struct *t)
{
	if (watch_system)
		return t->pid != 0 && (__u32)t->tgid != own_tgid;
	struct task_state *s = state_of(t, false);
	if (s && s->flags & TASK_IS_KNOWN)
		return s->flags & TASK_IS_TARGET;
	bool is_it = is_listed(t);
	if (s)
		s->flags |= TASK_IS_KNOWN | (is_it ? TASK_IS_TARGET : 0);
	return is_it;
}

/* Returns the state of a target thread, created if needed; NULL: not a target, or no memory. */
static __always_inline struct task_state *target_state(struct task_struct *t)
{
	struct task_state *s = state_of(t, false);

	if (s && s->flags & TASK_IS_KNOWN)
		return s->flags & TASK_IS_TARGET ? s : NULL;
	if (!is_listed(t))
		return NULL;
	s = state_of(t, true);
	if (s)
		s->flags |= TASK_IS_KNOWN | TASK_IS_TARGET;
	return s;
}

/* Returns the space of the thread's process; adds an unknown process. NULL: no free space. */
static __always_inline struct kspace *space_of(struct ktables_head *h, struct task_struct *t,
					       struct task_state *s)
{
	__u32 idx_1 = s->space_idx_1;

	if (!idx_1) {
		__u32 tgid = (__u32)t->tgid;
		struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
		if (!p && proc_add(tgid, 0, KTABLES_NR_SPACES))
			p = bpf_map_lookup_elem(&procs, &tgid);
		if (!p)
			return NULL;
		s->space_idx_1 = idx_1 = p->space_idx + 1;
	}
	return &h->spaces[(idx_1 - 1) & (KTABLES_NR_SPACES - 1)];
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(target_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 ptgid = (__u32)parent->tgid;
	__u32 tgid = (__u32)child->tgid;

	struct kproc *p = bpf_map_lookup_elem(&procs, &ptgid);
	if (!p || !(watch_system || p->flags & KPROC_TARGET))
		return 0;
	if (tgid != ptgid)
		proc_add(tgid, p->flags & KPROC_TARGET, p->space_idx);
	/* Allocate the state now: at the thread's first switches the run queue lock is held, so
	 * the allocation could fail, and these switches would be lost. */
	if (p->flags & KPROC_TARGET)
		target_state(child);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(target_exec, struct task_struct *t)
{
	__u32 tgid = (__u32)t->tgid;
	struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
	struct ktables_head *h = single_elem(&tables);

	if (!p)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (h)
		space_reset(&h->spaces[p->space_idx & (KTABLES_NR_SPACES - 1)], now);
	if (p->flags & KPROC_AT_EXEC) {
		struct task_state *s = state_of(t, false);
		if (s) /* is_target may have stored "not a target" */
			s->flags &= ~TASK_IS_KNOWN;
		p->since_ns = now;
		p->flags = KPROC_TARGET;
		s = target_state(t);
		if (s) {
			s->wait.exec_ns = exec_ns_of(t);
			s->wait.has_exec = 1;
		}
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(target_exit, struct task_struct *t)
{
	__u32 tgid = (__u32)t->tgid;

	if (BPF_CORE_READ(t, signal, live.counter))
		return 0;
	struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
	if (!p)
		return 0;
	__u32 idx = p->space_idx;
	if (!bpf_map_delete_elem(&procs, &tgid))
		space_free(idx);
	return 0;
}

#endif
