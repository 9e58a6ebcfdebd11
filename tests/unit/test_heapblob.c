/*
 * The recorder (inject/) in this process, around functions whose doings are known: what it
 * records of calls, in what order, and what it does when there is no room, no slot, or nobody
 * there. Stacks: test_heapblob_walk.c.
 */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_world.h"

static struct heap_world *hw;
static uint64_t next_block;
static int nr_inner;

static void *(*hooked_malloc)(size_t);
static void (*hooked_free)(void *);

/* Addresses that nobody reads from. */
static void *fake_malloc(size_t n)
{
	(void)n;
	next_block += 64;
	return n == (size_t)-1 ? NULL : (void *)(uintptr_t)next_block;
}

static void fake_free(void *p)
{
	(void)p;
	nr_inner++;
}

static void begin(const struct heap_world_spec *spec)
{
	hw = heap_world_new(spec);
	if (!hw)
		tap_skip("no recorder for this machine");
	next_block = 0x10000;
	hooked_malloc = (void *(*)(size_t))heap_world_hook(hw, HEAP_ALLOC_0, (heap_fn)fake_malloc);
	hooked_free = (void (*)(void *))heap_world_hook(hw, HEAP_FREE_0, (heap_fn)fake_free);
	heap_world_start(hw);
}

static const struct heap_world_spec every = {.is_every = true};

/* The next record that is not a stack. */
static bool next(struct heap_slot *s, struct heap_seen *r)
{
	do {
		if (!heap_world_next(hw, s, r))
			return false;
	} while (r->kind == HEAP_RECORD_STACK);
	return true;
}

static void check_next(int line, uint32_t kind, uint64_t block, uint64_t n)
{
	struct heap_seen r;

	if (!next(heap_world_slot(hw), &r)) {
		tap_fail(__FILE__, line, "no record");
		return;
	}
	if (r.kind != kind || r.block != block || (kind != HEAP_RECORD_FREE && r.n != n))
		tap_fail(__FILE__, line, "kind %u block 0x%" PRIx64 " n %" PRIu64, (unsigned)r.kind,
			 r.block, r.n);
}
#define CHECK_NEXT(kind, block, n) \
	check_next(__LINE__, kind, (uint64_t)(uintptr_t)(block), (uint64_t)(n))

static void check_none(int line)
{
	struct heap_seen r;
	struct heap_slot *s = heap_world_slot(hw);

	if (s && next(s, &r))
		tap_fail(__FILE__, line, "a record of kind %d", (int)r.kind);
}
#define CHECK_NONE() check_none(__LINE__)

TEST(heapblob_records_a_block_and_its_free)
{
	begin(&every);
	void *p = hooked_malloc(100);
	CHECK(p == (void *)(uintptr_t)next_block);
	hooked_free(p);
	CHECK(nr_inner == 1);
	struct heap_slot *s = heap_world_slot(hw);
	CHECK(s != NULL);
	if (!s)
		return;
	struct heap_seen r;
	CHECK(heap_world_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_STACK);
	uint32_t stack = r.stack;
	CHECK(stack != 0 && r.nr_frames > 2);
	CHECK(heap_world_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_ALLOC);
	CHECK_U64(r.site, 0);
	CHECK_U64(r.n, 100);
	CHECK_U64(r.stack, stack);
	uint64_t tsc = r.tsc;
	CHECK(heap_world_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_FREE);
	CHECK_U64(r.site, 1);
	CHECK_U64(r.block, (uintptr_t)p);
	CHECK(r.tsc > tsc);
	CHECK(!heap_world_next(hw, s, &r));
	CHECK_U64(s->nr_allocs, 1);
	CHECK_U64(s->nr_bytes, 100);
	CHECK_U64(s->nr_frees, 1);
	CHECK_U64(s->is_inside, 0);
	CHECK_U64(s->tid, (uint64_t)gettid());
	heap_world_free(hw);
}

static void *fake_2(uint64_t x, size_t n)
{
	(void)x;
	return fake_malloc(n);
}

static void *fake_3(uint64_t x, size_t n, size_t m)
{
	(void)x;
	return fake_malloc(n * m);
}

static int fake_out(void **ret, size_t alignment, size_t n)
{
	if (alignment == 3)
		return EINVAL;
	*ret = fake_malloc(n);
	return 0;
}

static void *fake_realloc(void *p, size_t n)
{
	return n == 8 ? p : n == (size_t)-1 || n == 0 ? NULL : fake_malloc(n);
}

static void *fake_reallocarray(void *p, size_t n, size_t m)
{
	return fake_realloc(p, n * m);
}

static void *fake_heap_realloc(uint64_t x, void *p, size_t n)
{
	(void)x;
	return fake_realloc(p, n);
}

static size_t fake_resize(void *p, size_t n, size_t extra, int flags)
{
	(void)p, (void)extra, (void)flags;
	return n > 1000 ? 64 : n;
}

TEST(heapblob_knows_where_each_shape_has_its_size)
{
	begin(&every);
	void *(*f1)(uint64_t, size_t) =
		(void *(*)(uint64_t, size_t))heap_world_hook(hw, HEAP_ALLOC_1, (heap_fn)fake_2);
	void *(*f01)(uint64_t, size_t) =
		(void *(*)(uint64_t, size_t))heap_world_hook(hw, HEAP_ALLOC_01, (heap_fn)fake_2);
	void *(*f12)(uint64_t, size_t, size_t) =
		(void *(*)(uint64_t, size_t, size_t))heap_world_hook(hw, HEAP_ALLOC_12,
								     (heap_fn)fake_3);
	int (*out)(void **, size_t, size_t) = (int (*)(void **, size_t, size_t))heap_world_hook(
		hw, HEAP_ALLOC_OUT, (heap_fn)fake_out);

	void *p = f1(64, 7);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 7);
	p = f01(6, 7);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 42);
	p = f12(1, 3, 5);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 15);
	CHECK(out(&p, 64, 9) == 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 9);
	CHECK(out(&p, 3, 9) == EINVAL);
	CHECK(hooked_malloc((size_t)-1) == NULL);
	hooked_free(NULL);
	CHECK_NONE();
	CHECK_U64(heap_world_slot(hw)->nr_allocs, 4);
	CHECK_U64(heap_world_slot(hw)->nr_bytes, 7 + 42 + 15 + 9);
	CHECK_U64(heap_world_slot(hw)->nr_frees, 0);
	heap_world_free(hw);
}

TEST(heapblob_takes_a_realloc_for_a_free_and_a_block)
{
	begin(&every);
	void *(*re)(void *, size_t) = (void *(*)(void *, size_t))heap_world_hook(
		hw, HEAP_REALLOC_1, (heap_fn)fake_realloc);
	void *(*array)(void *, size_t, size_t) = (void *(*)(void *, size_t, size_t))heap_world_hook(
		hw, HEAP_REALLOC_12, (heap_fn)fake_reallocarray);
	void *(*heap)(uint64_t, void *, size_t) =
		(void *(*)(uint64_t, void *, size_t))heap_world_hook(hw, HEAP_REALLOC_2,
								     (heap_fn)fake_heap_realloc);
	size_t (*resize)(void *, size_t, size_t, int) =
		(size_t(*)(void *, size_t, size_t, int))heap_world_hook(hw, HEAP_RESIZE,
									(heap_fn)fake_resize);

	void *p = re(NULL, 10);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 10);
	void *q = re(p, 20);
	CHECK_NEXT(HEAP_RECORD_FREE, p, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, q, 20);
	CHECK(re(q, 8) == q);
	CHECK_NEXT(HEAP_RECORD_FREE, q, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, q, 8);
	CHECK(re(q, (size_t)-1) == NULL);
	CHECK_NONE();
	CHECK(array(q, 1, (size_t)-1) == NULL);
	p = array(q, 3, 100);
	CHECK_NEXT(HEAP_RECORD_FREE, q, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 300);
	q = heap(1, p, 30);
	CHECK_NEXT(HEAP_RECORD_FREE, p, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, q, 30);
	CHECK(resize(q, 40, 0, 0) == 40);
	CHECK_NEXT(HEAP_RECORD_FREE, q, 0);
	CHECK_NEXT(HEAP_RECORD_ALLOC, q, 40);
	CHECK(resize(q, 4000, 0, 0) == 64);
	CHECK_NONE();
	CHECK(re(q, 0) == NULL);
	CHECK_NEXT(HEAP_RECORD_FREE, q, 0);
	CHECK_NONE();
	CHECK_U64(heap_world_slot(hw)->nr_allocs, 6);
	CHECK_U64(heap_world_slot(hw)->nr_frees, 6);
	heap_world_free(hw);
}

static uint64_t fake_end = 0x5000;

static void *fake_map(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	bool is_good = prot == 1 && flags == 2 && fd == 3 && off == 4;
	return is_good && n != 1 ? at : MAP_FAILED;
}

static int fake_unmap(void *at, size_t n)
{
	(void)at;
	return n == 1 ? -1 : 0;
}

static void *fake_remap(void *at, size_t old, size_t new, int flags)
{
	(void)old, (void)flags;
	return new == 1 ? MAP_FAILED : (uint8_t *)at + 0x100000;
}

static void *fake_sbrk(intptr_t delta)
{
	uint64_t old = fake_end;
	if (delta == 1)
		return (void *)-1;
	fake_end += (uint64_t)delta;
	return (void *)(uintptr_t)old;
}

TEST(heapblob_records_mappings)
{
	begin(&every);
	void *(*map)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))heap_world_hook(hw, HEAP_MMAP,
										 (heap_fn)fake_map);
	int (*unmap)(void *, size_t) =
		(int (*)(void *, size_t))heap_world_hook(hw, HEAP_MUNMAP, (heap_fn)fake_unmap);
	void *(*remap)(void *, size_t, size_t, int) =
		(void *(*)(void *, size_t, size_t, int))heap_world_hook(hw, HEAP_MREMAP,
									(heap_fn)fake_remap);
	void *(*grow)(intptr_t) =
		(void *(*)(intptr_t))heap_world_hook(hw, HEAP_SBRK, (heap_fn)fake_sbrk);
	int (*set)(void *) = (int (*)(void *))heap_world_hook(hw, HEAP_BRK, (heap_fn)brk);
	void *at = (void *)(uintptr_t)0x7000000;

	CHECK(map(at, 4096, 1, 2, 3, 4) == at);
	CHECK_NEXT(HEAP_RECORD_MAP, at, 4096);
	CHECK(map(at, 1, 1, 2, 3, 4) == MAP_FAILED);
	CHECK(unmap(at, 1) == -1);
	CHECK_NONE();
	CHECK(unmap(at, 4096) == 0);
	CHECK_NEXT(HEAP_RECORD_UNMAP, at, 4096);
	CHECK(remap(at, 4096, 1, 0) == MAP_FAILED);
	CHECK_NONE();
	CHECK(remap(at, 4096, 8192, 0) != MAP_FAILED);
	CHECK_NEXT(HEAP_RECORD_UNMAP, at, 4096);
	CHECK_NEXT(HEAP_RECORD_MAP, 0x7100000, 8192);
	CHECK(grow(1) == (void *)-1);
	CHECK(grow(0) == (void *)(uintptr_t)0x5000);
	CHECK_NONE();
	(void)grow(0x1000);
	CHECK_NEXT(HEAP_RECORD_MAP, 0x5000, 0x1000);
	(void)grow(-0x800);
	CHECK_NEXT(HEAP_RECORD_UNMAP, 0x5800, 0x800);
	uint8_t *end = sbrk(0);
	CHECK(set(end + 4096) == 0);
	CHECK_NEXT(HEAP_RECORD_MAP, end, 4096);
	CHECK(set(end) == 0);
	CHECK_NEXT(HEAP_RECORD_UNMAP, end, 4096);
	CHECK_U64(heap_world_slot(hw)->nr_allocs, 0);
	heap_world_free(hw);
}

/* All argument registers, rax too, come as they were given. */
extern uint64_t heapblob_seen[8];
uint64_t heapblob_seen[8];
uint64_t heapblob_look(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
__asm__(".text\n"
	"heapblob_look:\n"
	"lea heapblob_seen(%rip), %r10\n"
	"mov %rdi, 0(%r10)\n"
	"mov %rsi, 8(%r10)\n"
	"mov %rdx, 16(%r10)\n"
	"mov %rcx, 24(%r10)\n"
	"mov %r8, 32(%r10)\n"
	"mov %r9, 40(%r10)\n"
	"mov %rax, 48(%r10)\n"
	"mov %rsp, 56(%r10)\n"
	"movabs $0x1234567890abcdef, %rax\n"
	"ret\n");

TEST(heapblob_changes_no_register_that_matters)
{
	begin(&every);
	uint64_t (*f)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) =
		(uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			     uint64_t))heap_world_hook(hw, HEAP_ALLOC_0, (heap_fn)heapblob_look);
	double before[2] = {1.25, -7.5};
	double after[2] = {0, 0};
	uint64_t ret;
	errno = 77;
	/* A caller whose stack is not aligned to 16 as well. */
	for (uint64_t skew = 0; skew <= 8; skew += 8) {
		memset(heapblob_seen, 0, sizeof(heapblob_seen));
		__asm__ volatile(
			"mov %%rsp, %%rbx\n"
			"sub $256, %%rsp\n"
			"and $-16, %%rsp\n"
			"sub %[skew], %%rsp\n"
			"movsd %[d0], %%xmm0\n"
			"movsd %[d1], %%xmm15\n"
			"mov $1, %%edi\n"
			"mov $2, %%esi\n"
			"mov $3, %%edx\n"
			"mov $4, %%ecx\n"
			"mov $5, %%r8d\n"
			"mov $6, %%r9d\n"
			"mov $7, %%eax\n"
			"call *%[f]\n"
			"movsd %%xmm0, %[e0]\n"
			"movsd %%xmm15, %[e1]\n"
			"mov %%rbx, %%rsp\n"
			: "=&a"(ret), [e0] "=m"(after[0]), [e1] "=m"(after[1])
			: [f] "r"(f), [skew] "r"(skew), [d0] "m"(before[0]), [d1] "m"(before[1])
			: "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0",
			  "xmm15", "memory", "cc");
		CHECK_U64(ret, 0x1234567890abcdef);
		for (uint64_t i = 0; i < 6; i++)
			CHECK_U64(heapblob_seen[i], i + 1);
		CHECK_U64(heapblob_seen[6], 7);
		CHECK_U64(heapblob_seen[7] % 16, skew ? 0 : 8);
		CHECK(after[0] == before[0] && after[1] == before[1]);
	}
	CHECK(errno == 77);
	CHECK_U64(heap_world_slot(hw)->nr_allocs, 2);
	heap_world_free(hw);
}

static void *fake_calloc(size_t n, size_t m)
{
	hooked_free(hooked_malloc(n * m)); /* as allocators call one another */
	return fake_malloc(n * m);
}

static jmp_buf back;

static void *fake_thrower(size_t n)
{
	if (n == 1)
		longjmp(back, 1);
	return fake_malloc(n);
}

TEST(heapblob_counts_a_call_within_a_call_once)
{
	begin(&every);
	void *(*call)(size_t, size_t) =
		(void *(*)(size_t, size_t))heap_world_hook(hw, HEAP_ALLOC_01, (heap_fn)fake_calloc);
	void *p = call(3, 5);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 15);
	CHECK_NONE();
	CHECK_U64(heap_world_slot(hw)->nr_allocs, 1);
	CHECK_U64(heap_world_slot(hw)->nr_frees, 0);
	CHECK_U64(heap_world_slot(hw)->nr_dropped, 0);
	heap_world_free(hw);
}

static __attribute__((noinline)) void jump_out(void *(*thrower)(size_t))
{
	volatile char deep[512];
	memset((void *)(uintptr_t)deep, 0, sizeof(deep));
	(void)thrower(1);
}

TEST(heapblob_goes_on_after_a_longjmp_out_of_a_call)
{
	begin(&every);
	void *(*thrower)(size_t) =
		(void *(*)(size_t))heap_world_hook(hw, HEAP_ALLOC_0, (heap_fn)fake_thrower);
	if (!setjmp(back))
		jump_out(thrower);
	void *p = hooked_malloc(5);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 5);
	CHECK_NONE();
	heap_world_free(hw);
}
#endif
