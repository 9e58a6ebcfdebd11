/* build: gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls */
/*
 * Reads 4096 bytes of FILE 500 times through io_uring, sequentially, in ring_read(); with a second argument
 * by io_uring's worker threads. Exits with 77 if io_uring is not available.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char block[4096];

static void *map_ring(int ring, size_t n, off_t what)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
	if (p != MAP_FAILED)
		return p;
	perror("mmap");
	exit(1);
}

__attribute__((noipa)) static void ring_read(int fd, int nr, unsigned char flags)
{
	struct io_uring_params p;
	memset(&p, 0, sizeof(p));
	int ring = (int)syscall(SYS_io_uring_setup, 8, &p);
	if (ring < 0)
		exit(77);
	char *sq = map_ring(ring, p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
	char *cq = map_ring(ring, p.cq_off.cqes + p.cq_entries * 16, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqes = map_ring(ring, p.sq_entries * sizeof(*sqes), IORING_OFF_SQES);
	unsigned *tail = (void *)(sq + p.sq_off.tail);
	unsigned mask = *(unsigned *)(void *)(sq + p.sq_off.ring_mask);
	unsigned *array = (void *)(sq + p.sq_off.array);
	unsigned *head = (void *)(cq + p.cq_off.head);
	for (int i = 0; i < nr; i++) {
		unsigned at = *tail & mask;
		memset(&sqes[at], 0, sizeof(sqes[at]));
		sqes[at].opcode = IORING_OP_READ;
		sqes[at].flags = flags;
		sqes[at].fd = fd;
		sqes[at].addr = (unsigned long)block;
		sqes[at].len = sizeof(block);
		sqes[at].off = (unsigned long)(i % 100) * sizeof(block);
		array[at] = at;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0)
		return 1;
	ring_read(fd, 500, argc > 2 ? IOSQE_ASYNC : 0);
	return 0;
}
