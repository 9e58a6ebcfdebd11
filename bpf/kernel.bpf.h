/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Types of the kernel, with only the fields that the BPF programs read, and helpers that depend on
 * nothing else. Field offsets are relocated when the programs are loaded (CO-RE), so only the names
 * of types and fields matter, not their order or what lies between them. The kernel's BTF is needed
 * on the machine that runs the programs, not on the one that builds them.
 */
#ifndef ASSAY_BPF_KERNEL_H
#define ASSAY_BPF_KERNEL_H

#include <stdbool.h>
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define READ_ONCE(x)     (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define LIKELY(x)        __builtin_expect(!!(x), 1)
#define UNLIKELY(x)      __builtin_expect(!!(x), 0)

#if defined(__TARGET_ARCH_x86)
#include <linux/bpf_perf_event.h>
#elif defined(__TARGET_ARCH_arm64)
/* From asm/ptrace.h and linux/bpf_perf_event.h, so that machines of any kind can compile this. */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct bpf_perf_event_data {
	struct user_pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};
#endif

#define CORE __attribute__((preserve_access_index))

#define DEFINE_MAP_FLAGS(map_type, name, flags, nr, key_type, value_type) \
	struct {                                                          \
		__uint(type, BPF_MAP_TYPE_##map_type);                    \
		__uint(map_flags, flags);                                 \
		__uint(max_entries, nr);                                  \
		__type(key, key_type);                                    \
		__type(value, value_type);                                \
	} name SEC(".maps")
#define DEFINE_MAP(map_type, name, nr, key_type, value_type) \
	DEFINE_MAP_FLAGS(map_type, name, 0, nr, key_type, value_type)
#define DEFINE_RING(name, nr_bytes)                 \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_RINGBUF); \
		__uint(max_entries, nr_bytes);      \
	} name SEC(".maps")
/* Per-thread storage. */
#define DEFINE_TASK_STORAGE(name, value_type) \
	DEFINE_MAP_FLAGS(TASK_STORAGE, name, BPF_F_NO_PREALLOC, 0, int, value_type)

/* Returns element 0 of an array map that has one element; of a per-CPU array, this CPU's. */
static __always_inline void *single_elem(void *map)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(map, &zero);
}

#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
} CORE;

#define REGS_IP(r) ((r)->ip)
#define REGS_SP(r) ((r)->sp)
#define REGS_FP(r) ((r)->bp)
/* The kernel was entered by a system call: REGS_IP is the address of the instruction after it. */
#define REGS_IS_SYSCALL(r) ((long)(r)->orig_ax != -1)
/* A 64-bit program (__USER_CS). */
#define REGS_IS_64(r) (((r)->cs & 0xffff) == 0x33)
#define REGS_IS_32(r) ((r)->cs == 0x23) /* __USER32_CS */

/* Registers in the context of a perf event. The kernel accepts only 8-byte loads of them. */
#define PERF_REGS_ARE_USER(ctx) (*(const volatile __u64 *)&(ctx)->regs.cs & 3)
#define PERF_REGS_IP(ctx)       ((ctx)->regs.rip)

/* Arguments and number of a system call. */
#define REGS_ARG_0(r)      ((r)->di)
#define REGS_ARG_1(r)      ((r)->si)
#define REGS_ARG_2(r)      ((r)->dx)
#define REGS_ARG_3(r)      ((r)->r10)
#define REGS_SYSCALL_NR(r) ((r)->orig_ax)

/* All registers, by DWARF number (wire/arch_x86_64.h). */
static __always_inline void regs_by_dwarf(const struct pt_regs___kernel *r, __u64 *to)
{
	to[0] = r->ax;
	to[1] = r->dx;
	to[2] = r->cx;
	to[3] = r->bx;
	to[4] = r->si;
	to[5] = r->di;
	to[6] = r->bp;
	to[7] = r->sp;
	to[8] = r->r8;
	to[9] = r->r9;
	to[10] = r->r10;
	to[11] = r->r11;
	to[12] = r->r12;
	to[13] = r->r13;
	to[14] = r->r14;
	to[15] = r->r15;
	to[16] = r->ip;
}
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
	__u64 orig_x0;
	int syscallno;
} CORE;

#define REGS_IP(r)         ((r)->pc)
#define REGS_SP(r)         ((r)->sp)
#define REGS_FP(r)         ((r)->regs[29])
#define REGS_IS_SYSCALL(r) ((r)->syscallno != -1)
/* PSR_MODE32_BIT */
#define REGS_IS_64(r)      (!((r)->pstate & 0x10))
#define REGS_IS_32(r)      (!REGS_IS_64(r))

#define PERF_REGS_ARE_USER(ctx) (((ctx)->regs.pstate & 0xf) == 0)
#define PERF_REGS_IP(ctx)       ((ctx)->regs.pc)

#define REGS_ARG_0(r)      ((r)->orig_x0)
#define REGS_ARG_1(r)      ((r)->regs[1])
#define REGS_ARG_2(r)      ((r)->regs[2])
#define REGS_ARG_3(r)      ((r)->regs[3])
#define REGS_SYSCALL_NR(r) ((r)->syscallno)

/* All registers, by DWARF number (wire/arch_arm64.h). */
static __always_inline void regs_by_dwarf(const struct pt_regs___kernel *r, __u64 *to)
{
	for (int i = 0; i < 31; i++)
		to[i] = r->regs[i];
	to[31] = r->sp;
	to[32] = r->pc;
}
#endif

struct qstr {
	const unsigned char *name;
} CORE;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
} CORE;

struct hlist_node {
	struct hlist_node *next;
} CORE;

struct hlist_head {
	struct hlist_node *first;
} CORE;

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	__u32 i_generation;
	unsigned int i_nlink;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
} CORE;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
} CORE;

struct vfsmount {
	struct dentry *mnt_root;
} CORE;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} CORE;

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
} CORE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} CORE;

struct files_struct {
	struct fdtable *fdt;
} CORE;

struct upid {
	int nr;
} CORE;
struct pid {
	unsigned int level;
	struct upid numbers[1];
} CORE;

struct uprobe_task;

/* Times are of the scheduler's own clock, in ns. */
struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
} CORE;

struct seqcount {
	unsigned int sequence;
} CORE;

struct xol_area {
	unsigned long vaddr; /* address of the trampoline of return probes */
} CORE;

struct uprobes_state {
	struct xol_area *xol_area;
} CORE;

struct mm_struct {
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
	struct seqcount mm_lock_seq; /* since 6.13, with CONFIG_PER_VMA_LOCK */
	struct uprobes_state uprobes_state;
} CORE;

typedef struct {
	int counter;
} CORE atomic_t;

typedef struct {
	unsigned long sig[1]; /* signals 1 to 64 */
} CORE sigset_t;

struct sigpending {
	sigset_t signal;
} CORE;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
	struct sigpending shared_pending;
} CORE;

struct sched_entity {
	__u64 sum_exec_runtime; /* CPU time of the thread, up to the last tick or switch */
} CORE;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	int exit_state;
	int on_cpu;
	__u64 start_time;
	void *stack;
	struct sched_entity se;
	struct sched_info sched_info;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct files_struct *files;
	struct signal_struct *signal;
	sigset_t blocked;
	struct sigpending pending;
	struct uprobe_task *utask;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	unsigned int in_memstall : 1;
	char comm[16];
} CORE;

/*
 * Reads a bit of a 32-bit unsigned field. libbpf's macro (BPF_CORE_READ_BITFIELD) switches over the
 * size of the field, which is known only when the program is loaded; clang 14 treats the branches
 * that are never taken as undefined behaviour.
 */
#define CORE_BIT(p, field)                                                                \
	({                                                                                \
		__u64 core_bits = *(const __u32 *)((const void *)(p) +                    \
						   __CORE_RELO((p), field, BYTE_OFFSET)); \
		core_bits <<= __CORE_RELO((p), field, LSHIFT_U64);                        \
		core_bits >> __CORE_RELO((p), field, RSHIFT_U64);                         \
	})

/* The registers with which a thread last entered the kernel from user mode. */
static __always_inline struct pt_regs___kernel *regs_of(struct task_struct *t)
{
	return (void *)bpf_task_pt_regs(t);
}

/* The thread's TID in its own PID namespace. */
static __noinline __s32 ns_tid_of(struct task_struct *t)
{
	if (!t)
		return 0;
	/* In the initial PID namespace, level is 0 and the TID is t->pid. */
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	__s32 nr = 0;
	if (!pid)
		return 0;
	/* The array's last element is that of the innermost namespace. */
	void *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		   BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid) +
		   bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&nr, sizeof(nr), at);
	return nr;
}

/* CPU time of the thread up to its last switch or tick; 0: not known. */
static __always_inline __u64 exec_ns_of(struct task_struct *t)
{
	return bpf_core_field_exists(t->se.sum_exec_runtime) ? t->se.sum_exec_runtime : 0;
}

/* THREAD_SIZE of x86-64 and arm64. */
#define KERNEL_STACK_BYTES 16384u

#define PF_EXITING  0x00000004u
#define PF_MEMALLOC 0x00000800u
#define PF_KTHREAD  0x00200000u
/* A worker of io_uring: a thread of the process that never runs its code. */
#define PF_IO_WORKER 0x00000010u
/* Threads without user registers; those of an io_uring worker are its creator's. */
#define PF_IN_KERNEL (PF_KTHREAD | PF_IO_WORKER)

static __always_inline void raise_to(__u64 *max, __u64 v)
{
	if (v > *max)
		*max = v;
}

/*
 * log2, rounded down; 0 for 0. @n must be below 2^63. Has no branches, since the verifier would
 * explore each combination of them.
 */
static __always_inline __u8 log2_of(__u64 n)
{
	__u64 r = 0, step;
	step = ((0xffffffffull - n) >> 63) << 5;
	n >>= step;
	r += step;
	step = ((0xffffull - n) >> 63) << 4;
	n >>= step;
	r += step;
	step = ((0xffull - n) >> 63) << 3;
	n >>= step;
	r += step;
	step = ((0xfull - n) >> 63) << 2;
	n >>= step;
	r += step;
	step = ((0x3ull - n) >> 63) << 1;
	n >>= step;
	return r + step + (n >> 1);
}

#endif
