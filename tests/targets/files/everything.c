/* build: gcc -O1 -g -pthread */
/*
 * Waits for the file "go"; then touches 32 MiB of new memory and computes, while a second thread commits
 * to a file; says "done", and waits for the file "end". Prints the number of commits.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NR_BYTES (32 << 20)

static int has(const char *name)
{
	return !access(name, F_OK);
}

static void say(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || close(fd))
		exit(1);
}

__attribute__((noinline)) static void commit(int fd)
{
	if (write(fd, "0123456789", 10) != 10 || fsync(fd))
		exit(1);
}

static void *store(void *nr)
{
	int fd = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
	if (fd < 0)
		exit(1);
	while (!has("stop")) {
		if (has("go")) {
			commit(fd);
			++*(long *)nr;
		}
		usleep(50000);
	}
	return NULL;
}

__attribute__((noinline)) static void grow(void)
{
	char *p = mmap(NULL, NR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || madvise(p, NR_BYTES, MADV_NOHUGEPAGE))
		exit(1);
	for (int i = 0; i < NR_BYTES; i += 4096) {
		p[i] = 1;
		if (i % (1 << 20) == 0)
			usleep(10000);
	}
}

__attribute__((noinline)) static void compute(void)
{
	static volatile unsigned sum;
	struct timespec t;
	do {
		for (int i = 0; i < 1000000; i++)
			sum += (unsigned)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (!t.tv_sec && t.tv_nsec < 500000000);
}

int main(void)
{
	long nr = 0;
	pthread_t t;
	if (pthread_create(&t, NULL, store, &nr))
		return 1;
	say("ready");
	while (!has("go"))
		usleep(10000);
	grow();
	compute();
	say("stop");
	pthread_join(t, NULL);
	say("done");
	while (!has("end"))
		usleep(10000);
	printf("%ld\n", nr);
	return 0;
}
