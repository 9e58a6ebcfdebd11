/* build: gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls */
/*
 * Reads and writes known numbers of bytes in named functions, then faults in known numbers of
 * pages. Prints the kernel's counts.
 *
 *	iowork DIR [io|faults]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096
static char block[65536];

static void must(int is_fine, const char *what)
{
	if (is_fine)
		return;
	perror(what);
	exit(1);
}

__attribute__((noinline)) static void write_log(int fd)
{
	for (int i = 0; i < 2000; i++)
		must(write(fd, block, 100) == 100, "write");
}

__attribute__((noinline)) static void store_rows(int fd)
{
	for (int i = 0; i < 500; i++)
		must(pwrite(fd, block, 8192, (off_t)i * 8192) == 8192, "pwrite");
}

__attribute__((noinline)) static void load_rows(int fd)
{
	for (int i = 0; i < 1000; i++)
		must(pread(fd, block, 4096, (off_t)i * 4096) == 4096, "pread");
}

/* Asks for 64 KiB at the end of the file and gets 100 bytes each time. */
__attribute__((noinline)) static void read_short(int fd)
{
	for (int i = 0; i < 300; i++)
		must(pread(fd, block, sizeof(block), 199900) == 100, "short read");
}

__attribute__((noinline)) static void commit(int fd)
{
	for (int i = 0; i < 20; i++)
		must(!fsync(fd), "fsync");
}

__attribute__((noinline)) static void ping(int to, int from)
{
	for (int i = 0; i < 400; i++) {
		must(send(to, block, 700, 0) == 700, "send");
		must(recv(from, block, 700, MSG_WAITALL) == 700, "recv");
	}
}

/* A file that lives for less than a millisecond has a name all the same. */
__attribute__((noinline)) static void brief(const char *dir)
{
	char name[512];
	snprintf(name, sizeof(name), "%s/brief.tmp", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0, name);
	must(write(fd, block, 321) == 321, "write");
	close(fd);
	unlink(name);
}

__attribute__((noinline)) static void ship(int out, int in)
{
	off_t at = 0;
	for (int i = 0; i < 50; i++) {
		at = 0;
		must(sendfile(out, in, &at, 10000) == 10000, "sendfile");
	}
}

static int open_in(const char *dir, const char *leaf)
{
	char name[512];
	snprintf(name, sizeof(name), "%s/%s", dir, leaf);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0, name);
	return fd;
}

static void do_io(const char *dir)
{
	int log = open_in(dir, "work.log");
	int db = open_in(dir, "work.db");
	int copy = open_in(dir, "work.copy");
	int pair[2];
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	write_log(log);
	read_short(log);
	store_rows(db);
	load_rows(db);
	commit(db);
	ping(pair[0], pair[1]);
	ship(copy, db);
	brief(dir);
	must(read(pair[0], block, 0) == 0 && read(-1, block, 1) < 0, "read of nothing");
}

__attribute__((noinline)) static void touch_anon(size_t nr)
{
	char *p = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p != MAP_FAILED, "mmap");
	madvise(p, nr * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < nr; i++)
		p[i * PAGE] = 1;
	munmap(p, nr * PAGE);
}

__attribute__((noinline)) static long touch_file(int fd, size_t nr)
{
	long sum = 0;
	must(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
	char *p = mmap(NULL, nr * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "mmap");
	madvise(p, nr * PAGE, MADV_RANDOM);
	for (size_t i = 0; i < nr; i++)
		sum += p[i * 7 % nr * PAGE];
	munmap(p, nr * PAGE);
	return sum;
}

static void do_faults(const char *dir)
{
	int fd = open_in(dir, "mapped.db");
	for (int i = 0; i < 2000; i++)
		must(write(fd, block, PAGE) == PAGE, "write");
	for (int i = 0; i < 10; i++)
		touch_anon(20000);
	printf("sum %ld\n", touch_file(fd, 2000));
}

static void say_counts(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/io", "r");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
	if (f)
		fclose(f);
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	printf("minflt: %ld\nmajflt: %ld\n", u.ru_minflt, u.ru_majflt);
}

int main(int argc, char **argv)
{
	must(argc > 1, "usage: iowork DIR [io|faults]");
	memset(block, 'x', sizeof(block));
	if (argc < 3 || !strcmp(argv[2], "io"))
		do_io(argv[1]);
	if (argc < 3 || !strcmp(argv[2], "faults"))
		do_faults(argv[1]);
	say_counts();
	return 0;
}
