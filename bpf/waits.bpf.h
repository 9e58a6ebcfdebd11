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
 * At the end of each interval off the CPU one record goes to user space, with the run before it
 * (wait_ring.bpf.h). All sums are made there.
 */
#ifndef ASSAY_BPF_WAITS_H
#define ASSAY_BPF_WAITS_H

#include "engine.bpf.h"

#include "reason.bpf.h"

/* Maximum frames of a stack. Limited because interrupts are off during a context switch. */
#define WAIT_DEPTH 256

/* Set before loading. */
const volatile bool wait_has_stacks = true;
const volatile bool wait_has_wakers = true;

struct wait_clock wait_clock;
struct wait_loss wait_loss;

/* CLOCK_MONOTONIC minus the scheduler's clock. Updated, as it drifts by a few ns per ms. */
__u64 wait_offset_ns;

/* Innermost kernel frames to skip: the BPF program and the tracepoint function that calls it. */
#define TRACEPOINT_FRAMES 2
/* Direct-mapped cache of kernel stacks by user stack, reason and system call. */
#define WAIT_KSTACKS 8192
struct wait_kstack {
	__u64 tag; /* hash of user stack, reason and system call; 0 = empty */
	__u64 ref; /* reference of the kernel stack */
};
DEFINE_MAP(ARRAY, wait_kstacks, WAIT_KSTACKS, __u32, struct wait_kstack);

#include "wait_ring.bpf.h"

#include "inflight.bpf.h"

/* ---- runs ---------------------------------------------------------------------------------- */

/*
 * Ends a run at @now. Its CPU time is the scheduler's: the elapsed time without what interrupts and
 * the hypervisor took, as far as the kernel accounts for them. sum_exec_runtime does not change off
 * the CPU, so its value at the last switch out is that at the start of the run.
 */
static __always_inline void run_close(struct wait_state *w, struct task_struct *t, __u64 now)
{
	__u64 ran_ns = now > w->on_ns ? now - w->on_ns : 0;
	__u64 exec_ns = exec_ns_of(t);
	__u64 run_ns = exec_ns - w->exec_ns;

	w->ran_ns = ran_ns;
	w->run_ns = w->has_exec ? run_ns : ran_ns;
	w->exec_ns = exec_ns;
	w->has_exec = exec_ns != 0;
	w->off_ns = now;
}

/* ---- intervals off the CPU ----------------------------------------------------------------- */

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

/* Computes the times of the interval off the CPU that ends at @now. */
static __always_inline void off_end(struct wait_state *w, struct task_struct *t, __u64 now,
				    __u32 evidence, struct wait_end *e)
{
	__u64 start = w->off_ns;
	__u64 end = now > start ? now : start;
	__u64 woken = start;

	if (w->now.how == HOW_BLOCKED) {
		woken = queued_ns(w, t, end);
		if (woken < start)
			woken = start;
		if (woken > end)
			woken = end;
	}
	e->blocked_ns = woken - start;
	e->queue_ns = end - woken;
	e->evidence = evidence;
	e->how = w->now.how;
}

/* Adds the interval to the span that the thread is in (spans.bpf.h). */
__noinline int span_account(struct task_state *s, const struct wait_end *e)
{
	if (!s || !e)
		return 0;
	const struct wait_state *w = &s->wait;
	__u64 woken = w->off_ns + e->blocked_ns;
	__u64 end = woken + e->queue_ns;
	struct span_interval v = {
		.start_ns = w->off_ns,
		/* The reason of a thread that did not block is the run queue. */
		.woken_ns = e->how == HOW_BLOCKED ? woken : end,
		.end_ns = end,
		.user_ref = w->now.user_ref,
		.kernel_ref = w->now.kernel_ref,
		.reason = w->now.reason,
		.evidence = w->now.evidence,
		.syscall = e->how == HOW_PREEMPTED ? -1 : w->now.syscall,
	};
	if (has_waker(w)) {
		v.waker_ref = w->wake.ref;
		v.waker_tgid = w->wake.tgid;
		v.waker_tid = w->wake.tid;
		v.evidence |= w->wake.evidence;
	}
	span_add_wait(&s->span, &v);
	RETURN_NOTHING();
}

/* The record of an interval was sent. */
static __always_inline void off_sent(struct wait_state *w)
{
	w->wake.time_ns = 0;
	w->ran_ns = w->run_ns = 0;
}

/* Ends the interval off the CPU at @now. Only for sched_switch. */
static __always_inline void off_close(struct task_state *s, struct task_struct *t, __u64 now)
{
	struct wait_state *w = &s->wait;
	struct wait_end e;

	off_end(w, t, now, 0, &e);
	if (s->span.start_ns)
		span_account(s, &e);
	wait_send(w, ids_of(t), &e);
	off_sent(w);
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
	struct wait_single *s = single_reserve(ids_of(t));
	if (!s)
		return;
	s->record.how = HOW_OBJECT;
	s->record.object = c->object;
	s->record.object_kind = c->object_kind;
	s->record.fd = c->fd;
	s->record.dev = c->dev;
	ring_submit(s);
	*known = tag;
}

/*
 * Ends the off-CPU interval of a thread that is switched out although its switch in was not seen.
 * Some kernels report no sched_switch event for certain threads, so the switch in of the thread
 * after them is not seen either. The time of the switch in is taken from sched_info.last_arrival.
 */
static __always_inline void close_missed_switch_in(struct task_state *s, struct task_struct *t,
						   __u64 now)
{
	struct wait_state *w = &s->wait;
	__u64 on = now;

	if (bpf_core_field_exists(t->sched_info))
		on = t->sched_info.last_arrival + wait_offset_ns;
	if (on < w->off_ns)
		on = w->off_ns;
	if (on > now)
		on = now;
	off_close(s, t, on);
	w->on_ns = on;
	w->cpu_state = WAIT_CPU_ON_UNSEEN;
}

/* Starts the accounting of a thread whose first recorded switch is a switch out. */
static __always_inline void account_from_switch_out(struct wait_state *w, struct task_struct *t)
{
	w->cpu_state = WAIT_CPU_ON_UNSEEN;
	w->on_ns = recorded_since_ns(t);
	w->is_accounted = 1;
	if (t->start_time > wait_clock.start_ns)
		w->has_exec = 1;
}

/* The thread has ended: sends its last run. @evidence: EVIDENCE_OPEN if it ended after the stop. */
static __always_inline void close_thread(struct wait_state *w, __u64 ids, __u32 evidence)
{
	const struct wait_end e = {.how = HOW_ENDED, .evidence = evidence};

	w->has_ended = 1;
	w->cpu_state = WAIT_CPU_OFF;
	wait_send(w, ids, &e);
	unaccounted_send(w, ids);
	unaccounted_drop(w);
}

static __always_inline void switch_out(void *ctx, struct task_struct *t, bool is_preempted,
				       __u32 state, __u64 now)
{
	struct task_state *s = target_state(t);
	if (!s)
		return;
	struct wait_state *w = &s->wait;
	if (UNLIKELY(!w->is_accounted))
		account_from_switch_out(w, t);
	if (UNLIKELY(w->cpu_state == WAIT_CPU_OFF))
		close_missed_switch_in(s, t, now);
	if (UNLIKELY(!w->is_reported))
		thread_send(w, ids_of(t), ns_tid_of(t));
	run_close(w, t, now);
	if (UNLIKELY(!is_preempted && state & STATE_DEAD)) {
		close_thread(w, ids_of(t), 0);
		return;
	}
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
	if (wait_has_stacks && !(t->flags & (PF_IN_KERNEL | PF_EXITING)))
		w->now.user_ref = user_stack_of(s, WAIT_DEPTH, w->now.how != HOW_BLOCKED);
	if (wait_has_stacks && w->now.how == HOW_BLOCKED)
		kernel_stack_cached(ctx, &w->now);
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
	w->exec_ns = exec_ns_of(t);
	w->has_exec = 1;
	w->is_accounted = 1;
	if (!w->is_reported)
		thread_send(w, ids_of(t), ns_tid_of(t));
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
	if (UNLIKELY(!w->is_accounted))
		close_first_switch_in(w, t);
	if (w->cpu_state == WAIT_CPU_OFF)
		off_close(s, t, now);
	w->cpu_state = WAIT_CPU_ON;
	w->on_ns = now;
}

/*
 * Ends the accounting of a thread that exits after the end of the accounting (@stop) but before
 * wait_sweep_last, which would not find it.
 */
static __always_inline void close_after_stop(struct task_struct *t, __u64 stop)
{
	struct task_state *s = target_state(t);
	if (!s || !s->wait.is_accounted || s->wait.has_ended)
		return;
	if (s->wait.cpu_state == WAIT_CPU_OFF)
		off_close(s, t, stop);
	else
		run_close(&s->wait, t, stop);
	close_thread(&s->wait, ids_of(t), EVIDENCE_OPEN);
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
	if (current->flags & PF_IN_KERNEL || !has_mm(current))
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

/* The current thread @by wakes a thread with state @w: stores the waker and its stack. */
static __always_inline void woken_by(struct wait_state *w, struct task_struct *by)
{
	w->wake.tid = by->pid;
	w->wake.tgid = by->tgid;
	if (!wait_has_wakers || by->flags & PF_IN_KERNEL || !has_mm(by))
		return;
	struct task_state *s = state_of(by, false);
	if (s && s->flags & TASK_IS_TARGET)
		w->wake.ref = user_stack_of(s, WAIT_DEPTH, false);
}

#define SIGKILL_BIT (1ul << 8)

/*
 * Returns EVIDENCE_SELF if a signal ended the wait for a futex: nobody woke the futex, and who sent the
 * signal has nothing to do with it. If the process ends, what the thread waited for has not happened.
 */
static __always_inline __u32 signal_evidence(const struct task_struct *t,
					     const struct wait_cause *of)
{
	if (of->object_kind != OBJECT_FUTEX)
		return 0;
	unsigned long pending = t->pending.signal.sig[0] | t->signal->shared_pending.signal.sig[0];
	pending &= ~t->blocked.sig[0];
	if (!pending)
		return 0;
	return pending & SIGKILL_BIT ? EVIDENCE_SELF | EVIDENCE_OPEN : EVIDENCE_SELF;
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
	const struct wait_cause *of = w->is_accounted ? &w->now : &w->first;
	struct task_struct *by = bpf_get_current_task_btf();
	w->wake.time_ns = now;
	/* Stored and loaded, so that the verifier treats the pointer as a scalar. */
	*(void *volatile *)&w->wake.ref = ctx;
	__u64 at = *(volatile __u64 *)&w->wake.ref;
	w->wake.ref = 0;
	w->wake.tid = 0;
	w->wake.tgid = 0;
	w->wake.evidence = 0;
	if (is_interrupt(at, by, of)) {
		w->wake.evidence = EVIDENCE_BY_IRQ;
		/* No device ends these waits, so the interrupt was a timer. */
		if (of->reason == WAIT_SYNC || of->reason == WAIT_SLEEP)
			w->wake.evidence |= EVIDENCE_SELF;
	} else {
		w->wake.evidence = signal_evidence(t, of);
		if (!w->wake.evidence && by->pid)
			woken_by(w, by);
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
	if (!w->is_reported)
		thread_send(w, ids_of(t), ns_tid_of(t));
	if (w->is_accounted || w->first.is_valid)
		return 0;
	if (!w->has_exec) {
		w->exec_ns = exec_ns_of(t);
		w->has_exec = w->exec_ns != 0;
	}
	if (!(state & STATE_MASK))
		return 0;
	cause_of(t, false, false, state, &w->first);
	w->first.evidence |= EVIDENCE_AT_START;
	if (w->first.object_kind >= OBJECT_FILE)
		object_report(t, &w->first);
	if (wait_has_stacks && !(t->flags & PF_IN_KERNEL) && has_mm(t))
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

/*
 * sum_exec_runtime of a running thread is updated at least at each tick, so the time since the last
 * update is not known to be CPU time. So much of it is taken to be.
 */
#define TICK_MAX_NS 10000000ull

static __always_inline void close_open_run(struct wait_state *w, struct task_struct *t, __u64 stop)
{
	const struct wait_end e = {.how = HOW_ENDED, .evidence = EVIDENCE_OPEN};

	run_close(w, t, stop);
	if (w->run_ns + TICK_MAX_NS > w->ran_ns)
		w->run_ns = w->ran_ns;
	wait_send_single(w, ids_of(t), &e);
}

/*
 * Reads who owns the lock of a wait that did not end: it may have changed hands since the wait began, and
 * of a wait that began before the accounting it is not known yet.
 */
static __always_inline void owner_at_end(struct task_struct *t, struct wait_cause *c)
{
	struct call_regs r;
	__u32 word[3] = {};

	if (c->object_kind != OBJECT_FUTEX || c->object & 3 || !has_mm(t))
		return;
	call_regs_of(t, &r);
	if (r.arg0 == c->object &&
	    !bpf_copy_from_user_task(word, sizeof(word), (void *)c->object, t, 0))
		owner_of(t, &r, word, c);
}

static __always_inline void close_open_wait(struct wait_state *w, struct task_struct *t, __u64 stop)
{
	struct wait_end e;

	owner_at_end(t, &w->now);
	off_end(w, t, stop, EVIDENCE_OPEN, &e);
	wait_send_single(w, ids_of(t), &e);
}

/*
 * Ends the accounting of all threads whose last interval is open at its end. A sleepable iterator, which
 * may read the memory of other threads.
 */
SEC("iter.s/task")
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
	if (!w->is_accounted && ran_whole_capture(t))
		account_from_switch_out(w, t);
	else if (!w->is_accounted)
		close_first_switch_in(w, t);
	if (w->cpu_state != WAIT_CPU_OFF)
		close_open_run(w, t, stop);
	else
		close_open_wait(w, t, stop);
	w->has_ended = 1;
	unaccounted_send(w, ids_of(t));
	unaccounted_drop(w);
	return 0;
}

#endif
