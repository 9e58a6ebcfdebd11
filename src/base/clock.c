/* Clocks, durations and time stamps; see clock.h. */
#include "base/base.h"
#include "base/clock.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/text/num.h"

#define MOMENT_TRIES 4

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	if (clock_gettime(id, &ts))
		BUG("clock %d does not tell the time", (int)id);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_SEC + ts.tv_nsec;
}

uint64_t clock_process_cpu_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_thread_cpu_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_mono_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	unsigned cpu;
	uint64_t ticks = __rdtscp(&cpu);
	_mm_lfence();
	return ticks;
#elif defined(__aarch64__)
	uint64_t ticks;
	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(ticks)::"memory");
	return ticks;
#else
#error "no time stamp counter known"
#endif
}

struct clock_moment clock_moment_now(void)
{
	struct clock_moment best = {0};
	uint64_t closest = UINT64_MAX;
	for (unsigned i = 0; i < MOMENT_TRIES; i++) {
		uint64_t start = clock_ticks();
		uint64_t ns = clock_mono_ns();
		uint64_t end = clock_ticks();
		if (end - start >= closest)
			continue;
		closest = end - start;
		best = (struct clock_moment){start + (end - start) / 2, ns};
	}
	return best;
}

int64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

struct duration_unit {
	struct sv name;
	uint64_t ns;
};

/* From large to small; "m" is a minute, as in sleep(1) and systemd. */
static const struct duration_unit units[] = {
	{{"h", 1}, 3600 * NS_PER_SEC},  {{"m", 1}, 60 * NS_PER_SEC}, {{"s", 1}, NS_PER_SEC},
	{{"ms", 2}, NS_PER_MS},         {{"us", 2}, NS_PER_US},      {{"ns", 2}, 1},
	{{"d", 1}, 86400 * NS_PER_SEC}, /* only for parsing, therefore last */
};

static const struct duration_unit *find_unit(struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (sv_eq(units[i].name, name))
			return &units[i];
	return NULL;
}

bool clock_parse_duration(struct sv s, uint64_t *ret_ns)
{
	uint64_t sum_ns = 0;
	uint64_t last_unit_ns = UINT64_MAX;
	bool is_first = true;
	if (!s.n)
		return false;
	while (s.n) {
		struct sv digits = sv_take(&s, "0123456789.");
		struct sv name = sv_take(&s, "dhmnsu");
		if (!name.n && is_first && !s.n)
			name = SV("s");
		const struct duration_unit *unit = find_unit(name);
		uint64_t part_ns;
		if (!unit || unit->ns >= last_unit_ns ||
		    !num_parse_scaled(digits, unit->ns, &part_ns))
			return false;
		if (__builtin_add_overflow(sum_ns, part_ns, &sum_ns) || sum_ns > INT64_MAX)
			return false;
		last_unit_ns = unit->ns;
		is_first = false;
	}
	*ret_ns = sum_ns;
	return true;
}

/* Floor division: stamps before 1970 are rare but must not be wrong. */
static time_t whole_seconds(int64_t real_ns)
{
	int64_t sec = real_ns / (int64_t)NS_PER_SEC;
	return (time_t)(real_ns % (int64_t)NS_PER_SEC < 0 ? sec - 1 : sec);
}

#define TIME_MAX 32

void clock_add_iso_utc(struct buf *to, int64_t real_ns)
{
	time_t sec = whole_seconds(real_ns);
	struct tm tm = {0};
	if (!gmtime_r(&sec, &tm))
		BUG("year out of range");
	to->n += strftime(buf_reserve(to, TIME_MAX), TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static struct tm local_time(int64_t real_ns)
{
	time_t sec = whole_seconds(real_ns);
	struct tm tm = {0};
	if (!localtime_r(&sec, &tm))
		BUG("year out of range");
	return tm;
}

void clock_add_local(struct buf *to, int64_t real_ns)
{
	struct tm tm = local_time(real_ns);
	to->n += strftime(buf_reserve(to, TIME_MAX), TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm);
}

void clock_add_stamp(struct buf *to, int64_t real_ns)
{
	struct tm tm = local_time(real_ns);
	to->n += strftime(buf_reserve(to, TIME_MAX), TIME_MAX, "%Y%m%d-%H%M%S", &tm);
}
