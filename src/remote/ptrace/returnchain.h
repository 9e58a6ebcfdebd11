/*
 * The way back of a thread on which a call is made: a list of return addresses, and behind it a
 * signal frame with the thread's own registers. The call returns into the list, which ends in
 * rt_sigreturn. So the thread resumes its own work even if assay is killed in the middle.
 *
 *	slot  0  xchg %eax, R; ret     keeps the result in R (or just ret)
 *	      1  pop %rdi; ret         2: the thread's id
 *	      3  pop %rsi; ret         4: a signal that the process ignores
 *	      5  pop %rax; ret         6: SYS_tkill
 *	      7  syscall; ret          assay sees the signal: the call is over
 *	      8  pop %rax; ret         9: SYS_rt_sigreturn
 *	     10  syscall
 *	     11  struct ucontext, then the vector and floating point state (XSAVE area)
 *
 * A function returns into slot 0, a system call into slot 8. The instructions are byte sequences in
 * the target's own code, so no executable memory has to be mapped. Without an ignored signal slots
 * 1 to 7 hold the address of a plain ret.
 *
 * The frame is that of the kernel's signal delivery: arch/x86/include/uapi/asm/sigcontext.h and
 * ucontext.h, arch/x86/kernel/signal_64.c and fpu/signal.c. x86-64 only.
 */
#ifndef ASSAY_REMOTE_PTRACE_RETURNCHAIN_H
#define ASSAY_REMOTE_PTRACE_RETURNCHAIN_H

#include <sys/user.h>

#include "base/base.h"
#include "base/err.h"

/* Addresses in the target. */
struct returnchain_code {
	uint64_t syscall_ret;
	uint64_t pop_rax;
	uint64_t pop_rdi;
	uint64_t pop_rsi;
	uint64_t save_eax; /* xchg %eax, R; 0 = there is none */
	size_t saved_off;  /* of R in struct user_regs_struct */
};

/*
 * Searches the file mappings of the target. -ENOEXEC: one of the instructions is not there
 * (save_eax is optional).
 */
int returnchain_find_code(struct returnchain_code *ret_c, int32_t pid, int mem_fd, struct err *err);

/* What the frame restores. */
struct returnchain_state {
	struct user_regs_struct regs; /* as at the stop; an interrupted system call is repeated */
	uint64_t mask;                /* blocked signals */
	const uint8_t *xstate;        /* the regset NT_X86_XSTATE; bytes beyond nr_xstate are 0 */
	size_t nr_xstate;
	int32_t tid; /* in its own PID namespace */
	int notify;  /* signal for slot 4; 0 = none */
	/* The number of the call that a thread in restart_syscall repeats; -1: not known. */
	int64_t restarted_nr;
};

#define RETURNCHAIN_CALL      0u /* slots */
#define RETURNCHAIN_NOTIFIED  8u /* where rsp points when the signal arrives */
#define RETURNCHAIN_SYSCALL   8u
#define RETURNCHAIN_SIGRETURN 11u /* where rsp points at the entry of rt_sigreturn */

/* Bytes that a chain needs at most on this machine. */
size_t returnchain_bytes_max(void);
/*
 * Makes the chain at the highest suitable address below @top. Writes its bytes to @to (of
 * returnchain_bytes_max()) and returns their number; *ret_addr: the address of slot 0, which is 8
 * less than a multiple of 16, as the stack pointer at a function's entry.
 */
size_t returnchain_make(const struct returnchain_code *c, const struct returnchain_state *s,
			uint64_t top, uint8_t *to, uint64_t *ret_addr);

#endif
