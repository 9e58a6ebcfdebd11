/* build: gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/*
 * Makes known numbers of system calls, page faults and context switches, each from a function named
 * after it. Prints its own counts and those of the kernel:
 *
 *	hits [WHAT...]     reads writes syncs futexes faults switches; without arguments all of them
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_READS    50000
#define NR_WRITES   3000
#define NR_SYNCS    7
#define NR_AGAIN    1100 /* futex waits on a word that has changed */
#define NR_TIMEOUT  20
#define NR_WAKES    5000
#define NR_FAULTS   200000
#define NR_SWITCHES 400

static void must(int is_fine, const char *what)
{
	if (is_fine)
		return;
	perror(what);
	exit(1);
}

static long futex(uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, val, timeout, NULL, 0);
}

static __attribute__((noinline)) void do_reads(void)
{
	char byte[3];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	must(fd >= 0, "/dev/zero");
	for (int i = 0; i < NR_READS; i++)
		must(read(fd, byte, sizeof(byte)) == sizeof(byte), "read");
	for (int i = 0; i < 5; i++)
		must(read(-1, byte, 1) < 0, "read of nothing");
	close(fd);
}

static __attribute__((noinline)) void do_writes(int fd)
{
	char block[100] = {0};
	for (int i = 0; i < NR_WRITES; i++)
		must(write(fd, block, sizeof(block)) == sizeof(block), "write");
}

static __attribute__((noinline)) void do_syncs(int fd)
{
	for (int i = 0; i < NR_SYNCS; i++)
		must(!fsync(fd) && !fdatasync(fd), "fsync");
}

static __attribute__((noinline)) void do_waits(void)
{
	uint32_t word = 1;
	struct timespec brief = {.tv_nsec = 1000000};
	for (int i = 0; i < NR_AGAIN; i++)
		must(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL) && errno == EAGAIN, "futex");
	for (int i = 0; i < NR_TIMEOUT; i++)
		must(futex(&word, FUTEX_WAIT_PRIVATE, 1, &brief) && errno == ETIMEDOUT, "futex");
}

static __attribute__((noinline)) void do_wakes(void)
{
	uint32_t word = 0;
	for (int i = 0; i < NR_WAKES; i++)
		must(!futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL), "futex");
}

static __attribute__((noinline)) void do_faults(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t nr = 20000;
	for (size_t done = 0; done < NR_FAULTS; done += nr) {
		char *p = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		must(p != MAP_FAILED, "mmap");
		madvise(p, nr * page, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < nr; i++)
			p[i * page] = 1;
		munmap(p, nr * page);
	}
}

static __attribute__((noinline)) void do_switches(void)
{
	struct timespec brief = {.tv_nsec = 100000};
	for (int i = 0; i < NR_SWITCHES; i++)
		(void)nanosleep(&brief, NULL);
}

static int wants(int argc, char **argv, const char *what)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], what))
			return 1;
	return argc < 2;
}

int main(int argc, char **argv)
{
	struct rusage before;
	struct rusage after;
	char name[] = "hits.XXXXXX";
	int fd = mkstemp(name);
	must(fd >= 0, name);
	unlink(name);
	getrusage(RUSAGE_SELF, &before);
	if (wants(argc, argv, "reads"))
		do_reads();
	if (wants(argc, argv, "writes"))
		do_writes(fd);
	if (wants(argc, argv, "syncs"))
		do_syncs(fd);
	if (wants(argc, argv, "futexes")) {
		do_waits();
		do_wakes();
	}
	if (wants(argc, argv, "faults"))
		do_faults();
	if (wants(argc, argv, "switches"))
		do_switches();
	getrusage(RUSAGE_SELF, &after);
	printf("minor %ld major %ld voluntary %ld involuntary %ld all-minor %ld all-voluntary %ld\n",
	       after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt,
	       after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw,
	       after.ru_minflt, after.ru_nvcsw);
	return 0;
}
