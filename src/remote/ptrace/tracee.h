/*
 * One thread of another process, stopped by ptrace and let go: the steps that remote.c,
 * patch/quiesce.c and patch/launch.c share. PTRACE_SEIZE and PTRACE_INTERRUPT only: no SIGSTOP that
 * others could see, nothing that kills the target when we die.
 *
 * A thread that is stopped in a blocking system call sees the call restarted. Some calls
 * (epoll_wait, semop, reads of sockets with a time limit: signal(7), "Interruption of system calls
 * by stop signals") return EINTR even where no handler ran; tracee_interrupt makes these restart,
 * too, as no program expects that error without a signal.
 *
 * A thread in an uninterruptible wait stops when that is over, and ptrace cannot take back the
 * request: such threads are not asked (proc_task).
 *
 * All calls for one thread must come from the same thread of ours.
 */
#ifndef ASSAY_REMOTE_PTRACE_TRACEE_H
#define ASSAY_REMOTE_PTRACE_TRACEE_H

#include <sys/user.h>

#include "base/base.h"
#include "base/err.h"

/* As in the status of wait: what stopped it. */
struct tracee_stop {
	int signal;
	int event; /* PTRACE_EVENT_*, 0 = a signal, or a system call */
};

/* -ESRCH: it has ended. -EPERM and others: err says why, and what helps. */
int tracee_seize(int32_t pid, int32_t tid, unsigned long options, struct err *err);
/*
 * Waits for its next stop until @deadline_ns (clock_mono_ns). -ETIMEDOUT, or -ESRCH: it has ended;
 * its status is left to its parent if that is us.
 */
int tracee_wait(int32_t tid, bool is_child, uint64_t deadline_ns, struct tracee_stop *ret_s);
/*
 * Interrupts a seized thread and waits until it stands; signals that come first are delivered.
 * *ret_regs: registers, repaired so that an interrupted system call will be restarted.
 * -ETIMEDOUT: it is still asked to stop.
 */
int tracee_interrupt(int32_t tid, bool is_child, uint64_t deadline_ns,
		     struct user_regs_struct *ret_regs);
int tracee_get_regs(int32_t tid, struct user_regs_struct *ret_regs);
int tracee_set_regs(int32_t tid, const struct user_regs_struct *regs);
/* From a stop; ended threads are forgotten. */
void tracee_detach(int32_t tid);
/*
 * Seizes a thread unless the calling thread traces it already (remote/patch/launch.h), which
 * *ret_is_ours tells; and lets it go on as it was before: untraced, or traced.
 */
int tracee_take(int32_t pid, int32_t tid, unsigned long options, bool *ret_is_ours,
		struct err *err);
void tracee_let_go(int32_t tid, bool is_ours);
/*
 * A thread that stands at a signal, which is dropped, then stands at a stop that leaves nothing
 * behind should we die.
 */
int tracee_listen(int32_t tid, bool is_child, uint64_t deadline_ns);
/* Whether we are the real parent of the process: then its exit status is not ours to take. */
bool tracee_is_child(int32_t pid);

#endif
