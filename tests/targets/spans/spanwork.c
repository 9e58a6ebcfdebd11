/* build: gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/*
 * Known numbers of calls to functions that sleep, compute, lock and recurse. The program measures
 * each call and prints "NAME calls N wall NS" at its end. ARG is the number of rounds. With a second
 * ARG, two threads a CPU call op_quick for that many ms: they are preempted wherever they are.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&ts, NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;
static jmp_buf out;

__attribute__((noinline)) void op_sleep(void)
{
	sleep_ms(5);
	sink++;
}

__attribute__((noinline)) void op_compute(void)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + 2000000;
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		sink++;
}

__attribute__((noinline)) void op_mixed(int is_slow)
{
	op_compute();
	sleep_ms(is_slow ? 60 : 3);
	sink++;
}

/* Waits for a lock that another thread holds for 20 ms. */
__attribute__((noinline)) void op_lock(void)
{
	pthread_mutex_lock(&lock);
	sink++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) int op_recursive(int depth)
{
	if (!depth) {
		sleep_ms(1);
		return 1;
	}
	return op_recursive(depth - 1) + 1;
}

__attribute__((noinline)) void op_after(int ms)
{
	sleep_ms(ms);
	sink++;
}

/* Ends in a jump to op_after: both return to the same caller at once. */
__attribute__((noinline, optimize("optimize-sibling-calls"))) void op_tail(int ms)
{
	sleep_ms(ms);
	op_after(2 * ms);
}

__attribute__((noinline)) void op_jump(void)
{
	sink++;
	longjmp(out, 1);
}

__attribute__((noinline)) void op_begin(void)
{
	sink++;
}

__attribute__((noinline)) void op_end(void)
{
	sink += 2;
}

/*
 * A static probe of provider "spanwork" as <sys/sdt.h> writes it: a nop, and in a section that is
 * not loaded its address, that of .stapsdt.base, that of the counter of listeners, three texts.
 */
#define STATIC_PROBE(name)                                                    \
	__asm__ volatile("990: nop\n"                                         \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"       \
			 ".balign 4\n"                                        \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"               \
			 "991: .asciz \"stapsdt\"\n"                          \
			 "992: .balign 4\n"                                   \
			 "993: .8byte 990b, _.stapsdt.base, listeners\n"      \
			 ".asciz \"spanwork\"\n"                              \
			 ".asciz \"" name "\"\n"                              \
			 ".asciz \"\"\n"                                      \
			 "994: .balign 4\n"                                   \
			 ".popsection\n"                                      \
			 ".ifndef _.stapsdt.base\n"                           \
			 ".pushsection .stapsdt.base, \"aG\", \"progbits\", " \
			 ".stapsdt.base, comdat\n"                            \
			 ".weak _.stapsdt.base\n"                             \
			 ".hidden _.stapsdt.base\n"                           \
			 "_.stapsdt.base: .space 1\n"                         \
			 ".popsection\n"                                      \
			 ".endif" ::                                          \
				 : "memory")

/* Raised by whoever listens to the probes; without, they are jumped over. */
__attribute__((section(".probes"), used)) volatile unsigned short listeners;

/* Two ways begin it, one ends it. */
__attribute__((noinline)) void op_static(int is_odd)
{
	if (!listeners) {
		sleep_ms(2);
		return;
	}
	if (is_odd) {
		STATIC_PROBE("request__start");
		sink++;
	} else {
		STATIC_PROBE("request__start");
		sink--;
	}
	sleep_ms(2);
	STATIC_PROBE("request__done");
}

static void *hold(void *arg)
{
	pthread_barrier_t *go = arg;
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(go);
	sleep_ms(20);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void contend(void)
{
	pthread_t t;
	pthread_barrier_t go;
	pthread_barrier_init(&go, NULL, 2);
	pthread_create(&t, NULL, hold, &go);
	pthread_barrier_wait(&go);
	op_lock();
	pthread_join(t, NULL);
}

static uint64_t quick_end_ns;

__attribute__((noinline)) int op_quick(int n)
{
	for (int i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(i));
	return n;
}

static void *call_quick(void *nr_calls)
{
	while (now_ns(CLOCK_MONOTONIC) < quick_end_ns)
		for (int i = 0; i < 20; i++)
			*(uint64_t *)nr_calls += op_quick(3000) > 0;
	return NULL;
}

static int quick(long ms)
{
	enum { MAX = 64 };
	pthread_t t[MAX];
	uint64_t nr[MAX] = {0};
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	n = n < MAX ? n : MAX;
	quick_end_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000;
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], NULL, call_quick, &nr[i]);
	for (long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (long i = 1; i < n; i++)
		nr[0] += nr[i];
	printf("op_quick calls %llu wall 0\n", (unsigned long long)nr[0]);
	return 0;
}

static uint64_t walls[8];
static const char *const names[] = {"op_sleep",     "op_compute",       "op_mixed", "op_lock",
				    "op_recursive", "op_begin..op_end", "static",   "op_tail"};

#define TIMED(i, call)                                    \
	do {                                              \
		uint64_t t0 = now_ns(CLOCK_MONOTONIC);    \
		call;                                     \
		walls[i] += now_ns(CLOCK_MONOTONIC) - t0; \
	} while (0)

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
	if (argc > 2)
		return quick(strtol(argv[2], NULL, 10));
	for (volatile int i = 0; i < rounds; i++) { /* kept across longjmp */
		TIMED(0, op_sleep());
		TIMED(1, op_compute());
		TIMED(2, op_mixed(i == rounds / 2));
		uint64_t before = walls[3];
		contend();
		(void)before;
		TIMED(4, sink += (uint64_t)op_recursive(100));
		TIMED(5, (op_begin(), sleep_ms(2), op_end()));
		TIMED(6, op_static(i & 1));
		TIMED(7, op_tail(1));
		if (!setjmp(out))
			op_jump();
	}
	for (int i = 0; i < 8; i++)
		printf("%s calls %d wall %llu\n", names[i], rounds, (unsigned long long)walls[i]);
	return 0;
}
