/* build: gcc -O2 -fno-omit-frame-pointer */
/*
 * Looks to assay like a Java virtual machine: maps a file libjvm.so, runs JIT code without symbols for
 * argv[1] seconds, and answers HotSpot's attach protocol: after SIGQUIT with a file /tmp/.attach_pidPID it
 * listens at /tmp/.java_pidPID, and on "jcmd Compiler.perfmap" writes /tmp/perf-PID.map.
 * argv[2]: deaf (does not listen), old (does not know the command), quit (does not catch SIGQUIT).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static unsigned char *code;
static const char *manner = "";
static volatile sig_atomic_t nr_quits;

static void on_quit(int signal)
{
	(void)signal;
	nr_quits++;
}

static void write_map(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "w");
	if (!f)
		exit(1);
	fprintf(f, "%lx 40 int Fake.burn(int)\n", (unsigned long)code);
	fclose(f);
}

static void answer(int fd)
{
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	char got[256];
	size_t n = 0;
	while (n < sizeof(request)) {
		ssize_t part = read(fd, got + n, sizeof(got) - n);
		if (part <= 0)
			return;
		n += (size_t)part;
	}
	if (memcmp(got, request, sizeof(request)))
		dprintf(fd, "101\nbad request\n");
	else if (!strcmp(manner, "old"))
		dprintf(fd, "1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n");
	else {
		write_map();
		dprintf(fd, "0\n");
	}
}

static void *listener(void *arg)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char asked[64];
	(void)arg;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/.java_pid%d", getpid());
	snprintf(asked, sizeof(asked), "/tmp/.attach_pid%d", getpid());
	while (!nr_quits || access(asked, F_OK) || !strcmp(manner, "deaf"))
		usleep(5000);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(addr.sun_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		exit(1);
	for (int client; (client = accept(fd, NULL, NULL)) >= 0; close(client))
		answer(client);
	return NULL;
}

/* A loop of 2^20 rounds with a frame pointer, copied to where no file is mapped. */
static void compile(void)
{
	static const unsigned char burn[] = {
		0x55, 0x48, 0x89, 0xe5,             /* push %rbp; mov %rsp,%rbp */
		0xb9, 0x00, 0x00, 0x10, 0x00,       /* mov $0x100000,%ecx */
		0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3, /* dec %ecx; jnz -4; pop %rbp; ret */
	};
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		exit(1);
	memcpy(code, burn, sizeof(burn));
}

int main(int argc, char **argv)
{
	char library[256];
	pthread_t thread;
	struct timespec now, end;
	manner = argc > 2 ? argv[2] : "";
	snprintf(library, sizeof(library), "%s/libjvm.so", argc > 3 ? argv[3] : ".");
	int fd = open(library, O_RDONLY);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
		perror(library);
		return 1;
	}
	if (strcmp(manner, "quit"))
		signal(SIGQUIT, on_quit);
	compile();
	if (pthread_create(&thread, NULL, listener, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += argc > 1 ? atoi(argv[1]) : 1;
	do {
		((void (*)(void))(void *)code)();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	return 0;
}
