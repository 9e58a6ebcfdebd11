/* build: gcc -O1 -g -pthread -laio */
/* planted_io CASE ill|well SECONDS: waits for disks, peers and pipes; see planted.h. The file "blocks" of
 * 64 MiB is read: the runner makes it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libaio.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "planted.h"

#define BLOCKS ((off_t)64 << 20)
static char *block;

static int open_blocks(int flags)
{
	int fd = open("blocks", O_RDONLY | flags);
	must(fd >= 0, "blocks");
	must(!posix_memalign((void **)&block, 4096, 65536), "memory");
	return fd;
}

static off_t any_offset(void)
{
	return (off_t)(random() % (BLOCKS / 65536)) * 65536;
}

/* aio: reads of 64 KiB with libaio, one at a time; well: a thread that asks for the results of reads that
 * nobody has made, as a storage engine's does when there is nothing to do. */
static io_context_t aio;

static FAR void aio_wait(struct timespec *timeout)
{
	struct io_event done;
	io_getevents(aio, 1, 1, &done, timeout);
	STAY();
}

static void aio_reads(void)
{
	int fd = open_blocks(O_DIRECT);
	must(!io_setup(8, &aio), "io_setup");
	struct clocks start = now();
	while (goes_on(start)) {
		struct iocb read, *list = &read;
		struct timespec timeout = {.tv_nsec = 100000000};
		io_prep_pread(&read, fd, block, 65536, any_offset());
		struct clocks from = now();
		if (is_ill)
			must(io_submit(aio, 1, &list) == 1, "io_submit");
		aio_wait(is_ill ? NULL : &timeout);
		count_wait(from);
		burn_us(20);
	}
	count_whole(start);
}

/* uring: the same with io_uring; well: waits with a poll for a socket that nobody writes to. */
struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void *map_ring(const struct ring *r, size_t n, off_t at)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, at);
	must(p != MAP_FAILED, "io_uring");
	return p;
}

static FAR void ring_wait(struct ring *r, struct io_uring_sqe request)
{
	unsigned *tail = (void *)(r->sq + r->p.sq_off.tail);
	unsigned *cq_tail = (void *)(r->cq + r->p.cq_off.tail);
	unsigned *cq_head = (void *)(r->cq + r->p.cq_off.head);
	unsigned at = *tail % r->p.sq_entries;
	r->sqes[at] = request;
	((unsigned *)(void *)(r->sq + r->p.sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == *cq_head)
		if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			break;
	__atomic_store_n(cq_head, __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	STAY();
}

static void *knocking_thread(void *arg)
{
	while (!is_over) {
		sleep_us(40000);
		if (write(*(int *)arg, "x", 1) != 1)
			break;
	}
	return NULL;
}

static void uring(void)
{
	int fd = open_blocks(O_DIRECT), pair[2];
	struct ring r = {0};
	r.fd = (int)syscall(SYS_io_uring_setup, 8, &r.p);
	must(r.fd >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "io_uring");
	r.sq = map_ring(&r, r.p.sq_off.array + r.p.sq_entries * 4, IORING_OFF_SQ_RING);
	r.cq = map_ring(&r, r.p.cq_off.cqes + r.p.cq_entries * 16, IORING_OFF_CQ_RING);
	r.sqes = map_ring(&r, r.p.sq_entries * sizeof(*r.sqes), IORING_OFF_SQES);
	if (!is_ill)
		start_thread(knocking_thread, &pair[1]);
	struct clocks start = now();
	while (goes_on(start)) {
		struct io_uring_sqe request = {.opcode = IORING_OP_READ, .fd = fd, .len = 65536};
		request.off = (uint64_t)any_offset();
		request.addr = (uintptr_t)block;
		if (!is_ill) {
			request = (struct io_uring_sqe){
				.opcode = IORING_OP_READ, .fd = pair[0], .len = 64};
			request.addr = (uintptr_t)block;
		}
		struct clocks from = now();
		ring_wait(&r, request);
		count_wait(from);
		burn_us(20);
	}
	count_whole(start);
}

/* fsync: each record of 4 KiB is forced to the disk; well: written and never forced. */
static FAR void commit_record(int fd)
{
	must(write(fd, block, 4096) == 4096, "write");
	struct clocks from = now();
	if (is_ill)
		fdatasync(fd);
	count_wait(from);
}

static void sync_writes(void)
{
	open_blocks(0);
	int fd = open("journal.data", O_CREAT | O_TRUNC | O_WRONLY, 0600);
	must(fd >= 0, "journal.data");
	struct clocks start = now();
	while (goes_on(start)) {
		lseek(fd, (off_t)(random() % 1000) * 4096, SEEK_SET);
		commit_record(fd);
		burn_us(20);
	}
	count_whole(start);
	unlink("journal.data");
}

/* disk: reads of 64 KiB that are not in the page cache, with a disk that the runner makes slow; well: the
 * same reads of what is in the cache. */
static FAR void read_block(int fd)
{
	must(pread(fd, block, 65536, any_offset()) == 65536, "pread");
	STAY();
}

static void disk(void)
{
	int fd = open_blocks(0);
	struct clocks start = now();
	while (goes_on(start)) {
		if (is_ill)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		struct clocks from = now();
		read_block(fd);
		count_wait(from);
		burn_us(50);
	}
	count_whole(start);
}

/* database: a mapped file of which pages are read at random, and fall out of the cache again; well: stay. */
static FAR unsigned look_up_page(const char *p)
{
	unsigned sum = 0;
	for (int i = 0; i < 16; i++)
		sum += (unsigned char)p[(random() % (BLOCKS / 4096)) * 4096];
	STAY();
	return sum;
}

static void database(void)
{
	int fd = open_blocks(0);
	char *p = mmap(NULL, (size_t)BLOCKS, PROT_READ, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "mmap");
	madvise(p, (size_t)BLOCKS, MADV_RANDOM);
	struct clocks start = now();
	for (unsigned i = 0; goes_on(start); i++) {
		if (is_ill && !(i & 63)) {
			madvise(p, (size_t)BLOCKS, MADV_DONTNEED);
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		}
		struct clocks from = now();
		look_up_page(p);
		count_wait(from);
		burn_us(100);
	}
	count_whole(start);
}

/* peer: requests to a server that takes 20 ms for each; well: a server's side, whose client asks every
 * 20 ms, in another process. */
static FAR void ask_server(int s)
{
	char c = 'q';
	if (is_ill)
		must(send(s, &c, 1, 0) == 1, "send");
	if (recv(s, &c, 1, 0) != 1)
		is_over = true;
	if (!is_ill)
		(void)!send(s, &c, 1, MSG_NOSIGNAL);
}

static void be_other_side(int s)
{
	signal(SIGPIPE, SIG_DFL);
	for (char c = 'a';;) {
		if (is_ill && recv(s, &c, 1, 0) != 1)
			_exit(0);
		sleep_us(20000);
		if (send(s, &c, 1, 0) != 1)
			_exit(0);
		if (!is_ill && recv(s, &c, 1, 0) != 1)
			_exit(0);
	}
}

static void peer(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(to);
	int l = socket(AF_INET, SOCK_STREAM, 0);
	must(!bind(l, (void *)&to, n) && !listen(l, 1) && !getsockname(l, (void *)&to, &n),
	     "listen");
	pid_t other = fork();
	if (!other) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		must(!connect(s, (void *)&to, n), "connect");
		be_other_side(s);
	}
	int s = accept(l, NULL, NULL);
	struct clocks start = now();
	while (goes_on(start) && !is_over) {
		struct clocks from = now();
		ask_server(s);
		count_wait(from);
		burn_us(300);
	}
	count_whole(start);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* resolver: asks a server that does not answer, waits 200 ms and asks again; well: an event loop that wakes
 * up every 200 ms, as nothing happens. */
static FAR void resolve_name(int s, const struct sockaddr_in *to)
{
	struct pollfd p = {.fd = s, .events = POLLIN};
	char question[32] = "\1\2\1\0\0\1";
	if (is_ill)
		must(sendto(s, question, sizeof(question), 0, (const void *)to, sizeof(*to)) == 32,
		     "sendto");
	poll(&p, 1, 200);
	STAY();
}

static void resolver(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(to);
	int s = socket(AF_INET, SOCK_DGRAM, 0), silent = socket(AF_INET, SOCK_DGRAM, 0);
	must(!bind(silent, (void *)&to, n) && !getsockname(silent, (void *)&to, &n), "bind");
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		resolve_name(s, &to);
		count_wait(from);
		burn_us(300);
	}
	count_whole(start);
}

/* pipe: writes into a pipe that is read slowly, by another process; well: reads from one into which
 * something is written now and then. */
static FAR void move_data(int fd)
{
	(void)!(is_ill ? write(fd, block, 65536) : read(fd, block, 65536));
	STAY();
}

static void pipe_end(void)
{
	int fds[2];
	open_blocks(0);
	must(!pipe(fds), "pipe");
	pid_t other = fork();
	while (!other) {
		sleep_us(5000);
		if ((is_ill ? read(fds[0], block, 4096) : write(fds[1], block, 4096)) <= 0)
			_exit(0);
	}
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		move_data(fds[is_ill]);
		count_wait(from);
		burn_us(300);
	}
	count_whole(start);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

static const struct planted cases[] = {
	{"aio", aio_reads, "main waits for its libaio reads (well: for none)"},
	{"uring", uring, "main waits for its io_uring reads of a file (well: of a socket)"},
	{"fsync", sync_writes, "main waits in fdatasync"},
	{"disk", disk, "main waits for reads of a slow disk"},
	{"database", database, "main waits for page faults that read a mapped file"},
	{"peer", peer, "main waits for a peer that answers slowly (well: for requests)"},
	{"resolver", resolver, "main waits for answers that do not come (well: for nothing)"},
	{"pipe", pipe_end, "main waits for the reader of its pipe (well: for data)"},
};

int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
