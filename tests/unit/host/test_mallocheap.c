/* host/memory/mallocheap.c: what it finds in a process is what malloc says of itself. */
#include "base/base.h"

#include "host/memory/anon.h"
#include "host/memory/mallocheap.h"
#include "host/memory/maps.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* ---- a process with holes in its heap ------------------------------------------------------- */

#define BLOCKS 60000u

struct shape {
	size_t nr_bytes; /* of a block */
	size_t keep;     /* one block of so many is kept */
	bool is_thread;  /* in the arena of a thread */
	bool grows;      /* the heap, after its mappings were read */
};

struct truth {
	struct mallinfo2 info;
	uint64_t trimmed_bytes;
};

/* Without allocating. */
static uint64_t anon_bytes(void)
{
	char text[1024] = "";
	CLEANUP(close_p) int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	const char *anon = read(fd, text, sizeof(text) - 1) > 0 ? strstr(text, "Anonymous:") : NULL;
	if (!anon)
		_exit(1);
	return strtoull(anon + 10, NULL, 10) * 1024;
}

static void *make_holes(void *arg)
{
	const struct shape *s = arg;
	static char *blocks[BLOCKS];
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(s->nr_bytes);
		memset(blocks[i], 1, s->nr_bytes);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % s->keep)
			free(blocks[i]);
	return NULL;
}

static void write_truth(int fd, const struct truth *t)
{
	if (write(fd, t, sizeof(*t)) != (ssize_t)sizeof(*t))
		_exit(1);
}

/* Says what mallinfo2 says; after a byte from the parent, also what malloc_trim returned. */
static void run_child(const struct shape *s, int to, int from)
{
	struct truth t = {0};
	char go;
	pthread_t thread;
	if (!s->is_thread) {
		make_holes((void *)s);
	} else if (pthread_create(&thread, NULL, make_holes, (void *)s) ||
		   pthread_join(thread, NULL)) {
		_exit(1);
	}
	t.info = mallinfo2();
	write_truth(to, &t);
	if (s->grows) {
		if (read(from, &go, 1) != 1)
			_exit(1);
		make_holes((void *)s);
		t.info = mallinfo2();
		write_truth(to, &t);
	}
	if (read(from, &go, 1) != 1)
		_exit(1);
	uint64_t before = anon_bytes();
	(void)malloc_trim(0);
	t.trimmed_bytes = before - MIN(before, anon_bytes());
	write_truth(to, &t);
	pause();
}

static bool is_near(uint64_t a, uint64_t b, uint64_t tolerance)
{
	return (a > b ? a - b : b - a) <= tolerance;
}

static void check_shape(const struct shape *s)
{
	int up[2], down[2];
#ifdef __SANITIZE_ADDRESS__
	(void)s; /* its own allocator */
	return;
#endif
	struct truth t;
	struct memheap h = {0};
	CHECK(!pipe(up) && !pipe(down));
	pid_t pid = fork();
	if (!pid)
		run_child(s, up[1], down[0]);
	CHECK(read(up[0], &t, sizeof(t)) == (ssize_t)sizeof(t));
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CHECK(!memmaps_read(&m, pid, NULL, NULL));
	memanon_classify_all(&m, pid);
	if (s->grows)
		CHECK(write(down[1], "x", 1) == 1 &&
		      read(up[0], &t, sizeof(t)) == (ssize_t)sizeof(t));
	bool is_read = mallocheap_read(&h, &m, pid);
	CHECK(write(down[1], "x", 1) == 1 && read(up[0], &t, sizeof(t)) == (ssize_t)sizeof(t));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	CHECK(is_read);
	CHECK_U64(h.walked_bytes, h.total_bytes);
	CHECK(is_near(h.used_bytes, t.info.uordblks, 16384 + t.info.uordblks / 1000));
	CHECK(is_near(h.free_bytes, t.info.fordblks, 16384 + t.info.fordblks / 1000));
	CHECK(is_near(h.trimmable_bytes, t.trimmed_bytes, 8192));
}

TEST(mallocheap_tells_free_chunks_from_chunks_in_use)
{
	static const struct shape shapes[] = {
		{.nr_bytes = 1000, .keep = 50},
		{.nr_bytes = 300, .keep = 3},
	};
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		check_shape(&shapes[i]);
}

TEST(mallocheap_finds_chunks_in_fastbins)
{
	check_shape(&(struct shape){.nr_bytes = 100, .keep = 50});
}

TEST(mallocheap_finds_a_heap_that_grows)
{
	check_shape(&(struct shape){.nr_bytes = 1000, .keep = 50, .grows = true});
}

TEST(mallocheap_counts_a_main_heap_that_it_cannot_walk)
{
#ifndef __SANITIZE_ADDRESS__
	int up[2], down[2];
	struct truth t;
	struct memheap h = {0};
	const struct shape in_thread = {.nr_bytes = 1500, .keep = 20, .is_thread = true};
	CHECK(!pipe(up) && !pipe(down));
	pid_t pid = fork();
	if (!pid)
		run_child(&in_thread, up[1], down[0]);
	CHECK(read(up[0], &t, sizeof(t)) == (ssize_t)sizeof(t));
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CHECK(!memmaps_read(&m, pid, NULL, NULL));
	memanon_classify_all(&m, pid);
	vec_foreach(one, &m.list) { /* it has no top there */
		if (one->kind != MEMMAP_HEAP)
			continue;
		one->start = one->end + 4096;
		one->end = one->start + (64u << 20);
	}
	bool is_read = mallocheap_read(&h, &m, pid);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	CHECK(is_read);
	CHECK_U64(h.main_unread_bytes, 64u << 20);
	CHECK_U64(h.total_bytes - h.walked_bytes, 64u << 20);
#endif
}

TEST(mallocheap_walks_the_arenas_of_threads)
{
	/* More than one heap of 64 MiB. */
	check_shape(&(struct shape){.nr_bytes = 1500, .keep = 20, .is_thread = true});
	check_shape(&(struct shape){.nr_bytes = 90, .keep = 10, .is_thread = true});
}
