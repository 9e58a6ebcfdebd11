/*
 * Stacks that are hard to unwind: a recursion DEPTH frames deep, interrupted continuously by a
 * signal whose handler also uses CPU time; with "own" the handler runs on an alternate stack.
 *
 *	interrupted SECONDS DEPTH [own]
 */
/* build: gcc -O2 -fomit-frame-pointer */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn(int n)
{
	for (int i = 0; i < n; i++)
		sink += (unsigned long)i * 7;
}

__attribute__((noinline)) static void in_handler(int signo)
{
	burn(20000);
	sink += (unsigned long)signo;
}

static void handler(int signo)
{
	in_handler(signo);
	sink++;
}

__attribute__((noinline)) static void recurse(int depth)
{
	volatile char pad[100];
	pad[depth % 100] = (char)depth;
	if (depth)
		recurse(depth - 1);
	else
		burn(50000);
	sink += (unsigned long)pad[depth % 100];
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static char own_stack[65536];
	stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};
	struct sigaction action = {.sa_handler = handler, .sa_flags = argc > 3 ? SA_ONSTACK : 0};
	struct itimerval every = {{0, 500}, {0, 500}};

	if (argc < 3)
		return 2;
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (double end = now_s() + atof(argv[1]); now_s() < end;)
		recurse(atoi(argv[2]));
	return 0;
}
