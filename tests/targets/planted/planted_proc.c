/* build: gcc -O2 -g -pthread */
/* planted_proc CASE ill|well SECONDS: processes that wait for each other, and idle ones; see planted.h. */
#include "planted.h"
#include <sys/wait.h>
#include <sys/socket.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <linux/futex.h>
#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <sys/timerfd.h>

/* childpipe: asks a child for each answer; the child needs 15 ms. well: the child is quick, work here */
static FAR void read_answer(int fd)
{
	char b[64];
	while (read(fd, b, sizeof(b)) < 0 && errno == EINTR)
		;
	STAY();
}
static void childpipe(void)
{
	int q[2], a[2];
	must(!pipe(q) && !pipe(a), "pipe");
	pid_t pid = fork();
	if (!pid) {
		char c;
		close(q[1]);
		while (read(q[0], &c, 1) == 1) {
			if (is_ill)
				sleep_us(15000);
			must(write(a[1], "answer", 6) == 6, "write");
		}
		_exit(0);
	}
	close(q[0]);
	struct clocks s = now();
	while (goes_on(s)) {
		must(write(q[1], "q", 1) == 1, "write");
		struct clocks f = now();
		read_answer(a[0]);
		count_wait(f);
		burn_us(is_ill ? 200 : 5000);
	}
	count_whole(s);
	close(q[1]);
	waitpid(pid, NULL, 0);
}
/* children: like make: starts children and waits for each. well: a job server with enough own work */
static FAR void run_step(void)
{
	pid_t p = fork();
	if (!p) {
		if (is_ill)
			sleep_us(20000);
		burn_us(1000);
		_exit(0);
	}
	if (!is_ill)
		burn_us(20000);
	struct clocks f = now();
	waitpid(p, NULL, 0);
	count_wait(f);
}
static void children(void)
{
	struct clocks s = now();
	while (goes_on(s))
		run_step();
	count_whole(s);
}

/* flock: two processes share a file lock, the other holds it for 20 ms */
static FAR void update_file(int fd)
{
	struct clocks f = now();
	must(!flock(fd, LOCK_EX), "flock");
	count_wait(f);
	burn_us(50);
	flock(fd, LOCK_UN);
}
static void filelock(void)
{
	int fd = open("lock.file", O_CREAT | O_RDWR, 0600);
	must(fd >= 0, "open");
	pid_t p = fork();
	if (!p) {
		int o = open("lock.file", O_RDWR);
		for (;;) {
			flock(o, LOCK_EX);
			if (is_ill)
				sleep_us(20000);
			flock(o, LOCK_UN);
			sleep_us(is_ill ? 1000 : 20000);
			if (getppid() == 1)
				_exit(0);
		}
	}
	struct clocks s = now();
	while (goes_on(s)) {
		update_file(fd);
		sleep_us(500);
		burn_us(200);
	}
	count_whole(s);
	kill(p, SIGKILL);
	waitpid(p, NULL, 0);
}
/* polling: waits for a flag by looking each 500 us; well: blocks on a pipe */
static volatile int ready;
static int ready_pipe[2];
static void *setter(void *a)
{
	while (!is_over) {
		sleep_us(20000);
		ready = 1;
		if (!is_ill)
			must(write(ready_pipe[1], "x", 1) == 1, "write");
	}
	return a;
}
static FAR void poll_until_ready(void)
{
	if (is_ill) {
		while (!ready && !is_over)
			usleep(500);
	} else {
		char c;
		must(read(ready_pipe[0], &c, 1) == 1, "read");
	}
	ready = 0;
	STAY();
}
static void *poller(void *a)
{
	struct clocks s = now();
	while (!is_over) {
		struct clocks f = now();
		poll_until_ready();
		count_wait(f);
		burn_us(500);
	}
	count_whole(s);
	return a;
}
static void polling(void)
{
	must(!pipe(ready_pipe), "pipe");
	start_thread(setter, NULL);
	run_threads(1, poller, NULL);
}

/* upstream: a server with epoll: each request asks a back end that takes 20 ms; one at a time (ill); well: quick back end, client thinks */
static FAR void serve(int client, int upstream, int ep)
{
	struct clocks s = now();
	while (!is_over) {
		struct epoll_event ev[8];
		struct clocks f = now();
		int n = epoll_wait(ep, ev, 8, 100);
		count_wait(f);
		for (int i = 0; i < n; i++) {
			char b[64];
			if (ev[i].data.fd == client) {
				must(read(client, b, 64) > 0, "read");
				burn_us(50);
				must(write(upstream, "u", 1) == 1, "write");
			} else {
				must(read(upstream, b, 64) > 0, "read");
				burn_us(50);
				must(write(client, "r", 1) == 1, "write");
			}
		}
	}
	count_whole(s);
}
static void *server(void *a)
{
	int *fds = a;
	int ep = epoll_create1(0);
	for (int i = 0; i < 2; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[i]};
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e);
	}
	serve(fds[0], fds[1], ep);
	return a;
}
static void upstream(void)
{
	int c[2], u[2];
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, c) && !socketpair(AF_UNIX, SOCK_STREAM, 0, u),
	     "socketpair");
	pid_t b = fork();
	if (!b) {
		char x;
		close(u[0]);
		while (read(u[1], &x, 1) == 1) {
			if (is_ill)
				sleep_us(20000);
			if (write(u[1], "a", 1) != 1)
				break;
		}
		_exit(0);
	}
	pid_t p = fork();
	if (!p) {
		char x;
		close(c[0]);
		for (;;) {
			if (!is_ill)
				sleep_us(20000);
			if (write(c[1], "q", 1) != 1 || read(c[1], &x, 1) != 1)
				_exit(0);
		}
	}
	int fds[2] = {c[0], u[0]};
	run_threads(1, server, fds);
	kill(b, SIGKILL);
	kill(p, SIGKILL);
	waitpid(b, 0, 0);
	waitpid(p, 0, 0);
}
/* parkpool: M:N: four OS threads with a futex word each and a queue of tasks; a task that needs an async lock is put aside; ill: the lock is held across a timer of 10 ms */
static int words[4];
static pthread_mutex_t ql = PTHREAD_MUTEX_INITIALIZER;
static int runnable, idle_mask;
static long waited_tasks, lock_held;
static void fut(int *w, int op, int v)
{
	syscall(SYS_futex, w, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0);
}
static FAR void park_worker(int i)
{
	while (!__atomic_exchange_n(&words[i], 0, __ATOMIC_ACQUIRE)) {
		if (is_over)
			return;
		fut(&words[i], FUTEX_WAIT, 0);
	}
	STAY();
}
static void unpark(int i)
{
	__atomic_store_n(&words[i], 1, __ATOMIC_RELEASE);
	fut(&words[i], FUTEX_WAKE, 1);
}
static void make_runnable(void)
{
	pthread_mutex_lock(&ql);
	runnable++;
	int i = idle_mask ? __builtin_ctz((unsigned)idle_mask) : -1;
	if (i >= 0)
		idle_mask &= ~(1 << i);
	pthread_mutex_unlock(&ql);
	if (i >= 0)
		unpark(i);
}
static void *mn_worker(void *a)
{
	int i = (int)(long)a;
	struct clocks s = now();
	while (!is_over) {
		pthread_mutex_lock(&ql);
		bool got = runnable > 0;
		if (got)
			runnable--;
		else
			idle_mask |= 1 << i;
		pthread_mutex_unlock(&ql);
		if (got)
			burn_us(is_ill ? 300 : 3000);
		else {
			struct clocks f = now();
			park_worker(i);
			count_wait(f);
		}
	}
	count_whole(s);
	return a;
}
static void *timers(void *a)
{
	while (!is_over) {
		sleep_us(is_ill ? 10000 : 2000);
		make_runnable();
	}
	return a;
}
static void wake_parked(void)
{
	for (int i = 0; i < 4; i++)
		unpark(i);
}
static void mnpool(void)
{
	wake_at_end = wake_parked;
	start_thread(timers, NULL);
	for (long i = 0; i < 3; i++)
		start_thread(mn_worker, (void *)(i + 1));
	run_threads(1, mn_worker, (void *)0);
}

/* osync: O_SYNC writes; well: plain writes and work */
static FAR void log_line(int fd)
{
	char b[512];
	memset(b, 'x', sizeof(b));
	struct clocks f = now();
	must(pwrite(fd, b, sizeof(b), 0) == sizeof(b), "write");
	count_wait(f);
}
static void osync(void)
{
	int fd = open("osync.log", O_CREAT | O_WRONLY | (is_ill ? O_SYNC : 0), 0600);
	must(fd >= 0, "open");
	struct clocks s = now();
	while (goes_on(s)) {
		log_line(fd);
		burn_us(is_ill ? 50 : 1000);
	}
	count_whole(s);
}
/* timer: a program with a timerfd of 50 ms: idle. well: the same with a busy thread */
static void *ticker(void *a)
{
	int t = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec it = {{0, 50000000}, {0, 50000000}};
	timerfd_settime(t, 0, &it, NULL);
	struct clocks s = now();
	while (!is_over) {
		uint64_t n;
		struct clocks f = now();
		must(read(t, &n, 8) == 8, "read");
		count_wait(f);
		burn_us(1000);
	}
	count_whole(s);
	return a;
}
static void *busy(void *a)
{
	while (!is_over)
		burn_us(1000);
	return a;
}
static void timer(void)
{
	if (!is_ill)
		start_thread(busy, NULL);
	run_threads(1, ticker, NULL);
}
static const struct planted cases[] = {
	{"childpipe", childpipe, "main waits for the answer of a child"},
	{"children", children, "main waits for the end of each child"},
	{"filelock", filelock,
	 "update_file waits for the lock of a file that another process holds"},
	{"polling", polling, "sleeps until a flag is set"},
	{"upstream", upstream, "a server in epoll waits for its back end"},
	{"mnpool", mnpool, "workers on futexes of their own have no tasks"},
	{"osync", osync, "log_line waits for O_SYNC writes"},
	{"timer", timer, "reads a timer descriptor"},
};
int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
