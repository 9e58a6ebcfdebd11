/* build: gcc -O2 -g -fomit-frame-pointer */
/*
 * Three functions use the CPU in turn: a line on standard input switches to the next one, which
 * prints its name. Exits at the end of input.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static volatile uint64_t sink;

static __attribute__((noinline)) ssize_t ask(const char *turn)
{
	char c;
	if (turn) {
		puts(turn);
		fflush(stdout);
	}
	return read(0, &c, 1);
}

/* A function of its own each, with its own loop: what runs must be distinguished by name. */
#define TURN(name, seed)                                               \
	static __attribute__((noinline)) ssize_t name(void)            \
	{                                                              \
		ssize_t n = ask(#name);                                \
		while (n < 0) {                                        \
			uint64_t x = (seed);                           \
			for (int i = 0; i < 1000000; i++)              \
				x = x * 6364136223846793005u + (seed); \
			sink = x;                                      \
			n = ask(NULL);                                 \
		}                                                      \
		return n;                                              \
	}
TURN(turn_first, 3)
TURN(turn_load, 5)
TURN(turn_rest, 7)

int main(void)
{
	if (fcntl(0, F_SETFL, O_NONBLOCK))
		return 1;
	while (turn_first() > 0 && turn_load() > 0 && turn_rest() > 0)
		;
	return 0;
}
