/* build: gcc -O1 -g */
/* Mixed load until it is killed: runs, reads, touches new memory, sleeps. mixedload SECONDS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NR_BYTES (256 << 10)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static void just_burn(void)
{
	static volatile unsigned sum;
	for (int i = 0; i < 4000000; i++)
		sum += (unsigned)i;
}

__attribute__((noinline)) static void read_itself(int fd)
{
	char buf[4096];
	if (pread(fd, buf, sizeof(buf), 0) != sizeof(buf))
		exit(1);
	usleep(1000);
}

__attribute__((noinline)) static void touch_memory(void)
{
	char *p = mmap(NULL, NR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(1);
	for (int i = 0; i < NR_BYTES; i += 4096)
		p[i] = 1;
	munmap(p, NR_BYTES);
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 10);
	int fd = open("/proc/self/exe", O_RDONLY);
	while (fd >= 0 && now() < end) {
		just_burn();
		read_itself(fd);
		touch_memory();
	}
	return fd < 0;
}
