/*
 * Finds a thread of a process on which calls can be made, and stops it by ptrace. Used by remote.c.
 *
 * A thread is suitable if it can be stopped soon and, where `avoid` lists code (an allocator's),
 * has no frame in that code: it might hold a lock that the call needs.
 */
#ifndef ASSAY_REMOTE_PTRACE_STOPTHREAD_H
#define ASSAY_REMOTE_PTRACE_STOPTHREAD_H

#include <signal.h>
#include <sys/user.h>

#include "base/base.h"
#include "base/err.h"
#include "host/boost.h"
#include "plan/heapplan.h"

#define STOPTHREAD_RED_ZONE 128u /* bytes below the stack pointer that a function may use */
#define STOPTHREAD_BIT(sig) (1ull << ((sig)-1))
/* Raised by instructions: if they were blocked, force_sig would reset the program's handlers. */
#define STOPTHREAD_SYNCHRONOUS                                                       \
	(STOPTHREAD_BIT(SIGSEGV) | STOPTHREAD_BIT(SIGBUS) | STOPTHREAD_BIT(SIGILL) | \
	 STOPTHREAD_BIT(SIGFPE) | STOPTHREAD_BIT(SIGTRAP))

struct stopped_thread {
	/* Set by the caller. */
	int32_t pid;
	int mem_fd;               /* /proc/PID/mem */
	struct heap_ranges avoid; /* sorted, merged */
	uint64_t timeout_ns;
	/*
	 * Bytes of the thread's stack, from the red zone on, that the session writes; 0 = none. Then
	 * a thread is suitable only if its stack has that many bytes left.
	 */
	uint64_t stack_bytes;
	struct host_boost boost; /* priority boost while it is stopped */
	/* Set by stopthread_find; for stopthread_prepare by the caller. */
	int32_t tid;
	bool is_child;            /* it is the main thread of a child of assay */
	bool was_traced;          /* assay traced it before, and still does afterwards */
	bool has_filter;          /* has a seccomp filter, which is not suspended */
	bool is_filter_suspended; /* its seccomp filter is suspended by ptrace until detach */
	uint64_t caught;          /* signals with a handler: bit n - 1 */
	int32_t ns_tid;           /* its id in its own PID namespace */
	uint64_t stopped_at_ns;
	struct user_regs_struct regs; /* to be restored */
	/* Set by stopthread_prepare. */
	bool is_stopped;
	uint64_t mask; /* its signal mask */
	/* Set by stopthread_find and stopthread_read_stacks. */
	struct heap_ranges stacks; /* memory in which stacks may be */
	struct heap_range main_stack;
};

/*
 * Finds and stops a suitable thread, then does stopthread_prepare. -ESRCH: the process has ended.
 * -EPERM: with a hint. -EAGAIN: none was suitable within timeout_ns.
 */
int stopthread_find(struct stopped_thread *t, struct err *err);
/* Reads where stacks are, for stopthread_prepare; nothing if stack_bytes is 0. */
int stopthread_read_stacks(struct stopped_thread *t, struct err *err);
/*
 * Checks a stopped thread and reads its signal mask; changes nothing. @is_strict: also search its
 * stack for frames in `avoid`. -EAGAIN: it is in code to avoid, or its stack is too small or not
 * known as one (a coroutine's). -EOPNOTSUPP: 32-bit code, or a shadow stack.
 */
int stopthread_prepare(struct stopped_thread *t, bool is_strict);

#endif
