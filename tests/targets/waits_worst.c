/* build: gcc -O2 -g -fomit-frame-pointer -pthread */
/*
 * Loads to measure the overhead of recording context switches; each prints a line of numbers.
 *	pingpong ROUNDS         two threads on one CPU hand a turn to each other by a condition
 *	                        variable: microseconds a round, switches a second
 *	uniq SECONDS            waits 10,000 times a second, each time on another stack
 *	deep SECONDS DEPTH      waits and computes DEPTH calls deep (worst_deep)
 *	mix SECONDS FRAMES      a mixed load (locks, files, sleeps, pipes) FRAMES calls deep
 *	repeat SECONDS          one thread that blocks again and again at the same place
 */
#include "waits_truth.h"

#include <fcntl.h>
#include <sys/wait.h>

static uint64_t nr_switches(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_nvcsw + use.ru_nivcsw);
}

/* ---- pingpong ---------------------------------------------------------------------------- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static unsigned turn;
static uint64_t nr_rounds = 100000;

static FAR void wait_turn(unsigned side)
{
	while (turn != side)
		pthread_cond_wait(&turn_cond[side], &turn_lock);
	STAY();
}

static FAR void *player(void *arg)
{
	unsigned side = (unsigned)(uintptr_t)arg;
	pin(0);
	for (uint64_t i = 0; i < nr_rounds; i++) {
		pthread_mutex_lock(&turn_lock);
		wait_turn(side);
		turn = !side;
		pthread_cond_signal(&turn_cond[!side]);
		pthread_mutex_unlock(&turn_lock);
	}
	return NULL;
}

static int pingpong(uint64_t rounds)
{
	nr_rounds = rounds;
	pthread_t other;
	uint64_t before = nr_switches();
	uint64_t start_ns = mono_ns();
	pthread_create(&other, NULL, player, (void *)1);
	player((void *)0);
	pthread_join(other, NULL);
	double ns = (double)(mono_ns() - start_ns);
	double nr = (double)(nr_switches() - before);
	printf("%.3f %.0f\n", ns / 1000 / (double)rounds, nr / ns * 1e9);
	return 0;
}

/* ---- unique stacks ----------------------------------------------------------------------- */

static void fork_path(uint64_t path, int depth, void (*leaf)(void));

/* Two ways down a level: the bits of a number choose a path, every number a stack of its own. */
#define WAY(name, salt)                                                    \
	static FAR void name(uint64_t path, int depth, void (*leaf)(void)) \
	{                                                                  \
		volatile uint64_t pad[(salt)];                             \
		pad[0] = path;                                             \
		fork_path(path >> 1, depth - 1, leaf);                     \
		(void)pad[0];                                              \
	}
WAY(way_left, 2)
WAY(way_right, 5)

static void fork_path(uint64_t path, int depth, void (*leaf)(void))
{
	if (!depth)
		leaf();
	else if (path & 1)
		way_left(path, depth, leaf);
	else
		way_right(path, depth, leaf);
	STAY();
}

static FAR void wait_uniq(void)
{
	sleep_us(1);
	STAY();
}

#define UNIQ_LEVELS 20

static uint64_t uniq_end_ns;
static uint64_t nr_uniq;

static FAR void *uniq_thread(void *arg)
{
	uint64_t period_ns = 200000; /* two threads, 10,000 a second in all */
	uint64_t next_ns = mono_ns();
	uint64_t nr = 0;
	while (mono_ns() < uniq_end_ns) {
		fork_path(nr << 1 | (uintptr_t)arg, UNIQ_LEVELS, wait_uniq);
		nr++;
		next_ns += period_ns;
		while (mono_ns() < next_ns)
			;
	}
	__atomic_fetch_add(&nr_uniq, nr, __ATOMIC_RELAXED);
	return NULL;
}

static int uniq(double seconds)
{
	pthread_t other;
	uniq_end_ns = mono_ns() + (uint64_t)(seconds * 1e9);
	pthread_create(&other, NULL, uniq_thread, (void *)1);
	uniq_thread(NULL);
	pthread_join(other, NULL);
	printf("%llu\n", (unsigned long long)nr_uniq);
	return 0;
}

/* ---- deep recursion ---------------------------------------------------------------------- */

static FAR void worst_deep(int depth, void (*leaf)(void))
{
	if (depth > 1)
		worst_deep(depth - 1, leaf);
	else
		leaf();
	STAY();
}

static FAR void wait_deep(void)
{
	sleep_us(500);
	STAY();
}

static FAR void burn_deep(void)
{
	burn_us(500);
	STAY();
}

static int deep(double seconds, int depth)
{
	uint64_t end_ns = mono_ns() + (uint64_t)(seconds * 1e9);
	uint64_t nr = 0;
	for (; mono_ns() < end_ns; nr++) {
		worst_deep(depth, wait_deep);
		worst_deep(depth, burn_deep);
	}
	printf("%llu\n", (unsigned long long)nr);
	return 0;
}

/* ---- the mixed load ---------------------------------------------------------------------- */

static pthread_mutex_t mix_lock = PTHREAD_MUTEX_INITIALIZER;
static int mix_pipe[2];
static int mix_fd;
static int mix_frames = 4;
static volatile bool is_mix_over;

static FAR void mix_locks(void)
{
	pthread_mutex_lock(&mix_lock);
	burn_us(5);
	pthread_mutex_unlock(&mix_lock);
	STAY();
}

static FAR void mix_sleep(void)
{
	sleep_us(1);
	STAY();
}

static FAR void mix_yield(void)
{
	sched_yield();
	STAY();
}

static FAR void mix_write(void)
{
	(void)!write(mix_pipe[1], "x", 1);
	STAY();
}

static FAR void mix_read(void)
{
	char c;
	(void)!read(mix_pipe[0], &c, 1);
	STAY();
}

static FAR void mix_fsync(void)
{
	(void)!pwrite(mix_fd, "x", 1, 0);
	fdatasync(mix_fd);
	STAY();
}

/* main's thread: start, main, the loop, the work; so 4 frames are no recursion at all. */
static FAR void mix_down(int frames, void (*work)(void))
{
	if (frames > 4)
		mix_down(frames - 1, work);
	else
		work();
	STAY();
}

static FAR void *mix_thread(void *arg)
{
	static void (*const works[])(void) = {mix_locks, mix_locks, mix_sleep,
					      mix_write, mix_read,  mix_fsync};
	void (*work)(void) = works[(uintptr_t)arg];
	while (!is_mix_over) {
		mix_down(mix_frames, work);
		if (work == mix_write)
			mix_down(mix_frames, mix_yield);
	}
	if (work == mix_write)
		(void)!write(mix_pipe[1], "xx", 2);
	return NULL;
}

static int mix(double seconds, int frames)
{
	pthread_t t[6];
	mix_frames = frames;
	mix_fd = open("waits.mix", O_RDWR | O_CREAT, 0644);
	if (pipe(mix_pipe) || mix_fd < 0)
		return 1;
	uint64_t before = nr_switches();
	for (uintptr_t i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, mix_thread, (void *)i);
	sleep_us((uint64_t)(seconds * 1e6));
	is_mix_over = true;
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	printf("%llu\n", (unsigned long long)(nr_switches() - before));
	return 0;
}

/* ---- the same place again ---------------------------------------------------------------- */

static FAR void wait_again(int fd)
{
	char c;
	(void)!read(fd, &c, 1);
	STAY();
}

static FAR void *again_thread(void *arg)
{
	pin(0);
	while (!is_mix_over)
		wait_again(mix_pipe[0]);
	return arg;
}

static int repeat(double seconds)
{
	pthread_t t;
	if (pipe(mix_pipe))
		return 1;
	pin(0);
	uint64_t before = nr_switches();
	pthread_create(&t, NULL, again_thread, NULL);
	for (uint64_t end_ns = mono_ns() + (uint64_t)(seconds * 1e9); mono_ns() < end_ns;) {
		mix_write();
		mix_yield();
	}
	is_mix_over = true;
	mix_write();
	pthread_join(t, NULL);
	printf("%llu\n", (unsigned long long)(nr_switches() - before));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	double arg = argc > 2 ? strtod(argv[2], NULL) : 2;
	int other = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
	if (!strcmp(mode, "pingpong"))
		return pingpong((uint64_t)(argc > 2 ? arg : 100000));
	if (!strcmp(mode, "uniq"))
		return uniq(arg);
	if (!strcmp(mode, "deep"))
		return deep(arg, other ? other : 1000);
	if (!strcmp(mode, "mix"))
		return mix(arg, other ? other : 4);
	if (!strcmp(mode, "repeat"))
		return repeat(arg);
	return 2;
}
