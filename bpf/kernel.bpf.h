/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's types, as far as our programs look at them. Offsets are relocated when the
 * programs are loaded (CO-RE), so only the names of fields matter here, neither their order nor
 * what lies between them; the kernel's BTF is needed on the machine that runs, not on the one that
 * builds.
 */
#ifndef ASSAY_BPF_KERNEL_H
#define ASSAY_BPF_KERNEL_H

#include <stdbool.h>
#include <linux/types.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define CORE __attribute__((preserve_access_index))

#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long bp;
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long r8;
	unsigned long r9;
	unsigned long ax;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
	unsigned long ss;
} CORE;
#endif

struct qstr {
	const unsigned char *name;
} CORE;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
} CORE;

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
} CORE;

struct file {
	struct inode *f_inode;
} CORE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} CORE;

struct files_struct {
	struct fdtable *fdt;
} CORE;

struct pid;

/* Times of the scheduler's own clock. */
struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
} CORE;

struct mm_struct {
	unsigned long start_stack;
} CORE;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	int exit_state;
	__u64 self_exec_id;
	__u64 start_time;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	void *stack;
	struct sched_info sched_info;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct files_struct *files;
	unsigned int in_iowait : 1;
	unsigned int in_memstall : 1;
	char comm[16];
} CORE;

#define PF_EXITING  0x00000004u
#define PF_MEMALLOC 0x00000800u
#define PF_KTHREAD  0x00200000u

#endif
