/* The recorder put into a forked child of the test that allocates all the time, and taken out. */
#include "base/base.h"
#include "heapchild.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/patch/heapspace.h"
#include "remote/patch/inject.h"
#include "remote/patch/injectstate.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define NR_THREADS 4

struct shared {
	struct child_flags flags;
	volatile uint64_t nr_allocs[NR_THREADS];
};
static struct shared *shared;

static void *allocates(void *arg)
{
	size_t me = (size_t)(uintptr_t)arg;
	uint8_t *p[64] = {0};
	uint64_t x = me + 1;
	while (!shared->flags.is_over) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		size_t i = x >> 58;
		size_t n = (x >> 40 & 1023) + 16;
		if (p[i] && (p[i][0] != (uint8_t)i || p[i][15] != (uint8_t)i))
			abort(); /* somebody else wrote to it */
		if (p[i] && x >> 57 & 1) {
			p[i] = realloc(p[i], n);
		} else {
			free(p[i]);
			p[i] = x >> 56 & 1 ? malloc(n) : calloc(1, n);
		}
		shared->nr_allocs[me]++;
		memset(p[i], (int)i, 16);
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		free(p[i]);
	return NULL;
}

static int child(void)
{
	pthread_t t[NR_THREADS];
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_create(&t[i], NULL, allocates, (void *)(uintptr_t)i);
	shared->flags.is_ready = 1;
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static pid_t start(void)
{
	shared = child_memory(sizeof(*shared));
	return child_start(&shared->flags, child);
}

static int finish(pid_t pid)
{
	return child_finish(&shared->flags, pid);
}

static uint64_t sum_allocs(void)
{
	uint64_t n = 0;
	for (size_t i = 0; i < NR_THREADS; i++)
		n += shared->nr_allocs[i];
	return n;
}

static void make_plan(struct heap_plan *p)
{
	*p = (struct heap_plan){.method = HEAP_METHOD_PATCH, .allocator = HEAP_ALLOCATOR_GLIBC};
	child_add_site(p, "malloc", HEAP_ALLOC_0);
	child_add_site(p, "calloc", HEAP_ALLOC_01);
	child_add_site(p, "realloc", HEAP_REALLOC_1);
	child_add_site(p, "free", HEAP_FREE_0);
	child_add_site(p, "memalign", HEAP_ALLOC_1);
	child_add_site(p, "posix_memalign", HEAP_ALLOC_OUT);
}

/* The C library's code there and here, which nobody has changed. */
static bool is_text_equal(pid_t pid)
{
	char path[64];
	uint8_t mine[4096];
	uint8_t theirs[4096];
	bool is_equal = true;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	FILE *mem = fopen(path, "rbe");
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	CHECK(mem && maps);
	while (mem && maps && fgets(line, sizeof(line), maps)) {
		uint64_t lo = strtoull(line, NULL, 16);
		uint64_t hi = strtoull(strchr(line, '-') + 1, NULL, 16);
		if (!strstr(line, " r-xp ") || !strstr(line, "libc"))
			continue;
		for (; lo < hi; lo += sizeof(mine)) {
			memcpy(mine, (const void *)(uintptr_t)lo, sizeof(mine));
			if (fseeko(mem, (off_t)lo, SEEK_SET) ||
			    fread(theirs, sizeof(theirs), 1, mem) != 1 ||
			    memcmp(mine, theirs, sizeof(mine))) {
				printf("# differs at page %" PRIx64 "\n", lo);
				is_equal = false;
			}
		}
	}
	if (mem)
		fclose(mem);
	if (maps)
		fclose(maps);
	return is_equal;
}

static uint64_t counted(struct heapinject *h)
{
	uint32_t n;
	uint64_t sum = 0;
	struct heap_slot *s = heapinject_slots(h, &n);
	for (uint32_t i = 0; i < n; i++)
		sum += s[i].nr_allocs;
	return sum;
}

/* Until the recorder has counted something; the target allocates all the time. */
static void wait_for_counts(struct heapinject *h)
{
	for (int i = 0; i < 10000 && !counted(h); i++)
		usleep(1000);
}

TEST(heapinject_counts_every_allocation_and_leaves_text_as_it_was)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 20};
	MUST(heapinject_attach(&h, &spec, &must_err));
	if (!h)
		return;
	struct heapinject_info info = heapinject_info(h);
	CHECK_U64(info.nr_patched, 6);
	if (info.unpatched)
		printf("# unpatched: %s\n", info.unpatched);
	CHECK(!is_text_equal(pid));
	uint64_t before = sum_allocs();
	MUST(heapinject_start(h, &must_err));
	uint64_t begin = sum_allocs();
	while (sum_allocs() < begin + 200000)
		usleep(1000);
	uint64_t end = sum_allocs();
	MUST(heapinject_stop(h, &must_err));
	uint64_t after = sum_allocs();
	uint64_t nr = counted(h);
	CHECK(nr >= end - begin - NR_THREADS);
	CHECK(nr <= after - before + NR_THREADS);
	MUST(heapinject_detach(h, &must_err));
	CHECK(is_text_equal(pid));
	printf("# stopped %.3f ms, %" PRIu64 " counted\n",
	       (double)heapinject_info(h).stopped_ns / 1e6, nr);
	CHECK_U64(finish(pid), 0);
}

TEST(heapinject_patches_all_functions_or_none_where_that_is_asked_for)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	CLEANUP(err_release) struct err err = {0};
	make_plan(&plan);
	plan.is_all_or_none = true;
	/* A throwing operator new without a nothrow variant. */
	free(plan.functions.p[0].name);
	plan.functions.p[0].name = xstrdup("_Znwm");
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 20};
	CHECK(heapinject_attach(&h, &spec, &err) == -ENOTSUP);
	CHECK(strstr(err_msg(&err), "_Znwm cannot be patched"));
	CHECK(!h && is_text_equal(pid));
	CHECK_U64(finish(pid), 0);
}

/* Bytes of anonymous and shared memory that a process has mapped. */
static uint64_t mapped_bytes(pid_t pid)
{
	CLEANUP(heapspace_release) struct heapspace s = {0};
	uint64_t sum = 0;
	if (!heapspace_read(&s, pid, NULL))
		vec_foreach(m, &s.maps)
			sum += m->end - m->start;
	return sum;
}

TEST(heapinject_leaves_no_memory_but_its_code)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	for (size_t i = 0; i < NR_THREADS; i++)
		while (shared->nr_allocs[i] < 10000) /* its allocator has mapped what it needs */
			usleep(1000);
	uint64_t before = mapped_bytes(pid);
	unsigned nr_unmapped = 0;
	for (int i = 0; i < 20; i++) {
		struct heapinject *h = NULL;
		spec.is_full_trace = i % 3 == 2;
		MUST(heapinject_attach(&h, &spec, &must_err));
		if (!h)
			break;
		CHECK(mapped_bytes(pid) > before + (8 << 20));
		MUST(heapinject_start(h, &must_err));
		usleep(1000);
		MUST(heapinject_detach(h, &must_err));
		/* A stale word on a stack may prevent it; then a later detach does it. */
		nr_unmapped += mapped_bytes(pid) < before + (1 << 20);
		heapinject_free(h);
	}
	printf("# unmapped %u of 20\n", nr_unmapped);
	CHECK(nr_unmapped >= 10);
	CHECK_U64(finish(pid), 0);
}

TEST(heapinject_comes_and_goes_a_hundred_times)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	uint64_t worst_ns = 0;
	uint64_t nr = 0;
	for (int i = 0; i < 100; i++) {
		struct heapinject *h = NULL;
		MUST(heapinject_attach(&h, &spec, &must_err));
		if (!h)
			break;
		MUST(heapinject_start(h, &must_err));
		usleep(1000);
		MUST(heapinject_detach(h, &must_err));
		nr += counted(h);
		CHECK(!i || heapinject_info(h).is_reused);
		worst_ns = MAX(worst_ns, heapinject_info(h).stopped_ns);
		heapinject_free(h);
	}
	CHECK(nr > 0);
	CHECK(is_text_equal(pid));
	printf("# longest stop %.3f ms\n", (double)worst_ns / 1e6);
	CHECK_U64(finish(pid), 0);
}

TEST(heapinject_undoes_what_a_dead_assay_left)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	struct heapinject *dead = NULL;
	struct heapinject *h = NULL;
	MUST(heapinject_attach(&dead, &spec, &must_err));
	MUST(heapinject_start(dead, &must_err));
	/* Both die, and nobody detaches. */
	kill(dead->cleanup.pid, SIGKILL);
	waitpid(dead->cleanup.pid, NULL, 0);
	heapinject_free(dead);
	CHECK(!is_text_equal(pid));
	MUST(heapinject_attach(&h, &spec, &must_err));
	MUST(heapinject_start(h, &must_err));
	wait_for_counts(h);
	MUST(heapinject_detach(h, &must_err));
	CHECK(counted(h) > 0);
	heapinject_free(h);
	CHECK(is_text_equal(pid));
	CHECK_U64(finish(pid), 0);
}

TEST(heapinject_is_detached_by_the_cleanup_process_of_a_killed_assay)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	pid_t assay = fork();
	if (!assay) {
		struct heapinject *h = NULL;
		MUST(heapinject_attach(&h, &spec, &must_err));
		MUST(heapinject_start(h, &must_err));
		kill(getpid(), h && !is_text_equal(pid) ? SIGKILL : SIGTERM);
	}
	int status = 0;
	CHECK(waitpid(assay, &status, 0) == assay);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	for (int i = 0; i < 2000 && !is_text_equal(pid); i++)
		usleep(10000);
	CHECK(is_text_equal(pid));
	CHECK_U64(finish(pid), 0);
}

static void *stays_alive(void *arg)
{
	volatile uint64_t *alive = arg;
	while (*alive != UINT64_MAX) {
		__atomic_fetch_add(alive, 1, __ATOMIC_RELAXED);
		usleep(10000);
	}
	return NULL;
}

TEST(heapinject_refuses_a_second_one_at_a_time)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	struct heapinject *first = NULL;
	struct heapinject *h = NULL;
	CLEANUP(err_release) struct err err = {0};
	MUST(heapinject_attach(&first, &spec, &must_err));
	uint64_t *alive = (uint64_t *)&heapinject_shared(first)->alive_tsc;
	pthread_t t;
	pthread_create(&t, NULL, stays_alive, alive);
	CHECK(heapinject_attach(&h, &spec, &err) == -EBUSY);
	CHECK(strstr(err_msg(&err), "another assay"));
	*alive = UINT64_MAX;
	pthread_join(t, NULL);
	MUST(heapinject_detach(first, &must_err));
	heapinject_free(first);
	CHECK(is_text_equal(pid));
	CHECK_U64(finish(pid), 0);
}

TEST(heapinject_survives_the_end_of_its_target)
{
	pid_t pid = start();
	CLEANUP(heap_plan_release) struct heap_plan plan;
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	MUST(heapinject_attach(&h, &spec, &must_err));
	MUST(heapinject_start(h, &must_err));
	wait_for_counts(h);
	CHECK_U64(finish(pid), 0);
	CHECK(heapinject_stop(h, NULL) == -ESRCH);
	CHECK(heapinject_detach(h, NULL) == -ESRCH);
	CHECK(counted(h) > 0);
}

#endif
