/*
 * Measures the unwinder: ns per row to compile the tables of the given binaries, ns to load them
 * from the cache, ns per frame to walk a deep stack and a stack of many functions.
 *
 *	bench_unwind [FILE...]
 */
#include "base/base.h"
#include "unwind/walk.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "object/elf.h"
#include "unwind_process.h"
#include "elf_path.h"

/* CPU time, because the machine may be shared. */
static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double build_once(const char *path, const char *cache_dir, struct unwind_table **ret_t,
			 double *ret_open_ns)
{
	struct elf *elf = NULL;
	double t0 = now_ns();

	if (elf_open_path(&elf, path, NULL))
		return -1;
	double t1 = now_ns();
	int r = unwind_table_build(ret_t, elf, cache_dir, NULL);
	double t2 = now_ns();
	elf_free(elf);
	*ret_open_ns = t1 - t0;
	return r ? -1 : t2 - t1;
}

static void bench_table(const char *path, const char *cache_dir)
{
	double best = 1e18, best_cached = 1e18, open_ns = 0;
	struct unwind_table *t = NULL;

	for (int i = 0; i < 5; i++) {
		unwind_table_free(t);
		t = NULL;
		double ns = build_once(path, NULL, &t, &open_ns);
		if (ns < 0) {
			printf("%s: cannot build\n", path);
			return;
		}
		best = MIN(best, ns);
	}
	printf("%s: %u rows, %u fdes, %u specials, %u pages, %" PRIu64
	       " bad, %.1f MB: open %.2f ms, "
	       "build %.2f ms, %.1f ns a row",
	       path, t->nr_rows, t->nr_fdes, t->nr_specials, t->nr_pages, t->nr_bad,
	       (double)t->nr_bytes / 1e6, open_ns / 1e6, best / 1e6,
	       t->nr_rows ? best / t->nr_rows : 0);
	for (int i = 0; i < 6 && cache_dir; i++) {
		unwind_table_free(t);
		t = NULL;
		double ns = build_once(path, cache_dir, &t, &open_ns);
		if (i)
			best_cached = MIN(best_cached, ns);
	}
	if (cache_dir)
		printf(", cached %.2f ms", best_cached / 1e6);
	printf("\n");
	unwind_table_free(t);
}

#if defined(__x86_64__)
static struct unwind_process process;
static volatile int sink;

struct shot {
	uint64_t regs[24];
	uint8_t *stack;
	size_t nr_stack;
};

/* The current pc, sp and fp; the rows of this program use no other registers. */
static __attribute__((noinline)) void take(struct shot *s)
{
	uint64_t ip, sp, fp;
	__asm__ volatile("lea 0(%%rip), %0; mov %%rsp, %1; mov %%rbp, %2"
			 : "=r"(ip), "=r"(sp), "=r"(fp));
	s->regs[0] = fp;
	s->regs[1] = sp;
	s->regs[2] = ip;
	s->nr_stack = unwind_process_stack_bytes(&process, sp, (size_t)8 << 20);
	s->stack = xmemdup((const void *)(uintptr_t)sp, s->nr_stack);
}

#define NO_FP __attribute__((noinline, noclone, optimize("O2", "omit-frame-pointer")))
static NO_FP int deep(int n, struct shot *s)
{
	if (n)
		sink = deep(n - 1, s);
	else
		take(s);
	return sink + n;
}

static void bench_walk(int depth, int nr_rounds)
{
	struct shot s;
	const struct walk_frame *f;
	uint32_t nr = 0;

	(void)deep(depth, &s);
	struct walk_input in = {.space = process.space,
				.regs = s.regs,
				.regs_mask = 1 << 6 | 1 << 7 | 1 << 8,
				.stack = s.stack,
				.nr_stack = s.nr_stack};
	enum walk_end end = walker_walk(process.walker, &in, &f, &nr);
	double t0 = now_ns();
	for (int i = 0; i < nr_rounds; i++)
		end = walker_walk(process.walker, &in, &f, &nr);
	double ns = (now_ns() - t0) / nr_rounds;
	double cold = 0;
	for (int i = 0; i < 100; i++) {
		process.space->generation = ++process.spaces.next_generation; /* forgets rules */
		t0 = now_ns();
		end = walker_walk(process.walker, &in, &f, &nr);
		cold += (now_ns() - t0) / 100;
	}
	printf("walk: %u frames, end %d: hot %.1f ns a frame, rules not cached %.1f\n", nr, end,
	       ns / nr, cold / nr);
	free(s.stack);
}
#endif

int main(int argc, char **argv)
{
	const char *cache_dir = getenv("BENCH_CACHE");

	for (int i = 1; i < argc; i++)
		bench_table(argv[i], cache_dir);
#if defined(__x86_64__)
	if (!unwind_process_init(&process))
		return 1;
	bench_walk(3, 1000000);
	bench_walk(20, 200000);
	bench_walk(1000, 5000);
	unwind_process_release(&process);
#endif
	return 0;
}
