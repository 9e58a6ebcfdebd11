/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ledger of threads: each moment of a watched thread is on a CPU, in the run queue, or off the
 * CPU for a reason, from when the ledger starts (or the thread is born) to its end.
 *
 *	sched_switch   out: closes the run, notes why and where it leaves.  in: closes the interval
 *	sched_waking   who made it runnable, and when
 *	sweeps         threads that wait already when it starts; what is open when it stops
 *
 * An interval goes into the memo of its thread, from there into the map when another key needs
 * the place or its second is over; long ones, and those that cross from one second into the next,
 * go through the ring with their exact times, so that user space can split them.
 *
 * Two maps take turns (wait_clock.page): user space turns the page, waits until no program can be
 * at work on the old one, and reads it.
 */
#ifndef ASSAY_BPF_WAITS_H
#define ASSAY_BPF_WAITS_H

#include "engine.bpf.h"

#include "reason.bpf.h"

#define NS_PER_SECOND 1000000000ull
/* Interrupts are off at a switch. */
#define WAIT_DEPTH 256
#define WAIT_ROWS  49152

/* Set before loading. */
const volatile bool wait_has_stacks = true;
const volatile bool wait_has_wakers = true;

struct wait_clock wait_clock;
struct wait_loss wait_loss;

/* CLOCK_MONOTONIC less the scheduler's clock: they run apart by some millionths. */
__u64 wait_offset_ns;

DEFINE_MAP(HASH, wait_rows0, WAIT_ROWS, struct wait_key, struct wait_row);
DEFINE_MAP(HASH, wait_rows1, WAIT_ROWS, struct wait_key, struct wait_row);

/* Kernel stacks by where a wait began: taken once, forgotten when another needs the place. */
/* The program itself and what calls it at a tracepoint. */
#define PSEUDO_FRAMES 2
#define WAIT_KERNELS  8192
struct wait_kernel {
	__u64 tag;
	__u64 ref;
};
DEFINE_MAP(ARRAY, wait_kernels, WAIT_KERNELS, __u32, struct wait_kernel);

static __always_inline __u32 second_of(struct wait_state *w, __u64 now)
{
	if (now >= w->second_end_ns) {
		__u64 epoch = wait_clock.epoch_ns;
		w->second = (__u32)((now - epoch) / NS_PER_SECOND);
		w->second_end_ns = epoch + (w->second + 1) * NS_PER_SECOND;
	}
	return w->second;
}

/* Watched since then, before any switch of it was seen. */
static __always_inline void seen_since(struct wait_state *w, __u64 ns)
{
	w->is_seen = 1;
	second_of(w, ns);
	w->run_second = w->second;
}

#include "wait_rows.bpf.h"

/* ---- runs ---------------------------------------------------------------------------------- */

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
 * From when a thread that now comes onto a CPU stood in a run queue. sched_waking is earlier: until
 * an idle CPU has got the message, which on virtual machines takes as long as a fast device does,
 * nobody keeps the thread from running. So the scheduler's own book is asked.
 *
 * But not for what was before the waking: a thread that falls asleep stays queued until its lag is
 * used up (Linux 6.12), and when it is moved to another CPU meanwhile, the book has its whole sleep
 * as a delay.
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

/* The interval that ends now; @woken: from when it stood in the run queue. */
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
	 * A waker can come between the thread's decision to sleep and its switch: it is then
	 * noted with a time in the run before, and the switch finds the thread asleep all the same.
	 */
	if (w->now.how == HOW_BLOCKED && w->wake.time_ns && w->wake.time_ns >= w->on_ns) {
		k.other_ref = w->wake.ref;
		k.other_tid = w->wake.tid;
		k.evidence |= w->wake.evidence;
		r.other_tgid = w->wake.tgid;
	}
	w->wake.time_ns = 0;
	past_note(w, start, woken, end);
	r.ns = woken - start;
	r.queue_ns = end - woken;
	span_waited(&s->span, k.reason, start, woken, end, k.user_ref, r.kernel_ref);
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

static __always_inline void off_close(struct wait_state *w, struct task_struct *t, __u64 now,
				      __u32 evidence)
{
	/* the state that w is part of */
	struct task_state *s = (void *)w - __builtin_offsetof(struct task_state, wait);

	off_account(s, ids_of(t), queued_ns(w, t, now > w->off_ns ? now : w->off_ns), now,
		    evidence);
}

/* Everything that is kept with the thread into the map. */
__noinline int sums_flush(struct wait_state *w, __u64 ids)
{
	if (!w)
		return 0;
	run_flush(w, ids);
	for (unsigned i = 0; i <= WAIT_MEMO_BLAME; i++)
		memo_flush(w, &w->memo[i]);
	unaccounted_send(w, ids);
	RETURN_NOTHING();
}

/* A thread's last words found no room either. */
static __always_inline void sums_lost(struct wait_state *w)
{
	__u64 ns = w->unaccounted_ns + w->unaccounted_run_ns;
	if (!ns)
		return;
	__sync_fetch_and_add(&wait_loss.ns, ns);
	__sync_fetch_and_add(&wait_loss.count, w->unaccounted + w->unaccounted_runs);
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Since when a thread is watched of which no switch was seen yet. */
static __always_inline __u64 first_ns(struct task_struct *t)
{
	__u64 start = wait_clock.start_ns;
	__u32 tgid = (__u32)t->tgid;
	struct kproc *p = bpf_map_lookup_elem(&procs, &tgid);
	if (p && p->since_ns > start)
		start = p->since_ns;
	return t->start_time > start ? t->start_time : start;
}

/* The kernel's part of a stack costs more than the program's: once for each place is enough. */
static __always_inline void kernel_part(void *ctx, struct wait_cause *c)
{
	__u64 tag = c->user_ref + (__u64)c->reason * 0x9e3779b97f4a7c15ull +
		    (__u64)(__u16)c->syscall * 0xff51afd7ed558ccdull;
	__u32 idx = (__u32)(tag >> 40) & (WAIT_KERNELS - 1);
	struct wait_kernel *k = bpf_map_lookup_elem(&wait_kernels, &idx);
	if (!k)
		return;
	if (k->tag != tag) {
		/* Two CPUs at once may leave one's tag with the other's stack of the same sort. */
		k->ref = kernel_stack(ctx, PSEUDO_FRAMES);
		k->tag = tag;
	}
	c->kernel_ref = k->ref;
}

/* Files told of lately. */
#define WAIT_FILES 1024
DEFINE_MAP(ARRAY, wait_files, WAIT_FILES, __u32, __u64);

/*
 * What a descriptor is can be asked only while the process lives and has it open, so user space is
 * told at once, not when the wait is over or its second is.
 */
static __always_inline void object_note(struct task_struct *t, const struct wait_cause *c)
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
 * It leaves a CPU onto which it was not seen to come: there are machines on which the switches of
 * some threads are kept from tracers, and with them who comes after these threads. The scheduler's
 * book has when it came.
 */
static __always_inline void missed_in(struct wait_state *w, struct task_struct *t, __u64 now)
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
	w->is_on = 2;
}

static __always_inline void switch_out(void *ctx, struct task_struct *t, bool is_preempted,
				       __u32 state, __u64 now)
{
	struct task_state *s = target_state(t);
	if (!s)
		return;
	struct wait_state *w = &s->wait;
	if (!w->is_seen) {
		w->is_on = 2; /* but not since on_ns by the scheduler's book */
		w->on_ns = first_ns(t);
		seen_since(w, w->on_ns);
	}
	if (!w->is_on)
		missed_in(w, t, now);
	run_close(w, t, now);
	if (!is_preempted && state & STATE_DEAD) {
		w->is_over = 1;
		w->is_on = 0;
		sums_flush(w, ids_of(t));
		sums_lost(w);
		return;
	}
	w->off_ns = now;
	if (bpf_core_field_exists(t->sched_info)) {
		w->delay_ns = t->sched_info.run_delay;
		__u64 offset = w->on_ns - t->sched_info.last_arrival;
		if (w->is_on == 1 && offset != wait_offset_ns)
			wait_offset_ns = offset;
	}
	cause_of_current(is_preempted, state, &w->now);
	if (w->now.object_kind >= OBJECT_FILE)
		object_note(t, &w->now);
	w->now.user_ref = 0;
	if (wait_has_stacks && !(t->flags & (PF_KTHREAD | PF_EXITING)))
		w->now.user_ref = user_stack(WALK_WAIT, WAIT_DEPTH);
	if (wait_has_stacks && w->now.how == HOW_BLOCKED)
		kernel_part(ctx, &w->now);
	/* Last: a waker on another CPU looks at the rest when it sees this. */
	barrier();
	w->is_on = 0;
}

/* The first that is seen of a thread is that it comes back. */
static __always_inline void first_in(struct wait_state *w, struct task_struct *t)
{
	w->off_ns = first_ns(t);
	w->delay_ns = bpf_core_field_exists(t->sched_info) ? t->sched_info.run_delay : 0;
	seen_since(w, w->off_ns);
	bool is_born = t->start_time > wait_clock.start_ns;
	if (!is_born && w->first.is_valid) {
		w->now = w->first;
		return;
	}
	cause_of(t, false, is_born || !w->wake.time_ns, STATE_INTERRUPTIBLE, &w->now);
	if (is_born)
		w->now.how = HOW_BORN;
	else
		w->now.evidence |= EVIDENCE_AT_START;
}

static __always_inline void switch_in(struct task_struct *t, __u64 now)
{
	struct task_state *s = target_state(t);
	if (!s)
		return;
	struct wait_state *w = &s->wait;
	if (!w->is_seen)
		first_in(w, t);
	if (!w->is_on)
		off_close(w, t, now, 0);
	w->is_on = 1;
	w->on_ns = now;
}

/* The ledger of a thread ends, wherever the thread is. */
static __always_inline void close_at(struct wait_state *w, struct task_struct *t, __u64 at)
{
	if (w->is_on) {
		run_close(w, t, at);
	} else {
		blame_open(w, t, at);
		off_close(w, t, at, EVIDENCE_OPEN);
	}
	w->is_over = 1;
	sums_flush(w, ids_of(t));
	sums_lost(w);
}

/*
 * A thread that dies between the end of the capture and the last sweep, which then does not find
 * it any more.
 */
static __always_inline void died_late(struct task_struct *t, __u64 stop)
{
	struct task_state *s = target_state(t);
	if (s && s->wait.is_seen && !s->wait.is_over)
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
			died_late(prev, stop);
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
 * Does the waker run on its own behalf, or was it interrupted? Interrupts and the soft interrupts
 * after them have stacks of their own, on which the tracepoint's arguments then lie. Only an
 * interrupt that hits a program outside the kernel uses the thread's stack: then no system call is
 * under way, and what is woken decides, for page faults wake too.
 *
 * Data sent to this machine itself is delivered by a soft interrupt within the sender's call: then
 * the sender is the waker after all.
 */
static __always_inline bool is_interrupt(__u64 at, struct task_struct *current,
					 const struct wait_cause *of)
{
	if (!current->pid)
		return true;
	bool is_own_stack = at - (__u64)current->stack < KERNEL_STACK_BYTES;
	if (current->flags & PF_KTHREAD || !has_memory(current))
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

/* By a thread on its own behalf. */
static __always_inline void woken_by(struct wait_state *w, struct task_struct *t,
				     struct task_struct *by, __u64 now)
{
	w->wake.tid = by->pid;
	w->wake.tgid = by->tgid;
	if (w->now.owner_tid && !w->is_on)
		owner_check(w, t, by);
	if (!wait_has_wakers || by->flags & PF_KTHREAD || !has_memory(by))
		return;
	struct task_state *s = state_of(by, false);
	if (!s || !(s->flags & TASK_IS_TARGET))
		return;
	w->wake.ref = user_stack(WALK_WAKE, WAIT_DEPTH);
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
	/* An address is a number only when it was in memory. */
	*(void *volatile *)&w->wake.ref = ctx;
	__u64 at = *(volatile __u64 *)&w->wake.ref;
	w->wake.ref = 0;
	w->wake.tid = 0;
	w->wake.tgid = 0;
	w->wake.evidence = 0;
	if (is_interrupt(at, by, &w->now)) {
		w->wake.evidence = EVIDENCE_BY_IRQ;
		/* No device ends these: it was a timer. */
		if (w->now.reason == WAIT_SYNC || w->now.reason == WAIT_SLEEP)
			w->wake.evidence |= EVIDENCE_SELF;
		if (w->now.owner_tid && !w->is_on)
			owner_forget(w);
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
 * The memory of another thread can be copied here, but not walked: user space does that. The
 * reference is of this wait alone, so it cannot mean another stack.
 */
static __always_inline void first_stack(struct task_struct *t, struct wait_cause *c)
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

/* Threads that wait already when the ledger starts. Runs may sleep, and may read their memory. */
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
	if (w->is_seen || w->first.is_valid || !(state & STATE_MASK))
		return 0;
	cause_of(t, false, false, state, &w->first);
	w->first.evidence |= EVIDENCE_AT_START;
	if (w->first.object_kind >= OBJECT_FILE)
		object_note(t, &w->first);
	if (wait_has_stacks && !(t->flags & PF_KTHREAD) && has_memory(t))
		first_stack(t, &w->first);
	barrier();
	w->first.is_valid = 1;
	return 0;
}

/* No switch was seen of it: was it on a CPU all the time, or off it? */
static __always_inline bool ran_throughout(struct task_struct *t)
{
	if (!t->on_cpu)
		return false;
	if (!bpf_core_field_exists(t->sched_info) || !wait_offset_ns)
		return true;
	/* It may have come after the ledger's end. */
	return t->sched_info.last_arrival + wait_offset_ns < wait_clock.stop_ns;
}

/* Threads whose last interval is open when the ledger ends. */
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
	if (w->is_over || (!w->is_seen && t->exit_state))
		return 0;
	if (!w->is_seen && ran_throughout(t)) {
		w->is_on = 1;
		w->on_ns = first_ns(t);
		seen_since(w, w->on_ns);
	} else if (!w->is_seen) {
		first_in(w, t);
	}
	close_at(w, t, stop);
	return 0;
}

#endif
