/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the thread that one waited for did meanwhile: each thread's state remembers its last
 * intervals off the CPU; when a waiter is woken, those of the culprit are cut to the wait. What
 * they leave is time in which the culprit ran.
 *
 * The culprit is who woke it. Where the lock word named an owner that is somebody else, the lock
 * went through several hands: until the waker itself got it, it was the owner's.
 */
#ifndef ASSAY_BPF_BLAME_H
#define ASSAY_BPF_BLAME_H

struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
struct task_struct *bpf_task_from_vpid(__s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;

/* One wait, or the part of it for which one thread is to blame. */
struct blame {
	__u64 start_ns;
	__u64 end_ns;
	__u64 run_ref; /* where the culprit let go of it, 0 = unknown */
	__s32 tid;
	__s32 tgid;
	__u8 is_counted; /* the wait was counted with one of its parts */
};

/*
 * Intervals of a kind that follow each other closely are one, whatever lies between them, so that
 * a thread that reads, reads, reads while it holds a lock does not forget when that began. Where a
 * thread loses its CPU is chance, and in between it runs for a slice.
 */
#define PAST_GAP_NS       500000ull
#define PAST_GAP_QUEUE_NS 20000000ull
#define PAST_SPAN_NS      1000000000ull

static __always_inline bool past_goes_on(const struct wait_past *p, const struct wait_cause *c,
					 __u64 start, __u64 end)
{
	bool is_queue = c->reason == WAIT_RUN_QUEUE;
	return p->nr && p->reason == c->reason && (is_queue || p->ref == c->user_ref) &&
	       p->object == c->object &&
	       start - p->end_ns < (is_queue ? PAST_GAP_QUEUE_NS : PAST_GAP_NS) &&
	       end - p->start_ns < PAST_SPAN_NS;
}

__noinline int past_note(struct wait_state *w, __u64 start, __u64 woken, __u64 end)
{
	__u32 oldest = 0;
	__u64 oldest_ns = ~0ull;

	if (!w)
		return 0;

	for (__u32 i = 0; i < WAIT_PASTS; i++) {
		struct wait_past *p = &w->past[i];
		if (past_goes_on(p, &w->now, start, end)) {
			p->end_ns = end;
			p->ref = w->now.user_ref;
			p->ns += woken - start;
			p->queue_ns += end - woken;
			p->nr++;
			if (!p->ref) /* it began with the thread's birth, which has no stack */
				p->ref = w->now.user_ref;
			return 0;
		}
		if (p->end_ns < oldest_ns) {
			oldest_ns = p->end_ns;
			oldest = i;
		}
	}
	struct wait_past *p = &w->past[oldest & (WAIT_PASTS - 1)];
	if (p->nr)
		w->past_lost_ns = p->end_ns;
	p->start_ns = start;
	p->end_ns = end;
	p->ns = woken - start;
	p->queue_ns = end - woken;
	p->ref = w->now.user_ref;
	p->object = w->now.object;
	p->reason = w->now.reason;
	p->nr = 1;
	RETURN_NOTHING();
}

static __always_inline void blame_account(struct wait_state *w, __u64 ids, struct blame *b,
					  __u8 reason, __u64 ref, __u64 ns)
{
	struct wait_key k;
	struct wait_row r = {};

	if (!ns)
		return;
	key_of_thread(&k, ids, WAITACCOUNT_BLAME);
	k.user_ref = w->now.user_ref;
	k.object = w->now.object;
	k.object_kind = w->now.object_kind;
	k.syscall = w->now.syscall;
	k.evidence = w->now.evidence;
	k.other_ref = ref;
	k.other_tid = b->tid;
	k.reason = reason;
	k.second = w->second;
	r.ns = ns;
	r.max_ns = ns;
	r.count = !b->is_counted;
	r.other_tgid = b->tgid;
	r.kernel_ref = w->now.kernel_ref;
	b->is_counted = 1;
	if (reason == WAIT_ON_CPU)
		memo_add(w, &w->memo[WAIT_MEMO_BLAME], &k, &r);
	else if (!rows_add(&k, &r))
		count_loss(KLOSS_MAP_FULL);
}

/* The part of an interval of the culprit that lies within the wait; 0: none. */
static __always_inline __u64 past_share(const struct wait_past *p, const struct blame *b,
					__u64 *ret_queue_ns)
{
	__u64 start = p->start_ns > b->start_ns ? p->start_ns : b->start_ns;
	__u64 end = p->end_ns < b->end_ns ? p->end_ns : b->end_ns;
	__u64 ns = p->ns;

	*ret_queue_ns = 0;
	if (!p->nr || start >= end)
		return 0;
	if (p->nr == 1) {
		__u64 woken = p->start_ns + p->ns;
		ns = woken > start ? (woken < end ? woken : end) - start : 0;
		*ret_queue_ns = end - start - ns;
		return ns;
	}
	*ret_queue_ns = p->queue_ns;
	if (end - start != p->end_ns - p->start_ns) {
		__u64 span = p->end_ns - p->start_ns; /* bounded, so this does not overflow */
		ns = ns * (end - start) / span;
		*ret_queue_ns = p->queue_ns * (end - start) / span;
	}
	return ns;
}

/* @c: the culprit's state. */
__noinline int blame_culprit(struct wait_state *w, __u64 ids, struct wait_state *c, struct blame *b)
{
	if (!w || !c || !b || b->end_ns <= b->start_ns)
		return 0;
	__u64 rest = b->end_ns - b->start_ns;
	__u64 queue_ns = 0;

	if (b->start_ns < c->past_lost_ns) {
		__u64 end = c->past_lost_ns < b->end_ns ? c->past_lost_ns : b->end_ns;
		rest -= end - b->start_ns;
		blame_account(w, ids, b, WAIT_UNKNOWN, 0, end - b->start_ns);
		b->start_ns = end;
	}
	for (__u32 i = 0; i < WAIT_PASTS; i++) {
		struct wait_past *p = &c->past[i];
		if (!p->nr || p->end_ns <= b->start_ns)
			continue;
		__u64 ns = past_share(p, b, &queue_ns);
		rest -= ns + queue_ns < rest ? ns + queue_ns : rest;
		blame_account(w, ids, b, p->reason, p->ref, ns);
		blame_account(w, ids, b, WAIT_RUN_QUEUE, p->ref, queue_ns);
	}
	/* An owner that is not the waker may wait at this moment. */
	if (!c->is_on && c->off_ns && c->off_ns < b->end_ns && b->tid != (__s32)ids) {
		__u64 start = c->off_ns > b->start_ns ? c->off_ns : b->start_ns;
		__u64 ns = b->end_ns - start;
		rest -= ns < rest ? ns : rest;
		blame_account(w, ids, b, c->now.reason, c->now.user_ref, ns);
	}
	blame_account(w, ids, b, WAIT_ON_CPU, b->run_ref, rest);
	RETURN_NOTHING();
}

/* When the waker got what it now lets go of; 0: it never waited for it. */
static __always_inline __u64 got_ns(const struct wait_state *by, __u64 object, __u64 since_ns)
{
	for (__u32 i = 0; i < WAIT_PASTS; i++) {
		const struct wait_past *p = &by->past[i];
		if (p->nr && p->end_ns > since_ns && p->reason == WAIT_SYNC && p->object == object)
			return p->end_ns;
	}
	return 0;
}

struct upid {
	int nr;
} CORE;
struct pid {
	unsigned int level;
	struct upid numbers[1];
} CORE;

/* The thread's number in its own namespace, which is what lock words hold. */
static __noinline __s32 own_tid(struct task_struct *t)
{
	if (!t)
		return 0;
	/* Outside of namespaces level is 0, and this is t->pid. */
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	__s32 nr = 0;
	if (!pid)
		return 0;
	/* The array's last element is that of the innermost namespace. */
	void *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		   BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid) +
		   bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&nr, sizeof(nr), at);
	return nr;
}

/*
 * The thread that the lock word named, to be released; NULL: there is none of that number in the
 * waiter's process, so it was no lock's word.
 */
static __always_inline struct task_struct *owner_task(struct wait_state *w, struct task_struct *t,
						      bool is_own_space)
{
	if (!bpf_task_release || !bpf_task_from_pid)
		return NULL;
	/* By the current thread's namespace where that is the waiter's, else by the root's. */
	struct task_struct *owner = is_own_space && bpf_task_from_vpid
					    ? bpf_task_from_vpid(w->now.owner_tid)
					    : bpf_task_from_pid(w->now.owner_tid);
	if (!owner || owner->tgid == t->tgid)
		return owner;
	bpf_task_release(owner);
	return NULL;
}

static __always_inline void owner_forget(struct wait_state *w)
{
	w->now.owner_tid = 0;
	w->now.evidence &= ~EVIDENCE_LOCK_WORD;
}

/*
 * Whether the lock word named a thread can be looked up only here: at a switch the run queue's lock
 * is held, and to give up a task there could mean to wake somebody.
 */
static __noinline int owner_check(struct wait_state *w, struct task_struct *t,
				  struct task_struct *by)
{
	if (!w || !t || !by)
		return 0;
	__s32 owner_tid = w->now.owner_tid;
	if (owner_tid == by->pid || owner_tid == own_tid(by))
		return 0;
	struct task_struct *owner = owner_task(w, t, by->tgid == t->tgid);
	if (!owner) {
		owner_forget(w);
		return 0;
	}
	bpf_task_release(owner);
	RETURN_NOTHING();
}

/* The part of the wait for which the lock was another's than the waker's. */
static __noinline int blame_owner(struct wait_state *w, struct task_struct *t, struct blame *b,
				  bool is_own_space)
{
	if (!w || !t || !b)
		return 0;
	struct task_struct *owner = owner_task(w, t, is_own_space);
	if (!owner)
		return 0;
	struct task_state *s = state_of(owner, false);
	if (s) {
		b->tid = owner->pid;
		b->tgid = owner->tgid;
		b->run_ref = 0;
		blame_culprit(w, ids_of(t), &s->wait, b);
	}
	bpf_task_release(owner);
	return s != NULL;
}

/* @w, @t: who is woken, now, by @by, whose stack is @ref. */
static __always_inline void blame_wait(struct wait_state *w, struct task_struct *t,
				       struct wait_state *c, struct task_struct *by, __u64 ref,
				       __u64 now)
{
	struct blame b = {.start_ns = w->off_ns, .end_ns = now};

	if (w->is_on || !w->is_seen || w->now.reason != WAIT_SYNC || now <= w->off_ns)
		return;
	second_of(w, now);
	__s32 owner = w->now.owner_tid;
	if (owner && owner != by->pid && owner != own_tid(by)) {
		__u64 got = got_ns(c, w->now.object, b.start_ns);
		b.end_ns = got ? got : now;
		if (blame_owner(w, t, &b, by->tgid == t->tgid)) {
			b.start_ns = b.end_ns;
			b.end_ns = now;
		} else {
			b.start_ns = w->off_ns;
			b.end_ns = now;
		}
	}
	b.run_ref = ref;
	b.tid = by->pid;
	b.tgid = by->tgid;
	blame_culprit(w, ids_of(t), c, &b);
}

/* A wait that has not ended when the ledger ends: the owner's so far. */
static __always_inline void blame_open(struct wait_state *w, struct task_struct *t, __u64 now)
{
	struct blame b = {.start_ns = w->off_ns, .end_ns = now};

	if (w->now.reason != WAIT_SYNC || !w->now.owner_tid)
		return;
	second_of(w, now);
	if (!wait_has_wakers || !blame_owner(w, t, &b, false))
		owner_forget(w);
}

#endif
