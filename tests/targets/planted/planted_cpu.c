/* build: gcc -O1 -g -pthread */
/* planted_cpu CASE ill|well SECONDS: what uses, or lacks, CPU time; see planted.h. */
#include "planted.h"
#include <fcntl.h>
#include <sys/mman.h>

static volatile uint64_t sink;

static void churn_us(uint64_t us)
{
	uint64_t end_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		for (int i = 0; i < 3000; i++)
			sink = sink * 3 + 1;
}

#define WORK(name)                        \
	static FAR void name(uint64_t us) \
	{                                 \
		churn_us(us);             \
		STAY();                   \
	}
WORK(parse_input)
WORK(hash_rows)
WORK(sort_rows)
WORK(join_rows)
WORK(print_rows)
typedef void (*work_fn)(uint64_t us);
static const work_fn works[] = {hash_rows, parse_input, sort_rows, join_rows, print_rows};

/* hot: nine tenths in hash_rows; well: five functions of equal shares. */
static void hot(void)
{
	struct clocks start = now();
	while (goes_on(start))
		for (unsigned i = 0; i < 5; i++) {
			struct clocks from = now();
			works[i](is_ill ? (i ? 250 : 9000) : 2000);
			if (!i)
				count_cpu(from);
		}
	whole_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
}

/* halves: parse_input for the first half, sort_rows for the second; well: both all the time. */
static void halves(void)
{
	struct clocks start = now();
	while (goes_on(start)) {
		bool is_second = mono_ns() - start.wall_ns > (uint64_t)(seconds * 5e8);
		struct clocks from = now();
		if (!is_ill || !is_second)
			parse_input(1000);
		count_cpu(from);
		if (!is_ill || is_second)
			sort_rows(1000);
	}
	whole_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
}

/* runqueue: four busy threads on CPU 0; well: four threads on CPU 0 that are busy 3 % of the time. */
static void *pinned_thread(void *arg)
{
	pin(0);
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		hash_rows(1000);
		count_wait(from);
		if (!is_ill)
			sleep_us(30000);
	}
	count_whole(start);
	return arg;
}

static void runqueue(void)
{
	run_threads(4, pinned_thread, NULL);
}

/* quota: a busy thread; the runner puts it into a group with 20 % of a CPU, or 400 %. */
static void quota(void)
{
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		hash_rows(5000);
		count_wait(from);
	}
	count_whole(start);
}

/* faults: 16 MiB mapped, written and unmapped, over and over; well: mapped once. */
static FAR char *fill_buffer(char *p)
{
	for (size_t i = 0; i < (size_t)16 << 20; i += 4096)
		p[i]++;
	STAY();
	return p;
}

static char *map_buffer(void)
{
	char *p = mmap(NULL, (size_t)16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	must(p != MAP_FAILED, "mmap");
	madvise(p, (size_t)16 << 20, MADV_NOHUGEPAGE);
	return p;
}

static void faults(void)
{
	struct clocks start = now();
	char *p = is_ill ? NULL : map_buffer();
	while (goes_on(start)) {
		struct clocks from = now();
		char *buffer = fill_buffer(is_ill ? map_buffer() : p);
		if (is_ill)
			munmap(buffer, (size_t)16 << 20);
		count_cpu(from);
		parse_input(500);
	}
	whole_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
}

/* mapping: one thread maps and unmaps 64 MiB all the time, while three others have page faults;
 * well: the three others alone, on memory that they keep. */
static void *mapping_thread(void *arg)
{
	while (!is_over && is_ill) {
		char *p = mmap(NULL, (size_t)64 << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		must(p != MAP_FAILED, "mmap");
		munmap(p, (size_t)64 << 20);
	}
	return arg;
}

static FAR void touch_pages(char *p)
{
	for (size_t i = 0; i < (size_t)1 << 20; i += 4096)
		p[i]++;
	STAY();
}

static FAR void remap_pages(char **p)
{
	munmap(*p, (size_t)1 << 20);
	*p = mmap(NULL, (size_t)1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	must(*p != MAP_FAILED, "mmap");
}

static void *touching_thread(void *arg)
{
	struct clocks start = now();
	char *p = mmap(NULL, (size_t)1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	must(p != MAP_FAILED, "mmap");
	while (!is_over) {
		struct clocks from = now();
		if (is_ill)
			remap_pages(&p);
		touch_pages(p);
		count_wait(from);
		sleep_us(500);
	}
	count_whole(start);
	return arg;
}

static void mapping(void)
{
	pthread_t mapper = start_thread(mapping_thread, NULL);
	run_threads(3, touching_thread, NULL);
	pthread_join(mapper, NULL);
}

/* tiny: a file written byte by byte; well: 64 KiB at a time. */
static FAR void write_record(int fd, size_t n)
{
	static char block[65536];
	for (size_t done = 0; done < sizeof(block); done += n)
		if (write(fd, block + done, n) != (ssize_t)n)
			must(false, "write");
	STAY();
}

static void tiny(void)
{
	int fd = open("tiny.data", O_CREAT | O_TRUNC | O_WRONLY, 0600);
	must(fd >= 0, "tiny.data");
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		lseek(fd, 0, SEEK_SET);
		write_record(fd, is_ill ? 1 : 65536);
		count_cpu(from);
		parse_input(1000);
	}
	whole_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
	unlink("tiny.data");
}

static const struct planted cases[] = {
	{"hot", hot, "CPU time in hash_rows"},
	{"halves", halves,
	 "CPU time in parse_input, all of it in the first half (well: all the time)"},
	{"runqueue", runqueue, "four threads wait for CPU 0"},
	{"quota", quota, "the thread waits, throttled by its group's quota"},
	{"faults", faults, "CPU time in fill_buffer, most of it in page faults"},
	{"mapping", mapping, "threads with page faults wait for the lock of the address space"},
	{"tiny", tiny, "CPU time in write_record (writes of one byte)"},
};

int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
