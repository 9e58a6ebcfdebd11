/*
 * A seccomp filter; see syscallfilter.h. The program compares the number of the call with one after
 * the other; since Linux 5.11 the kernel remembers the numbers that are permitted in any case and
 * does not run it for them.
 */
#include "base/base.h"
#include "host/syscallfilter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "host/privileges.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define X32_BIT 0x40000000 /* in the numbers of another ABI of x86-64 */
#define NEW_NAMESPACES                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
#define ANY HOST_CALLS_READING

struct permit {
	int nr;
	unsigned when; /* enum host_calls, one of which is needed; ANY: always */
};

static const struct permit permits[] = {
	/* files */
	{SYS_read, ANY},
	{SYS_write, ANY},
	{SYS_pread64, ANY},
	{SYS_pwrite64, ANY},
	{SYS_readv, ANY},
	{SYS_writev, ANY},
	{SYS_close, ANY},
	{SYS_close_range, ANY},
	{SYS_openat, ANY},
	{SYS_openat2, ANY},
	{SYS_newfstatat, ANY},
	{SYS_fstat, ANY},
	{SYS_statx, ANY},
	{SYS_statfs, ANY},
	{SYS_fstatfs, ANY},
	{SYS_faccessat, ANY},
	{SYS_faccessat2, ANY},
	{SYS_readlinkat, ANY},
	{SYS_getdents64, ANY},
	{SYS_lseek, ANY},
	{SYS_fcntl, ANY},
	{SYS_flock, ANY},
	{SYS_ftruncate, ANY},
	{SYS_fallocate, ANY},
	{SYS_fsync, ANY},
	{SYS_fdatasync, ANY},
	{SYS_fadvise64, ANY},
	{SYS_mkdirat, ANY},
	{SYS_unlinkat, ANY},
	{SYS_renameat, ANY},
	{SYS_renameat2, ANY},
	{SYS_umask, ANY},
	{SYS_getcwd, ANY},
	{SYS_dup, ANY},
	{SYS_dup3, ANY},
	{SYS_pipe2, ANY},
	{SYS_ppoll, ANY},
	{SYS_pselect6, ANY},
	{SYS_epoll_create1, ANY},
	{SYS_epoll_ctl, ANY},
	{SYS_epoll_pwait, ANY},
	{SYS_eventfd2, ANY},
	{SYS_memfd_create, ANY},
#ifdef SYS_open /* calls that newer architectures do not have */
	{SYS_open, ANY},
	{SYS_stat, ANY},
	{SYS_lstat, ANY},
	{SYS_access, ANY},
	{SYS_readlink, ANY},
	{SYS_mkdir, ANY},
	{SYS_unlink, ANY},
	{SYS_rmdir, ANY},
	{SYS_rename, ANY},
	{SYS_dup2, ANY},
	{SYS_pipe, ANY},
	{SYS_poll, ANY},
	{SYS_select, ANY},
	{SYS_epoll_wait, ANY},
	{SYS_arch_prctl, ANY},
	{SYS_getpgrp, ANY},
	{SYS_time, ANY},
#endif
	/* descriptors that are open already; there is no socket() while reading */
	{SYS_sendto, ANY},
	{SYS_recvfrom, ANY},
	{SYS_sendmsg, ANY},
	{SYS_recvmsg, ANY},
	{SYS_shutdown, ANY},
	/* memory */
	{SYS_mmap, ANY},
	{SYS_munmap, ANY},
	{SYS_mprotect, ANY},
	{SYS_mremap, ANY},
	{SYS_madvise, ANY},
	{SYS_msync, ANY},
	{SYS_mincore, ANY},
	{SYS_brk, ANY},
	/* threads, signals, time */
	{SYS_futex, ANY},
	{SYS_futex_waitv, ANY},
	{SYS_set_robust_list, ANY},
	{SYS_set_tid_address, ANY},
	{SYS_rseq, ANY},
	{SYS_membarrier, ANY},
	{SYS_exit, ANY},
	{SYS_exit_group, ANY},
	{SYS_rt_sigaction, ANY},
	{SYS_rt_sigprocmask, ANY},
	{SYS_rt_sigreturn, ANY},
	{SYS_rt_sigtimedwait, ANY},
	{SYS_sigaltstack, ANY},
	{SYS_tgkill, ANY},
	{SYS_restart_syscall, ANY},
	{SYS_wait4, ANY},
	{SYS_waitid, ANY},
	{SYS_nanosleep, ANY},
	{SYS_clock_nanosleep, ANY},
	{SYS_clock_gettime, ANY},
	{SYS_clock_getres, ANY},
	{SYS_gettimeofday, ANY},
	{SYS_sched_yield, ANY},
	{SYS_sched_getaffinity, ANY},
	{SYS_getpriority, ANY},
	{SYS_setpriority, ANY},
	/* about this process and machine */
	{SYS_getpid, ANY},
	{SYS_getpgid, ANY}, /* whether the terminal is ours */
	{SYS_gettid, ANY},
	{SYS_getppid, ANY},
	{SYS_getuid, ANY},
	{SYS_geteuid, ANY},
	{SYS_getgid, ANY},
	{SYS_getegid, ANY},
	{SYS_getrandom, ANY},
	{SYS_getrusage, ANY},
	{SYS_getrlimit, ANY},
	{SYS_prlimit64, ANY},
	{SYS_times, ANY},
	{SYS_uname, ANY},
	{SYS_sysinfo, ANY},
	{SYS_getcpu, ANY},
	{SYS_prctl, ANY},
	{SYS_capget, ANY},
	{SYS_capset, ANY},
	/* captures */
	{SYS_seccomp, HOST_CALLS_CAPTURE | HOST_CALLS_FORK}, /* for the next filter */
	{SYS_kill, HOST_CALLS_CAPTURE},
	{SYS_pidfd_open, HOST_CALLS_CAPTURE},
	{SYS_setsid, HOST_CALLS_CAPTURE},
	{SYS_chdir, HOST_CALLS_CAPTURE}, /* of the cleanup process */
	{SYS_bind, HOST_CALLS_CAPTURE},
	{SYS_listen, HOST_CALLS_CAPTURE},
	{SYS_accept4, HOST_CALLS_CAPTURE},
	{SYS_socketpair, HOST_CALLS_CAPTURE | HOST_CALLS_FORK},
	{SYS_setsockopt, HOST_CALLS_CAPTURE},
	{SYS_getsockopt, HOST_CALLS_CAPTURE},
	{SYS_sched_getscheduler, HOST_CALLS_CAPTURE},
	{SYS_sched_setscheduler, HOST_CALLS_CAPTURE},
	{SYS_setrlimit, HOST_CALLS_CAPTURE},
	{SYS_ptrace, HOST_CALLS_TRACE},
	{SYS_process_vm_readv, HOST_CALLS_TRACE},
	{SYS_process_vm_writev, HOST_CALLS_TRACE},
	{SYS_pidfd_getfd, HOST_CALLS_TRACE},
	{SYS_perf_event_open, HOST_CALLS_LOAD},
};

struct program {
	VEC(struct sock_filter) list;
};

static void add(struct program *p, uint16_t code, uint32_t k)
{
	vec_push(&p->list, (struct sock_filter){.code = code, .k = k});
}

static void answer(struct program *p, uint32_t result)
{
	add(p, BPF_RET | BPF_K, result);
}

#define ALLOW  SECCOMP_RET_ALLOW
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* Skips the next @nr instructions unless the loaded value is @k (BPF_JEQ), has bits of it (BPF_JSET). */
static void unless_skip(struct program *p, uint16_t test, uint32_t k, uint8_t nr)
{
	add(p, BPF_JMP | BPF_K | test, k);
	vec_last(&p->list)->jf = nr;
}

static void if_equal(struct program *p, uint32_t k, uint32_t result)
{
	unless_skip(p, BPF_JEQ, k, 1);
	answer(p, result);
}

/* For call @nr the low half of argument @arg decides: @refused values fail, others are permitted. */
static void check_values(struct program *p, int nr, unsigned arg, const uint32_t *refused,
			 uint8_t n)
{
	unless_skip(p, BPF_JEQ, (uint32_t)nr, (uint8_t)(2 + 2 * n));
	load(p, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
	for (uint8_t i = 0; i < n; i++)
		if_equal(p, refused[i], REFUSE);
	answer(p, ALLOW);
}

static void add_checked_calls(struct program *p, unsigned calls)
{
	static const uint32_t typing[] = {TIOCSTI, TIOCLINUX};
	static const uint32_t loading[] = {BPF_MAP_CREATE, BPF_PROG_LOAD};
	check_values(p, SYS_ioctl, 1, typing, ARRAY_LEN(typing));
	if (calls & HOST_CALLS_CAPTURE) {
		check_values(p, SYS_bpf, 0, loading,
			     calls & HOST_CALLS_LOAD ? 0 : ARRAY_LEN(loading));
		unless_skip(p, BPF_JEQ, SYS_socket, 4);
		load(p, offsetof(struct seccomp_data, args));
		if_equal(p, AF_UNIX, ALLOW);
		answer(p, REFUSE);
	}
	if (calls & (HOST_CALLS_CAPTURE | HOST_CALLS_FORK)) {
		unless_skip(p, BPF_JEQ, SYS_clone, 4);
		load(p, offsetof(struct seccomp_data, args));
		unless_skip(p, BPF_JSET, NEW_NAMESPACES, 1);
		answer(p, REFUSE);
		answer(p, ALLOW);
	}
	/* The flags of clone3 are in memory, where a filter cannot read: libc then uses clone. */
	if_equal(p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	unless_skip(p, BPF_JEQ, SYS_clone, 4);
	load(p, offsetof(struct seccomp_data, args));
	unless_skip(p, BPF_JSET, CLONE_THREAD, 1);
	answer(p, ALLOW);
	answer(p, REFUSE);
}

static void build(struct program *p, unsigned calls)
{
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_K | BPF_JEQ, ARCH);
	vec_last(&p->list)->jt = 1;
	answer(p, SECCOMP_RET_KILL_PROCESS);
	load(p, offsetof(struct seccomp_data, nr));
	unless_skip(p, BPF_JSET, X32_BIT, 1);
	answer(p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_LEN(permits); i++)
		if (permits[i].when == ANY || permits[i].when & calls)
			if_equal(p, (uint32_t)permits[i].nr, ALLOW);
	add_checked_calls(p, calls);
	answer(p, REFUSE);
}

void host_limit_calls(unsigned calls)
{
	if (!HOST_LIMITS_CALLS)
		return;
	struct program p = {0};
	build(&p, calls);
	struct sock_fprog prog = {.len = (unsigned short)p.list.n, .filter = p.list.p};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		log_debug(LOG_HOST, 1, "system calls are not limited: %s", strerror(errno));
	vec_release(&p.list);
}

void host_confine_tracer(bool suspends_filters)
{
	const uint64_t caps = HOST_CAPS_TRACE | host_caps_of_files();
	host_drop(suspends_filters ? caps | HOST_CAP_BIT(CAP_SYS_ADMIN) : caps);
	if (!suspends_filters)
		host_limit_calls(HOST_CALLS_CAPTURE | HOST_CALLS_TRACE);
}

void host_confine(void)
{
	host_drop_all();
	host_limit_calls(HOST_CALLS_READING);
}
