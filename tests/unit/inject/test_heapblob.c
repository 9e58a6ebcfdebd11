/*
 * Runs the recorder (inject/) in this process around functions with known behaviour: which records
 * it writes, in what order, and what it does without room in the ring, without a free slot, or
 * after assay has ended. Stacks: test_heapblob_walk.c.
 */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heapblob_fixture.h"

TEST(heapblob_records_a_block_and_its_free)
{
	begin(&every);
	void *p = hooked_malloc(100);
	CHECK(p == (void *)(uintptr_t)next_block);
	hooked_free(p);
	CHECK(nr_inner == 1);
	struct heap_slot *s = local_recorder_slot(hw);
	CHECK(s != NULL);
	if (!s)
		return;
	struct heap_seen r;
	CHECK(local_recorder_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_STACK);
	uint32_t stack = r.stack;
	CHECK(stack != 0 && r.nr_frames > 2);
	CHECK(local_recorder_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_ALLOC);
	CHECK_U64(r.site, 0);
	CHECK_U64(r.n, 100);
	CHECK_U64(r.stack, stack);
	uint64_t tsc = r.tsc;
	CHECK(local_recorder_next(hw, s, &r));
	CHECK_U64(r.kind, HEAP_RECORD_FREE);
	CHECK_U64(r.site, 1);
	CHECK_U64(r.block, (uintptr_t)p);
	CHECK(r.tsc > tsc);
	CHECK(!local_recorder_next(hw, s, &r));
	CHECK_U64(s->nr_allocs, 1);
	CHECK_U64(s->classes[heap_count_class(100)].nr, 1);
	CHECK_U64(s->classes[heap_count_class(100)].nr_bytes, 100);
	CHECK_U64(s->nr_frees, 1);
	CHECK_U64(s->is_inside, 0);
	CHECK_U64(s->tid, (uint64_t)gettid());
	local_recorder_free(hw);
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

static void *fake_reallocarray(void *p, size_t n, size_t m)
{
	size_t all;
	return __builtin_mul_overflow(n, m, &all) ? NULL : fake_realloc(p, all);
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
		(void *(*)(uint64_t, size_t))local_recorder_hook(hw, HEAP_ALLOC_1, (heap_fn)fake_2);
	void *(*f01)(uint64_t, size_t) = (void *(*)(uint64_t, size_t))local_recorder_hook(
		hw, HEAP_ALLOC_01, (heap_fn)fake_2);
	void *(*f12)(uint64_t, size_t, size_t) =
		(void *(*)(uint64_t, size_t, size_t))local_recorder_hook(hw, HEAP_ALLOC_12,
									 (heap_fn)fake_3);
	int (*out)(void **, size_t, size_t) = (int (*)(void **, size_t, size_t))local_recorder_hook(
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
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 4);
	const struct heap_class_count *sizes = local_recorder_slot(hw)->classes;
	CHECK_U64(sizes[0].nr, 3);
	CHECK_U64(sizes[0].nr_bytes, 7 + 15 + 9);
	CHECK_U64(sizes[heap_count_class(42)].nr_bytes, 42);
	CHECK_U64(local_recorder_slot(hw)->nr_frees, 0);
	local_recorder_free(hw);
}

TEST(heapblob_records_a_realloc_as_free_and_alloc)
{
	begin(&every);
	void *(*re)(void *, size_t) = (void *(*)(void *, size_t))local_recorder_hook(
		hw, HEAP_REALLOC_1, (heap_fn)fake_realloc);
	void *(*array)(void *, size_t, size_t) =
		(void *(*)(void *, size_t, size_t))local_recorder_hook(hw, HEAP_REALLOC_12,
								       (heap_fn)fake_reallocarray);
	void *(*heap)(uint64_t, void *, size_t) =
		(void *(*)(uint64_t, void *, size_t))local_recorder_hook(
			hw, HEAP_REALLOC_2, (heap_fn)fake_heap_realloc);
	size_t (*resize)(void *, size_t, size_t, int) =
		(size_t(*)(void *, size_t, size_t, int))local_recorder_hook(hw, HEAP_RESIZE,
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
	CHECK(array(q, (size_t)1 << 32, (size_t)1 << 32) == NULL);
	CHECK_NONE();
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
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 6);
	CHECK_U64(local_recorder_slot(hw)->nr_frees, 6);
	local_recorder_free(hw);
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
		(void *(*)(void *, size_t, int, int, int,
			   off_t))local_recorder_hook(hw, HEAP_MMAP, (heap_fn)fake_map);
	int (*unmap)(void *, size_t) =
		(int (*)(void *, size_t))local_recorder_hook(hw, HEAP_MUNMAP, (heap_fn)fake_unmap);
	void *(*remap)(void *, size_t, size_t, int) =
		(void *(*)(void *, size_t, size_t, int))local_recorder_hook(hw, HEAP_MREMAP,
									    (heap_fn)fake_remap);
	void *(*grow)(intptr_t) =
		(void *(*)(intptr_t))local_recorder_hook(hw, HEAP_SBRK, (heap_fn)fake_sbrk);
	int (*set)(void *) = (int (*)(void *))local_recorder_hook(hw, HEAP_BRK, (heap_fn)brk);
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
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 0);
	local_recorder_free(hw);
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
		(uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))
			local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)heapblob_look);
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
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 2);
	local_recorder_free(hw);
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
	void *(*call)(size_t, size_t) = (void *(*)(size_t, size_t))local_recorder_hook(
		hw, HEAP_ALLOC_01, (heap_fn)fake_calloc);
	void *p = call(3, 5);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 15);
	CHECK_NONE();
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 1);
	CHECK_U64(local_recorder_slot(hw)->nr_frees, 0);
	CHECK_U64(local_recorder_slot(hw)->nr_dropped, 0);
	local_recorder_free(hw);
}

static __attribute__((noinline)) void jump_out(void *(*thrower)(size_t))
{
	volatile char deep[512];
	memset((void *)(uintptr_t)deep, 0, sizeof(deep));
	(void)thrower(1);
}

TEST(heapblob_records_after_a_longjmp_out_of_a_call)
{
	begin(&every);
	void *(*thrower)(size_t) =
		(void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)fake_thrower);
	if (!setjmp(back))
		jump_out(thrower);
	void *p = hooked_malloc(5);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 5);
	CHECK_NONE();
	local_recorder_free(hw);
}

TEST(heapblob_ring_wraps_and_loses_nothing)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .ring_bytes = 8192});
	uint64_t seen = 0, freed = 0, last_tsc = 0;
	uint64_t first = next_block + 64;
	struct heap_seen r;
	for (int i = 0; i < 5000; i++) {
		void *p = hooked_malloc(16);
		if (i % 3 == 0)
			hooked_free(p);
		struct heap_slot *s = local_recorder_slot(hw);
		while (i % 40 == 39 && local_recorder_next(hw, s, &r)) {
			CHECK(r.tsc >= last_tsc);
			last_tsc = r.tsc;
			if (r.kind == HEAP_RECORD_ALLOC)
				CHECK_U64(r.block, first + seen++ * 64);
			if (r.kind == HEAP_RECORD_FREE)
				CHECK_U64(r.block, first + freed++ * 3 * 64);
		}
	}
	CHECK_U64(seen, 5000);
	CHECK_U64(freed, 1667);
	CHECK_U64(local_recorder_slot(hw)->nr_dropped, 0);
	local_recorder_free(hw);
}

TEST(heapblob_counts_exactly_what_it_drops)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .ring_bytes = 8192});
	struct heap_seen r;
	uint64_t nr_seen = 0, bytes = 0;
	for (int i = 0; i < 2000; i++)
		hooked_free(hooked_malloc(10));
	struct heap_slot *s = local_recorder_slot(hw);
	CHECK(s->nr_dropped > 3000);
	while (next(s, &r)) {
		nr_seen++;
		bytes += r.n * (r.kind == HEAP_RECORD_ALLOC);
	}
	CHECK_U64(nr_seen + s->nr_dropped, 4000);
	CHECK_U64(bytes + s->dropped_bytes, 20000);
	/* There is room again. */
	void *p = hooked_malloc(11);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 11);
	CHECK_U64(s->nr_allocs, 2001);
	local_recorder_free(hw);
}

TEST(heapblob_wakes_the_reader_when_its_ring_fills)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .ring_bytes = 8192});
	for (int i = 0; i < 20; i++)
		(void)hooked_malloc(10);
	CHECK_U64(hw->shared->wake_futex, 0);
	for (int i = 0; i < 200; i++)
		(void)hooked_malloc(10);
	CHECK_U64(hw->shared->wake_futex, 1);
	local_recorder_skip(local_recorder_slot(hw));
	hw->shared->wake_futex = 0;
	(void)hooked_malloc(10);
	CHECK_U64(hw->shared->wake_futex, 0);
	local_recorder_free(hw);
}

TEST(heapblob_wakes_nobody_without_system_calls)
{
	begin(&(struct local_recorder_spec){
		.is_full_trace = true, .ring_bytes = 8192, .has_no_kernel = true});
	for (int i = 0; i < 200; i++)
		(void)hooked_malloc(10);
	CHECK_U64(hw->shared->wake_futex, 0);
	local_recorder_free(hw);
}

static void *drain_later(void *arg)
{
	struct heap_slot *s = arg;
	usleep(20000);
	local_recorder_skip(s);
	return NULL;
}

TEST(heapblob_waits_for_room_as_long_as_it_may)
{
	begin(&(struct local_recorder_spec){
		.is_full_trace = true, .ring_bytes = 8192, .wait_tsc = (uint64_t)100e9});
	(void)hooked_malloc(10);
	struct heap_slot *s = local_recorder_slot(hw);
	pthread_t t;
	CHECK(pthread_create(&t, NULL, drain_later, s) == 0);
	for (int i = 0; i < 400; i++)
		(void)hooked_malloc(10);
	pthread_join(t, NULL);
	CHECK_U64(s->nr_dropped, 0);
	local_recorder_free(hw);
}

TEST(heapblob_stops_for_good_when_assay_is_gone)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true,
					    .assay_timeout_tsc = 1000000000});
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	hw->shared->alive_tsc = (uint64_t)hi << 32 | lo;
	void *p = hooked_malloc(10);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 10);
	CHECK_U64(hw->shared->went_inert_tsc, 0);
	hw->shared->alive_tsc -= 1000000000;
	CHECK(hooked_malloc(10) != NULL);
	CHECK_NONE();
	CHECK(hw->shared->went_inert_tsc != 0);
	CHECK_U64(hw->local->is_active, 0);
	uint64_t nr = local_recorder_slot(hw)->nr_allocs;
	hooked_free(hooked_malloc(10));
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, nr);
	CHECK_NONE();
	local_recorder_free(hw);
}

TEST(heapblob_does_not_trust_the_tail)
{
	begin(&every);
	(void)hooked_malloc(10);
	struct heap_slot *s = local_recorder_slot(hw);
	uint64_t head = s->head;
	s->tail = head + 8;
	(void)hooked_malloc(10);
	s->tail = head - ((uint64_t)1 << 40);
	(void)hooked_malloc(10);
	CHECK_U64(s->head, head);
	CHECK_U64(s->nr_dropped, 2);
	/* Nor a head: what is written stays within the ring. */
	s->head = s->tail = 0x123456789abcdef3;
	(void)hooked_malloc(10);
	s->head = s->tail = ~(uint64_t)0;
	(void)hooked_malloc(10);
	local_recorder_free(hw);
}

TEST(heapblob_is_inert_in_a_forked_child)
{
	begin(&every);
	hw->k.spec.head = NULL; /* not used by this test */
	(void)madvise(hw->local, 4096, MADV_WIPEONFORK);
	(void)madvise((void *)(uintptr_t)hw->local->thread_states, 64 * HEAP_THREAD_STATE_BYTES,
		      MADV_WIPEONFORK);
	(void)madvise((void *)(uintptr_t)hw->shared, hw->local->shared_bytes, MADV_DONTFORK);
	(void)hooked_malloc(10);
	pid_t pid = fork();
	if (!pid) {
		hooked_free(hooked_malloc(10));
		_exit(nr_inner == 1 ? 7 : 1);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 1);
	(void)hooked_malloc(10);
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 2);
	local_recorder_free(hw);
}

static void *fork_within(size_t n)
{
	pid_t pid = fork();
	if (!pid)
		return fake_malloc(n);
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return fake_malloc(n);
}

TEST(heapblob_is_inert_in_a_child_that_was_forked_in_a_call)
{
	begin(&every);
	void *(*forker)(size_t) =
		(void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)fork_within);
	(void)hooked_malloc(1);
	(void)madvise(hw->local, 4096, MADV_WIPEONFORK);
	(void)madvise((void *)(uintptr_t)hw->local->thread_states, 64 * HEAP_THREAD_STATE_BYTES,
		      MADV_WIPEONFORK);
	(void)madvise((void *)(uintptr_t)hw->shared, hw->local->shared_bytes, MADV_DONTFORK);
	pid_t me = getpid();
	void *p = forker(10);
	if (getpid() != me) {
		hooked_free(hooked_malloc(10));
		_exit(7);
	}
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 2);
	CHECK_NEXT(HEAP_RECORD_ALLOC, 0x10040, 1);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 10);
	local_recorder_free(hw);
}

#define NR_THREADS 6
#define NR_EACH    20000

static void *allocate_much(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	void *(*map)(uint64_t, size_t) = (void *(*)(uint64_t, size_t))(uintptr_t)me;
	for (int i = 0; i < NR_EACH; i++)
		hooked_free(map((uint64_t)i, 3));
	return (void *)(uintptr_t)gettid();
}

TEST(heapblob_threads_have_separate_rings)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .ring_bytes = 2 << 20});
	heap_fn f = local_recorder_hook(hw, HEAP_ALLOC_1, (heap_fn)fake_thread_block);
	pthread_t t[NR_THREADS];
	uint32_t tids[NR_THREADS];
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, allocate_much, (void *)(uintptr_t)f) == 0);
	for (int i = 0; i < NR_THREADS; i++) {
		void *tid = NULL;
		pthread_join(t[i], &tid);
		tids[i] = (uint32_t)(uintptr_t)tid;
	}
	uint64_t nr = 0;
	for (uint32_t i = 0; i < hw->local->nr_slots; i++) {
		struct heap_slot *s = &hw->slots[i];
		struct heap_seen r;
		uint64_t last = 0;
		while (s->owner && next(s, &r)) {
			nr++;
			bool is_known = false;
			for (int k = 0; k < NR_THREADS; k++)
				is_known |= tids[k] == r.block >> 24;
			CHECK(is_known && r.tsc >= last);
			last = r.tsc;
		}
	}
	CHECK_U64(nr, 2 * NR_THREADS * NR_EACH);
	CHECK_U64(hw->shared->nr_no_slot, 0);
	local_recorder_free(hw);
}

TEST(heapblob_stops_and_starts_again)
{
	begin(&every);
	(void)hooked_malloc(1);
	local_recorder_stop(hw);
	hooked_free(hooked_malloc(2));
	local_recorder_start(hw);
	(void)hooked_malloc(3);
	CHECK_NEXT(HEAP_RECORD_ALLOC, 0x10040, 1);
	CHECK_NEXT(HEAP_RECORD_ALLOC, 0x100c0, 3);
	CHECK_NONE();
	local_recorder_free(hw);
}

static volatile uint64_t nr_ticks;

static void allocate_in_handler(int sig)
{
	(void)sig;
	nr_ticks++;
	hooked_free(hooked_malloc(1));
}

/* Ticks meet all places of the recorder; what is not recorded is counted or within a call. */
TEST(heapblob_handlers_may_allocate_at_any_time)
{
	begin(&every);
	struct sigaction sa = {.sa_handler = allocate_in_handler};
	sigaction(SIGALRM, &sa, NULL);
	struct itimerval tick = {{0, 53}, {0, 53}};
	setitimer(ITIMER_REAL, &tick, NULL);
	struct heap_seen r;
	uint64_t nr_own = 0;
	for (int i = 0; i < 200000; i++) {
		void *p = hooked_malloc(2);
		hooked_free(p);
		if (i % 1000)
			continue;
		struct heap_slot *s = local_recorder_slot(hw);
		while (next(s, &r))
			nr_own += r.kind == HEAP_RECORD_ALLOC && r.n == 2;
	}
	memset(&tick, 0, sizeof(tick));
	setitimer(ITIMER_REAL, &tick, NULL);
	struct heap_slot *s = local_recorder_slot(hw);
	while (next(s, &r))
		nr_own += r.kind == HEAP_RECORD_ALLOC && r.n == 2;
	CHECK_U64(nr_own, 200000);
	CHECK(nr_ticks > 100);
	CHECK(s->nr_allocs <= 200000 + nr_ticks);
	CHECK(s->nr_allocs > 200000 || s->nr_dropped > 0);
	CHECK_U64(s->is_inside, 0);
	local_recorder_free(hw);
}

static int nr_new;
static uint64_t new_caller;

/* Would throw if it failed, and pass the caller alone then. */
static void *fake_new(size_t n)
{
	nr_new++;
	new_caller = (uint64_t)(uintptr_t)__builtin_return_address(0);
	return fake_malloc(n);
}

static void *fake_new_nothrow(size_t n)
{
	return n == 1 ? NULL : fake_malloc(n);
}

TEST(heapblob_has_no_frame_where_an_exception_passes)
{
	begin(&every);
	uint32_t site = hw->nr_sites;
	void *(*make)(size_t) =
		(void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)fake_new);
	hw->data->nothrow[site] = (uint64_t)(uintptr_t)fake_new_nothrow;
	void *p = make(7);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 7);
	CHECK(nr_new == 0);
	p = make(1);
	CHECK(nr_new == 1 && p == (void *)(uintptr_t)next_block);
	uint64_t here = (uint64_t)(uintptr_t)__builtin_extract_return_addr(&&label);
	CHECK(new_caller - here + 4096 < 8192);
label:
	CHECK_NONE();
	p = hooked_malloc(3);
	CHECK_NEXT(HEAP_RECORD_ALLOC, p, 3);
	local_recorder_free(hw);
}
#endif
