/* build: gcc -O2 -g -fno-ipa-icf -pthread */
/*
 * Threads and processes that live shortly. All times are of CLOCK_MONOTONIC; prints per thread
 * "TID FROM TO CPU KIND": it lived at least from FROM to TO and used CPU ns (-1: not known). A child has a
 * sixth number: it did not exist before that time.
 *
 *	shortlives exit THREADS MS      threads that sleep, yield and run until exit_group() ends them
 *	shortlives requests MS CPU_US   one thread after the other for MS; each uses CPU_US of CPU time,
 *	                                half of it in early() and half in late(). Prints only the CPU
 *	                                time of the process in ns
 *	shortlives fork MS LIFE_US      starts a child about every 400 us for MS, or until SIGTERM;
 *	                                each sleeps LIFE_US
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX 65536

struct life {
	int tid;
	long long forked, from, to, cpu;
};

static struct life *lives;
static int nr;
static int nr_reaped; /* all before this one */

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *run(void *arg)
{
	struct life *l = arg;
	int kind = (int)(l - lives) % 4;
	l->tid = (int)syscall(SYS_gettid);
	__atomic_store_n(&l->from, now(), __ATOMIC_RELEASE);
	for (;;) {
		if (kind == 0)
			pause();
		else if (kind == 1)
			usleep(1000);
		else if (kind == 2)
			sched_yield();
		for (volatile int i = 0; kind == 3 && i < 100000; i++)
			;
		if (kind == 3)
			usleep(3000);
	}
	return NULL;
}

static void print(const char *kind)
{
	for (int i = 0; i < nr; i++) {
		printf("%d %lld %lld %lld %s", lives[i].tid, lives[i].from, lives[i].to,
		       lives[i].cpu, kind);
		if (lives[i].forked)
			printf(" %lld", lives[i].forked);
		printf("\n");
	}
	fflush(stdout);
}

static void threads(int n, int ms)
{
	for (nr = 0; nr < n && nr < MAX; nr++) {
		pthread_t t;
		pthread_create(&t, NULL, run, &lives[nr]);
	}
	usleep((useconds_t)ms * 1000);
	for (int i = 0; i < nr; i++) {
		while (!__atomic_load_n(&lives[i].from, __ATOMIC_ACQUIRE))
			usleep(100);
		lives[i].cpu = -1;
	}
	for (int i = 0; i < nr; i++)
		lives[i].to = now();
	print("thread");
	_exit(0);
}

/*
 * What a child runs between its end and its last switch is not in its rusage if it is reaped before: it is
 * reaped a millisecond after its end.
 */
static void reap(void)
{
	struct rusage u;
	for (int i = nr_reaped; i < nr; i++) {
		long long end = __atomic_load_n(&lives[i].to, __ATOMIC_ACQUIRE);
		if (lives[i].cpu < 0 && end && now() > end + 1000000 &&
		    wait4(lives[i].tid, NULL, WNOHANG, &u) > 0)
			lives[i].cpu = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000ll +
				       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ll;
	}
	while (nr_reaped < nr && lives[nr_reaped].cpu >= 0)
		nr_reaped++;
}

static volatile sig_atomic_t is_ending;

static void on_term(int sig)
{
	(void)sig;
	is_ending = 1;
}

static void forks(int ms, int life_us)
{
	signal(SIGTERM, on_term);
	long long end = now() + ms * 1000000ll;
	for (; !is_ending && now() < end && nr < MAX; nr++) {
		lives[nr].cpu = -1;
		lives[nr].forked = now();
		int pid = fork();
		if (!pid) {
			lives[nr].from = now();
			usleep((useconds_t)life_us);
			__atomic_store_n(&lives[nr].to, now(), __ATOMIC_RELEASE);
			_exit(0);
		}
		lives[nr].tid = pid;
		usleep(300);
		reap();
	}
	for (; nr_reaped < nr; usleep(300))
		reap();
	print("child");
}

static volatile long nr_spins;

static void burn(long long us)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	long long end = t.tv_sec * 1000000000ll + t.tv_nsec + us * 1000;
	do {
		for (int i = 0; i < 5000; i++)
			nr_spins++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000000000ll + t.tv_nsec < end);
}

static __attribute__((noinline)) void early(long us)
{
	burn(us);
	nr_spins++;
}

static __attribute__((noinline)) void late(long us)
{
	burn(us);
	nr_spins++;
}

static void *request(void *arg)
{
	early((long)arg / 2);
	late((long)arg / 2);
	return NULL;
}

static void requests(int ms, int cpu_us)
{
	long long end = now() + ms * 1000000ll;
	struct timespec t;
	while (now() < end) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, request, (void *)(long)cpu_us))
			exit(1);
		pthread_join(thread, NULL);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	printf("%lld\n", t.tv_sec * 1000000000ll + t.tv_nsec);
}

int main(int argc, char **argv)
{
	lives = mmap(NULL, MAX * sizeof(*lives), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (argc != 4 || lives == MAP_FAILED)
		return 2;
	if (!strcmp(argv[1], "exit"))
		threads(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(argv[1], "requests"))
		requests(atoi(argv[2]), atoi(argv[3]));
	else
		forks(atoi(argv[2]), atoi(argv[3]));
	return 0;
}
