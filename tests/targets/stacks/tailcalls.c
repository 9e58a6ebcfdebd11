/* build: gcc -O2 -g -fomit-frame-pointer */
/* also tailcalls_clang: clang -O2 -g -fomit-frame-pointer */
/*
 * Tail calls whose chains are known: each leaf_* is reached by one chain of calls, and spins. Runs
 * for ARG seconds and sleeps now and then, in the leaf of the moment.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, used))
volatile uint64_t sink;
volatile int which;
static double until;

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static NOINLINE void sleep_sometimes(void)
{
	static unsigned nr;
	if (++nr % 16 == 0)
		usleep(2000);
}

/* One leaf per scenario: its name is the true chain. */
#define SPIN(name)                                           \
	NOINLINE uint64_t name(uint64_t n)                   \
	{                                                    \
		uint64_t v = n;                              \
		for (uint64_t i = 0; i < 200000; i++)        \
			v = v * 6364136223846793005u + sink; \
		sleep_sometimes();                           \
		return v;                                    \
	}

SPIN(leaf_plain)
SPIN(leaf_one)
SPIN(leaf_three)
SPIN(leaf_two_ways)
SPIN(leaf_indirect)
SPIN(leaf_then_indirect)
SPIN(leaf_either_x)
SPIN(leaf_either_y)
SPIN(leaf_deep)
SPIN(leaf_switch)
SPIN(leaf_cold)

/* called normally */
NOINLINE uint64_t call_plain(uint64_t n)
{
	return leaf_plain(n) + 1;
}
/* one tail call */
NOINLINE uint64_t tail_one(uint64_t n)
{
	return leaf_one(n + 3);
}
/* three in a row */
NOINLINE uint64_t tail_c(uint64_t n)
{
	return leaf_three(n * 5);
}
NOINLINE uint64_t tail_b(uint64_t n)
{
	return tail_c(n + 1);
}
NOINLINE uint64_t tail_a(uint64_t n)
{
	return tail_b(n ^ 7);
}
/* two ways: which of them was taken is not known */
NOINLINE uint64_t way_1(uint64_t n)
{
	return leaf_two_ways(n + 1);
}
NOINLINE uint64_t way_2(uint64_t n)
{
	return leaf_two_ways(n + 2);
}
NOINLINE uint64_t two_ways(uint64_t n)
{
	return which & 1 ? way_1(n) : way_2(n);
}
/* through a pointer */
uint64_t (*volatile pointer)(uint64_t) = leaf_indirect;
NOINLINE uint64_t tail_pointer(uint64_t n)
{
	return pointer(n + 1);
}
uint64_t (*volatile pointer2)(uint64_t) = leaf_then_indirect;
NOINLINE uint64_t to_pointer(uint64_t n)
{
	return pointer2(n + 9);
}
NOINLINE uint64_t tail_to_pointer(uint64_t n)
{
	return to_pointer(n * 3);
}
/* one function, several ends */
NOINLINE uint64_t either(uint64_t n)
{
	return which & 2 ? leaf_either_x(n) : leaf_either_y(n + 1);
}
/* a tail call below a normal one */
NOINLINE uint64_t deep_tail(uint64_t n)
{
	return leaf_deep(n - 1);
}
NOINLINE uint64_t deep_mid(uint64_t n)
{
	return deep_tail(n) ^ 1;
}
NOINLINE uint64_t deep_top(uint64_t n)
{
	return deep_mid(n + 4);
}
/* a jump table and a tail call */
NOINLINE uint64_t with_switch(uint64_t n)
{
	switch (which & 7) {
	case 0:
		sink += 1;
		break;
	case 1:
		sink += n;
		break;
	case 2:
		sink ^= 3;
		break;
	case 3:
		sink -= n * 3;
		break;
	case 4:
		sink |= 1;
		break;
	case 5:
		sink += n / 3;
		break;
	case 6:
		sink += n << 3;
		break;
	default:
		sink = 9;
	}
	return leaf_switch(n);
}
/* the tail call is in the unlikely part */
NOINLINE uint64_t has_cold(uint64_t n)
{
	if (__builtin_expect(n > 1, 0)) {
		sink = 3;
		return leaf_cold(n);
	}
	return n * 3;
}

NOINLINE int round_of(void)
{
	uint64_t v = call_plain(2) + 1;
	v += tail_one(v);
	v += tail_a(v);
	v += two_ways(v);
	v += tail_pointer(v);
	v += tail_to_pointer(v);
	v += either(v);
	v += deep_top(v) + 1;
	v += with_switch(v);
	v += has_cold(v | 2);
	which++;
	sink = v;
	return now() < until;
}

int main(int argc, char **argv)
{
	until = now() + (argc > 1 ? atof(argv[1]) : 2);
	while (round_of())
		;
	return 0;
}
