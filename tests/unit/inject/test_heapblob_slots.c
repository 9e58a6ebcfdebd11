/*
 * Slots of the recorder (inject/), in this process: they are claimed by threads, and freed for
 * others when their threads have ended.
 */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <pthread.h>
#include <unistd.h>

#include "heapblob_fixture.h"

static void *allocate_one(void *arg)
{
	(void)hooked_malloc(100);
	memcpy(arg, &(uint64_t){(uint64_t)gettid()}, 8);
	return NULL;
}

TEST(heapblob_slot_of_a_thread_that_ended_is_taken_over)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .nr_slots = 4});
	uint64_t tids[20];
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		CHECK(pthread_create(&t, NULL, allocate_one, &tids[i]) == 0);
		pthread_join(t, NULL);
		/* The C library gives out the same stack again. */
		for (int k = 0; k < 4; k++)
			if (hw->slots[k].tid == tids[i])
				CHECK_U64(hw->slots[k].nr_allocs, (uint64_t)i + 1);
	}
	CHECK_U64(hw->shared->nr_no_slot, 0);
	CHECK(tids[18] != tids[19]);
	local_recorder_free(hw);
}

static pthread_barrier_t barrier;

static void *allocate_and_wait(void *arg)
{
	(void)arg;
	hooked_free(hooked_malloc(100));
	pthread_barrier_wait(&barrier);
	return NULL;
}

TEST(heapblob_counts_events_for_which_there_is_no_slot)
{
	enum { N = 10, SLOTS = 4 };
	begin(&(struct local_recorder_spec){.is_full_trace = true, .nr_slots = SLOTS});
	pthread_t t[N];
	pthread_barrier_init(&barrier, NULL, N);
	for (int i = 0; i < N; i++)
		CHECK(pthread_create(&t[i], NULL, allocate_and_wait, NULL) == 0);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	CHECK_U64(hw->shared->nr_no_slot, 2 * (N - SLOTS));
	CHECK_U64(hw->shared->nr_no_slot_bytes, 100 * (N - SLOTS));
	local_recorder_free(hw);
}

/* As assay does it, but at once. */
static void give_to_anybody(struct heap_slot *s)
{
	__atomic_store_n(&s->owner, s->owner | 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->owner, HEAP_OWNER_FREE, __ATOMIC_SEQ_CST);
}

TEST(heapblob_free_slot_is_claimed)
{
	enum { N = 10, SLOTS = 4 };
	begin(&(struct local_recorder_spec){.is_full_trace = true, .nr_slots = SLOTS});
	pthread_t t[N];
	pthread_barrier_init(&barrier, NULL, SLOTS + 1);
	for (int i = 0; i < SLOTS; i++)
		CHECK(pthread_create(&t[i], NULL, allocate_and_wait, NULL) == 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < SLOTS; i++) {
		pthread_join(t[i], NULL);
		local_recorder_skip(&hw->slots[i]);
		give_to_anybody(&hw->slots[i]);
	}
	hooked_free(hooked_malloc(100)); /* of a thread that had none */
	struct heap_slot *s = local_recorder_slot(hw);
	CHECK(s && s->nr_allocs == 2 && s->tid == (uint32_t)gettid());
	CHECK_U64(hw->shared->nr_no_slot, 0);
	CHECK_U64(hw->shared->nr_taken, SLOTS);

	/* Taken for dead: it takes it again, in the middle of whatever it does. */
	s->owner |= 1;
	s->tid = 1;
	hooked_free(hooked_malloc(100));
	CHECK_U64(s->nr_allocs, 3);
	CHECK_U64(s->tid, (uint64_t)gettid());

	/* Another has it by now: it finds one of its own. */
	give_to_anybody(s);
	s->owner = 0x7777000;
	hooked_free(hooked_malloc(100));
	CHECK_U64(s->nr_allocs, 3);
	CHECK(local_recorder_slot(hw) && local_recorder_slot(hw) != s);
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 2);
	CHECK_U64(hw->shared->nr_no_slot, 0);
	local_recorder_free(hw);
}

enum { NR_LIVES = 4000 };
static volatile bool is_over;
static uint64_t nr_given_on;

/* The drainer: reads all rings, and gives up slots of threads whether they live or not. */
static void *drain_and_give_on(void *arg)
{
	uint64_t *nr = arg;
	struct heap_seen r;
	for (uint32_t k = 0; !is_over; k++) {
		struct heap_slot *s = &hw->slots[k % hw->local->nr_slots];
		uint64_t owner = __atomic_load_n(&s->owner, __ATOMIC_ACQUIRE);
		while (next(s, &r))
			*nr += r.kind == HEAP_RECORD_ALLOC;
		if (!owner || owner & 1)
			continue;
		uint64_t given_up = owner | 1;
		__atomic_compare_exchange_n(&s->owner, &owner, given_up, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
		usleep(1); /* store buffers are empty by then */
		bool is_empty = s->head == s->tail && !s->is_inside;
		if (is_empty &&
		    __atomic_compare_exchange_n(&s->owner, &given_up, HEAP_OWNER_FREE, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			nr_given_on++;
	}
	return NULL;
}

static void *live_shortly(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++)
		hooked_free(hooked_malloc(100));
	return NULL;
}

/* Rings stay whole, and no event is lost but those that are counted or on their way meanwhile. */
TEST(heapblob_slots_are_retired_under_live_threads)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .nr_slots = 16});
	uint64_t nr = 0;
	struct heap_seen r;
	pthread_t drainer, t[4];
	is_over = false;
	CHECK(pthread_create(&drainer, NULL, drain_and_give_on, &nr) == 0);
	for (int i = 0; i < NR_LIVES; i++) {
		if (i >= 4)
			pthread_join(t[i % 4], NULL);
		CHECK(pthread_create(&t[i % 4], NULL, live_shortly, NULL) == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	is_over = true;
	pthread_join(drainer, NULL);
	for (uint32_t i = 0; i < hw->local->nr_slots; i++)
		while (next(&hw->slots[i], &r))
			nr += r.kind == HEAP_RECORD_ALLOC;
	CHECK(nr_given_on > 0);
	uint64_t lost = hw->shared->nr_no_slot;
	for (uint32_t i = 0; i < hw->local->nr_slots; i++)
		lost += hw->slots[i].nr_dropped;
	printf("# %llu of %d, %llu counted as lost, %llu given on\n", (unsigned long long)nr,
	       NR_LIVES * 50, (unsigned long long)lost, (unsigned long long)nr_given_on);
	CHECK(nr <= NR_LIVES * 50 && nr + lost > NR_LIVES * 50 * 0.99);
	local_recorder_free(hw);
}

#endif
