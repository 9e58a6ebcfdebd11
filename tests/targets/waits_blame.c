/* build: gcc -O2 -g -fomit-frame-pointer -pthread */
/*
 * waits_blame SECONDS MODE: threads wait for a lock while its holder has a known activity.
 *	fsync    the holder is in fsync (holding_fsync)
 *	fault    the holder is in major faults (holding_fault)
 *	sleep    the holder sleeps (holding_sleep)
 *	preempt  the holder runs on a CPU that it shares with others (holding_burn)
 *	chain    C waits for B's lock, B for A's lock, A sleeps (holding_sleep)
 *	convoy   threads that do little but take one lock in turn
 *	cycle    three threads, each holds a lock and asks for its neighbour's
 * What it prints, besides the lines of waits_truth.h: {"blame":[{"waiter":TID,"culprit":TID,
 * "doing":KEY,"ns":N}]}: the waiters' time, cut at the borders of what the holders did meanwhile.
 * Holders let go in release_held, waiters wait in wait_held.
 */
#include "waits_truth.h"

#include <fcntl.h>
#include <sys/mman.h>

#define FILE_BYTES (16u << 20)
#define PAGE       4096u
#define LOG_MAX    400000u

static double seconds = 2;

/* What a holder did from a moment on; "" = it holds nothing. */
struct step {
	uint64_t at_ns;
	const char *doing;
};

struct wait {
	uint64_t from_ns;
	uint64_t to_ns;
	unsigned culprit; /* index into actors */
};

struct actor {
	int tid;
	unsigned nr_steps;
	unsigned nr_waits;
	struct step *steps;
	struct wait *waits;
};

static struct actor actors[16];
static unsigned nr_actors;
static __thread struct actor *self;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static const char *doing_now = "sleep";

static void become_actor(const char *name, unsigned idx)
{
	begin(name);
	self = &actors[idx];
	self->tid = me->tid;
	self->steps = calloc(LOG_MAX, sizeof(*self->steps));
	self->waits = calloc(LOG_MAX, sizeof(*self->waits));
}

static void step(const char *doing)
{
	if (self->nr_steps < LOG_MAX)
		self->steps[self->nr_steps++] = (struct step){mono_ns(), doing};
}

/* ---- what is done while a lock is held --------------------------------------------------- */

static FAR void holding_fsync(int fd)
{
	static char page[PAGE];
	(void)!pwrite(fd, page, PAGE, (off_t)(rand_r(&me->seed) % 1024) * PAGE);
	step("fsync");
	fsync(fd);
	step("cpu");
}

static FAR void holding_fault(const volatile char *map)
{
	step("fault");
	for (int i = 0; i < 20; i++)
		(void)map[(uint64_t)rand_r(&me->seed) % (FILE_BYTES / PAGE) * PAGE];
	step("cpu");
}

static FAR void holding_sleep(void)
{
	step("sleep");
	sleep_us(jitter_us(3000));
	step("cpu");
}

static FAR void holding_burn(void)
{
	step("burn");
	burn_us(jitter_us(15000));
	step("cpu");
}

static FAR void release_held(pthread_mutex_t *m)
{
	step("");
	pthread_mutex_unlock(m);
	STAY();
}

static FAR void wait_held(pthread_mutex_t *m, unsigned culprit)
{
	struct clocks t = now();
	pthread_mutex_lock(m);
	spent("lock", t);
	if (self->nr_waits < LOG_MAX)
		self->waits[self->nr_waits++] = (struct wait){t.wall_ns, mono_ns(), culprit};
}

static FAR void rest(uint64_t us)
{
	struct clocks t = now();
	sleep_us(us);
	spent("sleep", t);
}

/* ---- threads ----------------------------------------------------------------------------- */

static int hold_fd = -1;
static char *hold_map;

static void make_file(void)
{
	hold_fd = open("waits.held", O_RDWR | O_CREAT | O_TRUNC, 0644);
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; i < FILE_BYTES / sizeof(block); i++)
		if (write(hold_fd, block, sizeof(block)) < 0)
			exit(1);
	fsync(hold_fd);
	hold_map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, hold_fd, 0);
	madvise(hold_map, FILE_BYTES, MADV_RANDOM);
}

static FAR void *holder_thread(void *arg)
{
	become_actor("holder", 0);
	if (!strcmp(doing_now, "burn"))
		pin(0);
	while (!is_over) {
		if (!strcmp(doing_now, "fault")) {
			madvise(hold_map, FILE_BYTES, MADV_DONTNEED);
			posix_fadvise(hold_fd, 0, 0, POSIX_FADV_DONTNEED);
		}
		pthread_mutex_lock(&first);
		step("cpu");
		if (!strcmp(doing_now, "fsync"))
			for (int i = 0; i < 10; i++)
				holding_fsync(hold_fd);
		else if (!strcmp(doing_now, "fault"))
			holding_fault(hold_map);
		else if (!strcmp(doing_now, "burn"))
			holding_burn();
		else
			holding_sleep();
		release_held(&first);
		rest(jitter_us(300));
	}
	end();
	return arg;
}

/* One waiter: with more the lock would be handed from waiter to waiter. */
static FAR void *waiter_thread(void *arg)
{
	become_actor("waiter", 1);
	if (!strcmp(doing_now, "burn"))
		pin(1);
	while (!is_over) {
		wait_held(&first, 0);
		release_held(&first);
		rest(jitter_us(200));
	}
	end();
	return arg;
}

static FAR void *middle_thread(void *arg)
{
	become_actor("middle", 1);
	while (!is_over) {
		pthread_mutex_lock(&second);
		step("lock");
		wait_held(&first, 0);
		step("cpu");
		pthread_mutex_unlock(&first);
		release_held(&second);
		rest(jitter_us(200));
	}
	end();
	return arg;
}

static FAR void *last_thread(void *arg)
{
	become_actor("last", 2);
	while (!is_over) {
		wait_held(&second, 1);
		release_held(&second);
		rest(jitter_us(200));
	}
	end();
	return arg;
}

static FAR void *convoy_thread(void *arg)
{
	become_actor("convoy", (unsigned)(uintptr_t)arg);
	while (!is_over) {
		wait_held(&first, self->nr_waits & 1);
		burn_us(jitter_us(100));
		release_held(&first);
	}
	end();
	return NULL;
}

static pthread_mutex_t ring[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				  PTHREAD_MUTEX_INITIALIZER};

/* Asks for the neighbour's lock with a limit of time, or the three would never go on. */
static FAR void wait_ring(pthread_mutex_t *m)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)jitter_us(4000) * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	struct clocks t = now();
	if (!pthread_mutex_timedlock(m, &until))
		pthread_mutex_unlock(m);
	spent("lock", t);
}

static FAR void *ring_thread(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	become_actor("ring", idx);
	while (!is_over) {
		pthread_mutex_lock(&ring[idx]);
		rest(jitter_us(500));
		wait_ring(&ring[(idx + 1) % 3]);
		pthread_mutex_unlock(&ring[idx]);
		rest(jitter_us(50));
	}
	end();
	return NULL;
}

/* ---- the truth --------------------------------------------------------------------------- */

struct share {
	const char *doing;
	uint64_t ns;
};

static void add_share(struct share *shares, const char *doing, uint64_t ns)
{
	for (unsigned i = 0; i < 8; i++) {
		if (shares[i].doing && strcmp(shares[i].doing, doing))
			continue;
		shares[i].doing = doing;
		shares[i].ns += ns;
		return;
	}
}

/* Cuts each wait at the culprit's steps; both logs are in order of time. */
static void print_waits(const struct actor *a, const struct actor *culprit, bool *is_first)
{
	struct share shares[8] = {{0}};
	unsigned k = 0;
	for (unsigned i = 0; i < a->nr_waits; i++) {
		const struct wait *w = &a->waits[i];
		if (&actors[w->culprit] != culprit)
			continue;
		while (k + 1 < culprit->nr_steps && culprit->steps[k + 1].at_ns <= w->from_ns)
			k++;
		for (unsigned j = k; j < culprit->nr_steps && culprit->steps[j].at_ns < w->to_ns;
		     j++) {
			uint64_t from = culprit->steps[j].at_ns;
			uint64_t to =
				j + 1 < culprit->nr_steps ? culprit->steps[j + 1].at_ns : w->to_ns;
			from = from > w->from_ns ? from : w->from_ns;
			to = to < w->to_ns ? to : w->to_ns;
			if (to > from && *culprit->steps[j].doing)
				add_share(shares, culprit->steps[j].doing, to - from);
		}
	}
	for (unsigned i = 0; i < 8 && shares[i].doing; i++) {
		printf("%s{\"waiter\":%d,\"culprit\":%d,\"doing\":\"%s\",\"ns\":%llu}",
		       *is_first ? "" : ",", a->tid, culprit->tid, shares[i].doing,
		       (unsigned long long)shares[i].ns);
		*is_first = false;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		const char *doing;
		void *(*threads[4])(void *);
	} modes[] = {
		{"fsync", "fsync", {holder_thread, waiter_thread}},
		{"fault", "fault", {holder_thread, waiter_thread}},
		{"sleep", "sleep", {holder_thread, waiter_thread}},
		{"preempt", "burn", {holder_thread, waiter_thread, rival_thread}},
		{"chain", "sleep", {holder_thread, middle_thread, last_thread}},
		{"convoy", "", {convoy_thread, convoy_thread, convoy_thread, convoy_thread}},
		{"cycle", "", {ring_thread, ring_thread, ring_thread}},
	};
	begin("main");
	seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
	const char *mode = argc > 2 ? argv[2] : "fsync";
	make_file();
	pthread_t t[4];
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(modes[i].mode, mode))
			continue;
		doing_now = modes[i].doing;
		for (; nr_actors < 4 && modes[i].threads[nr_actors]; nr_actors++)
			pthread_create(&t[nr_actors], NULL, modes[i].threads[nr_actors],
				       (void *)(uintptr_t)nr_actors);
	}
	rest((uint64_t)(seconds * 1e6));
	is_over = true;
	for (unsigned i = 0; i < nr_actors; i++)
		pthread_join(t[i], NULL);
	end();
	bool is_first = true;
	printf("{\"blame\":[");
	for (unsigned i = 0; i < nr_actors; i++)
		for (unsigned k = 0; k < nr_actors; k++)
			print_waits(&actors[i], &actors[k], &is_first);
	printf("]}\n");
	return nr_actors ? 0 : 1;
}
