/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sends records of waits: into the ring of the CPU (wire/kernel_wait.h, struct wait_ring), or, from
 * outside of sched_switch and for long durations, through the common ring. A full ring is never
 * overwritten: the times of a record that has no room are added to sums in the thread's state, which
 * are sent when there is room again.
 *
 * The verifier checks a global (not static) function once, apart from its callers, so it cannot have
 * a task_struct as argument.
 */
#ifndef ASSAY_BPF_WAIT_RING_H
#define ASSAY_BPF_WAIT_RING_H

/* Set before loading, with the size of the map's elements. */
const volatile __u32 wait_ring_mask = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct wait_ring) + sizeof(struct wait_record));
} wait_rings SEC(".maps");

/* Publishes the record at the head. */
static __always_inline void ring_push(struct wait_ring *r)
{
#if defined(__TARGET_ARCH_x86)
	barrier(); /* stores are not reordered */
	WRITE_ONCE(r->head, r->head + 1);
#else
	__sync_fetch_and_add(&r->head, 1);
#endif
}

static __always_inline void unaccounted_add_run(struct wait_state *w)
{
	w->unaccounted_ran_ns += w->ran_ns;
	w->unaccounted_run_ns += w->run_ns;
	w->unaccounted_runs += !!w->ran_ns;
}

/* No ring has room: the times are kept in the thread's state. */
static __always_inline void unaccounted_add(struct wait_state *w, __u8 how, __u64 off_ns)
{
	unaccounted_add_run(w);
	if (how != HOW_ENDED) {
		w->unaccounted_ns += off_ns;
		w->unaccounted++;
	}
	count_loss(KLOSS_MAP_FULL);
}

static __always_inline struct wait_single *single_reserve(__u64 ids)
{
	struct wait_single *s = bpf_ringbuf_reserve(&ring, sizeof(*s), 0);
	if (!s)
		return NULL;
	__builtin_memset(s, 0, sizeof(*s));
	record_head_at(&s->head, RECORD_WAIT, sizeof(*s), bpf_ktime_get_ns(), (__s32)(ids >> 32),
		       (__s32)ids);
	s->record.tgid = (__s32)(ids >> 32);
	s->record.tid = (__s32)ids;
	s->record.syscall = -1;
	return s;
}

/* Sends the sums of what had no room. */
__noinline int unaccounted_send(struct wait_state *w, __u64 ids)
{
	if (!w || !(w->unaccounted | w->unaccounted_runs))
		return 0;
	struct wait_single *s = single_reserve(ids);
	if (!s)
		return 0;
	s->record.off_ns = s->head.time_ns;
	s->record.how = HOW_UNACCOUNTED;
	s->record.fd = WAIT_NO_FD;
	s->record.reason = WAIT_UNKNOWN;
	s->blocked_ns = w->unaccounted_ns;
	s->ran_ns = w->unaccounted_ran_ns;
	s->run_ns = w->unaccounted_run_ns;
	s->nr_intervals = w->unaccounted;
	s->nr_runs = w->unaccounted_runs;
	ring_submit(s);
	w->unaccounted_ns = w->unaccounted_ran_ns = w->unaccounted_run_ns = 0;
	w->unaccounted = w->unaccounted_runs = 0;
	RETURN_NOTHING();
}

/* For a thread that has ended: counts what could not be sent as lost. */
static __always_inline void unaccounted_drop(struct wait_state *w)
{
	__u64 ns = w->unaccounted_ns + w->unaccounted_ran_ns;
	if (!ns)
		return;
	__sync_fetch_and_add(&wait_loss.ns, ns);
	__sync_fetch_and_add(&wait_loss.count, w->unaccounted + w->unaccounted_runs);
}

/* The times of an interval off the CPU that has ended. */
struct wait_end {
	__u64 blocked_ns;
	__u64 queue_ns;
	__u32 evidence; /* what the end adds to it */
	__u8 how;
};

/*
 * Whether the last wake-up ended the interval. One that comes between the thread's change of state
 * and its switch out does: its time is within the run before, and the thread is switched out
 * nevertheless.
 */
static __always_inline bool has_waker(const struct wait_state *w)
{
	return w->now.how == HOW_BLOCKED && w->wake.time_ns &&
	       w->wake.time_ns + w->ran_ns >= w->off_ns;
}

/* Fills a record except for its durations. */
static __always_inline void record_fill(struct wait_record *r, const struct wait_state *w,
					__u64 ids, const struct wait_end *e)
{
	r->off_ns = w->off_ns;
	r->user_ref = w->now.user_ref;
	r->kernel_ref = w->now.kernel_ref;
	r->object = w->now.object;
	r->tgid = (__s32)(ids >> 32);
	r->tid = (__s32)ids;
	r->fd = w->now.fd;
	r->dev = w->now.dev;
	r->syscall = w->now.syscall;
	r->reason = w->now.reason;
	r->how = e->how;
	r->object_kind = w->now.object_kind;
	r->cpu = (__u16)bpf_get_smp_processor_id();
	__u8 evidence = w->now.evidence | (__u8)e->evidence;
	__u64 waker_ref = 0;
	__s32 waker_tgid = 0;
	__s32 waker_tid = 0;
	if (e->how == HOW_BLOCKED && has_waker(w)) {
		waker_ref = w->wake.ref;
		waker_tgid = w->wake.tgid;
		waker_tid = w->wake.tid;
		evidence |= (__u8)w->wake.evidence;
	}
	r->waker_ref = waker_ref;
	r->waker_tgid = waker_tgid;
	r->waker_tid = waker_tid;
	r->evidence = evidence;
}

/* Sends the run before off_ns and the interval after it through the common ring. */
__noinline int wait_send_single(struct wait_state *w, __u64 ids, const struct wait_end *e)
{
	if (!w || !e)
		return 0;
	struct wait_single *s = single_reserve(ids);
	if (!s) {
		unaccounted_add(w, e->how, e->blocked_ns + e->queue_ns);
		return 0;
	}
	record_fill(&s->record, w, ids, e);
	s->blocked_ns = e->blocked_ns;
	s->queue_ns = e->queue_ns;
	s->ran_ns = w->ran_ns;
	s->run_ns = w->run_ns;
	ring_submit(s);
	RETURN_NOTHING();
}

/* Reports the thread to user space. @ns_tid: see struct wait_thread. */
static __always_inline void thread_send(struct wait_state *w, __u64 ids, __s32 ns_tid)
{
	struct wait_thread *t = bpf_ringbuf_reserve(&ring, sizeof(*t), 0);
	if (!t)
		return;
	record_head_at(&t->head, RECORD_THREAD, sizeof(*t), bpf_ktime_get_ns(), (__s32)(ids >> 32),
		       (__s32)ids);
	t->ns_tid = ns_tid;
	t->pad = 0;
	ring_submit(t);
	w->is_reported = 1;
}

/*
 * Writes the run before off_ns and the interval after it to the ring of this CPU. Only sched_switch
 * may call it: two writers would overwrite each other's record.
 */
static __always_inline void wait_send(struct wait_state *w, __u64 ids, const struct wait_end *e)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_ring *r = bpf_map_lookup_elem(&wait_rings, &cpu);

	if (!r)
		return;
	if (UNLIKELY((e->blocked_ns | e->queue_ns | w->ran_ns | w->run_ns) >> 32)) {
		wait_send_single(w, ids, e);
		return;
	}
	__u64 head = r->head;
	__u64 used = head - READ_ONCE(r->tail);
	if (UNLIKELY(used > wait_ring_mask)) {
		user_wake(&r->is_woken);
		unaccounted_add(w, e->how, e->blocked_ns + e->queue_ns);
		return;
	}
	struct wait_record *rec =
		(void *)r + sizeof(*r) + (head & wait_ring_mask) * sizeof(struct wait_record);
	record_fill(rec, w, ids, e);
	rec->blocked_ns = (__u32)e->blocked_ns;
	rec->queue_ns = (__u32)e->queue_ns;
	rec->ran_ns = (__u32)w->ran_ns;
	rec->run_ns = (__u32)w->run_ns;
	ring_push(r);
	if (UNLIKELY(used > wait_ring_mask / 4))
		user_wake(&r->is_woken);
	if (UNLIKELY(w->unaccounted | w->unaccounted_runs))
		unaccounted_send(w, ids);
}

#endif
