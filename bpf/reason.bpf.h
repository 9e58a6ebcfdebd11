/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a thread leaves the CPU, from the registers with which it entered the kernel (which system
 * call, or none: then it is a page fault), the file behind its descriptor, and the task's state and
 * flags. This needs no tracepoint on system calls, which would slow down each call of each program.
 */
#ifndef ASSAY_BPF_REASON_H
#define ASSAY_BPF_REASON_H

#include <asm/unistd.h>

#include "wait_reason.h"

/*
 * End of a global function whose result is not used. The compiler does not set r0 then, but the
 * verifier requires that it is set.
 */
#define RETURN_NOTHING()                         \
	do {                                     \
		asm volatile("r0 = 0" ::: "r0"); \
		return 0;                        \
	} while (0)

/* task_struct.__state (include/linux/sched.h); the other bits only modify these. */
#define STATE_INTERRUPTIBLE   0x01u
#define STATE_UNINTERRUPTIBLE 0x02u
#define STATE_STOPPED         0x04u
#define STATE_TRACED          0x08u
#define STATE_DEAD            0x80u
#define STATE_MASK            0xffu
#define STATE_WAKEKILL        0x100u
#define STATE_NOLOAD          0x400u /* with UNINTERRUPTIBLE: idle */

/*
 * What a system call may block on. CALL_FD is a bit: the first argument is a file descriptor.
 * CALL_FUTEX: a futex whose address is the first argument; CALL_SYNC: other locks and semaphores.
 */
enum call_class {
	CALL_OTHER = 0,
	CALL_READ = 1,
	CALL_WRITE = 2,
	CALL_FSYNC = 3,
	CALL_FUTEX = 4,
	CALL_SYNC = 5,
	CALL_POLL = 6,
	CALL_SLEEP = 7,
	CALL_NET = 8,
	CALL_CHILD = 9,
	CALL_FILE = 10,
	CALL_MEMORY = 11,
	CALL_CLONE = 12,
	CALL_MESSAGE = 13,
	CALL_YIELD = 14,
	CALL_KERNEL = 15,
	CALL_MASK = 15,
	CALL_FD = 16,
};

#define NR_CALLS 512
static const volatile __u8 call_classes[NR_CALLS] = {
	[__NR_read] = CALL_READ | CALL_FD,
	[__NR_pread64] = CALL_READ | CALL_FD,
	[__NR_readv] = CALL_READ | CALL_FD,
	[__NR_preadv] = CALL_READ | CALL_FD,
	[__NR_preadv2] = CALL_READ | CALL_FD,
	[__NR_readahead] = CALL_READ | CALL_FD,
	[__NR_getdents64] = CALL_READ | CALL_FD,
	[__NR_write] = CALL_WRITE | CALL_FD,
	[__NR_pwrite64] = CALL_WRITE | CALL_FD,
	[__NR_writev] = CALL_WRITE | CALL_FD,
	[__NR_pwritev] = CALL_WRITE | CALL_FD,
	[__NR_pwritev2] = CALL_WRITE | CALL_FD,
	[__NR_sendfile] = CALL_WRITE | CALL_FD,
	[__NR_splice] = CALL_READ | CALL_FD,
	[__NR_tee] = CALL_READ | CALL_FD,
	[__NR_vmsplice] = CALL_WRITE | CALL_FD,
	[__NR_copy_file_range] = CALL_READ | CALL_FD,
	[__NR_fsync] = CALL_FSYNC | CALL_FD,
	[__NR_fdatasync] = CALL_FSYNC | CALL_FD,
	[__NR_sync_file_range] = CALL_FSYNC | CALL_FD,
	[__NR_syncfs] = CALL_FSYNC | CALL_FD,
	[__NR_sync] = CALL_FSYNC,
	[__NR_msync] = CALL_FSYNC,
	[__NR_futex] = CALL_FUTEX,
	[449] = CALL_SYNC,  /* futex_waitv: the same number everywhere */
	[455] = CALL_FUTEX, /* futex_wait */
	[__NR_semop] = CALL_SYNC,
	[__NR_semtimedop] = CALL_SYNC,
	[__NR_epoll_pwait] = CALL_POLL,
	[441] = CALL_POLL, /* epoll_pwait2 */
	[__NR_ppoll] = CALL_POLL,
	[__NR_pselect6] = CALL_POLL,
	[__NR_io_getevents] = CALL_POLL,
	[__NR_io_pgetevents] = CALL_POLL,
	[426] = CALL_POLL, /* io_uring_enter */
	[__NR_nanosleep] = CALL_SLEEP,
	[__NR_clock_nanosleep] = CALL_SLEEP,
	[__NR_rt_sigsuspend] = CALL_SLEEP,
	[__NR_rt_sigtimedwait] = CALL_SLEEP,
	[__NR_connect] = CALL_NET | CALL_FD,
	[__NR_accept] = CALL_NET | CALL_FD,
	[__NR_accept4] = CALL_NET | CALL_FD,
	[__NR_sendto] = CALL_NET | CALL_FD,
	[__NR_recvfrom] = CALL_NET | CALL_FD,
	[__NR_sendmsg] = CALL_NET | CALL_FD,
	[__NR_recvmsg] = CALL_NET | CALL_FD,
	[__NR_sendmmsg] = CALL_NET | CALL_FD,
	[__NR_recvmmsg] = CALL_NET | CALL_FD,
	[__NR_shutdown] = CALL_NET | CALL_FD,
	[__NR_setsockopt] = CALL_NET | CALL_FD,
	[__NR_wait4] = CALL_CHILD,
	[__NR_waitid] = CALL_CHILD,
	[__NR_openat] = CALL_FILE,
	[437] = CALL_FILE, /* openat2 */
	[__NR_close] = CALL_FILE,
	[__NR_newfstatat] = CALL_FILE,
	[__NR_statx] = CALL_FILE,
	[__NR_fstat] = CALL_FILE | CALL_FD,
	[__NR_unlinkat] = CALL_FILE,
	[__NR_renameat] = CALL_FILE,
	[__NR_renameat2] = CALL_FILE,
	[__NR_mkdirat] = CALL_FILE,
	[__NR_linkat] = CALL_FILE,
	[__NR_symlinkat] = CALL_FILE,
	[__NR_truncate] = CALL_FILE,
	[__NR_ftruncate] = CALL_FILE | CALL_FD,
	[__NR_fallocate] = CALL_FILE | CALL_FD,
	[__NR_lseek] = CALL_FILE | CALL_FD,
	[__NR_fadvise64] = CALL_FILE | CALL_FD,
	[__NR_flock] = CALL_FILE | CALL_FD,
	[__NR_fcntl] = CALL_FILE | CALL_FD,
	[__NR_ioctl] = CALL_FILE | CALL_FD,
	[__NR_execve] = CALL_FILE,
	[__NR_execveat] = CALL_FILE,
	[__NR_io_submit] = CALL_FILE,
	[__NR_mmap] = CALL_MEMORY,
	[__NR_munmap] = CALL_MEMORY,
	[__NR_mremap] = CALL_MEMORY,
	[__NR_mprotect] = CALL_MEMORY,
	[__NR_madvise] = CALL_MEMORY,
	[__NR_brk] = CALL_MEMORY,
	[__NR_mlock] = CALL_MEMORY,
	[__NR_munlock] = CALL_MEMORY,
	[__NR_mlockall] = CALL_MEMORY,
	[__NR_mincore] = CALL_MEMORY,
	[__NR_process_vm_readv] = CALL_MEMORY,
	[__NR_clone] = CALL_CLONE,
	[__NR_clone3] = CALL_CLONE,
	[__NR_msgrcv] = CALL_MESSAGE,
	[__NR_msgsnd] = CALL_MESSAGE,
	[__NR_mq_timedreceive] = CALL_MESSAGE,
	[__NR_mq_timedsend] = CALL_MESSAGE,
	[__NR_sched_yield] = CALL_YIELD,
	[__NR_exit] = CALL_KERNEL,
	[__NR_exit_group] = CALL_KERNEL,
	[__NR_membarrier] = CALL_KERNEL,
#if defined(__x86_64__)
	[__NR_getdents] = CALL_READ | CALL_FD,
	[__NR_epoll_wait] = CALL_POLL,
	[__NR_poll] = CALL_POLL,
	[__NR_select] = CALL_POLL,
	[__NR_pause] = CALL_SLEEP,
	[__NR_open] = CALL_FILE,
	[__NR_creat] = CALL_FILE,
	[__NR_stat] = CALL_FILE,
	[__NR_lstat] = CALL_FILE,
	[__NR_access] = CALL_FILE,
	[__NR_unlink] = CALL_FILE,
	[__NR_rename] = CALL_FILE,
	[__NR_mkdir] = CALL_FILE,
	[__NR_rmdir] = CALL_FILE,
	[__NR_link] = CALL_FILE,
	[__NR_symlink] = CALL_FILE,
	[__NR_vfork] = CALL_CLONE,
	[__NR_fork] = CALL_CLONE,
#endif
};

/* Registers of the last entry into the kernel. */
struct call_regs {
	__u64 arg0;
	__u64 arg1;
	__s32 nr; /* -1: no system call */
	bool is_compat;
};

static __always_inline void call_regs_of(struct task_struct *t, struct call_regs *r)
{
	struct pt_regs___kernel *regs = regs_of(t);
	r->arg0 = REGS_ARG_0(regs);
	r->arg1 = REGS_ARG_1(regs);
	r->nr = (__s32)REGS_SYSCALL_NR(regs);
	r->is_compat = REGS_IS_32(regs);
}

#define MODE_MASK      0170000u
#define MODE_SOCKET    0140000u
#define MODE_FILE      0100000u
#define MODE_BLOCK     0060000u
#define MODE_DIR       0040000u
#define MODE_PIPE      0010000u
#define MAGIC_ANON_FDS 0x09041934ul /* eventfd, epoll ...: a file by its mode since 6.16 */

static __always_inline bool has_mm(struct task_struct *t)
{
	return t->mm != NULL;
}

/*
 * The table of a thread's open files; NULL: @fd is beyond it. Each direct load of a pointer from a
 * task makes the verifier search the kernel's BTF by name, each time that it visits the load; a
 * load by helper does not, but is slower at run time. So there are two variants.
 */
static __always_inline struct file **files_of(struct task_struct *t, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(t, files, fdt);
	return table && fd < BPF_CORE_READ(table, max_fds) ? BPF_CORE_READ(table, fd) : NULL;
}

static __always_inline struct file **files_of_current(struct task_struct *t, __u32 fd)
{
	struct files_struct *files = t->files;
	struct fdtable *table = files ? files->fdt : NULL;
	return table && fd < table->max_fds ? table->fd : NULL;
}

/* Fills the object of a cause from a descriptor; false: the descriptor is not open. */
static __always_inline bool file_of(struct task_struct *t, bool is_current, __s32 fd,
				    struct wait_cause *c, __u32 *ret_mode)
{
	if (fd < 0)
		return false;
	struct file **slots = is_current ? files_of_current(t, fd) : files_of(t, fd);
	struct file *file = NULL;
	if (!slots)
		return false;
	if (bpf_probe_read_kernel(&file, sizeof(file), slots + fd) || !file)
		return false;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return false;
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	__u32 mode = BPF_CORE_READ(inode, i_mode) & MODE_MASK;
	c->object = BPF_CORE_READ(inode, i_ino);
	c->dev = BPF_CORE_READ(sb, s_dev);
	c->fd = fd;
	if (mode == MODE_FILE && BPF_CORE_READ(sb, s_magic) == MAGIC_ANON_FDS)
		mode = 0;
	c->object_kind = mode == MODE_FILE || mode == MODE_BLOCK || mode == MODE_DIR ? OBJECT_FILE
			 : mode == MODE_SOCKET                                       ? OBJECT_SOCKET
			 : mode == MODE_PIPE                                         ? OBJECT_PIPE
										     : OBJECT_OTHER;
	*ret_mode = mode;
	return true;
}

/*
 * The reason of a wait that a system call did not request: of a page fault, in or outside of a
 * call.
 */
static __always_inline __u8 fault_reason(bool is_iowait, bool is_stalled)
{
	if (is_iowait)
		return WAIT_FAULT;
	return is_stalled ? WAIT_RECLAIM : WAIT_MMAP_LOCK;
}

/*
 * An uninterruptible sleep in a call that waits interruptibly for its object: a page fault
 * (mmap_lock is taken killably), or a lock inside the kernel.
 */
static __always_inline __u8 uninterruptible_reason(__u32 state, bool is_iowait, bool is_stalled)
{
	if (is_iowait || is_stalled || state & STATE_WAKEKILL)
		return fault_reason(is_iowait, is_stalled);
	return WAIT_KERNEL;
}

/* read, write and similar calls: the reason depends on the type of the file. */
static __always_inline __u8 file_reason(__u8 class, __u32 mode)
{
	if (mode == MODE_SOCKET)
		return WAIT_NET;
	if (mode != MODE_FILE && mode != MODE_BLOCK && mode != MODE_DIR)
		return WAIT_PIPE;
	return class == CALL_READ ? WAIT_FILE_READ : WAIT_FILE_WRITE;
}

#define FUTEX_OP_MASK         0x7fu
#define FUTEX_OP_LOCK_PI      6u
#define FUTEX_OP_LOCK_PI2     13u
#define FUTEX_OP_REQUEUE_PI   11u
#define FUTEX_PI_OWNER_MASK   0x3fffffffu
#define GLIBC_LOCK_CONTENDED  2u
#define GLIBC_MUTEX_OWNER_IDX 2

/*
 * Sets the owner of the lock if the futex word names it. A priority-inheritance futex contains it.
 * A glibc mutex is {word, recursion, owner}, and its word is 2 while threads wait. Words of other
 * locks can have any value, so the owner must at least be another thread. User space checks that it
 * is a thread of the same process.
 */
static __always_inline void owner_of(struct task_struct *t, const struct call_regs *r,
				     const __u32 *word, struct wait_cause *c)
{
	__u32 op = r->nr == __NR_futex ? (__u32)r->arg1 & FUTEX_OP_MASK : 0;
	__u32 owner = 0;
	if (op == FUTEX_OP_LOCK_PI || op == FUTEX_OP_LOCK_PI2 || op == FUTEX_OP_REQUEUE_PI)
		owner = word[0] & FUTEX_PI_OWNER_MASK;
	else if (word[0] == GLIBC_LOCK_CONTENDED && word[1] <= 0xffff)
		owner = word[GLIBC_MUTEX_OWNER_IDX];
	if (!owner || owner > 0x400000 || owner == (__u32)t->pid)
		return;
	c->fd = (__s32)owner;
	c->evidence |= EVIDENCE_LOCK_WORD;
}

/* Fills the futex's address and owner. Only the current thread's memory can be read. */
static __always_inline void futex_of(struct task_struct *t, bool is_current,
				     const struct call_regs *r, struct wait_cause *c)
{
	__u32 word[3] = {};
	c->object_kind = OBJECT_FUTEX;
	c->object = r->arg0;
	c->fd = 0;
	if (!is_current || r->arg0 & 3)
		return;
	if (!bpf_probe_read_user(word, sizeof(word), (const void *)r->arg0))
		owner_of(t, r, word, c);
}

/* Returns the element of call_classes: enum call_class, with CALL_FD. */
static __always_inline __u8 call_entry(__u64 nr)
{
	if (nr >= NR_CALLS)
		return CALL_OTHER;
	/* The verifier needs the mask; the compiler would remove it as redundant. */
	asm volatile("%0 &= %1" : "+r"(nr) : "i"(NR_CALLS - 1));
	return call_classes[nr];
}

/* Set the reason and file of a wait for requests in flight; see inflight.bpf.h. */
int aio_cause(struct wait_cause *c, __u64 user_id, __u64 events);
int uring_cause(struct wait_cause *c, __u32 fd, __u32 flags);

static __always_inline __u8 call_reason(struct task_struct *t, bool is_current,
					const struct call_regs *r, __u32 state, bool is_iowait,
					bool is_stalled, struct wait_cause *c)
{
	__u8 entry = call_entry((__u32)r->nr);
	__u8 class = entry & CALL_MASK;
	/* In calls that wait interruptibly: the sleep is not the wait that the call requested. */
	bool is_uninterruptible = !(state & STATE_INTERRUPTIBLE);
	__u32 mode = 0;
	bool has_file = (entry & CALL_FD) && file_of(t, is_current, (__s32)r->arg0, c, &mode);

	switch (class) {
	case CALL_READ:
	case CALL_WRITE:
		if (has_file) {
			__u8 reason = file_reason(class, mode);
			return is_iowait && reason == WAIT_PIPE ? WAIT_FAULT : reason;
		}
		return is_iowait ? WAIT_FILE_READ : WAIT_OTHER;
	case CALL_FSYNC:
		return WAIT_FSYNC;
	case CALL_FUTEX:
		if (is_uninterruptible)
			return fault_reason(is_iowait, is_stalled);
		futex_of(t, is_current, r, c);
		return WAIT_SYNC;
	case CALL_SYNC:
		return is_uninterruptible ? fault_reason(is_iowait, is_stalled) : WAIT_SYNC;
	case CALL_POLL:
		if (is_uninterruptible)
			return uninterruptible_reason(state, is_iowait, is_stalled);
		c->reason = WAIT_POLL;
		if (is_current && r->nr == URING_SYSCALL)
			uring_cause(c, (__u32)r->arg0, (__u32)REGS_ARG_3(regs_of(t)));
		else if (is_current && (r->nr == __NR_io_getevents || r->nr == __NR_io_pgetevents))
			aio_cause(c, r->arg0, REGS_ARG_3(regs_of(t)));
		return c->reason;
	case CALL_SLEEP:
		return is_uninterruptible ? uninterruptible_reason(state, is_iowait, is_stalled)
					  : WAIT_SLEEP;
	case CALL_NET:
		return is_iowait ? WAIT_FAULT : WAIT_NET;
	case CALL_CHILD:
		return is_uninterruptible ? uninterruptible_reason(state, is_iowait, is_stalled)
					  : WAIT_CHILD;
	case CALL_FILE:
		return WAIT_FILE_OTHER;
	case CALL_MEMORY:
		return fault_reason(is_iowait, is_stalled);
	case CALL_CLONE:
		return state & STATE_WAKEKILL && !is_iowait ? WAIT_CHILD : WAIT_KERNEL;
	case CALL_MESSAGE:
		return is_uninterruptible ? uninterruptible_reason(state, is_iowait, is_stalled)
					  : WAIT_PIPE;
	case CALL_KERNEL:
		return WAIT_KERNEL;
	}
	if (is_uninterruptible)
		return is_iowait ? WAIT_FILE_OTHER
				 : uninterruptible_reason(state, is_iowait, is_stalled);
	return WAIT_OTHER;
}

/*
 * A thread that is in no call of its program: a kernel thread or io_uring worker, which is mostly idle, or
 * one that exits.
 */
static __always_inline __u8 thread_reason(struct task_struct *t, __u32 state, bool is_iowait)
{
	if (t->flags & PF_EXITING)
		return WAIT_KERNEL;
	if (!(t->flags & PF_IN_KERNEL))
		return WAIT_UNKNOWN;
	bool is_blocked = state & STATE_UNINTERRUPTIBLE && !(state & STATE_NOLOAD);
	if (is_iowait && t->flags & PF_IO_WORKER)
		return WAIT_FILE_OTHER;
	return is_iowait || is_blocked ? WAIT_KERNEL : WAIT_PARK;
}

/*
 * Fills a cause except for its stacks. @state: task state with which @t leaves, or left, its CPU.
 */
static __always_inline int cause_of(struct task_struct *t, bool is_current, bool is_preempted,
				    __u32 state, struct wait_cause *c)
{
	struct call_regs r;
	if (!t || !c)
		return 0;
	bool is_user = !(t->flags & PF_IN_KERNEL) && has_mm(t);

	c->object = 0;
	c->fd = WAIT_NO_FD;
	c->dev = 0;
	c->evidence = 0;
	c->object_kind = OBJECT_NONE;
	c->how = HOW_BLOCKED;
	c->syscall = -1;
	c->kernel_ref = 0;
	r.nr = -1;
	r.is_compat = false;
	if (is_user) {
		call_regs_of(t, &r);
		if (!r.is_compat)
			c->syscall = (__s16)r.nr;
	}
	if (is_preempted || !(state & STATE_MASK)) {
		c->reason = WAIT_RUN_QUEUE;
		c->how = !is_preempted && r.nr == __NR_sched_yield ? HOW_YIELDED : HOW_PREEMPTED;
		return 0;
	}
	bool is_iowait = CORE_BIT(t, in_iowait);
	bool is_stalled = CORE_BIT(t, in_memstall);
	if (is_iowait)
		c->evidence |= EVIDENCE_IOWAIT;
	if (state & (STATE_STOPPED | STATE_TRACED))
		c->reason = WAIT_STOPPED;
	else if (!is_user)
		c->reason = thread_reason(t, state, is_iowait);
	else if (t->flags & PF_MEMALLOC || (is_stalled && !is_iowait))
		c->reason = WAIT_RECLAIM;
	else if (r.is_compat)
		c->reason = WAIT_OTHER;
	else if (r.nr < 0)
		c->reason = fault_reason(is_iowait, is_stalled);
	else
		c->reason = call_reason(t, is_current, &r, state, is_iowait, is_stalled, c);
	RETURN_NOTHING();
}

/* The same for the current thread; not static, so that it is verified once, on its own. */
__noinline int cause_of_current(bool is_preempted, __u32 state, struct wait_cause *c)
{
	if (!c)
		return 0;
	cause_of(bpf_get_current_task_btf(), true, is_preempted, state, c);
	RETURN_NOTHING();
}

#endif
