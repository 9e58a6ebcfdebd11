/* build: gcc -O2 -fomit-frame-pointer -pthread */
/* also lives_fp: gcc -O2 -fno-omit-frame-pointer -pthread */
/* libs: -ldl */
/*
 * Process life cycles. First argument:
 *	forks N     N children of a few milliseconds each, one after the other
 *	exec        burns 0.3 s in before_exec, executes itself as "after", burns 0.3 s there
 *	threads N   N threads that live at the same time, each burning a little, for 2 s
 *	churn       threads of 5 milliseconds, 200 of them, one after the other
 *	deep N      recursion N deep, burning at the bottom for 1.5 s
 *	idle        sleeps 300 s
 *	dlopen LIB  opens LIB and burns in its plugin_burn for 1 s
 *	unlink      removes its own file, burns 1.5 s in after_unlink
 *	burn S      S seconds in just_burn
 *	doze S      for S seconds, a quarter of them in just_burn
 *	family N    N children at once, each 0.06 s at the bottom of a deep stack
 *	bigframe S  S seconds in frame_burn, called by big_frame with a frame of 80 KiB
 *	mainexits   the first thread ends; another one burns 1 s in thread_burn after that
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline __attribute__((always_inline)) void burn_for(double s)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(s * 1e9);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 2000; i++)
			sink = sink * 3 + 1;
}

/* The comment in the code keeps equal functions from becoming one. */
#define BURNER(name)                                         \
	static __attribute__((noinline)) void name(double s) \
	{                                                    \
		burn_for(s);                                 \
		__asm__ volatile("/* " #name " */");         \
	}
BURNER(just_burn)
BURNER(child_burn)
BURNER(before_exec)
BURNER(after_exec)
BURNER(thread_burn)
BURNER(after_unlink)
BURNER(bottom_burn)
BURNER(frame_burn)

#define FRAME_BYTES (80 * 1024)

__attribute__((noinline)) static void big_frame(double s)
{
	volatile char frame[FRAME_BYTES];
	memset((char *)frame, 1, sizeof(frame));
	frame_burn(s);
	sink += (uint64_t)frame[FRAME_BYTES / 2];
}

__attribute__((noinline)) static void calls_big_frame(double s)
{
	big_frame(s);
	sink++;
}

static void *burning_thread(void *arg)
{
	thread_burn(*(double *)arg);
	return NULL;
}

/* Burns once the first thread is a zombie, so that all of its samples come after that. */
static void *pending_free_thread(void *arg)
{
	char state = 0;
	while (state != 'Z') {
		FILE *f = fopen("/proc/self/stat", "r");
		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			abort();
		fclose(f);
	}
	thread_burn(*(double *)arg);
	return NULL;
}

static double bottom_seconds = 1.5;

static __attribute__((noinline)) int go_deeper(int n)
{
	char space[64];
	memset(space, n, sizeof(space));
	__asm__ volatile("" : : "r"(space) : "memory");
	if (n == 0)
		bottom_burn(bottom_seconds);
	else
		n += go_deeper(n - 1);
	__asm__ volatile("" : "+r"(n));
	return n + space[3];
}

static int run_doze(int s)
{
	for (int i = 0; i < s * 25; i++) {
		just_burn(0.01);
		usleep(30000);
	}
	return 0;
}

static int run_forks(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			child_burn(0.004 + i % 10 * 0.001);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}

/* What is learned from the first children is applied while the others are being born. */
static int run_family(int n)
{
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			bottom_seconds = 0.06;
			_exit(go_deeper(300) == 42);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int run_pending_frees(void)
{
	static double s = 1.0;
	pthread_t t;
	pthread_create(&t, NULL, pending_free_thread, &s);
	pthread_exit(NULL);
}

static int run_threads(int n)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	double s = 2.0 / n;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], &attr, burning_thread, &s);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 0;
}

static int run_churn(void)
{
	double s = 0.005;
	for (int i = 0; i < 200; i++) {
		pthread_t t;
		pthread_create(&t, NULL, burning_thread, &s);
		pthread_join(t, NULL);
	}
	return 0;
}

static int run_dlopen(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	void (*fn)(double) = lib ? (void (*)(double))dlsym(lib, "plugin_burn") : NULL;
	if (!fn) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	fn(1.0);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "burn";
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	if (!strcmp(what, "forks"))
		return run_forks(n);
	if (!strcmp(what, "family"))
		return run_family(n);
	if (!strcmp(what, "mainexits"))
		return run_pending_frees();
	if (!strcmp(what, "threads"))
		return run_threads(n);
	if (!strcmp(what, "churn"))
		return run_churn();
	if (!strcmp(what, "deep"))
		return go_deeper(n) == 42;
	if (!strcmp(what, "dlopen"))
		return run_dlopen(argv[2]);
	if (!strcmp(what, "doze"))
		return run_doze(n);
	if (!strcmp(what, "idle"))
		return (int)sleep(300);
	if (!strcmp(what, "exec")) {
		before_exec(0.3);
		execl("/proc/self/exe", "after", "after", (char *)NULL);
		return 1;
	}
	if (!strcmp(what, "after")) {
		after_exec(0.3);
		return 0;
	}
	if (!strcmp(what, "unlink")) {
		unlink(argv[0]);
		after_unlink(1.5);
		return 0;
	}
	if (!strcmp(what, "bigframe")) {
		calls_big_frame(argc > 2 ? strtod(argv[2], NULL) : 1);
		return 0;
	}
	just_burn(argc > 2 ? strtod(argv[2], NULL) : 1);
	return 0;
}
