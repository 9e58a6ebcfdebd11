/* The recorder (inject/) in this process, on stacks that the program allocates itself. */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "heapblob_fixture.h"

#define PAGE    4096u
#define PATTERN 0x5a

static ucontext_t home;

/* @at: [guard page][@nr_bytes of stack]; returns when @fn did. */
static void run_on(uint8_t *at, size_t nr_bytes, void (*fn)(void))
{
	ucontext_t c;
	getcontext(&c);
	c.uc_stack.ss_sp = at + PAGE;
	c.uc_stack.ss_size = nr_bytes;
	c.uc_link = &home;
	makecontext(&c, fn, 0);
	swapcontext(&home, &c);
}

static uint8_t *map_stack(uint8_t *at, size_t nr_bytes)
{
	int fixed = at ? MAP_FIXED : 0;
	uint8_t *p = mmap(at, nr_bytes + PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
	ASSERT(p != MAP_FAILED);
	ASSERT(!mprotect(p, PAGE, PROT_NONE));
	return p;
}

static void allocate(void)
{
	for (int i = 0; i < 3; i++)
		hooked_free(hooked_malloc(100));
}

/* Also with the C library's own getcontext and signal mask on it. */
static size_t used_on_a_page(void)
{
	uint8_t *p = map_stack(NULL, PAGE);
	memset(p + PAGE, PATTERN, PAGE);
	run_on(p, PAGE, allocate);
	size_t at = PAGE;
	while (at < 2 * PAGE && p[at] == PATTERN)
		at++;
	return 2 * PAGE - at;
}

TEST(heapblob_a_stack_of_a_page_is_enough)
{
	begin(&every);
	size_t all = used_on_a_page();
	local_recorder_stop(hw);
	size_t plain = used_on_a_page();
	local_recorder_free(hw);
	begin(&(struct local_recorder_spec){.interval_bytes = 1});
	size_t sampled = used_on_a_page();
	printf("# bytes of stack: %zu, every %zu, sampled %zu\n", plain, all, sampled);
	CHECK(all > plain && all < 2048 && sampled < 2048);
	local_recorder_free(hw);
}

/* Calls @fn with @fp in the register of the frame pointer, by which its caller is looked for. */
void call_with_fp(uint64_t fp, void (*fn)(void));
__asm__(".pushsection .text\n"
	".globl call_with_fp\n"
	"call_with_fp:\n"
	".cfi_startproc\n"
	".cfi_def_cfa %rbp, 16\n"
	".cfi_offset %rbp, -16\n"
	"push %rbp\n"
	"mov %rdi, %rbp\n"
	"call *%rsi\n"
	"pop %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".popsection\n");

static uint8_t *area;
static uint64_t garbage_fp;
static void *(*hooked_munmap)(void *, size_t);

static void allocate_with_garbage(void)
{
	call_with_fp(garbage_fp, allocate);
}

static void *fake_munmap(void *p, size_t n)
{
	return (void *)(intptr_t)munmap(p, n);
}

/*
 * A stack of which only the inner end is in use goes, a smaller one comes in its place, and the
 * frame pointer is something that points to where nothing is any more.
 */
static void swap_stacks(const struct local_recorder_spec *spec)
{
	enum { LARGE = 16 };
	begin(spec);
	hooked_munmap = (void *(*)(void *, size_t))local_recorder_hook(hw, HEAP_MUNMAP,
								       (heap_fn)fake_munmap);
	area = map_stack(NULL, LARGE * PAGE);
	for (unsigned i = 0; i < 400; i++) {
		/* Chains through the whole of it make all of it known. */
		uint64_t *far = (uint64_t *)(void *)(area + (LARGE - 1 - i % 8) * PAGE);
		far[0] = 0;
		far[1] = (uint64_t)(uintptr_t)allocate_with_garbage;
		garbage_fp = (uint64_t)(uintptr_t)far;
		unsigned small = 1 + i % 5;
		run_on(area, small * PAGE, allocate_with_garbage);
		(void)hooked_munmap(area, (LARGE + 1) * PAGE);
		map_stack(area, small * PAGE);
		run_on(area, small * PAGE, allocate_with_garbage);
		munmap(area, (small + 1) * PAGE);
		map_stack(area, LARGE * PAGE);
	}
	local_recorder_free(hw);
}

TEST(heapblob_a_stack_in_the_place_of_a_larger_one_is_not_left)
{
	swap_stacks(&every);
}

TEST(heapblob_a_stack_in_the_place_of_a_larger_one_is_not_left_by_samples)
{
	swap_stacks(&(struct local_recorder_spec){.interval_bytes = 1});
}

#endif
