/* Between remote.c, pick.c and call.c. */
#ifndef ASSAY_REMOTE_PTRACE_REMOTEPRIV_H
#define ASSAY_REMOTE_PTRACE_REMOTEPRIV_H

#include "base/base.h"
#include "base/vec.h"
#include "remote/ptrace/remote.h"
#include "remote/ptrace/tracee.h"
#include "host/boost.h"

struct remote {
	int32_t pid;
	int32_t tid;
	int mem_fd;    /* /proc/PID/mem */
	bool is_child; /* of ours, and the thread is its first */
	bool is_adopted;
	bool is_ours;       /* traced by us before the session, and after it */
	bool is_stopped;    /* saved is what the thread has to get back */
	bool is_gone;       /* it has ended or executed another program */
	bool is_at_syscall; /* stopped by PTRACE_SYSCALL: no place to restart a system call from */
	bool has_filter;
	bool is_suspended; /* the filter, as long as the option stays set */
	uint64_t ignored;  /* bit n - 1: signal n */
	uint64_t timeout_ns;
	struct host_boost boost;
	uint64_t stopped_at_ns;
	struct heap_ranges avoid; /* sorted, merged */
	uint64_t syscall_insn;    /* where one stands in the target; 0 = not looked for */
	struct user_regs_struct saved;
	uint64_t saved_mask;
	bool has_mask; /* saved_mask is to be restored */
	uint8_t *xstate;
	size_t nr_xstate; /* saved bytes; 0 = not saved */
	uint64_t area;    /* memory mapped in the target for the session; 0 = none */
	uint64_t lent;    /* the same, not ours to unmap */
	uint64_t stack;   /* highest address of the stack for calls */
	uint64_t scratch; /* next free */
	uint64_t scratch_end;
	uint64_t held; /* signals that came meanwhile and cannot be blocked: bit n - 1 */
};

/* pick.c: finds a thread and stops it; fills tid, saved, is_stopped. */
int remote_pick(struct remote *r, struct err *err);
/* Sees to what a thread that has just been stopped may need; -EAGAIN: not this thread. */
int remote_take(struct remote *r, bool is_strict);

/* call.c */
int remote_find_syscall(struct remote *r, struct err *err);
int remote_drop_area(struct remote *r);
/* Signals held back until the session ends. */
int remote_block_signals(struct remote *r);
int remote_fail(struct remote *r, int code, const char *what, struct err *err);

#endif
