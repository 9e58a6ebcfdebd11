/* build: gcc -O2 -g -fomit-frame-pointer -pthread */
/*
 * holders SECONDS KIND DOING [NAME=VALUE...]: threads wait for a lock; which thread held it at each
 * instant of each wait is known exactly.
 *
 * KIND: mutex, recursive, errorcheck, pi, rwlock (the holder writes, others read and write), rwread (the
 * holder reads, others write), sem, sysv, flock, pipe (a byte in a pipe is the lock)
 * DOING, what the holder does while it holds the lock: burn, fsync, fault (major faults), minor, sleep,
 * preempt (burns on a CPU that it shares with another thread)
 *	shape=planted    one thread holds long, the others briefly (default)
 *	shape=alternate  two threads hold long
 *	shape=convoy     all waiters hold equally long, there is no holder
 *	shape=chain2     waiters wait for a lock of "middle", which waits for the holder's lock
 *	shape=chain3     the same with two threads between
 *	waiters=N (1-32), hold=US (2000; preempt: 8000 of CPU time), others=NS (0), rest=US
 *
 * When it ends it prints the lines of waits_truth.h and
 *	{"waits":[{"waiter":NAME,"tid":TID,"ns":N,"n":N}]}
 *	{"blame":[{"waiter":NAME,"culprit":NAME,"doing":DOING,"ns":N}]}
 * "ns" of blame is the exact overlap of the waits with the culprit's holds, by timestamps taken right
 * after taking and right before releasing; a holder that waits for another lock passes the time on to
 * the holder of that one. Culprit "": nobody held it, the next thread had not yet run. Of several
 * readers that one is the holder that releases last.
 */
#include "../waits_truth.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sem.h>

#define FILE_BYTES (16u << 20)
#define PAGE       4096u
#define LOG_MAX    400000u
#define ACTORS     40
#define LOCKS      3

enum kind { MUTEX, RECURSIVE, ERRORCHECK, PI, RWLOCK, RWREAD, SEM, SYSV, FLOCK, PIPE, KIND_NR };
static const char *const kinds[] = {"mutex",  "recursive", "errorcheck", "pi",    "rwlock",
				    "rwread", "sem",       "sysv",       "flock", "pipe"};

struct lock {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	sem_t sem;
	int sysv;
	int pipe[2];
	char path[32];
};

struct span {
	uint64_t from_ns;
	uint64_t to_ns;
	unsigned actor;
	unsigned lock;
};

struct actor {
	char name[16];
	int tid;
	const char *doing;
	unsigned nr_holds;
	unsigned nr_waits;
	struct span *holds;
	struct span *waits;
};

static enum kind kind;
static struct lock locks[LOCKS];
static struct actor actors[ACTORS];
static unsigned nr_actors;
static __thread struct actor *self;
static __thread int files[LOCKS];
static const char *doing = "burn";
static const char *shape = "planted";
static unsigned nr_waiters = 1;
static uint64_t hold_us;
static uint64_t others_ns;
static uint64_t rest_us = UINT64_MAX;

/* ---- locks ------------------------------------------------------------------------------- */

static void make_lock(struct lock *l, unsigned idx)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	if (kind == RECURSIVE)
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	if (kind == ERRORCHECK)
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	if (kind == PI)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&l->mutex, &attr);
	pthread_rwlock_init(&l->rwlock, NULL);
	sem_init(&l->sem, 0, 1);
	if (kind == SYSV) {
		l->sysv = semget(IPC_PRIVATE, 1, 0600);
		semctl(l->sysv, 0, SETVAL, 1);
	}
	if (pipe(l->pipe) || write(l->pipe[1], "", 1) != 1)
		exit(1);
	snprintf(l->path, sizeof(l->path), "holders.lock%u", idx);
}

static void semop_add(struct lock *l, short add)
{
	struct sembuf op = {.sem_op = add, .sem_flg = 0};
	while (semop(l->sysv, &op, 1) && errno == EINTR)
		;
}

static FAR void take(unsigned idx, bool is_read)
{
	struct lock *l = &locks[idx];
	char byte;
	switch (kind) {
	case RECURSIVE:
		pthread_mutex_lock(&l->mutex); /* fall through */
	case MUTEX:
	case ERRORCHECK:
	case PI:
		pthread_mutex_lock(&l->mutex);
		break;
	case RWLOCK:
	case RWREAD:
		is_read ? pthread_rwlock_rdlock(&l->rwlock) : pthread_rwlock_wrlock(&l->rwlock);
		break;
	case SEM:
		while (sem_wait(&l->sem))
			;
		break;
	case SYSV:
		semop_add(l, -1);
		break;
	case FLOCK:
		while (flock(files[idx], LOCK_EX))
			;
		break;
	case PIPE:
		while (read(l->pipe[0], &byte, 1) != 1)
			;
		break;
	case KIND_NR:
		break;
	}
	STAY();
}

static FAR void release_held(unsigned idx)
{
	struct lock *l = &locks[idx];
	switch (kind) {
	case RECURSIVE:
		pthread_mutex_unlock(&l->mutex); /* fall through */
	case MUTEX:
	case ERRORCHECK:
	case PI:
		pthread_mutex_unlock(&l->mutex);
		break;
	case RWLOCK:
	case RWREAD:
		pthread_rwlock_unlock(&l->rwlock);
		break;
	case SEM:
		sem_post(&l->sem);
		break;
	case SYSV:
		semop_add(l, 1);
		break;
	case FLOCK:
		flock(files[idx], LOCK_UN);
		break;
	case PIPE:
		(void)!write(l->pipe[1], "", 1);
		break;
	case KIND_NR:
		break;
	}
	STAY();
}

/* ---- what is done while a lock is held --------------------------------------------------- */

static int hold_fd = -1;
static char *hold_map;
static char *hold_anon;

static void make_file(void)
{
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	hold_fd = open("holders.data", O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (unsigned i = 0; i < FILE_BYTES / sizeof(block); i++)
		if (write(hold_fd, block, sizeof(block)) < 0)
			exit(1);
	fsync(hold_fd);
	hold_map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, hold_fd, 0);
	madvise(hold_map, FILE_BYTES, MADV_RANDOM);
	hold_anon =
		mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(hold_anon, FILE_BYTES, MADV_NOHUGEPAGE);
}

static inline void spin_until(clockid_t clock, uint64_t until_ns)
{
	struct timespec ts;
	do
		clock_gettime(clock, &ts);
	while ((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec < until_ns);
}

static FAR void holding_burn(uint64_t ns)
{
	spin_until(CLOCK_MONOTONIC, mono_ns() + ns);
}

static FAR void holding_preempt(uint64_t ns)
{
	spin_until(CLOCK_THREAD_CPUTIME_ID, clock_of(CLOCK_THREAD_CPUTIME_ID) + ns);
}

static FAR void holding_sleep(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	nanosleep(&ts, NULL);
	STAY();
}

static FAR void holding_fsync(uint64_t ns)
{
	static char page[PAGE];
	uint64_t until_ns = mono_ns() + ns;
	do {
		(void)!pwrite(hold_fd, page, PAGE, (off_t)(rand_r(&me->seed) % 1024) * PAGE);
		fsync(hold_fd);
	} while (mono_ns() < until_ns);
}

static FAR void holding_fault(uint64_t ns)
{
	const volatile char *map = hold_map;
	uint64_t until_ns = mono_ns() + ns;
	do
		(void)map[(uint64_t)rand_r(&me->seed) % (FILE_BYTES / PAGE) * PAGE];
	while (mono_ns() < until_ns);
}

static FAR void holding_minor(uint64_t ns)
{
	volatile char *map = hold_anon;
	uint64_t until_ns = mono_ns() + ns;
	for (uint64_t at = 0; mono_ns() < until_ns; at = (at + PAGE) % FILE_BYTES)
		map[at] = 1;
}

static const struct activity {
	const char *key;
	void (*run)(uint64_t ns);
} activities[] = {{"burn", holding_burn},   {"preempt", holding_preempt}, {"sleep", holding_sleep},
		  {"fsync", holding_fsync}, {"fault", holding_fault},     {"minor", holding_minor}};
static const struct activity *activity;

/* What makes the next hold fault again; done before the lock is taken. */
static void drop_pages(void)
{
	if (activity->run == holding_fault) {
		madvise(hold_map, FILE_BYTES, MADV_DONTNEED);
		posix_fadvise(hold_fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	if (activity->run == holding_minor)
		madvise(hold_anon, FILE_BYTES, MADV_DONTNEED);
}

/* ---- threads ----------------------------------------------------------------------------- */

static void become_actor(unsigned idx, const char *name, const char *does)
{
	begin(name);
	self = &actors[idx];
	snprintf(self->name, sizeof(self->name), "%s", name);
	self->tid = me->tid;
	self->doing = does;
	self->holds = calloc(LOG_MAX, sizeof(*self->holds));
	self->waits = calloc(LOG_MAX, sizeof(*self->waits));
	for (unsigned i = 0; i < LOCKS; i++)
		files[i] = open(locks[i].path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (activity->run == holding_preempt)
		pin(strncmp(name, "holder", 6) ? 1 : 0);
}

static void log_span(struct span *log, unsigned *nr, uint64_t from_ns, uint64_t to_ns,
		     unsigned lock)
{
	if (*nr < LOG_MAX)
		log[(*nr)++] = (struct span){from_ns, to_ns, (unsigned)(self - actors), lock};
}

/* Returns when the lock was taken. */
static FAR uint64_t wait_held(unsigned lock, bool is_read)
{
	uint64_t from_ns = mono_ns();
	take(lock, is_read);
	uint64_t at_ns = mono_ns();
	log_span(self->waits, &self->nr_waits, from_ns, at_ns, lock);
	return at_ns;
}

static void give_back(unsigned lock, uint64_t taken_ns)
{
	uint64_t at_ns = mono_ns();
	release_held(lock);
	log_span(self->holds, &self->nr_holds, taken_ns, at_ns, lock);
}

/* Between three quarters and five quarters. */
static uint64_t about(uint64_t v)
{
	return v - v / 4 + (v ? (uint64_t)rand_r(&me->seed) % (v / 2 + 1) : 0);
}

static FAR void rest(uint64_t us)
{
	us = rest_us == UINT64_MAX ? us : rest_us;
	if (us)
		sleep_us(jitter_us(us));
}

static FAR void *holder_thread(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	become_actor(idx, idx ? "holder-b" : "holder", doing);
	while (!is_over) {
		drop_pages();
		uint64_t taken_ns = wait_held(0, kind == RWREAD);
		activity->run(about(hold_us * 1000));
		give_back(0, taken_ns);
		rest(300);
	}
	end();
	return arg;
}

static FAR void *waiter_thread(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	unsigned lock = !strcmp(shape, "chain2") ? 1 : !strcmp(shape, "chain3") ? 2 : 0;
	char name[16];
	snprintf(name, sizeof(name), "waiter-%c%c", 'a' + (int)idx / 26, 'a' + (int)idx % 26);
	become_actor(idx, name, "other");
	while (!is_over) {
		uint64_t taken_ns = wait_held(lock, kind == RWLOCK && idx % 2);
		if (others_ns)
			spin_until(CLOCK_MONOTONIC, taken_ns + about(others_ns));
		give_back(lock, taken_ns);
		rest(200);
	}
	end();
	return arg;
}

/* Holds lock n + 1 while it waits for lock n. */
static FAR void *middle_thread(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	become_actor(idx, idx == 1 ? "middle" : "middle-b", "other");
	while (!is_over) {
		uint64_t outer_ns = wait_held(idx, false);
		uint64_t inner_ns = wait_held(idx - 1, false);
		give_back(idx - 1, inner_ns);
		give_back(idx, outer_ns);
		rest(200);
	}
	end();
	return arg;
}

static FAR void *convoy_thread(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	char name[16];
	snprintf(name, sizeof(name), "convoy-%c", 'a' + (int)idx);
	become_actor(idx, name, doing);
	while (!is_over) {
		uint64_t taken_ns = wait_held(0, false);
		activity->run(about(hold_us * 1000));
		give_back(0, taken_ns);
		rest(50);
	}
	end();
	return arg;
}

/* ---- the truth --------------------------------------------------------------------------- */

static struct span *flat[LOCKS]; /* who held the lock, in order of time, without overlaps */
static unsigned nr_flat[LOCKS];
static uint64_t shares[ACTORS][ACTORS + 1]; /* [waiter][culprit]; the last: nobody */

static int by_start(const void *x, const void *y)
{
	const struct span *a = x;
	const struct span *b = y;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* Holds overlap if several threads read: then that one counts that ends last. */
static void flatten(unsigned lock)
{
	size_t n = 0;
	for (unsigned i = 0; i < nr_actors; i++)
		n += actors[i].nr_holds;
	struct span *all = calloc(n + 1, sizeof(*all));
	n = 0;
	for (unsigned i = 0; i < nr_actors; i++)
		for (unsigned k = 0; k < actors[i].nr_holds; k++)
			if (actors[i].holds[k].lock == lock)
				all[n++] = actors[i].holds[k];
	qsort(all, n, sizeof(*all), by_start);
	unsigned nr = 0;
	for (size_t i = 0; i < n; i++) {
		if (nr && all[nr - 1].to_ns >= all[i].to_ns)
			continue;
		if (nr && all[nr - 1].to_ns > all[i].from_ns)
			all[nr - 1].to_ns = all[i].from_ns;
		all[nr++] = all[i];
	}
	flat[lock] = all;
	nr_flat[lock] = nr;
}

/* The first span that ends after @at_ns. */
static unsigned first_after(const struct span *s, unsigned nr, uint64_t at_ns)
{
	unsigned low = 0;
	while (low < nr) {
		unsigned mid = low + (nr - low) / 2;
		if (s[mid].to_ns > at_ns)
			nr = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void blame_lock(unsigned waiter, unsigned lock, uint64_t from_ns, uint64_t to_ns);

/* @holder held a lock that @waiter waited for: its own waits are passed on. */
static void blame_holder(unsigned waiter, unsigned holder, uint64_t from_ns, uint64_t to_ns)
{
	const struct actor *a = &actors[holder];
	unsigned i = first_after(a->waits, a->nr_waits, from_ns);
	for (; i < a->nr_waits && a->waits[i].from_ns < to_ns; i++) {
		uint64_t start = a->waits[i].from_ns > from_ns ? a->waits[i].from_ns : from_ns;
		uint64_t stop = a->waits[i].to_ns < to_ns ? a->waits[i].to_ns : to_ns;
		shares[waiter][holder] += start - from_ns;
		blame_lock(waiter, a->waits[i].lock, start, stop);
		from_ns = stop;
	}
	shares[waiter][holder] += to_ns - from_ns;
}

static void blame_lock(unsigned waiter, unsigned lock, uint64_t from_ns, uint64_t to_ns)
{
	const struct span *s = flat[lock];
	unsigned i = first_after(s, nr_flat[lock], from_ns);
	for (; i < nr_flat[lock] && s[i].from_ns < to_ns; i++) {
		uint64_t start = s[i].from_ns > from_ns ? s[i].from_ns : from_ns;
		uint64_t stop = s[i].to_ns < to_ns ? s[i].to_ns : to_ns;
		shares[waiter][ACTORS] += start - from_ns;
		blame_holder(waiter, s[i].actor, start, stop);
		from_ns = stop;
	}
	shares[waiter][ACTORS] += to_ns - from_ns;
}

static void print_truth(void)
{
	for (unsigned i = 0; i < LOCKS; i++)
		flatten(i);
	printf("{\"waits\":[");
	for (unsigned i = 0; i < nr_actors; i++) {
		uint64_t ns = 0;
		for (unsigned k = 0; k < actors[i].nr_waits; k++) {
			const struct span *w = &actors[i].waits[k];
			ns += w->to_ns - w->from_ns;
			blame_lock(i, w->lock, w->from_ns, w->to_ns);
		}
		printf("%s{\"waiter\":\"%s\",\"tid\":%d,\"ns\":%llu,\"n\":%u}", i ? "," : "",
		       actors[i].name, actors[i].tid, (unsigned long long)ns, actors[i].nr_waits);
	}
	printf("]}\n{\"blame\":[");
	const char *comma = "";
	for (unsigned i = 0; i < nr_actors; i++) {
		for (unsigned k = 0; k <= ACTORS; k++) {
			if (!shares[i][k])
				continue;
			printf("%s{\"waiter\":\"%s\",\"culprit\":\"%s\",\"doing\":\"%s\",\"ns\":%llu}",
			       comma, actors[i].name, k < ACTORS ? actors[k].name : "",
			       k < ACTORS ? actors[k].doing : "", (unsigned long long)shares[i][k]);
			comma = ",";
		}
	}
	printf("]}\n");
}

/* ---- main -------------------------------------------------------------------------------- */

static bool parse(int argc, char **argv)
{
	for (kind = 0; kind < KIND_NR && strcmp(kinds[kind], argv[2]); kind++)
		;
	for (size_t i = 0; i < sizeof(activities) / sizeof(*activities); i++)
		if (!strcmp(activities[i].key, argv[3]))
			activity = &activities[i];
	for (int i = 4; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value++)
			return false;
		if (!strncmp(argv[i], "shape=", 6))
			shape = value;
		else if (!strncmp(argv[i], "waiters=", 8))
			nr_waiters = (unsigned)strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "hold=", 5))
			hold_us = strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "others=", 7))
			others_ns = strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "rest=", 5))
			rest_us = strtoul(value, NULL, 10);
		else
			return false;
	}
	doing = argv[3];
	return kind < KIND_NR && activity && nr_waiters && nr_waiters <= 32;
}

static unsigned start(pthread_t *to, void *(*thread)(void *))
{
	pthread_create(&to[nr_actors], NULL, thread, (void *)(uintptr_t)nr_actors);
	return nr_actors++;
}

int main(int argc, char **argv)
{
	if (argc < 4 || !parse(argc, argv)) {
		fprintf(stderr, "holders: see its source for the arguments\n");
		return 2;
	}
	bool is_convoy = !strcmp(shape, "convoy");
	if (!hold_us)
		hold_us = is_convoy ? 100 : !strcmp(doing, "preempt") ? 8000 : 2000;
	begin("main");
	make_file();
	for (unsigned i = 0; i < LOCKS; i++)
		make_lock(&locks[i], i);
	pthread_t threads[ACTORS];
	pthread_t rival;
	if (!strcmp(doing, "preempt"))
		pthread_create(&rival, NULL, rival_thread, NULL);
	if (!is_convoy)
		start(threads, holder_thread);
	if (!strcmp(shape, "alternate"))
		start(threads, holder_thread);
	if (!strncmp(shape, "chain", 5))
		start(threads, middle_thread);
	if (!strcmp(shape, "chain3"))
		start(threads, middle_thread);
	for (unsigned i = 0; i < nr_waiters; i++)
		start(threads, is_convoy ? convoy_thread : waiter_thread);
	sleep_us((uint64_t)(strtod(argv[1], NULL) * 1e6));
	is_over = true;
	for (unsigned i = 0; i < nr_actors; i++)
		pthread_join(threads[i], NULL);
	if (!strcmp(doing, "preempt"))
		pthread_join(rival, NULL);
	for (unsigned i = 0; kind == SYSV && i < LOCKS; i++)
		semctl(locks[i].sysv, 0, IPC_RMID);
	end();
	print_truth();
	return 0;
}
