/* build: gcc -O2 -g -fno-ipa-icf -pthread */
/*
 * A tree of short processes that allocate, each created in another way, and a thread that executes
 * a program while other threads of its process wait. Checks each exit status; prints the calls of
 * malloc in by_child() and by_program().
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS         4
#define BLOCKS         100
#define CHILD_STATUS   3
#define PROGRAM_STATUS 5

extern char **environ;
static char *self;
static int nr_children;
static int nr_programs;

static void allocate(size_t n)
{
	void *p = malloc(n);
	__asm__ volatile("" : : "r"(p) : "memory");
}

__attribute__((noinline)) static void by_child(void)
{
	for (int i = 0; i < BLOCKS; i++)
		allocate(1000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void by_program(void)
{
	for (int i = 0; i < BLOCKS; i++)
		allocate(3000);
	__asm__ volatile("");
}

static void *waits(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void *executes(void *arg)
{
	(void)arg;
	execl(self, self, "program", (char *)NULL);
	_exit(1);
}

static void expect(pid_t pid, int status)
{
	int got;
	if (pid < 0 || waitpid(pid, &got, 0) != pid || !WIFEXITED(got) ||
	    WEXITSTATUS(got) != status) {
		puts("a child ended in another way");
		exit(1);
	}
}

static void forks(void)
{
	pid_t pid = fork();
	if (!pid) {
		by_child();
		_exit(CHILD_STATUS);
	}
	nr_children++;
	expect(pid, CHILD_STATUS);
}

static void spawns(void)
{
	char *argv[] = {self, "program", NULL};
	pid_t pid = -1;
	if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
		pid = -1;
	nr_programs++;
	expect(pid, PROGRAM_STATUS);
}

static void forks_and_executes(void)
{
	pid_t pid = fork();
	if (!pid) {
		by_child();
		execl(self, self, "program", (char *)NULL);
		_exit(1);
	}
	nr_children++;
	nr_programs++;
	expect(pid, PROGRAM_STATUS);
}

static void executes_in_a_thread(void)
{
	pid_t pid = fork();
	if (!pid) {
		pthread_t t;
		for (int i = 0; i < 3; i++)
			pthread_create(&t, NULL, waits, NULL);
		pthread_create(&t, NULL, executes, NULL);
		waits(NULL);
	}
	nr_programs++;
	expect(pid, PROGRAM_STATUS);
}

/* In a thread, as build tools do. */
static void *makes_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		forks();
		spawns();
		forks_and_executes();
		executes_in_a_thread();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	self = argv[0];
	if (argc > 1) {
		by_program();
		return PROGRAM_STATUS;
	}
	pthread_create(&t, NULL, makes_all, NULL);
	pthread_join(t, NULL);
	printf("by_child %d\nby_program %d\n", nr_children * BLOCKS, nr_programs * BLOCKS);
	return 0;
}
