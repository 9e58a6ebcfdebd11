/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Off-CPU accounting: at each moment a target thread is on a CPU, in the run queue, or blocked for
 * a reason, from the start of the accounting (or the thread's creation) to its end. A "run" is the
 * time on a CPU from a switch in to the next switch out.
 *
 *	sched_switch     out: ends the run, stores the reason and the stack of the wait
 *	                 in: ends the interval off the CPU
 *	sched_waking     stores which thread made this thread runnable, and when
 *	task iterators   threads that are blocked at the start; intervals still open at the end
 *
 * An interval is added to a row that is cached in the thread's state. The row is written to the map
 * when another key needs its cache entry or its second is over. Long intervals, and those that
 * cross the end of a second, are sent through the ring with their exact times, so that user space
 * can split them.
 *
 * There are two maps. Programs write to the one that wait_clock.active_map selects. User space
 * switches active_map, waits until no program can still write to the other map, and reads that one.
 */
#ifndef ASSAY_BPF_WAITS_H
#define ASSAY_BPF_WAITS_H

#include "engine.bpf.h"

#include "reason.bpf.h"

#define NS_PER_SECOND 1000000000ull
/* Maximum frames of a stack. Limited because interrupts are off during a context switch. */
#define WAIT_DEPTH 256
#define WAIT_ROWS  49152 /* of each map */

/* Set before loading. */
const volatile bool wait_has_stacks = true;
const volatile bool wait_has_wakers = true;

struct wait_clock wait_clock;
struct wait_loss wait_loss;

/* CLOCK_MONOTONIC minus the scheduler's clock. Updated, as it drifts by a few ns per ms. */
__u64 wait_offset_ns;

DEFINE_MAP(HASH, wait_rows0, WAIT_ROWS, struct wait_key, struct wait_row);
DEFINE_MAP(HASH, wait_rows1, WAIT_ROWS, struct wait_key, struct wait_row);

/* Innermost kernel frames to skip: the BPF program and the tracepoint function that calls it. */
#define TRACEPOINT_FRAMES 2
/* Direct-mapped cache of kernel stacks by user stack, reason and system call. */
#define WAIT_KSTACKS 8192
struct wait_kstack {
	__u64 tag; /* hash of user stack, reason and system call; 0 = empty */
	__u64 ref; /* reference of the kernel stack */
};
DEFINE_MAP(ARRAY, wait_kstacks, WAIT_KSTACKS, __u32, struct wait_kstack);

/* Returns the second of @now since the epoch of wait_clock, and stores it in the state. */
static __always_inline __u32 second_of(struct wait_state *w, __u64 now)
{
	if (now >= w->second_end_ns) {
		__u64 epoch = wait_clock.epoch_ns;
		w->second = (__u32)((now - epoch) / NS_PER_SECOND);
		w->second_end_ns = epoch + (w->second + 1) * NS_PER_SECOND;
	}
	return w->second;
}

/* Starts the accounting of a thread at @ns. */
static __always_inline void account_from(struct wait_state *w, __u64 ns)
{
	w->is_accounted = 1;
	second_of(w, ns);
	w->run_second = w->second;
}

#include "wait_rows.bpf.h"

/* ---- runs ---------------------------------------------------------------------------------- */

/* Writes the thread's time on CPU to the map. */
static __always_inline void run_flush(struct wait_state *w, __u64 ids)
{
	struct wait_key k;
	struct wait_row r = {};

	if (!w->runs)
		return;
	key_of_thread(&k, ids, WAITACCOUNT_ON_CPU);
	k.second = w->run_second;
	k.reason = WAIT_ON_CPU;
	r.ns = w->run_ns;
	r.count = w->runs;
	if (!rows_add(&k, &r))
		unaccounted_add(w, &k, &r);
	w->run_ns = 0;
	w->runs = 0;
}

/* Ends a run that crosses the end of a second: sends it on its own, and user space splits it. */
__noinline int run_across(struct wait_state *w, __u64 ids, __u64 now)
{
	struct wait_key k;
	struct wait_row r = {};

	if (!w)
		return 0;
	run_flush(w, ids);
	unaccounted_send(w, ids);
	w->run_second = second_of(w, now);
	key_of_thread(&k, ids, WAITACCOUNT_ON_CPU);
	k.reason = WAIT_ON_CPU;
	if (single_send(&k, &r, w->on_ns, now, now))
		return 0;
	w->run_ns += now - w->on_ns;
	w->runs++;
	RETURN_NOTHING();
}

/* Ends a run at @now: adds it to the thread's time on CPU. */
static __always_inline void run_close(struct wait_state *w, struct task_struct *t, __u64 now)
{
	if (now >= w->second_end_ns || w->on_ns + NS_PER_SECOND < w->second_end_ns ||
	    w->run_second != w->second) {
		run_across(w, ids_of(t), now);
		return;
	}
	w->run_ns += now - w->on_ns;
	w->runs++;
}

#include "blame.bpf.h"

/* ---- intervals off the CPU ----------------------------------------------------------------- */

static __always_inline void key_of_cause(struct wait_key *k, const struct wait_cause *c)
{
	k->user_ref = c->user_ref;
	k->object = c->object;
	k->object_kind = c->object_kind;
	k->fd = c->fd;
	k->syscall = c->syscall;
	k->reason = c->reason;
	k->evidence = c->evidence;
	k->how = c->how;
}

/*
 * Returns when the thread that is switched in now was put into a run queue, according to the
 * scheduler's own accounting (sched_info). The time of sched_waking is not used, because it is
 * earlier: an idle CPU first has to receive the wake-up IPI, which on virtual machines takes as
 * long as I/O of a fast device. During that time the thread does not compete with others for a CPU.
 *
 * The result is never before sched_waking: since Linux 6.12 a thread that goes to sleep stays
 * queued until its lag is used up (delayed dequeue). If it is migrated during that time, run_delay
 * contains its whole sleep.
 */
static __always_inline __u64 queued_ns(struct wait_state *w, struct task_struct *t, __u64 now)
{
	if (!bpf_core_field_exists(t->sched_info))
		return w->wake.time_ns ? w->wake.time_ns : now;
	__u64 queue_ns = t->sched_info.run_delay - w->delay_ns;
	__u64 last = t->sched_info.last_queued;
	if (last && now > last + wait_offset_ns)
		queue_ns += now - last - wait_offset_ns;
	__u64 queued = now > queue_ns ? now - queue_ns : 0;
	return queued > w->wake.time_ns ? queued : w->wake.time_ns;
}

/* Adds the interval to the span that the thread is in (spans.bpf.h). */
static __always_inline void span_account(struct span_state *s, const struct wait_key *k,
					 const struct wait_row *r, __u64 start, __u64 woken,
					 __u64 end)
{
	struct span_interval v = {
		.start_ns = start,
		.woken_ns = woken,
		.end_ns = end,
		.user_ref = k->user_ref,
		.kernel_ref = r->kernel_ref,
		.waker_ref = k->other_ref,
		.waker_tgid = r->other_tgid,
		.waker_tid = k->other_tid,
		.reason = k->reason,
		.evidence = k->evidence,
	};
	span_add_wait(s, &v);
}

/*
 * Adds the off-CPU interval that ends at @now. @woken: when the thread was put into the run queue.
 */
__noinline int off_account(struct task_state *s, __u64 ids, __u64 woken, __u64 now, __u32 evidence)
{
	struct wait_key k;
	struct wait_row r = {};

	if (!s)
		return 0;
	struct wait_state *w = &s->wait;
	__u64 start = w->off_ns;
	__u64 end = now > start ? now : start;

	key_of_thread(&k, ids, WAITACCOUNT_OFF_CPU);
	key_of_cause(&k, &w->now);
	k.evidence |= evidence;
	r.kernel_ref = w->now.kernel_ref;
	r.dev = w->now.dev;
	r.count = 1;
	if (woken < start)
		woken = start;
	if (woken > end || w->now.how != HOW_BLOCKED)
		woken = end;
	/*
	 * A wake-up can come between the thread's change of state and its switch out. Then its time
	 * is within the run before this interval, and the thread is switched out nevertheless.
	 */
	if (w->now.how == HOW_BLOCKED && w->wake.time_ns && w->wake.time_ns >= w->on_ns) {
		k.other_ref = w->wake.ref;
		k.other_tid = w->wake.tid;
		k.evidence |= w->wake.evidence;
		r.other_tgid = w->wake.tgid;
	}
	w->wake.time_ns = 0;
	history_record(w, start, woken, end);
	r.ns = woken - start;
	r.queue_ns = end - woken;
	if (s->span.start_ns)
		span_account(&s->span, &k, &r, start, woken, end);
	if (end - start >= WAIT_SINGLE_NS || end >= w->second_end_ns ||
	    start + NS_PER_SECOND < w->second_end_ns) {
		second_of(w, now);
		if (single_send(&k, &r, start, woken, end))
			return 0;
	}
	k.second = w->second;
	k.log2_ns = log2_of(r.ns);
	r.max_ns = r.ns;
	r.max_queue_ns = r.queue_ns;
	account(w, &k, &r);
	RETURN_NOTHING();
}

/* Ends the interval off the CPU at @now. */
static __always_inline void off_close(struct wait_state *w, struct task_struct *t, __u64 now,
				      __u32 evidence)
{
	/* container_of */
	struct task_state *s = (void *)w - __builtin_offsetof(struct task_state, wait);

	off_account(s, ids_of(t), queued_ns(w, t, now > w->off_ns ? now : w->off_ns), now,
		    evidence);
}

/* Writes everything that is cached in the thread's state to the map. */
__noinline int sums_flush(struct wait_state *w, __u64 ids)
{
	if (!w)
		return 0;
	run_flush(w, ids);
	for (unsigned i = 0; i <= WAIT_CACHED_ROW_BLAME; i++)
		cached_row_flush(w, &w->cached_rows[i]);
	unaccounted_send(w, ids);
	RETURN_NOTHING();
}

/* For a thread that has ended: counts the time that did not fit into the map as lost. */
static __always_inline void sums_drop(struct wait_state *w)
{
	__u64 ns = w->unaccounted_ns + w->unaccounted_run_ns;
	if (!ns)
		return;
	__sync_fetch_and_add(&wait_loss.ns, ns);
	__sync_fetch_and_add(&wait_loss.count, w->unaccounted + w->unaccounted_runs);
}

/* ---- programs ------------------------------------------------------------------------------ */

/*
 * Returns from when on a thread is recorded: the latest of the start of the accounting, the time at
 * which its process became a target, and the thread's creation.
 */
static __always_inline __u64 recorded_since_ns(struct task_struct *t)
{
	__u64 start = wait_clock.start_ns;
	__u32 tgid = (__u32)t->tgid;
	struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
	if (p && p->since_ns > start)
		start = p->since_ns;
	return t->start_time > start ? t->start_time : start;
}

/*
 * Sets c->kernel_ref. Walking the kernel stack costs more than the user stack, so it is walked once
 * for each user stack, reason and system call (wait_kstacks).
 */
static __always_inline void kernel_stack_cached(void *ctx, struct wait_cause *c)
{
	__u64 tag = c->user_ref + (__u64)c->reason * 0x9e3779b97f4a7c15ull +
		    (__u64)(__u16)c->syscall * 0xff51afd7ed558ccdull;
	__u32 idx = (__u32)(tag >> 40) & (WAIT_KSTACKS - 1);
	struct wait_kstack *k = bpf_map_lookup_elem(&wait_kstacks, &idx);
	if (!k)
		return;
	if (k->tag != tag) {
		/*
		 * If two CPUs write this entry at the same time, it can get the tag of one wait and
		 * the stack of the other. That is accepted.
		 */
		k->ref = kernel_stack(ctx, TRACEPOINT_FRAMES);
		k->tag = tag;
	}
	c->kernel_ref = k->ref;
}

/* Direct-mapped cache: hashes of the files that were reported recently. */
#define WAIT_FILES 1024
DEFINE_MAP(ARRAY, wait_files, WAIT_FILES, __u32, __u64);

/*
 * Sends the object that a thread waits for, with its descriptor. User space can look the descriptor
 * up in /proc only while the process has it open, so it is sent at once and not with the row.
 */
static __always_inline void object_report(struct task_struct *t, const struct wait_cause *c)
{
	__u64 tag = (c->object + ((__u64)c->dev << 32 | (__u32)c->fd)) * 0x9e3779b97f4a7c15ull +
		    (__u32)t->tgid;
	__u32 idx = (__u32)(tag >> 40) & (WAIT_FILES - 1);
	__u64 *known = bpf_map_lookup_elem(&wait_files, &idx);
	if (!known || *known == tag)
		return;
	struct wait_key k;
	struct wait_row r = {.dev = c->dev};
	key_of_thread(&k, ids_of(t), WAITACCOUNT_OBJECT);
	k.object = c->object;
	k.object_kind = c->object_kind;
	k.fd = c->fd;
	if (single_send(&k, &r, 0, 0, 0))
		*known = tag;
}

/*
 * Ends the off-CPU interval of a thread that is switched out although its switch in was not seen.
 * Some kernels report no sched_switch event for certain threads, so the switch in of the thread
 * after them is not seen either. The time of the switch in is taken from sched_info.last_arrival.
 */
static __always_inline void close_missed_switch_in(struct wait_state *w, struct task_struct *t,
						   __u64 now)
{
	__u64 on = now;
	if (bpf_core_field_exists(t->sched_info))
		on = t->sched_info.last_arrival + wait_offset_ns;
	if (on < w->off_ns)
		on = w->off_ns;
	if (on > now)
		on = now;
	off_close(w, t, on, 0);
	w->on_ns = on;
	w->cpu_state = WAIT_CPU_ON_UNSEEN;
}

static __always_inline void switch_out(void *ctx, struct task_struct *t, bool is_preempted,
				       __u32 state, __u64 now)
{
	struct task_state *s = target_state(t);
	if (!s)
		return;
	struct wait_state *w = &s->wait;
	if (!w->is_accounted) {
		w->cpu_state = WAIT_CPU_ON_UNSEEN;
		w->on_ns = recorded_since_ns(t);
		account_from(w, w->on_ns);
	}
	if (w->cpu_state == WAIT_CPU_OFF)
		close_missed_switch_in(w, t, now);
	run_close(w, t, now);
	if (!is_preempted && state & STATE_DEAD) {
		w->has_ended = 1;
		w->cpu_state = WAIT_CPU_OFF;
		sums_flush(w, ids_of(t));
		sums_drop(w);
		return;
	}
	w->off_ns = now;
	if (bpf_core_field_exists(t->sched_info)) {
		w->delay_ns = t->sched_info.run_delay;
		__u64 offset = w->on_ns - t->sched_info.last_arrival;
		if (w->cpu_state == WAIT_CPU_ON && offset != wait_offset_ns)
			wait_offset_ns = offset;
	}
	cause_of_current(is_preempted, state, &w->now);
	if (w->now.object_kind >= OBJECT_FILE)
		object_report(t, &w->now);
	w->now.user_ref = 0;
	if (wait_has_stacks && !(t->flags & (PF_KTHREAD | PF_EXITING)))
		w->now.user_ref = user_stack(STACK_CACHE_WAIT, WAIT_DEPTH);
	if (wait_has_stacks && w->now.how == HOW_BLOCKED)
		kernel_stack_cached(ctx, &w->now);
	/* Last: a waker on another CPU reads the other fields when it sees this one. */
	barrier();
	w->cpu_state = WAIT_CPU_OFF;
}

/*
 * Starts the accounting of a thread whose first recorded switch is a switch in: it was off the CPU
 * from recorded_since_ns on.
 */
static __always_inline void close_first_switch_in(struct wait_state *w, struct task_struct *t)
{
	w->off_ns = recorded_since_ns(t);
	w->delay_ns = bpf_core_field_exists(t->sched_info) ? t->sched_info.run_delay : 0;
	account_from(w, w->off_ns);
	bool is_born = t->start_time > wait_clock.start_ns;
	if (!is_born && w->first.is_valid) {
		w->now = w->first;
		return;
	}
	cause_of(t, false, is_born || !w->wake.time_ns, STATE_INTERRUPTIBLE, &w->now);
	if (is_born)
		w->now.how = HOW_NEW_THREAD;
	else
		w->now.evidence |= EVIDENCE_AT_START;
}

static __always_inline void switch_in(struct task_struct *t, __u64 now)
{
	struct task_state *s = target_state(t);
	if (!s)
		return;
	struct wait_state *w = &s->wait;
	if (!w->is_accounted)
		close_first_switch_in(w, t);
	if (w->cpu_state == WAIT_CPU_OFF)
		off_close(w, t, now, 0);
	w->cpu_state = WAIT_CPU_ON;
	w->on_ns = now;
}

/* Ends the accounting of a thread at @at, on or off the CPU. */
static __always_inline void close_at(struct wait_state *w, struct task_struct *t, __u64 at)
{
	if (w->cpu_state != WAIT_CPU_OFF) {
		run_close(w, t, at);
	} else {
		blame_open(w, t, at);
		off_close(w, t, at, EVIDENCE_OPEN);
	}
	w->has_ended = 1;
	sums_flush(w, ids_of(t));
	sums_drop(w);
}

/*
 * Ends the accounting of a thread that exits after the end of the accounting (@stop) but before
 * wait_sweep_last, which would not find it.
 */
static __always_inline void close_after_stop(struct task_struct *t, __u64 stop)
{
	struct task_state *s = target_state(t);
	if (s && s->wait.is_accounted && !s->wait.has_ended)
		close_at(&s->wait, t, stop);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(wait_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 stop = wait_clock.stop_ns;

	if (!wait_clock.start_ns)
		return 0;
	if (stop && now >= stop) {
		if (prev->pid && !is_preempted && prev_state & STATE_DEAD)
			close_after_stop(prev, stop);
		return 0;
	}
	COST_BEGIN(COST_SWITCH);
	if (prev->pid)
		switch_out(ctx, prev, is_preempted, prev_state, now);
	if (next->pid)
		switch_in(next, now);
	COST_END(COST_SWITCH);
	return 0;
}

/*
 * Whether the wake-up comes from an interrupt, not from the current thread. @at: address of the
 * tracepoint's arguments. In hard and soft interrupts that address is on an interrupt stack. Only
 * an interrupt that arrives in user mode uses the thread's kernel stack. Then the thread is in no
 * system call, and the reason of the wait decides, because page faults wake threads, too.
 *
 * Data sent to the local machine is delivered by a soft interrupt during the sender's system call:
 * in that case the sender is the waker.
 */
static __always_inline bool is_interrupt(__u64 at, struct task_struct *current,
					 const struct wait_cause *of)
{
	if (!current->pid)
		return true;
	bool is_own_stack = at - (__u64)current->stack < KERNEL_STACK_BYTES;
	if (current->flags & PF_KTHREAD || !has_mm(current))
		return !is_own_stack;
	struct call_regs r;
	call_regs_of(current, &r);
	if (!is_own_stack) {
		__u8 class = call_entry((__u32)r.nr) & CALL_MASK;
		bool is_local = (of->reason == WAIT_NET || of->reason == WAIT_POLL) &&
				(class == CALL_NET || class == CALL_WRITE);
		return r.nr < 0 || !is_local;
	}
	if (r.nr >= 0 || current->flags & PF_EXITING)
		return false;
	return of->evidence & EVIDENCE_IOWAIT ||
	       (of->reason != WAIT_MMAP_LOCK && of->reason != WAIT_KERNEL &&
		of->reason != WAIT_FAULT && of->reason != WAIT_STOPPED);
}

/* The current thread @by wakes @t: stores the waker and its stack, and attributes the wait. */
static __always_inline void woken_by(struct wait_state *w, struct task_struct *t,
				     struct task_struct *by, __u64 now)
{
	w->wake.tid = by->pid;
	w->wake.tgid = by->tgid;
	if (w->now.owner_tid && w->cpu_state == WAIT_CPU_OFF)
		owner_verify(w, t, by);
	if (!wait_has_wakers || by->flags & PF_KTHREAD || !has_mm(by))
		return;
	struct task_state *s = state_of(by, false);
	if (!s || !(s->flags & TASK_IS_TARGET))
		return;
	w->wake.ref = user_stack(STACK_CACHE_WAKE, WAIT_DEPTH);
	blame_wait(w, t, &s->wait, by, w->wake.ref, now);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(wait_waking, struct task_struct *t)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 stop = wait_clock.stop_ns;

	if (!wait_clock.start_ns || (stop && now >= stop))
		return 0;
	struct task_state *s = state_of(t, false);
	if (!s || !(s->flags & TASK_IS_TARGET))
		return 0;
	COST_BEGIN(COST_WAKE);
	struct wait_state *w = &s->wait;
	struct task_struct *by = bpf_get_current_task_btf();
	w->wake.time_ns = now;
	/* Stored and loaded, so that the verifier treats the pointer as a scalar. */
	*(void *volatile *)&w->wake.ref = ctx;
	__u64 at = *(volatile __u64 *)&w->wake.ref;
	w->wake.ref = 0;
	w->wake.tid = 0;
	w->wake.tgid = 0;
	w->wake.evidence = 0;
	if (is_interrupt(at, by, &w->now)) {
		w->wake.evidence = EVIDENCE_BY_IRQ;
		/* No device ends these waits, so the interrupt was a timer. */
		if (w->now.reason == WAIT_SYNC || w->now.reason == WAIT_SLEEP)
			w->wake.evidence |= EVIDENCE_SELF;
		if (w->now.owner_tid && w->cpu_state == WAIT_CPU_OFF)
			owner_clear(w);
	} else if (by->pid) {
		woken_by(w, t, by, now);
	}
	COST_END(COST_WAKE);
	return 0;
}

struct bpf_iter__task {
	struct task_struct *task;
} CORE;

#define FIRST_PAGE  4096u
#define FIRST_BYTES (4 * FIRST_PAGE)

/*
 * Sends the stack of a thread that is blocked when the accounting starts, as registers and bytes:
 * an iterator can copy another thread's memory but not walk its stack. The stack reference is used
 * for this wait only.
 */
static __always_inline void initial_stack_copy(struct task_struct *t, struct wait_cause *c)
{
	struct pt_regs___kernel *regs = regs_of(t);
	struct kernel_copy *r = ring_reserve(sizeof(*r) + FIRST_BYTES);
	if (!r)
		return;
	__u64 all[ARCH_NR_DWARF_REG] = {};
	regs_by_dwarf(regs, all);
	__u64 sp = all[ARCH_DWARF_SP];
	__u32 at = 0;
	for (__u32 i = 0; i < FIRST_BYTES / FIRST_PAGE; i++) {
		__u32 n = FIRST_PAGE - ((sp + at) & (FIRST_PAGE - 1));
		if (at > FIRST_BYTES - FIRST_PAGE ||
		    bpf_copy_from_user_task(r->stack + at, n, (void *)(sp + at), t, 0))
			break;
		at += n;
	}
	record_head(&r->head, RECORD_COPY, sizeof(*r) + at, t);
	r->head.flags = c->syscall >= 0 ? KSTACK_CALLERS : 0;
	r->ref = c->user_ref = hash_mix((__u64)t->pid << 32 | t->tgid, r->head.time_ns) | 1;
	r->nr_stack = at;
	r->end = WALK_ROOT;
	for (__u32 i = 0; i < ARCH_NR_DWARF_REG; i++)
		r->regs[i] = all[i];
	ring_submit(r);
}

/*
 * Stores the reason and the stack of each thread that is blocked when the accounting starts. A
 * sleepable iterator, which may read the memory of other threads.
 */
SEC("iter.s/task")
int wait_sweep_first(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t || !t->pid || t->exit_state)
		return 0;
	struct task_state *s = target_state(t);
	if (!s)
		return 0;
	struct wait_state *w = &s->wait;
	__u32 state = t->__state;
	if (w->is_accounted || w->first.is_valid || !(state & STATE_MASK))
		return 0;
	cause_of(t, false, false, state, &w->first);
	w->first.evidence |= EVIDENCE_AT_START;
	if (w->first.object_kind >= OBJECT_FILE)
		object_report(t, &w->first);
	if (wait_has_stacks && !(t->flags & PF_KTHREAD) && has_mm(t))
		initial_stack_copy(t, &w->first);
	barrier();
	w->first.is_valid = 1;
	return 0;
}

/* Whether a thread without a recorded switch was on a CPU all the time. */
static __always_inline bool ran_whole_capture(struct task_struct *t)
{
	if (!t->on_cpu)
		return false;
	if (!bpf_core_field_exists(t->sched_info) || !wait_offset_ns)
		return true;
	/* It may have been switched in after the end. */
	return t->sched_info.last_arrival + wait_offset_ns < wait_clock.stop_ns;
}

/* Ends the accounting of all threads whose last interval is open at its end. */
SEC("iter/task")
int wait_sweep_last(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	__u64 stop = wait_clock.stop_ns;
	if (!t || !stop || !t->pid)
		return 0;
	struct task_state *s = target_state(t);
	if (!s)
		return 0;
	struct wait_state *w = &s->wait;
	if (w->has_ended || (!w->is_accounted && t->exit_state))
		return 0;
	if (!w->is_accounted && ran_whole_capture(t)) {
		w->cpu_state = WAIT_CPU_ON;
		w->on_ns = recorded_since_ns(t);
		account_from(w, w->on_ns);
	} else if (!w->is_accounted) {
		close_first_switch_in(w, t);
	}
	close_at(w, t, stop);
	return 0;
}

#endif
