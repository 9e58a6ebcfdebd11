/* build: gcc -O2 -g -fomit-frame-pointer -pthread */
/*
 * waits_c SECONDS [MODE...]: threads wait in known ways and measure it. Each mode can run alone;
 * without modes all except the CPU-bound ones run together. The waiting function is named wait_*,
 * or idle_* if the thread has nothing to do; nothing else waits in it. Files are created in the
 * current directory, which must support O_DIRECT. waits_truth.h describes the output.
 */
#include "waits_truth.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FILE_BYTES (16u << 20)
#define PAGE       4096u

static double seconds = 2;
static pthread_t started[THREADS];
static unsigned nr_started;

static void start(void *(*fn)(void *), uintptr_t arg)
{
	pthread_create(&started[nr_started], NULL, fn, (void *)arg);
	nr_started++;
}

static void begin_nr(const char *name, void *arg)
{
	char text[16];
	snprintf(text, sizeof(text), "%s-%u", name, (unsigned)(uintptr_t)arg % 10);
	begin(text);
}

/* A thread's pause between two waits: it books itself as sleep. */
static FAR void wait_sleep(uint64_t us)
{
	struct clocks t = now();
	sleep_us(us);
	spent("sleep", t);
}

/* ---- locks ------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock;

static FAR void wait_lock(void)
{
	struct clocks t = now();
	pthread_mutex_lock(&lock);
	spent("lock", t);
}

static FAR void release_lock(void)
{
	pthread_mutex_unlock(&lock);
	STAY();
}

static FAR void *lock_thread(void *arg)
{
	begin_nr("lock", arg);
	while (!is_over) {
		wait_lock();
		burn_us(jitter_us(40));
		wait_sleep(jitter_us(150));
		release_lock();
		burn_us(jitter_us(20));
	}
	end();
	return NULL;
}

static FAR void wait_rwlock(bool is_writer)
{
	struct clocks t = now();
	if (is_writer)
		pthread_rwlock_wrlock(&rwlock);
	else
		pthread_rwlock_rdlock(&rwlock);
	spent("rwlock", t);
}

static FAR void *rwlock_thread(void *arg)
{
	bool is_writer = !arg;
	begin_nr("rwlock", arg);
	while (!is_over) {
		wait_rwlock(is_writer);
		wait_sleep(jitter_us(200));
		pthread_rwlock_unlock(&rwlock);
		burn_us(jitter_us(20));
	}
	end();
	return NULL;
}

static void start_lock(void)
{
	for (uintptr_t i = 0; i < 4; i++)
		start(lock_thread, i);
}

static void start_rwlock(void)
{
	pthread_rwlockattr_t attr;
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&rwlock, &attr); /* readers alone would keep the writer out */
	for (uintptr_t i = 0; i < 4; i++)
		start(rwlock_thread, i);
}

/* ---- waiting for work -------------------------------------------------------------------- */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned nr;
};

static struct queue pipeline = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static struct queue pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static sem_t semaphore;

/* The signal comes after the unlock: the consumer does not meet the mutex held. */
static FAR void give_work(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->nr++;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_signal(&q->cond);
	STAY();
}

static FAR void idle_condvar(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	struct clocks t = now();
	while (!q->nr && !is_over)
		pthread_cond_wait(&q->cond, &q->lock);
	spent("condvar", t);
	if (q->nr)
		q->nr--;
	pthread_mutex_unlock(&q->lock);
}

static FAR void *producer_thread(void *arg)
{
	begin("producer");
	while (!is_over) {
		wait_sleep(jitter_us(300));
		burn_us(jitter_us(20));
		give_work(&pipeline);
	}
	give_work(&pipeline);
	end();
	return arg;
}

static FAR void *consumer_thread(void *arg)
{
	begin("consumer");
	while (!is_over) {
		idle_condvar(&pipeline);
		burn_us(jitter_us(20));
	}
	end();
	return arg;
}

static FAR void *pool_thread(void *arg)
{
	begin_nr("pool", arg);
	while (!is_over) {
		idle_condvar(&pool);
		burn_us(jitter_us(20));
	}
	end();
	return NULL;
}

static FAR void *pool_boss(void *arg)
{
	begin("boss");
	while (!is_over) {
		wait_sleep(jitter_us(20000));
		give_work(&pool);
	}
	for (int i = 0; i < 4; i++)
		give_work(&pool);
	end();
	return arg;
}

static FAR void idle_semaphore(void)
{
	struct clocks t = now();
	while (sem_wait(&semaphore) && errno == EINTR)
		;
	spent("semaphore", t);
}

static FAR void *sem_thread(void *arg)
{
	begin("sem");
	while (!is_over) {
		idle_semaphore();
		burn_us(jitter_us(20));
	}
	end();
	return arg;
}

static FAR void *post_thread(void *arg)
{
	begin("post");
	while (!is_over) {
		wait_sleep(jitter_us(400));
		sem_post(&semaphore);
	}
	sem_post(&semaphore);
	end();
	return arg;
}

static void start_condvar(void)
{
	start(consumer_thread, 0);
	start(producer_thread, 0);
}

static void start_pool(void)
{
	for (uintptr_t i = 0; i < 4; i++)
		start(pool_thread, i);
	start(pool_boss, 0);
}

static void start_sem(void)
{
	sem_init(&semaphore, 0, 0);
	start(sem_thread, 0);
	start(post_thread, 0);
}

/* ---- files ------------------------------------------------------------------------------- */

static void must(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "waits_c: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A file of its own for each thread; written through, so that its pages can be dropped. */
static int make_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0, name);
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; i < FILE_BYTES / sizeof(block); i++)
		must(write(fd, block, sizeof(block)) == sizeof(block), name);
	must(!fsync(fd), name);
	return fd;
}

static uint64_t any_page(void)
{
	return (uint64_t)rand_r(&me->seed) % (FILE_BYTES / PAGE) * PAGE;
}

static FAR void wait_fsync(int fd)
{
	struct clocks t = now();
	must(!fsync(fd), "fsync");
	spent("fsync", t);
}

static FAR void wait_write(int fd, const void *page)
{
	struct clocks t = now();
	must(pwrite(fd, page, PAGE, (off_t)any_page()) == PAGE, "pwrite");
	spent("write", t);
}

static FAR void *fsync_thread(void *arg)
{
	static char page[PAGE];
	int fd = (int)(intptr_t)arg;
	begin("fsync");
	while (!is_over) {
		wait_write(fd, page);
		wait_fsync(fd);
		burn_us(jitter_us(20));
	}
	end();
	close(fd);
	return NULL;
}

static FAR void wait_direct(int fd, void *page)
{
	struct clocks t = now();
	must(pread(fd, page, PAGE, (off_t)any_page()) == PAGE, "pread O_DIRECT");
	spent("direct", t);
}

static FAR void *direct_thread(void *arg)
{
	int fd = (int)(intptr_t)arg;
	begin("direct");
	void *page = aligned_alloc(PAGE, PAGE);
	while (!is_over) {
		wait_direct(fd, page);
		burn_us(jitter_us(20));
	}
	end();
	free(page);
	close(fd);
	return NULL;
}

static FAR void drop_pages(int fd)
{
	struct clocks t = now();
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	spent("drop", t);
}

static FAR void wait_read(int fd, void *page, uint64_t at)
{
	struct clocks t = now();
	must(pread(fd, page, PAGE, (off_t)at) == PAGE, "pread");
	spent("read", t);
}

static FAR void *read_thread(void *arg)
{
	static char page[PAGE];
	int fd = (int)(intptr_t)arg;
	begin("read");
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	while (!is_over) {
		uint64_t at = any_page();
		drop_pages(fd);
		wait_read(fd, page, at);
		burn_us(jitter_us(20));
	}
	end();
	close(fd);
	return NULL;
}

static FAR void wait_fault(const volatile char *at)
{
	struct clocks t = now();
	(void)*at;
	spent("fault", t);
}

static FAR void *fault_thread(void *arg)
{
	int fd = (int)(intptr_t)arg;
	begin("fault");
	char *map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	must(map != MAP_FAILED, "mmap");
	madvise(map, FILE_BYTES, MADV_RANDOM);
	while (!is_over) {
		madvise(map, FILE_BYTES, MADV_DONTNEED);
		drop_pages(fd);
		for (int i = 0; i < 100 && !is_over; i++)
			wait_fault(map + any_page());
	}
	end();
	munmap(map, FILE_BYTES);
	close(fd);
	return NULL;
}

static void start_fsync(void)
{
	start(fsync_thread, (uintptr_t)make_file("waits.fsync"));
}

static void start_direct(void)
{
	close(make_file("waits.direct"));
	int fd = open("waits.direct", O_RDONLY | O_DIRECT);
	must(fd >= 0, "open O_DIRECT");
	start(direct_thread, (uintptr_t)fd);
}

static void start_read(void)
{
	start(read_thread, (uintptr_t)make_file("waits.read"));
}

static void start_fault(void)
{
	start(fault_thread, (uintptr_t)make_file("waits.fault"));
}

/* ---- descriptors ------------------------------------------------------------------------- */

struct peers {
	int in;  /* waits here */
	int out; /* the other one writes there */
	const char *name;
};

static struct peers pipe_peers, pair_peers, tcp_peers, epoll_peers;

static FAR void wait_pipe(int fd)
{
	char c;
	struct clocks t = now();
	(void)!read(fd, &c, 1);
	spent("pipe", t);
}

static FAR void wait_socket(int fd)
{
	char c;
	struct clocks t = now();
	(void)!recv(fd, &c, 1, 0);
	spent("socket", t);
}

static FAR void idle_epoll(int epoll, int fd)
{
	struct epoll_event ev;
	char c;
	struct clocks t = now();
	int n = epoll_wait(epoll, &ev, 1, 1000);
	spent("epoll", t);
	if (n == 1)
		(void)!read(fd, &c, 1);
}

static FAR void idle_poll(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct clocks t = now();
	poll(&p, 1, (int)(1 + rand_r(&me->seed) % 3));
	spent("poll", t);
}

static FAR void *reader_thread(void *arg)
{
	struct peers *p = arg;
	begin(p->name);
	int epoll = -1;
	if (p == &epoll_peers) {
		epoll = epoll_create1(0);
		struct epoll_event ev = {.events = EPOLLIN};
		epoll_ctl(epoll, EPOLL_CTL_ADD, p->in, &ev);
	}
	while (!is_over) {
		if (epoll >= 0)
			idle_epoll(epoll, p->in);
		else if (p == &pipe_peers)
			wait_pipe(p->in);
		else
			wait_socket(p->in);
		burn_us(jitter_us(20));
	}
	end();
	return NULL;
}

static FAR void *writer_thread(void *arg)
{
	struct peers *p = arg;
	char name[16];
	snprintf(name, sizeof(name), "%s-peer", p->name);
	begin(name);
	for (bool is_last = false; !is_last;) {
		wait_sleep(jitter_us(400));
		is_last = is_over;
		(void)!write(p->out, "x", 1);
	}
	end();
	return NULL;
}

static FAR void *poll_thread(void *arg)
{
	int fds[2];
	must(!pipe(fds), "pipe");
	begin("poll");
	while (!is_over)
		idle_poll(fds[0]);
	end();
	return arg;
}

static void start_peers(struct peers *p, const char *name, int in, int out)
{
	*p = (struct peers){in, out, name};
	start(reader_thread, (uintptr_t)p);
	start(writer_thread, (uintptr_t)p);
}

static void start_pipe(void)
{
	int fds[2];
	must(!pipe(fds), "pipe");
	start_peers(&pipe_peers, "pipe", fds[0], fds[1]);
}

static void start_socket(void)
{
	int fds[2];
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	start_peers(&pair_peers, "unix", fds[0], fds[1]);
}

static void start_tcp(void)
{
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	must(!bind(server, (struct sockaddr *)&at, len) && !listen(server, 1), "listen");
	must(!getsockname(server, (struct sockaddr *)&at, &len), "getsockname");
	must(!connect(client, (struct sockaddr *)&at, len), "connect");
	start_peers(&tcp_peers, "tcp", accept(server, NULL, NULL), client);
}

static void start_epoll(void)
{
	int fds[2];
	must(!pipe(fds), "pipe");
	start_peers(&epoll_peers, "epoll", fds[0], fds[1]);
}

static void start_poll(void)
{
	start(poll_thread, 0);
}

/* ---- sleep, children, run queue ---------------------------------------------------------- */

static FAR void *sleep_thread(void *arg)
{
	begin("sleep");
	while (!is_over) {
		wait_sleep(jitter_us(3000));
		burn_us(jitter_us(20));
	}
	end();
	return arg;
}

static FAR void wait_child(pid_t pid)
{
	struct clocks t = now();
	while (wait4(pid, NULL, 0, NULL) < 0 && errno == EINTR)
		;
	spent("child", t);
}

static FAR void *child_thread(void *arg)
{
	begin("child");
	while (!is_over) {
		char text[32];
		snprintf(text, sizeof(text), "0.%06u", (unsigned)jitter_us(5000));
		char *const argv[] = {"sleep", text, NULL};
		pid_t pid =
			0; /* not fork(): copying the memory stops the other threads in faults */
		if (posix_spawnp(&pid, "sleep", NULL, NULL, argv, environ))
			pid = 0;
		if (pid > 0)
			wait_child(pid);
	}
	end();
	return arg;
}

static FAR void burn_shared(void)
{
	struct clocks t = now();
	burn_us(2000);
	spent("burn", t);
}

/* Three on the first CPU: at most one of them runs. */
static FAR void *burn_thread(void *arg)
{
	begin_nr("burn", arg);
	pin(0);
	while (!is_over)
		burn_shared();
	end();
	return NULL;
}

static FAR void *migrate_thread(void *arg)
{
	begin("migrate");
	int nr = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (int cpu = 0; !is_over; cpu++) {
		pin(cpu % nr);
		wait_sleep(jitter_us(200));
		burn_us(jitter_us(20));
	}
	end();
	return arg;
}

static int forever_pipe[2];

/* One wait from before a capture that attaches until after it. */
static FAR void wait_forever(void)
{
	char c;
	struct clocks t = now();
	(void)!read(forever_pipe[0], &c, 1);
	spent("forever", t);
}

static FAR void *forever_thread(void *arg)
{
	begin("forever");
	wait_forever();
	end();
	return arg;
}

static FAR void wait_born(void)
{
	struct clocks t = now();
	sleep_us(jitter_us(3000));
	spent("born", t);
}

static FAR void *born_thread(void *arg)
{
	begin("born");
	wait_born();
	end();
	return arg;
}

static FAR void wait_join(pthread_t t)
{
	struct clocks at = now();
	pthread_join(t, NULL);
	spent("join", at);
}

static FAR void *births_thread(void *arg)
{
	begin("births");
	for (int i = 0; i < 100 && !is_over; i++) {
		pthread_t t;
		pthread_create(&t, NULL, born_thread, NULL);
		wait_join(t);
	}
	end();
	return arg;
}

static void start_sleep(void)
{
	start(sleep_thread, 0);
}

static void start_child(void)
{
	start(child_thread, 0);
}

static void start_burn(void)
{
	for (uintptr_t i = 0; i < 3; i++)
		start(burn_thread, i);
}

static void start_migrate(void)
{
	start(migrate_thread, 0);
}

static void start_forever(void)
{
	must(!pipe(forever_pipe), "pipe");
	start(forever_thread, 0);
}

static void start_births(void)
{
	start(births_thread, 0);
}

static const struct {
	const char *name;
	void (*start)(void);
	bool is_alone; /* only when it is asked for */
} modes[] = {
	{"lock", start_lock, false},       {"rwlock", start_rwlock, false},
	{"condvar", start_condvar, false}, {"pool", start_pool, false},
	{"sem", start_sem, false},         {"fsync", start_fsync, false},
	{"direct", start_direct, false},   {"read", start_read, false},
	{"fault", start_fault, false},     {"pipe", start_pipe, false},
	{"unix", start_socket, false},     {"tcp", start_tcp, false},
	{"epoll", start_epoll, false},     {"poll", start_poll, false},
	{"sleep", start_sleep, false},     {"child", start_child, false},
	{"migrate", start_migrate, false}, {"forever", start_forever, false},
	{"births", start_births, false},   {"burn", start_burn, true},
};

static FAR void wait_end(void)
{
	struct clocks t = now();
	sleep_us((uint64_t)(seconds * 1e6));
	is_over = true;
	if (forever_pipe[1])
		(void)!write(forever_pipe[1], "x", 1);
	for (unsigned i = 0; i < nr_started; i++)
		pthread_join(started[i], NULL);
	spent("main", t);
}

int main(int argc, char **argv)
{
	begin("main");
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		bool is_on = argc < 3 && !modes[i].is_alone;
		for (int k = 2; k < argc; k++)
			is_on = is_on || !strcmp(argv[k], modes[i].name);
		if (is_on)
			modes[i].start();
	}
	must(nr_started, "no such mode");
	wait_end();
	end();
	return 0;
}
