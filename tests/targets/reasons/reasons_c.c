/* build: gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/*
 * reasons_c SECONDS FILE: threads of C that wait for other threads (semaphore, join, barrier), that
 * yield, and that read FILE with O_DIRECT through libaio's system calls and io_uring, or wait there
 * with nothing in flight. Each measures its own waits; see waits_truth.h.
 */
#include "../waits_truth.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <semaphore.h>
#include <sys/mman.h>

#define BLOCK (256u << 10)
#define DEPTH 4

static sem_t permits;
static pthread_barrier_t barrier;
static const char *path;
static unsigned nr_rounds;

static FAR void rest(unsigned ms)
{
	struct clocks from = now();
	struct timespec ts = {0, ms * 1000000L};
	nanosleep(&ts, NULL);
	spent("sleep", from);
}

static FAR void wait_permit(void)
{
	struct clocks from = now();
	while (sem_wait(&permits)) {
	}
	spent("permit", from);
	STAY();
}

static void take_permits(void)
{
	while (!is_over)
		wait_permit();
}

static void give_permits(void)
{
	while (!is_over) {
		rest(30);
		sem_post(&permits);
	}
	sem_post(&permits);
}

static void *short_life(void *arg)
{
	struct timespec ts = {0, 40000000};
	nanosleep(&ts, NULL);
	return arg;
}

static FAR void wait_join(void)
{
	pthread_t child;
	if (pthread_create(&child, NULL, short_life, NULL))
		return;
	struct clocks from = now();
	pthread_join(child, NULL);
	spent("join", from);
	STAY();
}

static void join_all(void)
{
	while (!is_over)
		wait_join();
}

static FAR void wait_barrier(void)
{
	struct clocks from = now();
	pthread_barrier_wait(&barrier);
	spent("join", from);
	STAY();
}

static void arrive_early(void)
{
	for (unsigned i = 0; i < nr_rounds; i++)
		wait_barrier();
}

static void arrive_late(void)
{
	for (unsigned i = 0; i < nr_rounds; i++) {
		rest(40);
		wait_barrier();
	}
}

/* ---- libaio -------------------------------------------------------------------------------- */

static int open_direct(void **ret_block)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	if (fd < 0 || posix_memalign(ret_block, 4096, (size_t)DEPTH * BLOCK)) {
		perror(path);
		exit(1);
	}
	return fd;
}

static off_t next_block(void)
{
	me->seed = me->seed * 1103515245u + 12345u;
	return (off_t)(me->seed >> 8 & 63) * BLOCK;
}

static FAR void wait_aio(aio_context_t ctx, long least)
{
	static struct io_event events[DEPTH]; /* as in an engine; used again by each call */
	struct clocks from = now();
	(void)syscall(SYS_io_getevents, ctx, least, DEPTH, events, NULL);
	spent("disk", from);
	STAY();
}

static void read_aio(void)
{
	aio_context_t ctx = 0;
	void *block;
	int fd = open_direct(&block);
	if (syscall(SYS_io_setup, DEPTH, &ctx))
		return;
	while (!is_over) {
		struct iocb requests[DEPTH] = {{0}};
		struct iocb *all[DEPTH];
		for (unsigned i = 0; i < DEPTH; i++) {
			requests[i].aio_lio_opcode = IOCB_CMD_PREAD;
			requests[i].aio_fildes = (unsigned)fd;
			requests[i].aio_buf = (uintptr_t)block + i * BLOCK;
			requests[i].aio_nbytes = BLOCK;
			requests[i].aio_offset = next_block();
			all[i] = &requests[i];
		}
		if (syscall(SYS_io_submit, ctx, DEPTH, all) != DEPTH)
			return;
		wait_aio(ctx, DEPTH);
	}
}

/* As an I/O thread of a database without work. */
static FAR void idle_aio(aio_context_t ctx)
{
	struct io_event event;
	struct timespec timeout = {0, 50000000};
	struct clocks from = now();
	(void)syscall(SYS_io_getevents, ctx, 1, 1, &event, &timeout);
	spent("poll", from);
	STAY();
}

static void wait_for_aio(void)
{
	aio_context_t ctx = 0;
	if (syscall(SYS_io_setup, 128, &ctx))
		return;
	while (!is_over)
		idle_aio(ctx);
}

/* ---- io_uring ------------------------------------------------------------------------------ */

struct ring {
	int fd;
	char *sq;
	char *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static bool open_ring(struct ring *r)
{
	memset(&r->p, 0, sizeof(r->p));
	r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->p);
	if (r->fd < 0)
		return false;
	r->sq = mmap(NULL, r->p.sq_off.array + r->p.sq_entries * 4, PROT_READ | PROT_WRITE,
		     MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, r->p.cq_off.cqes + r->p.cq_entries * 16, PROT_READ | PROT_WRITE,
		     MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->fd, IORING_OFF_SQES);
	return r->sq != MAP_FAILED && r->cq != MAP_FAILED && r->sqes != MAP_FAILED;
}

static unsigned *at(char *ring, unsigned offset)
{
	return (void *)(ring + offset);
}

static struct io_uring_sqe *next_request(struct ring *r)
{
	unsigned *tail = at(r->sq, r->p.sq_off.tail);
	unsigned idx = *tail & *at(r->sq, r->p.sq_off.ring_mask);
	struct io_uring_sqe *e = &r->sqes[idx];
	memset(e, 0, sizeof(*e));
	at(r->sq, r->p.sq_off.array)[idx] = idx;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return e;
}

static FAR void wait_ring(struct ring *r, unsigned nr)
{
	struct clocks from = now();
	(void)syscall(SYS_io_uring_enter, r->fd, 0, nr, IORING_ENTER_GETEVENTS, NULL, 0);
	spent("disk", from);
	STAY();
}

static void reap(struct ring *r)
{
	__atomic_store_n(at(r->cq, r->p.cq_off.head),
			 __atomic_load_n(at(r->cq, r->p.cq_off.tail), __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static void read_ring(void)
{
	struct ring r;
	void *block;
	int fd = open_direct(&block);
	while (open_ring(&r) && !is_over) {
		for (; !is_over; reap(&r)) {
			for (unsigned i = 0; i < DEPTH; i++) {
				struct io_uring_sqe *e = next_request(&r);
				e->opcode = IORING_OP_READ;
				e->fd = fd;
				e->addr = (uintptr_t)block + i * BLOCK;
				e->len = BLOCK;
				e->off = (uint64_t)next_block();
			}
			(void)syscall(SYS_io_uring_enter, r.fd, DEPTH, 0, 0, NULL, 0);
			wait_ring(&r, DEPTH);
		}
	}
}

static FAR void idle_ring(struct ring *r)
{
	struct clocks from = now();
	(void)syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	spent("poll", from);
	STAY();
}

/* Waits for a timeout, as for a connection. */
static void wait_for_ring(void)
{
	struct ring r;
	struct __kernel_timespec timeout = {0, 50000000};
	if (!open_ring(&r))
		return;
	for (; !is_over; reap(&r)) {
		struct io_uring_sqe *e = next_request(&r);
		e->opcode = IORING_OP_TIMEOUT;
		e->fd = -1;
		e->addr = (uintptr_t)&timeout;
		e->len = 1;
		idle_ring(&r);
	}
}

/* ---- all ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{"permit", take_permits},   {"permits", give_permits}, {"join", join_all},
	{"barrier", arrive_early},  {"late", arrive_late},     {"aio", read_aio},
	{"aio-idle", wait_for_aio}, {"ring", read_ring},       {"ring-idle", wait_for_ring},
};

static void *run_thread(void *arg)
{
	uintptr_t kind = (uintptr_t)arg;
	begin(kinds[kind].name);
	kinds[kind].run();
	end();
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	pthread_t threads[16];
	size_t n = sizeof(kinds) / sizeof(kinds[0]);
	path = argc > 2 ? argv[2] : "/dev/null";
	nr_rounds = (unsigned)(seconds * 20);
	sem_init(&permits, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	for (uintptr_t i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *)i))
			return 1;
	struct timespec ts = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&ts, NULL);
	is_over = true;
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
