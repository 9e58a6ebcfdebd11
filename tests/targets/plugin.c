/* build: gcc -O2 -fomit-frame-pointer -shared -fPIC */
/* A library for "lives dlopen": uses S seconds of CPU time in plugin_burn. */
#include <stdint.h>
#include <time.h>

void plugin_burn(double s);

static volatile uint64_t sink;

static __attribute__((noinline)) void plugin_inner(int n)
{
	for (int i = 0; i < n; i++)
		sink = sink * 3 + 1;
}

void plugin_burn(double s)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	double end = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9 + s;
	do {
		plugin_inner(2000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9 < end);
}
