/* build: gcc -O1 -g -pthread */
/*
 * planted_held CASE ill|well SECONDS: three threads need a lock for a moment, and a fourth holds it while it
 * waits itself; well: that waits before it takes the lock. See planted.h.
 */
#define _GNU_SOURCE
#include "planted.h"
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*work)(void);

static FAR void look_up(void)
{
	pthread_mutex_lock(&table_lock);
	burn_us(20);
	pthread_mutex_unlock(&table_lock);
}

static FAR void *request_thread(void *arg)
{
	struct clocks start = now();
	while (!is_over) {
		struct clocks from = now();
		look_up();
		count_wait(from);
		burn_us(100);
		sleep_us(500);
	}
	count_whole(start);
	return arg;
}

static FAR void *update_table(void *arg)
{
	while (!is_over) {
		if (!is_ill)
			work();
		pthread_mutex_lock(&table_lock);
		if (is_ill)
			work();
		burn_us(20);
		pthread_mutex_unlock(&table_lock);
		sleep_us(200);
	}
	return arg;
}

static void run_held(void (*f)(void))
{
	work = f;
	pthread_t updater = start_thread(update_table, NULL);
	pthread_setname_np(updater, "updater");
	run_threads(3, request_thread, NULL);
	pthread_join(updater, NULL);
}

/* synced: the lock is held for 20 writes of a file, each with its sync. */
static int file = -1;

static FAR void append_log(void)
{
	static const char line[4096];
	for (int i = 0; i < 20; i++) {
		must(pwrite(file, line, sizeof(line), i * 4096) == sizeof(line), "pwrite");
		must(!fdatasync(file), "fdatasync");
	}
	STAY();
}

static void synced(void)
{
	must((file = open("held.log", O_CREAT | O_RDWR | O_TRUNC, 0600)) >= 0, "open");
	run_held(append_log);
}

/* read: the lock is held for reads of a file that pass the page cache. */
static char page[4096] __attribute__((aligned(4096)));

static FAR void load_pages(void)
{
	for (int i = 0; i < 50; i++)
		must(pread(file, page, sizeof(page), rand() % 16384 * 4096l) >= 0, "pread");
	STAY();
}

static void read_file(void)
{
	must((file = open("blocks", O_RDONLY | O_DIRECT)) >= 0, "open");
	run_held(load_pages);
}

/* remote: the lock is held until a server, another process, has answered. */
static int ends[2];

static void serve(void)
{
	char c;
	while (recv(ends[1], &c, 1, 0) == 1) {
		sleep_us(10000);
		must(send(ends[1], &c, 1, 0) == 1, "send");
	}
	_exit(0);
}

static FAR void ask_server(void)
{
	char c = 0;
	must(send(ends[0], &c, 1, 0) == 1 && recv(ends[0], &c, 1, 0) == 1, "server");
	STAY();
}

static void remote(void)
{
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	pid_t child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		close(ends[0]);
		serve();
	}
	run_held(ask_server);
	close(ends[0]); /* it ends */
	waitpid(child, NULL, 0);
}

/* starved: who holds the lock has a low priority, and another thread takes the CPU. */
static FAR void *busy_thread(void *arg)
{
	while (!is_over)
		burn_us(1000);
	return arg;
}

static FAR void count_rows(void)
{
	static _Thread_local bool is_low;
	if (!is_low && is_ill)
		must(!setpriority(PRIO_PROCESS, 0, 19), "setpriority");
	is_low = true;
	burn_us(500);
	STAY();
}

static void starved(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	if (is_ill)
		start_thread(busy_thread, NULL);
	run_held(count_rows);
}

static const struct planted cases[] = {
	{"synced", synced, "threads wait for a lock while append_log syncs"},
	{"read", read_file, "threads wait for a lock while load_pages reads"},
	{"remote", remote, "threads wait for a lock while ask_server waits for an answer"},
	{"starved", starved, "threads wait for a lock while count_rows gets no CPU"},
};

int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
