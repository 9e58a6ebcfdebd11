/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Attribution of lock waits ("blame"): what the blocking thread did while another thread waited for
 * it. Each thread's state has its last intervals off the CPU (wait_state.history). When a waiter is
 * woken, the part of the blocking thread's intervals that overlaps the wait is accounted to it; the
 * rest of the wait is time in which the blocking thread ran.
 *
 * The blocking thread is the waker. If the lock word named another owner, the lock had several
 * owners during the wait: until the waker acquired it, the wait is attributed to that owner.
 */
#ifndef ASSAY_BPF_BLAME_H
#define ASSAY_BPF_BLAME_H

struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
struct task_struct *bpf_task_from_vpid(__s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;

/* One wait, or the part of it that is attributed to one thread. */
struct blame {
	__u64 start_ns;
	__u64 end_ns;
	__u64 run_ref; /* stack of the blocking thread at the wake-up, 0 = unknown */
	__s32 tid;     /* of the blocking thread */
	__s32 tgid;
	__u8 is_counted; /* one of the wait's rows has count 1 already */
};

/*
 * Intervals with the same reason are merged into one history entry if the gap between them is
 * short, so that a thread that reads many times while it holds a lock does not lose the first of
 * these intervals. Preemptions are merged over a longer gap, since the thread runs for a time slice
 * in between, and without regard to the stack, since where a thread is preempted is random.
 */
#define HISTORY_GAP_NS        500000ull
#define HISTORY_GAP_QUEUE_NS  20000000ull
#define HISTORY_MERGED_MAX_NS 1000000000ull

static __always_inline bool history_can_extend(const struct wait_interval *p,
					       const struct wait_cause *c, __u64 start, __u64 end)
{
	bool is_queue = c->reason == WAIT_RUN_QUEUE;
	return p->nr && p->reason == c->reason && (is_queue || p->ref == c->user_ref) &&
	       p->object == c->object &&
	       start - p->end_ns < (is_queue ? HISTORY_GAP_QUEUE_NS : HISTORY_GAP_NS) &&
	       end - p->start_ns < HISTORY_MERGED_MAX_NS;
}

/*
 * Records an interval off the CPU in the thread's history: extends an entry if history_can_extend
 * allows it, else replaces the oldest entry. From @woken to @end the thread was in the run queue.
 */
__noinline int history_record(struct wait_state *w, __u64 start, __u64 woken, __u64 end)
{
	__u32 oldest = 0;
	__u64 oldest_ns = ~0ull;

	if (!w)
		return 0;

	for (__u32 i = 0; i < WAIT_HISTORY_NR; i++) {
		struct wait_interval *p = &w->history[i];
		if (history_can_extend(p, &w->now, start, end)) {
			p->end_ns = end;
			p->ref = w->now.user_ref;
			p->ns += woken - start;
			p->queue_ns += end - woken;
			p->nr++;
			return 0;
		}
		if (p->end_ns < oldest_ns) {
			oldest_ns = p->end_ns;
			oldest = i;
		}
	}
	struct wait_interval *p = &w->history[oldest & (WAIT_HISTORY_NR - 1)];
	if (p->nr)
		w->history_lost_ns = p->end_ns;
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
		cached_row_add(w, &w->cached_rows[WAIT_CACHED_ROW_BLAME], &k, &r);
	else if (!rows_add(&k, &r))
		count_loss(KLOSS_MAP_FULL);
}

/*
 * Returns the blocked time of a history entry within the wait; *ret_queue_ns: its time in the run
 * queue. Of an entry with several merged intervals the parts are proportional to the overlap.
 */
static __always_inline __u64 history_overlap(const struct wait_interval *p, const struct blame *b,
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

/* Attributes [b->start_ns, b->end_ns) of the wait to a blocking thread, whose state is @c. */
__noinline int blame_thread(struct wait_state *w, __u64 ids, struct wait_state *c, struct blame *b)
{
	if (!w || !c || !b || b->end_ns <= b->start_ns)
		return 0;
	__u64 rest = b->end_ns - b->start_ns;
	__u64 queue_ns = 0;

	if (b->start_ns < c->history_lost_ns) {
		__u64 end = c->history_lost_ns < b->end_ns ? c->history_lost_ns : b->end_ns;
		rest -= end - b->start_ns;
		blame_account(w, ids, b, WAIT_UNKNOWN, 0, end - b->start_ns);
		b->start_ns = end;
	}
	for (__u32 i = 0; i < WAIT_HISTORY_NR; i++) {
		struct wait_interval *p = &c->history[i];
		if (!p->nr || p->end_ns <= b->start_ns)
			continue;
		__u64 ns = history_overlap(p, b, &queue_ns);
		rest -= ns + queue_ns < rest ? ns + queue_ns : rest;
		blame_account(w, ids, b, p->reason, p->ref, ns);
		blame_account(w, ids, b, WAIT_RUN_QUEUE, p->ref, queue_ns);
	}
	/*
	 * An owner that is not the waker may be blocked now: its interval is not in the history
	 * yet.
	 */
	if (c->cpu_state == WAIT_CPU_OFF && c->off_ns && c->off_ns < b->end_ns &&
	    b->tid != (__s32)ids) {
		__u64 start = c->off_ns > b->start_ns ? c->off_ns : b->start_ns;
		__u64 ns = b->end_ns - start;
		rest -= ns < rest ? ns : rest;
		blame_account(w, ids, b, c->now.reason, c->now.user_ref, ns);
	}
	blame_account(w, ids, b, WAIT_ON_CPU, b->run_ref, rest);
	RETURN_NOTHING();
}

/* Time at which the waker @by acquired the lock @object; 0: it did not wait for the lock. */
static __always_inline __u64 lock_acquired_ns(const struct wait_state *by, __u64 object,
					      __u64 since_ns)
{
	for (__u32 i = 0; i < WAIT_HISTORY_NR; i++) {
		const struct wait_interval *p = &by->history[i];
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

/* The thread's TID in its own PID namespace, which is what lock words contain. */
static __noinline __s32 ns_tid_of(struct task_struct *t)
{
	if (!t)
		return 0;
	/* In the initial PID namespace, level is 0 and the TID is t->pid. */
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
 * The thread that the lock word named; the caller releases it. NULL: the waiter's process has no
 * thread with this TID, so the word was not that of a lock.
 */
static __always_inline struct task_struct *owner_task(struct wait_state *w, struct task_struct *t,
						      bool is_same_ns)
{
	if (!bpf_task_release || !bpf_task_from_pid)
		return NULL;
	/*
	 * bpf_task_from_vpid searches the PID namespace of the current thread, bpf_task_from_pid
	 * the initial one.
	 */
	struct task_struct *owner = is_same_ns && bpf_task_from_vpid
					    ? bpf_task_from_vpid(w->now.owner_tid)
					    : bpf_task_from_pid(w->now.owner_tid);
	if (!owner || owner->tgid == t->tgid)
		return owner;
	bpf_task_release(owner);
	return NULL;
}

static __always_inline void owner_clear(struct wait_state *w)
{
	w->now.owner_tid = 0;
	w->now.evidence &= ~EVIDENCE_LOCK_WORD;
}

/*
 * Clears the owner if the lock word did not name a thread of the process. This is done at the
 * wake-up and not at the switch: there the run queue lock is held, and bpf_task_release may wake a
 * thread.
 */
static __noinline int owner_verify(struct wait_state *w, struct task_struct *t,
				   struct task_struct *by)
{
	if (!w || !t || !by)
		return 0;
	__s32 owner_tid = w->now.owner_tid;
	if (owner_tid == by->pid || owner_tid == ns_tid_of(by))
		return 0;
	struct task_struct *owner = owner_task(w, t, by->tgid == t->tgid);
	if (!owner) {
		owner_clear(w);
		return 0;
	}
	bpf_task_release(owner);
	RETURN_NOTHING();
}

/*
 * Attributes the part of the wait in which a thread other than the waker owned the lock. Returns 1
 * if it did, 0 if the owner or its state is not known.
 */
static __noinline int blame_owner(struct wait_state *w, struct task_struct *t, struct blame *b,
				  bool is_same_ns)
{
	if (!w || !t || !b)
		return 0;
	struct task_struct *owner = owner_task(w, t, is_same_ns);
	if (!owner)
		return 0;
	struct task_state *s = state_of(owner, false);
	if (s) {
		b->tid = owner->pid;
		b->tgid = owner->tgid;
		b->run_ref = 0;
		blame_thread(w, ids_of(t), &s->wait, b);
	}
	bpf_task_release(owner);
	return s != NULL;
}

/* Attributes the wait of @t (state @w), woken at @now by @by (state @c, stack @ref). */
static __always_inline void blame_wait(struct wait_state *w, struct task_struct *t,
				       struct wait_state *c, struct task_struct *by, __u64 ref,
				       __u64 now)
{
	struct blame b = {.start_ns = w->off_ns, .end_ns = now};

	if (w->cpu_state != WAIT_CPU_OFF || !w->is_accounted || w->now.reason != WAIT_SYNC ||
	    now <= w->off_ns)
		return;
	second_of(w, now);
	__s32 owner = w->now.owner_tid;
	if (owner && owner != by->pid && owner != ns_tid_of(by)) {
		__u64 got = lock_acquired_ns(c, w->now.object, b.start_ns);
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
	blame_thread(w, ids_of(t), c, &b);
}

/* A wait that is still open when the accounting ends is attributed to the lock's owner. */
static __always_inline void blame_open(struct wait_state *w, struct task_struct *t, __u64 now)
{
	struct blame b = {.start_ns = w->off_ns, .end_ns = now};

	if (w->now.reason != WAIT_SYNC || !w->now.owner_tid)
		return;
	second_of(w, now);
	if (!wait_has_wakers || !blame_owner(w, t, &b, false))
		owner_clear(w);
}

#endif
