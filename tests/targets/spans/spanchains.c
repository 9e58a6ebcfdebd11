/* build: gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/*
 * 240 slow requests, ten of each of 24 operations op_0 ... op_23, on three client threads. A request goes
 * through 3 to 6 threads by a lock, a pipe, a condition variable and a socket; the thread at its end, the
 * culprit, sleeps, calls fsync, computes or holds a lock. The program prints for each request
 *	op_N TID CALL_NS CULPRIT_TID CULPRIT_FUNCTION CULPRIT_NS
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OPS     24
#define ROUNDS  10
#define CLIENTS 3
#define STAGES  4

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static volatile uint64_t sink;

struct request {
	int op;
	int stage; /* of its client's chain */
	int last;  /* stage of the culprit */
	int culprit_tid;
	const char *culprit;
	uint64_t culprit_ns;
};

/* One client's threads: the client, and stages that each do the last work or pass it on. */
struct chain {
	struct request r;
	int pipes[2][2];      /* stage 0: there and back */
	int sockets[2];       /* stage 1 */
	pthread_mutex_t lock; /* stage 2: a condition variable */
	pthread_cond_t changed;
	int state;
	pthread_mutex_t held; /* stage 3 holds it, and says so through a pipe */
	int go[2], holds[2];
	int file;
};

/* ---- what the culprits do ------------------------------------------------------------------ */

__attribute__((noinline)) void culprit_sleep(struct chain *c)
{
	struct timespec ts = {0, 8000000 + c->r.op * 100000};
	nanosleep(&ts, NULL);
	sink++;
}

__attribute__((noinline)) void culprit_compute(struct chain *c)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + 4000000 + (uint64_t)c->r.op * 50000;
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		sink++;
}

__attribute__((noinline)) void culprit_fsync(struct chain *c)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 5000000;
	do {
		if (pwrite(c->file, "x", 1, 0) != 1 || fsync(c->file))
			abort();
	} while (now_ns(CLOCK_MONOTONIC) < end);
	sink++;
}

static void finish(struct chain *c)
{
	static void (*const what[])(struct chain *) = {culprit_sleep, culprit_compute,
						       culprit_fsync};
	static const char *const names[] = {"culprit_sleep", "culprit_compute", "culprit_fsync"};
	uint64_t start = now_ns(CLOCK_MONOTONIC);
	c->r.culprit_tid = (int)syscall(SYS_gettid);
	c->r.culprit = names[c->r.op % 3];
	what[c->r.op % 3](c);
	c->r.culprit_ns = now_ns(CLOCK_MONOTONIC) - start;
}

/* ---- the stages ---------------------------------------------------------------------------- */

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		abort();
}

static int get(int fd)
{
	char c;
	return read(fd, &c, 1) == 1;
}

static void pass_lock(struct chain *c)
{
	put(c->go[1]);
	if (!get(c->holds[0]))
		abort();
	pthread_mutex_lock(&c->held);
	pthread_mutex_unlock(&c->held);
}

static void pass_condition(struct chain *c)
{
	pthread_mutex_lock(&c->lock);
	c->state = 1;
	pthread_cond_broadcast(&c->changed);
	while (c->state != 2)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void pass_socket(struct chain *c)
{
	put(c->sockets[0]);
	if (!get(c->sockets[0]))
		abort();
}

static void pass_pipe(struct chain *c)
{
	put(c->pipes[0][1]);
	if (!get(c->pipes[1][0]))
		abort();
}

/* Does the work of a stage, or has the next one do it. */
static void work(struct chain *c, int stage)
{
	static void (*const pass[])(struct chain *) = {pass_pipe, pass_socket, pass_condition,
						       pass_lock};
	if (stage == c->r.last)
		finish(c);
	else
		pass[stage](c);
}

static void *stage_pipe(void *arg)
{
	struct chain *c = arg;
	while (get(c->pipes[0][0])) {
		work(c, 1);
		put(c->pipes[1][1]);
	}
	return NULL;
}

static void *stage_socket(void *arg)
{
	struct chain *c = arg;
	while (get(c->sockets[1])) {
		work(c, 2);
		put(c->sockets[1]);
	}
	return NULL;
}

static void *stage_condition(void *arg)
{
	struct chain *c = arg;
	for (;;) {
		pthread_mutex_lock(&c->lock);
		while (c->state != 1 && c->state != 3)
			pthread_cond_wait(&c->changed, &c->lock);
		int is_end = c->state == 3;
		pthread_mutex_unlock(&c->lock);
		if (is_end)
			return NULL;
		work(c, 3);
		pthread_mutex_lock(&c->lock);
		c->state = 2;
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
	}
}

static void *stage_lock(void *arg)
{
	struct chain *c = arg;
	while (get(c->go[0])) {
		pthread_mutex_lock(&c->held);
		put(c->holds[1]);
		work(c, 4);
		pthread_mutex_unlock(&c->held);
	}
	return NULL;
}

/* ---- the clients --------------------------------------------------------------------------- */

#define OP(n)                                                  \
	__attribute__((noinline)) void op_##n(struct chain *c) \
	{                                                      \
		work(c, 0);                                    \
		sink += n;                                     \
	}
OP(0)
OP(1)
OP(2)
OP(3)
OP(4)
OP(5)
OP(6)
OP(7)
OP(8)
OP(9)
OP(10)
OP(11)
OP(12)
OP(13)
OP(14)
OP(15)
OP(16)
OP(17)
OP(18)
OP(19)
OP(20)
OP(21)
OP(22)
OP(23)

static void (*const ops[OPS])(struct chain *) = {op_0,  op_1,  op_2,  op_3,  op_4,  op_5,
						 op_6,  op_7,  op_8,  op_9,  op_10, op_11,
						 op_12, op_13, op_14, op_15, op_16, op_17,
						 op_18, op_19, op_20, op_21, op_22, op_23};

static void *client(void *arg)
{
	int idx = *(int *)arg;
	struct chain c = {.lock = PTHREAD_MUTEX_INITIALIZER,
			  .changed = PTHREAD_COND_INITIALIZER,
			  .held = PTHREAD_MUTEX_INITIALIZER};
	void *(*const stages[STAGES])(void *) = {stage_pipe, stage_socket, stage_condition,
						 stage_lock};
	pthread_t threads[STAGES];
	char name[] = "spanchains.XXXXXX";
	c.file = mkstemp(name);
	if (c.file < 0 || unlink(name) || pipe(c.pipes[0]) || pipe(c.pipes[1]) || pipe(c.go) ||
	    pipe(c.holds) || socketpair(AF_UNIX, SOCK_STREAM, 0, c.sockets))
		abort();
	for (int i = 0; i < STAGES; i++)
		pthread_create(&threads[i], NULL, stages[i], &c);
	for (int k = 0; k < ROUNDS * OPS; k++) {
		int op = k % OPS;
		if (op % CLIENTS != idx)
			continue;
		c.r = (struct request){.op = op, .last = 2 + (op / 3) % 3};
		c.state = 0;
		uint64_t start = now_ns(CLOCK_MONOTONIC);
		ops[op](&c);
		printf("op_%d %d %llu %d %s %llu\n", op, (int)syscall(SYS_gettid),
		       (unsigned long long)(now_ns(CLOCK_MONOTONIC) - start), c.r.culprit_tid,
		       c.r.culprit, (unsigned long long)c.r.culprit_ns);
	}
	close(c.pipes[0][1]);
	shutdown(c.sockets[0], SHUT_RDWR);
	close(c.go[1]);
	pthread_mutex_lock(&c.lock);
	c.state = 3;
	pthread_cond_broadcast(&c.changed);
	pthread_mutex_unlock(&c.lock);
	for (int i = 0; i < STAGES; i++)
		pthread_join(threads[i], NULL);
	return NULL;
}

int main(void)
{
	pthread_t threads[CLIENTS];
	int idx[CLIENTS];
	for (int i = 0; i < CLIENTS; i++) {
		idx[i] = i;
		pthread_create(&threads[i], NULL, client, &idx[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
