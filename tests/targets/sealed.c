/*
 * Enters seccomp, allocates for SECONDS of CPU time, and prints "done".
 *
 *	sealed MODE SECONDS
 * filter: any system call that it does not need kills it; strict: SECCOMP_MODE_STRICT by prctl,
 * which also forbids the time stamp counter; strict-syscall: the same by the seccomp system call.
 */
/* build: gcc -O2 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *volatile kept;

__attribute__((noinline)) static void allocate(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		kept = malloc((size_t)(1 + i % 500));
		free(kept);
	}
}

static int shut(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof(f) / sizeof(*f), f};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

int main(int argc, char **argv)
{
	/* 1 is about a second, by count: there are no clocks here */
	long rounds = (long)(50000000 * (argc > 2 ? strtod(argv[2], NULL) : 1));
	const char *mode = argc > 1 ? argv[1] : "";

	allocate(20000);
	if (!strcmp(mode, "strict") ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
	    : !strcmp(mode, "strict-syscall")
		    ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)
		    : shut())
		return 2;
	if (write(1, "sealed\n", 7) != 7)
		return 3;
	allocate(rounds);
	if (write(1, "done\n", 5) != 5)
		return 3;
	syscall(SYS_exit, 0);
}
