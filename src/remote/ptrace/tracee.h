/*
 * Seizes, interrupts and detaches single threads of other processes; shared by remote.c,
 * stopthread.c, patch/quiesce.c and patch/launch.c. Uses PTRACE_SEIZE and PTRACE_INTERRUPT only: no
 * SIGSTOP that others could see, and the target continues if assay dies.
 *
 * The kernel restarts a blocking system call that a ptrace stop interrupts. Some calls (epoll_wait,
 * semop, reads of sockets with a timeout: signal(7), "Interruption of system calls by stop
 * signals") return EINTR even though no handler ran. tracee_interrupt makes these restart as well,
 * because programs do not expect that error without a signal.
 *
 * A thread in an uninterruptible wait stops only when the wait ends, and a request to stop cannot
 * be withdrawn; callers skip such threads (proc_task).
 *
 * All calls for one thread must be made by the same thread of assay.
 */
#ifndef ASSAY_REMOTE_PTRACE_TRACEE_H
#define ASSAY_REMOTE_PTRACE_TRACEE_H

#include <sys/user.h>

#include "base/base.h"
#include "base/err.h"

/* Why a thread stopped, from its wait status. */
struct tracee_stop {
	int signal;
	int event; /* PTRACE_EVENT_*; 0 = signal or system call stop */
};

/*
 * PTRACE_SEIZE, always with PTRACE_O_TRACESYSGOOD: if assay dies at a system call stop without it,
 * the thread gets a SIGTRAP. -ESRCH: the thread has ended. -EPERM: err has the reason and a hint.
 */
int tracee_seize(int32_t pid, int32_t tid, unsigned long options, struct err *err);
/*
 * Waits for the next stop until @deadline_ns (clock_mono_ns). -ETIMEDOUT. -ESRCH: the thread has
 * ended; @is_child: its exit status is not reaped.
 */
int tracee_wait(int32_t tid, bool is_child, uint64_t deadline_ns, struct tracee_stop *ret_s);
/*
 * Interrupts a seized thread and waits for its stop. Signals that stop it before that are
 * delivered. Returns its registers, adjusted so that an interrupted system call restarts.
 * -ETIMEDOUT: the request to stop stays pending.
 */
int tracee_interrupt(int32_t tid, bool is_child, uint64_t deadline_ns,
		     struct user_regs_struct *ret_regs);
int tracee_get_regs(int32_t tid, struct user_regs_struct *ret_regs);
int tracee_set_regs(int32_t tid, const struct user_regs_struct *regs);
/* Detaches from a stopped thread. An ended thread is ignored. */
void tracee_detach(int32_t tid);
/*
 * tracee_acquire seizes a thread, unless the calling thread traces it already
 * (remote/patch/launch.h): then it sets *ret_was_traced. tracee_release resumes a stopped thread,
 * and detaches from it unless @was_traced.
 */
int tracee_acquire(int32_t pid, int32_t tid, unsigned long options, bool *ret_was_traced,
		   struct err *err);
void tracee_release(int32_t tid, bool was_traced);
/*
 * Moves a thread from a signal stop, suppressing the signal, to a PTRACE_EVENT_STOP, from which it
 * simply continues if assay dies.
 */
int tracee_listen(int32_t tid, bool is_child, uint64_t deadline_ns);
/* Whether assay is the parent of the process; its exit status is then reaped elsewhere. */
bool tracee_is_child(int32_t pid);

#endif
